// SPDX-License-Identifier: Apache-2.0
//
// When a cron line is due next. Lines come from stored objects, so they are valid.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/schema/cron_line.h"
#include "base/loop.h"

namespace jogak::controllers {

// The offset from UTC at any moment, from the system's time zone files.
class TimeZone {
 public:
  // "" and "UTC" always work; nullptr when the system does not know the zone.
  static std::shared_ptr<const TimeZone> find(std::string_view name);

  std::int64_t offset_s(TimeUs at) const;
  // RFC 3339 with the zone's offset.
  std::string format(TimeUs at) const;

 private:
  struct Span {
    std::int64_t from_s = 0, offset_s = 0;
  };
  std::int64_t first_offset_s_ = 0;
  std::vector<Span> spans_;  // by time
};

class CronSchedule {
 public:
  // `zone` is the object's timeZone, "" for UTC; the line itself may begin with "TZ=...". nullopt:
  // no such line or zone.
  static std::optional<CronSchedule> parse(std::string_view line, std::string_view zone);

  // The first moment after `after`; nullopt when there is none within five years.
  std::optional<TimeUs> next(TimeUs after) const;
  const TimeZone& zone() const { return *zone_; }

 private:
  std::shared_ptr<const TimeZone> zone_;
  schema::CronLine line_;
};

}  // namespace jogak::controllers
