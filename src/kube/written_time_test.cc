// SPDX-License-Identifier: Apache-2.0
// Times that base/utc_time.h writes are read back by kube/time.h.
#include "base/utc_time.h"

#include <gtest/gtest.h>

#include "kube/time.h"

namespace jogak::kube {
namespace {

TEST(MicroTime, HasSixDecimals) {
  EXPECT_EQ(utc_micros(0), "1970-01-01T00:00:00.000000Z");
  EXPECT_EQ(utc_micros(1'709'251'199'000'001), "2024-02-29T23:59:59.000001Z");
  EXPECT_EQ(utc_micros(-1), "1969-12-31T23:59:59.999999Z");
}

TEST(MicroTime, IsReadBack) {
  for (const TimeUs time :
       {TimeUs{1}, TimeUs{1'700'000'000'123'456}, TimeUs{4'102'444'800'000'000}}) {
    EXPECT_EQ(parse_time(utc_micros(time)), time * 1000);
  }
}

}  // namespace
}  // namespace jogak::kube
