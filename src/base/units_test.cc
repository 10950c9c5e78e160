// SPDX-License-Identifier: Apache-2.0
//
// Units add among themselves, and do not mix.
#include "base/units.h"

#include <gtest/gtest.h>

#include <concepts>

namespace jogak {
namespace {

template <class A, class B>
concept Adds = requires(A a, B b) { a + b; };

static_assert(Adds<MilliGpu, MilliGpu>);
static_assert(!Adds<MilliGpu, MilliCpu>);
static_assert(!Adds<MilliGpu, std::int64_t>);
static_assert(!std::convertible_to<std::int64_t, Bytes>);
static_assert(!std::convertible_to<Bytes, std::int64_t>);

TEST(Units, Arithmetic) {
  MilliGpu held(500);
  held += MilliGpu(250);
  held -= MilliGpu(50);
  EXPECT_EQ(held, MilliGpu(700));
  EXPECT_EQ(-held * 2, MilliGpu(-1'400));
  EXPECT_LT(MilliGpu(1), MilliGpu(2));
  EXPECT_EQ(MilliCpu().value(), 0);
}

TEST(Units, MibRoundsAsNamed) {
  EXPECT_EQ(to_bytes(Mib(2)), Bytes(2'097'152));
  EXPECT_EQ(to_mib_up(Bytes(2'097'153)), Mib(3));
  EXPECT_EQ(to_mib_down(Bytes(2'097'153)), Mib(2));
  EXPECT_EQ(to_mib_up(Bytes(0)), Mib(0));
}

}  // namespace
}  // namespace jogak
