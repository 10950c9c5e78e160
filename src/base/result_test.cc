// SPDX-License-Identifier: Apache-2.0
//
// The TRY macros return early with the error, declare with the value, and may share a line's scope.
#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace jogak {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return invalid("halve {}: it is odd", n);
  return n / 2;
}

Result<int> quarter(int n) {
  JOGAK_TRY(const int once, half(n));
  JOGAK_TRY(const int twice, half(once));
  return twice;
}

Result<void> must_halve(int n) {
  JOGAK_TRY_VOID(half(n));
  return {};
}

TEST(Result, TryGivesTheValueOrReturnsTheError) {
  EXPECT_EQ(quarter(12).value(), 3);
  EXPECT_EQ(quarter(6).error(), (Error{.code = Errc::Invalid, .what = "halve 3: it is odd"}));
  EXPECT_EQ(quarter(5).error().what, "halve 5: it is odd");
}

TEST(Result, TryVoidReturnsTheErrorAlone) {
  EXPECT_TRUE(must_halve(2).has_value());
  EXPECT_EQ(must_halve(3).error().what, "halve 3: it is odd");
}

TEST(Result, TryMovesTheValueAndTakesCommas) {
  const auto make = [](int a, int b) -> Result<std::unique_ptr<int>> {
    return std::make_unique<int>(a + b);
  };
  const auto use = [&]() -> Result<int> {
    JOGAK_TRY(const auto sum, make(1, 2));
    std::vector<int> items;
    JOGAK_TRY(items, Result<std::vector<int>>(std::vector<int>{*sum, 4}));  // assigns too
    return items[0] + items[1];
  };
  EXPECT_EQ(use().value(), 7);
}

TEST(Result, ContextGoesInFront) {
  const Result<int> result = in_context("pods.yaml", half(3).error());
  EXPECT_EQ(result.error().what, "pods.yaml: halve 3: it is odd");
  EXPECT_EQ(Result<int>(fail(Errc::Gone, "at {}", 7)).error().code, Errc::Gone);
}

}  // namespace
}  // namespace jogak
