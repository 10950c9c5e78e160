// SPDX-License-Identifier: Apache-2.0
//
// Every step at which the figures of a duration change.
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "apiserver/tables/tables.h"

namespace jogak::api {
namespace {

TEST(HumanDuration, KeepsTheFiguresThatMatter) {
  constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour, kYear = 365 * kDay;
  const std::pair<std::int64_t, std::string> cases[] = {
      {-2, "<invalid>"},
      {-1, "0s"},
      {0, "0s"},
      {119, "119s"},
      {2 * kMinute, "2m"},
      {2 * kMinute + 5, "2m5s"},
      {10 * kMinute - 1, "9m59s"},
      {10 * kMinute, "10m"},
      {3 * kHour - 1, "179m"},
      {3 * kHour, "3h"},
      {3 * kHour + kMinute, "3h1m"},
      {8 * kHour - 1, "7h59m"},
      {8 * kHour, "8h"},
      {2 * kDay - 1, "47h"},
      {2 * kDay, "2d"},
      {2 * kDay + kHour, "2d1h"},
      {8 * kDay, "8d"},
      {2 * kYear - 1, "729d"},
      {2 * kYear, "2y"},
      {2 * kYear + 334 * kDay, "2y334d"},
      {8 * kYear, "8y"},
      {9 * kYear + kDay, "9y"},
  };
  for (const auto& [seconds, text] : cases) {
    EXPECT_EQ(human_duration(seconds * kSecondInUs), text) << seconds;
  }
}

TEST(HumanDuration, CutsFractionsOff) {
  EXPECT_EQ(human_duration(kSecondInUs - 1), "0s");
  EXPECT_EQ(human_duration(1 - kSecondInUs), "0s");
  EXPECT_EQ(human_duration(2 * kSecondInUs - 1), "1s");
}

}  // namespace
}  // namespace jogak::api
