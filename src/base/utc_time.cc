// SPDX-License-Identifier: Apache-2.0
//
// The calendar is the standard library's. Both forms are cut from one, so that they cannot differ
// in more than the decimals.
#include "base/utc_time.h"

#include <chrono>

#include <fmt/core.h>

namespace jogak {

std::string utc_micros(TimeUs time) {
  const std::chrono::sys_time<std::chrono::microseconds> at{std::chrono::microseconds(time)};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(at - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

std::string utc_seconds(TimeUs time) { return utc_micros(time).replace(19, 7, ""); }

}  // namespace jogak
