// SPDX-License-Identifier: Apache-2.0
//
// Times and durations: what they become, and what is said of those that are none.
#include "apiserver/schema/go_time.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace jogak::schema {
namespace {

struct Pair {
  const char *text, *expected;
};

TEST(GoTime, TimesBecomeWholeSecondsInUtc) {
  const Pair pairs[] = {
      {"2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"},
      {"2024-01-01T00:00:00.9Z", "2024-01-01T00:00:00Z"},
      {"2024-01-01T00:00:00,9Z", "2024-01-01T00:00:00Z"},
      {"2024-01-01T02:00:00+02:00", "2024-01-01T00:00:00Z"},
      {"2023-12-31T22:30:00-01:30", "2024-01-01T00:00:00Z"},
      {"2024-02-29T12:00:00Z", "2024-02-29T12:00:00Z"},
      {"1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z"},
      {"9999-12-31T23:59:59Z", "9999-12-31T23:59:59Z"},
      {"0001-01-01T00:00:00Z", ""},
  };
  for (const Pair& pair : pairs) {
    const auto result = canonical_time(pair.text);
    ASSERT_TRUE(result.has_value()) << pair.text << ": " << result.error().what;
    EXPECT_EQ(*result, pair.expected) << pair.text;
  }
}

TEST(GoTime, WhatIsNoTimeIsNamed) {
  const Pair pairs[] = {
      {"yesterday", R"(parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": )"
                    R"(cannot parse "yesterday" as "2006")"},
      {"2024-01-01",
       R"(parsing time "2024-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T")"},
      {"", R"(parsing time "" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "2006")"},
      {"2024-13-01T00:00:00Z", R"(parsing time "2024-13-01T00:00:00Z": month out of range)"},
      {"2023-02-29T00:00:00Z", R"(parsing time "2023-02-29T00:00:00Z": day out of range)"},
      {"2024-01-01T24:00:00Z", R"(parsing time "2024-01-01T24:00:00Z": hour out of range)"},
      {"2024-01-01T00:00:00Zx", R"(parsing time "2024-01-01T00:00:00Zx": extra text: "x")"},
      {"2024-01-01T00:00:00",
       R"(parsing time "2024-01-01T00:00:00" as "2006-01-02T15:04:05Z07:00": )"
       R"(cannot parse "" as "Z07:00")"},
  };
  for (const Pair& pair : pairs) {
    const auto result = canonical_time(pair.text);
    ASSERT_FALSE(result.has_value()) << pair.text;
    EXPECT_EQ(result.error().what, pair.expected);
  }
}

TEST(GoTime, MicroTimesHaveSixDecimals) {
  EXPECT_EQ(canonical_micro_time("2024-01-01T01:00:00.000000+01:00").value(),
            "2024-01-01T00:00:00.000000Z");
  EXPECT_EQ(canonical_micro_time("2024-01-01T00:00:00.123456Z").value(),
            "2024-01-01T00:00:00.123456Z");
  EXPECT_EQ(canonical_micro_time("2024-01-01T00:00:00.123456789Z").error().what,
            R"(parsing time "2024-01-01T00:00:00.123456789Z" as )"
            R"("2006-01-02T15:04:05.000000Z07:00": cannot parse "789Z" as "Z07:00")");
  EXPECT_EQ(canonical_micro_time("2024-01-01 00:00:00.000000Z").error().what,
            R"(parsing time "2024-01-01 00:00:00.000000Z" as )"
            R"("2006-01-02T15:04:05.000000Z07:00": cannot parse " 00:00:00.000000Z" as "T")");
  EXPECT_FALSE(canonical_micro_time("2024-01-01T00:00:00Z").has_value());
}

TEST(GoTime, InstantsComeBack) {
  const Instant instant = instant_of("2024-01-01T00:00:00.123456Z");
  EXPECT_EQ(instant.seconds, 1'704'067'200);
  EXPECT_EQ(instant.nanos, 123'456'000);
  EXPECT_EQ(micro_time_text(instant), "2024-01-01T00:00:00.123456Z");
  EXPECT_EQ(instant_of("").seconds, 0);
}

TEST(GoTime, Durations) {
  const Pair pairs[] = {
      {"0", "0s"},          {"1h", "1h0m0s"},
      {"90m", "1h30m0s"},   {"1.5h", "1h30m0s"},
      {"300ms", "300ms"},   {"1500us", "1.5ms"},
      {"1ns", "1ns"},       {"-1.5s", "-1.5s"},
      {"1h2m3s", "1h2m3s"}, {"+5s", "5s"},
      {"100s", "1m40s"},    {"0.1s", "100ms"},
      {"10µs", "10µs"},     {"1.000000001s", "1.000000001s"},
      {".5s", "500ms"},     {"1m0.5s", "1m0.5s"},
  };
  for (const Pair& pair : pairs) {
    const auto result = canonical_duration(pair.text);
    ASSERT_TRUE(result.has_value()) << pair.text;
    EXPECT_EQ(*result, pair.expected) << pair.text;
  }
}

TEST(GoTime, WhatIsNoDuration) {
  for (const char* text : {"", "1", "s", "1x", "1h ", "-", "--1s", "9223372037s", "1e3s", "."}) {
    const auto result = canonical_duration(text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_TRUE(result.error().what.starts_with("time: invalid duration \"")) << text;
  }
}

TEST(GoTime, TheSmallestDuration) {
  const std::string text = duration_text(std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(text, "-2562047h47m16.854775808s");
  EXPECT_EQ(read_duration(text).value(), std::numeric_limits<std::int64_t>::min());
}

}  // namespace
}  // namespace jogak::schema
