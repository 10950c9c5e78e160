// SPDX-License-Identifier: Apache-2.0
//
// The calendar is std::chrono's. Messages say which part of the layout the text does not fit, as
// Go's time.Parse does.
#include "apiserver/schema/go_time.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "apiserver/schema/go_text.h"

namespace jogak::schema {
namespace {

constexpr std::string_view kTimeLayout = "2006-01-02T15:04:05Z07:00";
constexpr std::string_view kMicroLayout = "2006-01-02T15:04:05.000000Z07:00";
constexpr std::int64_t kZeroTime = -62'135'596'800;  // 0001-01-01T00:00:00Z
constexpr std::int64_t kDaySeconds = 86'400;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Reads a text piece by piece; the first piece that does not fit is kept for the message.
class Scan {
 public:
  explicit Scan(std::string_view text) : text_(text), rest_(text) {}

  // `count` digits of the layout's element.
  int digits(std::size_t count, std::string_view element) {
    int value = 0;
    if (rest_.size() < count || !std::ranges::all_of(rest_.substr(0, count), is_digit)) {
      miss(element);
      return 0;
    }
    for (const char c : rest_.substr(0, count)) value = value * 10 + (c - '0');
    rest_.remove_prefix(count);
    return value;
  }

  void literal(std::string_view element) {
    if (!rest_.starts_with(element)) return miss(element);
    rest_.remove_prefix(element.size());
  }

  void range(int value, int low, int high, std::string_view name) {
    if (ok() && (value < low || value > high)) out_of_range_ = name;
  }

  void miss(std::string_view element) {
    if (!ok()) return;
    element_ = element;
    at_ = rest_;
  }

  bool ok() const { return element_.empty() && out_of_range_.empty(); }
  std::string_view& rest() { return rest_; }

  std::unexpected<Error> error(std::string_view layout) const {
    if (!out_of_range_.empty()) {
      return invalid("parsing time {}: {} out of range", quoted(text_), out_of_range_);
    }
    if (element_ == kExtra) {
      return invalid("parsing time {}: extra text: {}", quoted(text_), quoted(at_));
    }
    return invalid("parsing time {} as \"{}\": cannot parse {} as \"{}\"", quoted(text_), layout,
                   quoted(at_), element_);
  }

  static constexpr std::string_view kExtra = "extra";

