// SPDX-License-Identifier: Apache-2.0
//
// The syntax of cron lines as the server's parser takes it: five fields of lists, ranges and steps,
// names of months and days, or one of the @ words.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>

#include "apiserver/kinds/batch.h"
#include "base/parse_number.h"

namespace jogak::api {

namespace {

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kDays = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

struct Bounds {
  std::int64_t min = 0;
  std::int64_t max = 0;
  const std::string_view* names = nullptr;  // of min, min + 1, ...
  std::size_t name_count = 0;
};

constexpr std::array<Bounds, 5> kFields = {{
    {.min = 0, .max = 59},
    {.min = 0, .max = 23},
    {.min = 1, .max = 31},
    {.min = 1, .max = 12, .names = kMonths.data(), .name_count = kMonths.size()},
    {.min = 0, .max = 6, .names = kDays.data(), .name_count = kDays.size()},
}};

constexpr std::array<std::string_view, 7> kWords = {"@yearly", "@annually", "@monthly", "@weekly",
                                                    "@daily",  "@midnight", "@hourly"};
constexpr std::string_view kEvery = "@every ";

char to_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::vector<std::string_view> split(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(mark);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  while (true) {
    const std::size_t start = text.find_first_not_of(kBlanks);
    if (start == std::string_view::npos) return words;
    text.remove_prefix(start);
    const std::size_t end = std::min(text.find_first_of(kBlanks), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

Result<std::int64_t> read_number(std::string_view text) {
  const auto number = parse_int(text.starts_with('+') ? text.substr(1) : text);
  if (!number.has_value()) return invalid("failed to parse int from {}", text);
  if (*number < 0) return invalid("negative number ({}) not allowed: {}", *number, text);
  return *number;
}

Result<std::int64_t> read_value(std::string_view text, const Bounds& bounds) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), to_lower);
  for (std::size_t i = 0; i < bounds.name_count; ++i) {
    if (bounds.names[i] == lower) return bounds.min + static_cast<std::int64_t>(i);
  }
  return read_number(text);
}

// "*", "5", "1-5", each with an optional "/step".
Result<void> check_range(std::string_view text, const Bounds& bounds) {
  const std::vector<std::string_view> range_and_step = split(text, '/');
  const std::vector<std::string_view> ends = split(range_and_step.front(), '-');
  std::int64_t first = bounds.min;
  std::int64_t last = bounds.max;
  if (ends.front() != "*" && ends.front() != "?") {
    JOGAK_TRY(first, read_value(ends.front(), bounds));
    last = first;
    if (ends.size() == 2) {
      JOGAK_TRY(last, read_value(ends.back(), bounds));
    } else if (ends.size() > 2) {
      return invalid("too many hyphens: {}", text);
    }
  }
  std::int64_t step = 1;
  if (range_and_step.size() == 2) {
    JOGAK_TRY(step, read_number(range_and_step.back()));
    if (ends.size() == 1) last = bounds.max;  // "5/10" runs to the end
  } else if (range_and_step.size() > 2) {
    return invalid("too many slashes: {}", text);
  }
  if (first < bounds.min) {
    return invalid("beginning of range ({}) below minimum ({}): {}", first, bounds.min, text);
  }
  if (last > bounds.max) {
    return invalid("end of range ({}) above maximum ({}): {}", last, bounds.max, text);
  }
  if (first > last) {
    return invalid("beginning of range ({}) beyond end of range ({}): {}", first, last, text);
  }
  if (step == 0) return invalid("step of range should be a positive number: {}", text);
  return {};
}

// Go's duration: signed decimal numbers with units, "1h30m", "1.5s"; "0" needs none.
bool is_go_duration(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return true;
  if (text.empty()) return false;
  constexpr std::array<std::string_view, 8> kUnits = {"ns", "us", "µs", "μs", "ms", "s", "m", "h"};
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::string_view number = text.substr(0, digits);
    if (number.empty() || number == "." || std::ranges::count(number, '.') > 1) return false;
    text.remove_prefix(digits);
    const auto unit = std::ranges::find_if(
        kUnits, [&](std::string_view candidate) { return text.starts_with(candidate); });
    if (unit == kUnits.end()) return false;
    text.remove_prefix(unit->size());
    // "5mx" must not pass as "5m" and garbage; the next round would see no digit
  }
  return true;
}

Result<void> check_word(std::string_view text) {
  if (std::ranges::find(kWords, text) != kWords.end()) return {};
  if (!text.starts_with(kEvery)) return invalid("unrecognized descriptor: {}", text);
  const std::string_view duration = text.substr(kEvery.size());
  if (!is_go_duration(duration)) return invalid("failed to parse duration {}", text);
  return {};
}

}  // namespace

Result<void> check_cron_schedule(std::string_view text) {
  if (text.empty()) return invalid("empty spec string");
  if (text.starts_with("TZ=") || text.starts_with("CRON_TZ=")) {
    const std::size_t blank = text.find(' ');
    const std::size_t equals = text.find('=');
    if (blank == std::string_view::npos)
      return invalid("no schedule after the time zone: {}", text);
    const std::string_view zone = text.substr(equals + 1, blank - equals - 1);
    if (!zone.empty() && !is_time_zone(zone)) return invalid("provided bad location {}", zone);
    const std::size_t start = std::min(text.find_first_not_of(' ', blank), text.size());
    text.remove_prefix(start);
  }
  if (text.starts_with('@')) return check_word(text);
  const std::vector<std::string_view> fields = words_of(text);
  if (fields.size() != kFields.size()) {
    return invalid("expected exactly {} fields, found {}", kFields.size(), fields.size());
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    for (const std::string_view range : split(fields[i], ',')) {
      if (!range.empty()) JOGAK_TRY_VOID(check_range(range, kFields[i]));
    }
  }
  return {};
}

}  // namespace jogak::api
