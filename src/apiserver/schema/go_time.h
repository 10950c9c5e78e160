// SPDX-License-Identifier: Apache-2.0
//
// Times and durations of the API as Go reads and writes them, with its words where they are wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace jogak::schema {

// RFC 3339 with any fraction and offset, as metav1.Time keeps it: whole seconds in UTC,
// "2026-02-02T02:09:39Z". "" for the zero time (year 1), which is written as null.
Result<std::string> canonical_time(std::string_view text);
// metav1.MicroTime: exactly six decimals, in UTC.
Result<std::string> canonical_micro_time(std::string_view text);
// metav1.Duration: "1h0m0.5s".
Result<std::string> canonical_duration(std::string_view text);

// Seconds since 1970 and nanoseconds of a canonical text, for protobuf. The text is one that
// canonical_time() or canonical_micro_time() gave; anything else is time 0.
struct Instant {
  std::int64_t seconds = 0;
  std::int32_t nanos = 0;
};
Instant instant_of(std::string_view text);
std::string time_text(std::int64_t seconds);
std::string micro_time_text(Instant instant);
// Nanoseconds of a duration and back.
Result<std::int64_t> read_duration(std::string_view text);
std::string duration_text(std::int64_t nanos);

}  // namespace jogak::schema