 private:
  std::string_view text_, rest_;
  std::string_view element_, at_, out_of_range_;
};

// ".123" to nanoseconds; more than nine digits are cut.
std::int32_t fraction(std::string_view& rest) {
  std::int32_t nanos = 0;
  std::int32_t unit = 100'000'000;
  rest.remove_prefix(1);
  while (!rest.empty() && is_digit(rest.front())) {
    nanos += (rest.front() - '0') * unit;
    unit /= 10;
    rest.remove_prefix(1);
  }
  return nanos;
}

std::int64_t seconds_of(int year, int month, int day, int hour, int minute, int second) {
  const std::chrono::sys_days date =
      std::chrono::year(year) / month / std::chrono::day(static_cast<unsigned>(day));
  return date.time_since_epoch().count() * kDaySeconds + hour * 3600 + minute * 60 + second;
}

int days_of_month(int year, int month) {
  const std::chrono::year_month_day_last last = std::chrono::year(year) /
                                                std::chrono::month(static_cast<unsigned>(month)) /
                                                std::chrono::last;
  return static_cast<int>(static_cast<unsigned>(last.day()));
}

int read_offset(Scan& scan) {
  constexpr std::string_view kElement = "Z07:00";
  std::string_view& rest = scan.rest();
  if (rest.starts_with('Z')) {
    rest.remove_prefix(1);
    return 0;
  }
  const bool has_shape = rest.size() >= 6 && (rest[0] == '+' || rest[0] == '-') &&
                         is_digit(rest[1]) && is_digit(rest[2]) && rest[3] == ':' &&
                         is_digit(rest[4]) && is_digit(rest[5]);
  if (!has_shape) {
    scan.miss(kElement);
    return 0;
  }
  const int hours = (rest[1] - '0') * 10 + (rest[2] - '0');
  const int minutes = (rest[4] - '0') * 10 + (rest[5] - '0');
  scan.range(hours, 0, 24, "time zone offset hour");
  scan.range(minutes, 0, 60, "time zone offset minute");
  const int offset = (hours * 60 + minutes) * 60 * (rest[0] == '-' ? -1 : 1);
  rest.remove_prefix(6);
  return offset;
}

Result<Instant> parse(std::string_view text, bool is_micro) {
  Scan scan(text);
  const int year = scan.digits(4, "2006");
  scan.literal("-");
  const int month = scan.digits(2, "01");
  scan.range(month, 1, 12, "month");
  scan.literal("-");
  const int day = scan.digits(2, "02");
  scan.literal("T");
  const int hour = scan.digits(2, "15");
  scan.range(hour, 0, 23, "hour");
  scan.literal(":");
  const int minute = scan.digits(2, "04");
  scan.range(minute, 0, 59, "minute");
  scan.literal(":");
  const int second = scan.digits(2, "05");
  scan.range(second, 0, 59, "second");
  Instant instant;
  std::string_view& rest = scan.rest();
  if (is_micro) {
    std::string_view digits = rest.substr(0, 7);
    if (digits.size() == 7 && digits[0] == '.' && std::ranges::all_of(digits.substr(1), is_digit)) {
      instant.nanos = fraction(digits);
      rest.remove_prefix(7);
    } else {
      scan.miss(".000000");
    }
  } else if (rest.size() > 1 && (rest[0] == '.' || rest[0] == ',') && is_digit(rest[1])) {
    instant.nanos = fraction(rest);
  }
  int offset = 0;
  if (scan.ok()) offset = read_offset(scan);
  if (scan.ok() && !rest.empty()) scan.miss(Scan::kExtra);
  if (scan.ok()) scan.range(day, 1, days_of_month(year, month), "day");
  if (!scan.ok()) return scan.error(is_micro ? kMicroLayout : kTimeLayout);
  instant.seconds = seconds_of(year, month, day, hour, minute, second) - offset;
  return instant;
}

// "2026-02-02T02:09:39Z": nothing to do, the common case.
bool has_plain_form(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:ddZ";
  if (text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    if (kForm[i] == 'd' ? !is_digit(text[i]) : text[i] != kForm[i]) return false;
  }
  const auto two = [&](std::size_t i) { return (text[i] - '0') * 10 + (text[i + 1] - '0'); };
  return two(5) >= 1 && two(5) <= 12 && two(8) >= 1 && two(8) <= 28 && two(11) <= 23 &&
         two(14) <= 59 && two(17) <= 59 && !text.starts_with("0001");
}

struct Unit {
  std::string_view name;
  std::int64_t nanos;
};
constexpr Unit kUnits[] = {
    {"ns", 1},         {"us", 1'000},        {"\u00b5s", 1'000},    {"\u03bcs", 1'000},
    {"ms", 1'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000}, {"h", 3'600'000'000'000}};

const Unit* unit_of(std::string_view name) {
  for (const Unit& unit : kUnits) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

// One "1.5h" of a duration, as nanoseconds; nullopt when it does not fit or has no unit.
std::optional<std::uint64_t> duration_part(std::string_view& text) {
  constexpr std::uint64_t kMax = std::uint64_t{1} << 63;
  std::uint64_t whole = 0;
  bool has_digits = false;
  while (!text.empty() && is_digit(text.front())) {
    if (whole > kMax / 10) return std::nullopt;
    whole = whole * 10 + static_cast<std::uint64_t>(text.front() - '0');
    has_digits = true;
    text.remove_prefix(1);
  }
  double part = 0;
  double scale = 0.1;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    while (!text.empty() && is_digit(text.front())) {
      part += scale * (text.front() - '0');
      scale /= 10;
      has_digits = true;
      text.remove_prefix(1);
    }
  }
  const auto end = std::ranges::find_if(text, [](char c) { return c == '.' || is_digit(c); });
  const auto length = static_cast<std::size_t>(end - text.begin());
  const Unit* unit = unit_of(text.substr(0, length));
  if (!has_digits || unit == nullptr) return std::nullopt;
  text.remove_prefix(length);
  const auto nanos = static_cast<std::uint64_t>(unit->nanos);
  if (whole > kMax / nanos) return std::nullopt;
  const double rest = part * static_cast<double>(nanos) + 1e-6;  // 0.1 + 0.2 is a little off
  return whole * nanos + static_cast<std::uint64_t>(rest);
}

}  // namespace

Result<std::string> canonical_time(std::string_view text) {
  if (has_plain_form(text)) return std::string(text);
  JOGAK_TRY(const Instant instant, parse(text, false));
  if (instant.seconds == kZeroTime && instant.nanos == 0) return "";
  return time_text(instant.seconds);
}

Result<std::string> canonical_micro_time(std::string_view text) {
  JOGAK_TRY(const Instant instant, parse(text, true));
  if (instant.seconds == kZeroTime && instant.nanos == 0) return "";
  return micro_time_text(instant);
}

Result<std::string> canonical_duration(std::string_view text) {
  JOGAK_TRY(const std::int64_t nanos, read_duration(text));
  return duration_text(nanos);
}

Instant instant_of(std::string_view text) { return parse(text, false).value_or(Instant{}); }

std::string time_text(std::int64_t seconds) {
  const std::chrono::sys_seconds time{std::chrono::seconds(seconds)};
  const auto date = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day day(date);
  const std::chrono::hh_mm_ss clock(time - date);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::string micro_time_text(Instant instant) {
  std::string text = time_text(instant.seconds);
  text.insert(text.size() - 1, fmt::format(".{:06}", instant.nanos / 1000));
  return text;
}

Result<std::int64_t> read_duration(std::string_view text) {
  const auto refuse = [&] { return invalid("time: invalid duration {}", quoted(text)); };
  std::string_view rest = text;
  const bool is_negative = rest.starts_with('-');
  if (is_negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "0") return 0;
  if (rest.empty()) return refuse();
  constexpr std::uint64_t kMax = std::uint64_t{1} << 63;
  std::uint64_t sum = 0;
  while (!rest.empty()) {
    const auto part = duration_part(rest);
    if (!part || *part > kMax - sum) return refuse();
    sum += *part;
  }
  if (!is_negative && sum == kMax) return refuse();
  return static_cast<std::int64_t>(is_negative ? 0 - sum : sum);
}

std::string duration_text(std::int64_t nanos) {
  if (nanos == 0) return "0s";
  const bool is_negative = nanos < 0;
  std::uint64_t size = static_cast<std::uint64_t>(nanos);
  if (is_negative) size = 0 - size;
  const std::string sign = is_negative ? "-" : "";
  // `unit` nanoseconds a step, without the zeros behind the point.
  const auto with_fraction = [](std::uint64_t value, std::uint64_t unit, int places) {
    std::string text = fmt::format("{}", value / unit);
    if (value % unit == 0) return text;
    text += fmt::format(".{:0{}}", value % unit, places);
    text.erase(text.find_last_not_of('0') + 1);
    return text;
  };
  if (size < 1'000) return fmt::format("{}{}ns", sign, size);
  if (size < 1'000'000) return sign + with_fraction(size, 1'000, 3) + "\u00b5s";
  if (size < 1'000'000'000) return sign + with_fraction(size, 1'000'000, 6) + "ms";
  constexpr std::uint64_t kMinute = 60'000'000'000;
  const std::uint64_t minutes = size / kMinute;
  std::string text = sign;
  if (minutes >= 60) text += fmt::format("{}h", minutes / 60);
  if (minutes > 0) text += fmt::format("{}m", minutes % 60);
  return text + with_fraction(size % kMinute, 1'000'000'000, 9) + "s";
}

}  // namespace jogak::schema
