// SPDX-License-Identifier: Apache-2.0
//
// Distances by hand, and suggestions only where they help.
#include "base/edit_distance.h"

#include <gtest/gtest.h>

#include <vector>

namespace jogak {
namespace {

TEST(EditDistance, CountsChanges) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("sim", "smi"), 1U);   // a swap
  EXPECT_EQ(edit_distance("sim", "isim"), 1U);  // one put in
  EXPECT_EQ(edit_distance("same", "same"), 0U);
}

TEST(EditDistance, NearestIsTheFirstOfTheClosest) {
  const std::vector<std::string> names = {"explain", "sim", "gen", "demo"};
  EXPECT_EQ(nearest("explian", names), "explain");
  EXPECT_EQ(nearest("dmeo", names), "demo");
  EXPECT_EQ(nearest("banana", names), std::nullopt);
  EXPECT_EQ(nearest("x", std::vector<std::string>{"a", "b"}), "a");
  EXPECT_EQ(did_you_mean("gne", names), "; did you mean gen?");
  EXPECT_EQ(did_you_mean("banana", names), "");
}

}  // namespace
}  // namespace jogak
