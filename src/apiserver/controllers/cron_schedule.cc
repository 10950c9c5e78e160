// SPDX-License-Identifier: Apache-2.0
//
// Facts: when robfig/cron v3 finds a line due (days of month and week together or either), and RFC
// 8536 for time zone files.
#include "apiserver/controllers/cron_schedule.h"

#include <algorithm>
#include <chrono>

#include <fmt/core.h>

#include "apiserver/object/meta.h"
#include "apiserver/schema/zone_file.h"

namespace jogak::controllers {

namespace {

std::int64_t big_endian(std::string_view bytes) {
  std::uint64_t value = (static_cast<unsigned char>(bytes[0]) & 0x80U) != 0 ? ~std::uint64_t{0} : 0;
  for (const char c : bytes) value = value << 8U | static_cast<unsigned char>(c);
  return static_cast<std::int64_t>(value);
}

// One header of a time zone file with the sizes of what follows it.
struct ZoneHeader {
  std::size_t utc = 0, standard = 0, leap = 0, times = 0, types = 0, chars = 0;
};
constexpr std::size_t kHeaderSize = 44;

bool read_header(std::string_view bytes, ZoneHeader& header) {
  if (bytes.size() < kHeaderSize || !bytes.starts_with("TZif")) return false;
  std::size_t at = 20;
  for (std::size_t* count :
       {&header.utc, &header.standard, &header.leap, &header.times, &header.types, &header.chars}) {
    *count = static_cast<std::size_t>(big_endian(bytes.substr(at, 4)) & 0xffffff);
    at += 4;
  }
  return true;
}

}  // namespace

std::shared_ptr<const TimeZone> TimeZone::find(std::string_view name) {
  auto zone = std::make_shared<TimeZone>();
  if (name.empty() || name == "UTC") return zone;
  const auto file = schema::read_zone_file(name);
  if (!file.has_value()) return nullptr;
  std::string_view bytes = *file;
  ZoneHeader old, header;
  if (!read_header(bytes, old)) return nullptr;
  // the second part has times of 64 bits
  const std::size_t skip =
      old.times * 5 + old.types * 6 + old.chars + old.leap * 8 + old.standard + old.utc;
  bytes.remove_prefix(std::min(kHeaderSize + skip, bytes.size()));
  if (!read_header(bytes, header)) return nullptr;
  bytes.remove_prefix(kHeaderSize);
  if (bytes.size() < header.times * 9 + header.types * 6 || header.types == 0) return nullptr;
  const std::string_view types = bytes.substr(header.times * 9, header.types * 6);
  zone->first_offset_s_ = big_endian(types.substr(0, 4));
  for (std::size_t i = 0; i < header.times; ++i) {
    const auto type = static_cast<unsigned char>(bytes[header.times * 8 + i]);
    if (type >= header.types) return nullptr;
    zone->spans_.push_back({.from_s = big_endian(bytes.substr(i * 8, 8)),
                            .offset_s = big_endian(types.substr(std::size_t{type} * 6, 4))});
  }
  return zone;
}

std::int64_t TimeZone::offset_s(TimeUs at) const {
  const auto after = std::ranges::upper_bound(spans_, at / kSecondInUs, {}, &Span::from_s);
  return after == spans_.begin() ? first_offset_s_ : std::prev(after)->offset_s;
}

std::string TimeZone::format(TimeUs at) const {
  const std::int64_t offset = offset_s(at);
  if (offset == 0) return api::format_time(at);
  std::string text = api::format_time(at + offset * kSecondInUs);
  text.pop_back();  // Z
  const std::int64_t minutes = std::abs(offset) / 60;
  return fmt::format("{}{}{:02}:{:02}", text, offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

std::optional<CronSchedule> CronSchedule::parse(std::string_view line, std::string_view zone) {
  const auto parts = schema::split_cron_zone(line);
  if (!parts.has_value()) return std::nullopt;
  const auto read = schema::read_cron_line(parts->line);
  if (!read.has_value()) return std::nullopt;
  const bool is_never_due =
      read->every_s == 0 &&
      std::ranges::any_of(read->fields, [](const auto& field) { return field.bits == 0; });
  if (is_never_due) return std::nullopt;
  CronSchedule schedule;
  schedule.line_ = *read;
  schedule.zone_ = TimeZone::find(parts->has_zone ? parts->zone : zone);
  if (schedule.zone_ == nullptr) return std::nullopt;
  return schedule;
}

std::optional<TimeUs> CronSchedule::next(TimeUs after) const {
  using namespace std::chrono;
  constexpr TimeUs kMinute = 60 * kSecondInUs;
  constexpr TimeUs kHour = 60 * kMinute;
  constexpr TimeUs kDay = 24 * kHour;
  constexpr TimeUs kLimit = 5 * 366 * kDay;
  if (line_.every_s > 0) return (after / kSecondInUs + line_.every_s) * kSecondInUs;
  TimeUs at = (after / kMinute + 1) * kMinute;
  const auto local_of = [&](TimeUs time) { return time + zone_->offset_s(time) * kSecondInUs; };
  // Where the clocks changed on the way, midnight is not a whole number of days off.
  const auto jump_days = [&](TimeUs span) {
    at += span;
    const TimeUs past = local_of(at) % kDay;
    at += past > kDay / 2 ? kDay - past : -past;
  };
  while (at - after < kLimit) {
    const TimeUs local = local_of(at);
    const auto day = floor<days>(sys_time<microseconds>{microseconds(local)});
    const year_month_day date{day};
    const TimeUs of_day = local - duration_cast<microseconds>(day.time_since_epoch()).count();
    const auto month = static_cast<std::int64_t>(unsigned{date.month()});
    if (!line_.month().has(month)) {
      const sys_days next_month{year_month_day{date.year(), date.month(), std::chrono::day{1}} +
                                months{1}};
      jump_days((next_month - day).count() * kDay - of_day);
      continue;
    }
    const bool is_day = line_.day().has(static_cast<std::int64_t>(unsigned{date.day()}));
    const bool is_weekday =
        line_.weekday().has(static_cast<std::int64_t>(weekday{day}.c_encoding()));
    const bool needs_both = line_.day().is_any || line_.weekday().is_any;
    if (needs_both ? !(is_day && is_weekday) : !(is_day || is_weekday)) {
      jump_days(kDay - of_day);
    } else if (!line_.hour().has(of_day / kHour)) {
      at += kHour - of_day % kHour;
    } else if (!line_.minute().has(of_day % kHour / kMinute)) {
      at += kMinute;
    } else {
      return at;
    }
  }
  return std::nullopt;
}

}  // namespace jogak::controllers
