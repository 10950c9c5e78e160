// SPDX-License-Identifier: Apache-2.0
// Times with their nanoseconds, and texts that are none.
#include "kube/time.h"

#include <gtest/gtest.h>

namespace jogak::kube {
namespace {

TEST(Time, Reads) {
  struct Case {
    std::string_view text;
    std::int64_t ns;
  };
  const Case cases[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"1970-01-01T00:00:01.5Z", 1'500'000'000},
      {"1970-01-01T00:00:00.000000001Z", 1},
      {"1970-01-01T00:00:00.0000000019Z", 1},
      {"1970-01-01T01:00:00+01:00", 0},
      {"1969-12-31T23:30:00-00:30", 0},
      {"1969-12-31T23:59:59Z", -1'000'000'000},
      {"2026-02-02T02:09:39Z", 1'769'998'179'000'000'000},
      {"2000-02-29T00:00:00Z", 951'782'400'000'000'000},
  };
  for (const Case& c : cases) EXPECT_EQ(parse_time(c.text), c.ns) << c.text;
}

TEST(Time, Refuses) {
  for (const std::string_view text :
       {"", "2026", "2026-02-02", "2026-02-02T02:09:39", "2026-02-30T00:00:00Z",
        "2026-13-01T00:00:00Z", "2026-02-02T24:00:00Z", "2026-02-02T02:60:00Z",
        "2026-02-02T02:09:39.Z", "2026-02-02T02:09:39ZZ", "2026-02-02T02:09:39+1:00",
        "0001-01-01T00:00:00Z", "9999-01-01T00:00:00Z", "26-02-02T02:09:39Z"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace jogak::kube
