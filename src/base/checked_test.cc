// SPDX-License-Identifier: Apache-2.0
//
// The edges of int64_t, and division that rounds the way its name says.
#include "base/checked.h"

#include <gtest/gtest.h>

namespace jogak {
namespace {

TEST(Checked, NoticesTheEdge) {
  EXPECT_EQ(checked_add(kInt64Max - 1, 1), kInt64Max);
  EXPECT_EQ(checked_add(kInt64Max, 1), std::nullopt);
  EXPECT_EQ(checked_add(kInt64Min, -1), std::nullopt);
  EXPECT_EQ(checked_sub(kInt64Min + 1, 1), kInt64Min);
  EXPECT_EQ(checked_sub(0, kInt64Min), std::nullopt);
  EXPECT_EQ(checked_mul(1LL << 31, 1LL << 31), 1LL << 62);
  EXPECT_EQ(checked_mul(1LL << 32, 1LL << 31), std::nullopt);
  EXPECT_EQ(checked_mul(kInt64Min, -1), std::nullopt);
}

TEST(Checked, SaturatingStopsOnTheRightSide) {
  EXPECT_EQ(saturating_add(kInt64Max, 5), kInt64Max);
  EXPECT_EQ(saturating_add(kInt64Min, -5), kInt64Min);
  EXPECT_EQ(saturating_add(2, 3), 5);
  EXPECT_EQ(saturating_sub(kInt64Min, 5), kInt64Min);
  EXPECT_EQ(saturating_sub(kInt64Max, -5), kInt64Max);
  EXPECT_EQ(saturating_mul(kInt64Max, 2), kInt64Max);
  EXPECT_EQ(saturating_mul(kInt64Max, -2), kInt64Min);
  EXPECT_EQ(saturating_mul(kInt64Min, -2), kInt64Max);
  EXPECT_EQ(saturating_mul(-3, 4), -12);
}

TEST(Checked, DivisionRounds) {
  struct Case {
    std::int64_t a, b, ceil, floor;
  };
  for (const Case& c : {Case{7, 2, 4, 3},
                        {8, 2, 4, 4},
                        {0, 5, 0, 0},
                        {-7, 2, -3, -4},
                        {-8, 2, -4, -4},
                        {1, kInt64Max, 1, 0},
                        {kInt64Max, 1, kInt64Max, kInt64Max}}) {
    EXPECT_EQ(ceil_div(c.a, c.b), c.ceil) << c.a << "/" << c.b;
    EXPECT_EQ(floor_div(c.a, c.b), c.floor) << c.a << "/" << c.b;
  }
  static_assert(ceil_div(10, 3) == 4);
}

TEST(Checked, MulDivKeepsTheWholeProduct) {
  EXPECT_EQ(mul_div(10, 3, 4), 7);
  EXPECT_EQ(mul_div(kInt64Max, 1000, 1000), kInt64Max);
  EXPECT_EQ(mul_div(kInt64Max, 1000, 2000), kInt64Max / 2);
  EXPECT_EQ(mul_div(kInt64Max, 2, 1), kInt64Max);  // cut
}

TEST(CheckedDeathTest, DivisorIsPositive) {
  EXPECT_DEATH(ceil_div(1, 0), "check failed");
  EXPECT_DEATH(mul_div(-1, 1, 1), "check failed");
}

}  // namespace
}  // namespace jogak
