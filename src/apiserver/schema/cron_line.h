// SPDX-License-Identifier: Apache-2.0
//
// Cron lines as Kubernetes reads them (robfig/cron v3, standard parser): five fields of lists,
// ranges and steps, names of months and days, or one of the @ words; a time zone may stand before.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace jogak::schema {

struct CronField {
  std::uint64_t bits = 0;  // of the values that are due; none for "," alone
  bool is_any = false;     // "*": says nothing about days

  bool has(std::int64_t value) const { return (bits >> value & 1U) != 0; }
};

struct CronLine {
  std::int64_t every_s = 0;  // "@every": the span, at least a second; else 0 and the fields count
  std::array<CronField, 5> fields;

  const CronField& minute() const { return fields[0]; }
  const CronField& hour() const { return fields[1]; }
  const CronField& day() const { return fields[2]; }
  const CronField& month() const { return fields[3]; }
  const CronField& weekday() const { return fields[4]; }  // 0 is Sunday
};

// "TZ=Europe/Rome 0 9 * * *" in its parts; both point into the text.
struct ZonedCron {
  bool has_zone = false;
  std::string_view zone;  // may be "" even if it is there
  std::string_view line;
};
Result<ZonedCron> split_cron_zone(std::string_view text);

// The line without its zone, or what is wrong with it.
Result<CronLine> read_cron_line(std::string_view line);

}  // namespace jogak::schema
