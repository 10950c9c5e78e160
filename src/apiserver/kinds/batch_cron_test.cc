// SPDX-License-Identifier: Apache-2.0
// Cron lines, time zones and index lists: what is read and what is refused.
#include <gtest/gtest.h>

#include "apiserver/kinds/batch.h"

namespace jogak::api {
namespace {

TEST(CronSchedule, TheseAreRight) {
  for (const std::string_view line : {"* * * * *",
                                      "0 0 1 1 0",
                                      "59 23 31 12 6",
                                      "*/5 * * * *",
                                      "1-5 * * * *",
                                      "1-5/2 * * * *",
                                      "5/10 * * * *",
                                      "1,2,30-40 * * * *",
                                      "? ? ? ? ?",
                                      "0 12 * jan-MAR mon-Fri",
                                      "0  12\t* * *",
                                      " 0 0 * * * ",
                                      "@yearly",
                                      "@annually",
                                      "@monthly",
                                      "@weekly",
                                      "@daily",
                                      "@midnight",
                                      "@hourly",
                                      "@every 1h30m",
                                      "@every 1.5s",
                                      "@every -3m",
                                      "@every 0",
                                      "@every 90s",
                                      ", * * * *",
                                      "TZ=UTC 0 0 * * *",
                                      "CRON_TZ=UTC @daily"}) {
    EXPECT_TRUE(check_cron_schedule(line).has_value()) << line;
  }
}

TEST(CronSchedule, TheseAreNot) {
  struct Wrong {
    std::string_view line, what;
  };
  constexpr Wrong kWrong[] = {
      {"", "empty spec string"},
      {"* * * *", "expected exactly 5 fields, found 4"},
      {"* * * * * *", "expected exactly 5 fields, found 6"},
      {"60 * * * *", "end of range (60) above maximum (59): 60"},
      {"* 24 * * *", "end of range (24) above maximum (23): 24"},
      {"* * 0 * *", "beginning of range (0) below minimum (1): 0"},
      {"* * 32 * *", "end of range (32) above maximum (31): 32"},
      {"* * * 13 *", "end of range (13) above maximum (12): 13"},
      {"* * * 0 *", "beginning of range (0) below minimum (1): 0"},
      {"* * * * 7", "end of range (7) above maximum (6): 7"},
      {"5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"},
      {"1-2-3 * * * *", "too many hyphens: 1-2-3"},
      {"*/5/2 * * * *", "too many slashes: */5/2"},
      {"*/0 * * * *", "step of range should be a positive number: */0"},
      {"*/x * * * *", "failed to parse int from x"},
      {"x * * * *", "failed to parse int from x"},
      {"jan * * * *", "failed to parse int from jan"},
      {"-1 * * * *", "failed to parse int from "},
      {"@often", "unrecognized descriptor: @often"},
      {"@every", "unrecognized descriptor: @every"},
      {"@every soon", "failed to parse duration @every soon"},
      {"@every 5", "failed to parse duration @every 5"},
      {"@every 5mx", "failed to parse duration @every 5mx"},
      {"@every 1.2.3s", "failed to parse duration @every 1.2.3s"},
      {"TZ=UTC", "no schedule after the time zone: TZ=UTC"},
      {"TZ=No/Where 0 0 * * *", "provided bad location No/Where"}};
  for (const Wrong& wrong : kWrong) {
    const auto checked = check_cron_schedule(wrong.line);
    ASSERT_FALSE(checked.has_value()) << wrong.line;
    EXPECT_EQ(checked.error().what, wrong.what);
  }
}

TEST(TimeZone, FormAloneRefuses) {
  for (const std::string_view name : {"", "/", "Europe/", "/Berlin", "Europe//Berlin", "..", "../x",
                                      "a b", "-x", "Europe/-x", "abcdefghijklmno", "Ünx"}) {
    EXPECT_FALSE(is_time_zone(name)) << name;
  }
}

TEST(TimeZone, KnowsUtcAnywhere) { EXPECT_TRUE(is_time_zone("UTC")); }

TEST(Indexes, AreCounted) {
  EXPECT_EQ(count_indexes("", 5), 0);
  EXPECT_EQ(count_indexes("0", 5), 1);
  EXPECT_EQ(count_indexes("0-4", 5), 5);
  EXPECT_EQ(count_indexes("0,2-4", 5), 4);
  EXPECT_EQ(count_indexes("1,3,5-7", 8), 5);
}

TEST(Indexes, TheseAreWrong) {
  struct Wrong {
    std::string_view text, what;
  };
  constexpr Wrong kWrong[] = {
      {"5", "too large index: \"5\""},
      {"1-5", "too large index: \"5\""},
      {"3,1", "non-increasing order, previous: 3, current: 1"},
      {"1,1", "non-increasing order, previous: 1, current: 1"},
      {"2-2", "non-increasing order, previous: 2, current: 2"},
      {"3-1", "non-increasing order, previous: 3, current: 1"},
      {"a", "cannot convert string to integer for index: \"a\""},
      {"1-b", "cannot convert string to integer for index: \"b\""},
      {"1,", "cannot convert string to integer for index: \"\""},
      {",1", "cannot convert string to integer for index: \"\""},
      {"-1", "cannot convert string to integer for index: \"\""},
      {"1-2-3",
       "the fragment \"1-2-3\" violates the requirement that an index interval can have at most "
       "two parts separated by '-'"}};
  for (const Wrong& wrong : kWrong) {
    const auto counted = count_indexes(wrong.text, 5);
    ASSERT_FALSE(counted.has_value()) << wrong.text;
    EXPECT_EQ(counted.error().what, wrong.what);
  }
}

TEST(Indexes, TheFirstCommonOneIsFound) {
  EXPECT_EQ(first_common_index("", "1", 9), -1);
  EXPECT_EQ(first_common_index("1", "", 9), -1);
  EXPECT_EQ(first_common_index("0-2,6", "3-5", 9), -1);
  EXPECT_EQ(first_common_index("0-2", "2", 9), 2);
  EXPECT_EQ(first_common_index("0,2,4-8", "1,3,7", 9), 7);
  EXPECT_EQ(first_common_index("4-8", "0-5", 9), 4);
  // what cannot be read is passed over
  EXPECT_EQ(first_common_index("x,3", "y,3", 9), 3);
}

}  // namespace
}  // namespace jogak::api
