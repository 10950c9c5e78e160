// SPDX-License-Identifier: Apache-2.0
//
// Facts: the cron format with five fields as Kubernetes reads it (lists, ranges, steps, names, @
// words), and RFC 8536 for time zone files.
#include "apiserver/controllers/cron_schedule.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include <fmt/core.h>

#include "apiserver/object/meta.h"
#include "base/file.h"

namespace jogak::controllers {

namespace {

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kDays = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

struct Bounds {
  std::int64_t min, max;
};
constexpr std::array<Bounds, 5> kBounds = {{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}};
constexpr std::size_t kMonthField = 3, kWeekdayField = 4;

struct Word {
  std::string_view word, line;
};
constexpr std::array<Word, 7> kWords = {{{"@yearly", "0 0 1 1 *"},
                                         {"@annually", "0 0 1 1 *"},
                                         {"@monthly", "0 0 1 * *"},
                                         {"@weekly", "0 0 * * 0"},
                                         {"@daily", "0 0 * * *"},
                                         {"@midnight", "0 0 * * *"},
                                         {"@hourly", "0 * * * *"}}};

std::vector<std::string_view> split(std::string_view text, std::string_view marks) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(marks), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<std::int64_t> read_value(std::string_view text, std::size_t field) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (field == kMonthField) {
    const auto it = std::ranges::find(kMonths, lower);
    if (it != kMonths.end()) return it - kMonths.begin() + 1;
  }
  if (field == kWeekdayField) {
    const auto it = std::ranges::find(kDays, lower);
    if (it != kDays.end()) return it - kDays.begin();
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(lower.data(), lower.data() + lower.size(), value);
  if (error != std::errc() || end != lower.data() + lower.size()) return std::nullopt;
  return value;
}

// "1h30m" in whole seconds, at least one; 0 when it is no duration.
std::int64_t read_every(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 8> kUnits = {{{"ns", 1e-9},
                                                                          {"us", 1e-6},
                                                                          {"\xc2\xb5s", 1e-6},
                                                                          {"\xce\xbcs", 1e-6},
                                                                          {"ms", 1e-3},
                                                                          {"s", 1.0},
                                                                          {"m", 60.0},
                                                                          {"h", 3600.0}}};
  double seconds = 0;
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    double number = 0;
    std::from_chars(text.data(), text.data() + digits, number);
    text.remove_prefix(digits);
    const auto unit = std::ranges::find_if(
        kUnits, [&](const auto& candidate) { return text.starts_with(candidate.first); });
    if (unit == kUnits.end()) return seconds == 0 && number == 0 ? 1 : 0;
    seconds += number * unit->second;
    text.remove_prefix(unit->first.size());
  }
  if (is_negative) seconds = 0;
  return std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(seconds)), 1);
}

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
  const bool is_path = name.find("..") != std::string_view::npos || name.front() == '/';
  const auto file = is_path ? Result<std::string>(std::string())
                            : read_file(fmt::format("/usr/share/zoneinfo/{}", name));
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
  if (line.starts_with("TZ=") || line.starts_with("CRON_TZ=")) {
    const std::size_t start = line.find('=') + 1;
    const std::size_t blank = std::min(line.find(' '), line.size());
    zone = line.substr(start, blank - start);
    line.remove_prefix(blank);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  }
  CronSchedule schedule;
  schedule.zone_ = TimeZone::find(zone);
  if (schedule.zone_ == nullptr) return std::nullopt;
  constexpr std::string_view kEvery = "@every ";
  if (line.starts_with(kEvery)) {
    schedule.every_s_ = read_every(line.substr(kEvery.size()));
    if (schedule.every_s_ == 0) return std::nullopt;
    return schedule;
  }
  const auto word = std::ranges::find(kWords, line, &Word::word);
  if (word != kWords.end()) line = word->line;
  if (!schedule.read_fields(line)) return std::nullopt;
  return schedule;
}

bool CronSchedule::read_fields(std::string_view line) {
  const std::vector<std::string_view> fields = split(line, " \t\n\v\f\r");
  const std::array<Field*, 5> targets = {&minute_, &hour_, &day_, &month_, &weekday_};
  if (fields.size() != targets.size()) return false;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!read_field(fields[i], i, *targets[i])) return false;
  }
  return true;
}

bool CronSchedule::read_field(std::string_view text, std::size_t which, Field& field) {
  for (const std::string_view part : split(text, ",")) {
    const std::size_t slash = std::min(part.find('/'), part.size());
    const std::string_view range = part.substr(0, slash);
    std::int64_t step = 1;
    if (slash < part.size()) {
      const auto number = read_value(part.substr(slash + 1), kBounds.size());
      if (!number.has_value() || *number <= 0) return false;
      step = *number;
    }
    std::int64_t first = kBounds[which].min, last = kBounds[which].max;
    if (range == "*" || range == "?") {
      field.is_any = field.is_any || step == 1;
    } else {
      const std::size_t dash = std::min(range.find('-'), range.size());
      const auto low = read_value(range.substr(0, dash), which);
      if (!low.has_value()) return false;
      first = *low;
      if (dash < range.size()) {
        const auto high = read_value(range.substr(dash + 1), which);
        if (!high.has_value()) return false;
        last = *high;
      } else if (slash == part.size()) {
        last = first;  // "5"; "5/10" runs to the end
      }
    }
    if (first < kBounds[which].min || last > kBounds[which].max) return false;
    for (std::int64_t value = first; value <= last; value += step) {
      field.bits |= std::uint64_t{1} << static_cast<unsigned>(value);
    }
  }
  return field.bits != 0;
}

std::optional<TimeUs> CronSchedule::next(TimeUs after) const {
  using namespace std::chrono;
  constexpr TimeUs kMinute = 60 * kSecondInUs;
  constexpr TimeUs kHour = 60 * kMinute;
  constexpr TimeUs kDay = 24 * kHour;
  constexpr TimeUs kLimit = 5 * 366 * kDay;
  if (every_s_ > 0) return (after / kSecondInUs + every_s_) * kSecondInUs;
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
    if (!month_.has(month)) {
      const sys_days next_month{year_month_day{date.year(), date.month(), std::chrono::day{1}} +
                                months{1}};
      jump_days((next_month - day).count() * kDay - of_day);
      continue;
    }
    const bool is_day = day_.has(static_cast<std::int64_t>(unsigned{date.day()}));
    const bool is_weekday = weekday_.has(static_cast<std::int64_t>(weekday{day}.c_encoding()));
    const bool needs_both = day_.is_any || weekday_.is_any;
    if (needs_both ? !(is_day && is_weekday) : !(is_day || is_weekday)) {
      jump_days(kDay - of_day);
    } else if (!hour_.has(of_day / kHour)) {
      at += kHour - of_day % kHour;
    } else if (!minute_.has(of_day % kHour / kMinute)) {
      at += kMinute;
    } else {
      return at;
    }
  }
  return std::nullopt;
}

}  // namespace jogak::controllers
