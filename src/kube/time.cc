// SPDX-License-Identifier: Apache-2.0
// RFC 3339 by hand: fixed positions, optional fraction, "Z" or an offset.
#include "kube/time.h"

#include <chrono>

#include "base/checked.h"

namespace jogak::kube {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes exactly `digits` digits off the front.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int result = 0;
  for (const char c : text.substr(0, digits)) {
    if (!is_digit(c)) return std::nullopt;
    result = result * 10 + (c - '0');
  }
  text.remove_prefix(digits);
  return result;
}

bool take_char(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<std::int64_t> take_fraction_ns(std::string_view& text) {
  if (!take_char(text, ".")) return 0;
  std::int64_t result = 0;
  std::int64_t unit = 100'000'000;
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  while (!text.empty() && is_digit(text.front())) {
    result += (text.front() - '0') * unit;  // digits beyond the ninth count nothing
    unit /= 10;
    text.remove_prefix(1);
  }
  return result;
}

std::optional<std::int64_t> take_offset_seconds(std::string_view& text) {
  if (take_char(text, "Zz")) return 0;
  if (text.empty()) return std::nullopt;
  const std::int64_t sign = text.front() == '-' ? -1 : 1;
  if (!take_char(text, "+-")) return std::nullopt;
  const auto hours = take_number(text, 2);
  if (!hours || *hours > 23 || !take_char(text, ":")) return std::nullopt;
  const auto minutes = take_number(text, 2);
  if (!minutes || *minutes > 59) return std::nullopt;
  return sign * (*hours * 3600 + *minutes * 60);
}

}  // namespace

std::optional<std::int64_t> parse_time(std::string_view text) {
  const auto year = take_number(text, 4);
  if (!year || !take_char(text, "-")) return std::nullopt;
  const auto month = take_number(text, 2);
  if (!month || !take_char(text, "-")) return std::nullopt;
  const auto day = take_number(text, 2);
  if (!day || !take_char(text, "Tt ")) return std::nullopt;
  const auto hour = take_number(text, 2);
  if (!hour || *hour > 23 || !take_char(text, ":")) return std::nullopt;
  const auto minute = take_number(text, 2);
  if (!minute || *minute > 59 || !take_char(text, ":")) return std::nullopt;
  const auto second = take_number(text, 2);
  if (!second || *second > 60) return std::nullopt;
  const auto fraction_ns = take_fraction_ns(text);
  if (!fraction_ns) return std::nullopt;
  const auto offset = take_offset_seconds(text);
  if (!offset || !text.empty()) return std::nullopt;

  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const std::int64_t seconds = days * 86400 + *hour * 3600 + *minute * 60 + *second - *offset;
  const auto whole_ns = checked_mul(seconds, 1'000'000'000);
  return whole_ns ? checked_add(*whole_ns, *fraction_ns) : std::nullopt;
}

}  // namespace jogak::kube
