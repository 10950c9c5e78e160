// SPDX-License-Identifier: Apache-2.0
//
// One reader for those who only want to know whether a line is right and those who follow it.
#include "apiserver/schema/cron_line.h"

#include <algorithm>
#include <string>
#include <vector>

#include "apiserver/schema/go_time.h"
#include "base/parse_number.h"

namespace jogak::schema {

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
Result<void> read_range(std::string_view text, const Bounds& bounds, CronField& field) {
  const std::vector<std::string_view> range_and_step = split(text, '/');
  const std::vector<std::string_view> ends = split(range_and_step.front(), '-');
  std::int64_t first = bounds.min;
  std::int64_t last = bounds.max;
  const bool is_star = ends.front() == "*" || ends.front() == "?";
  if (!is_star) {
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
  if (is_star && step == 1) field.is_any = true;
  step = std::min(step, bounds.max + 1);  // more cannot matter, and might overflow
  for (std::int64_t value = first; value <= last; value += step) {
    field.bits |= std::uint64_t{1} << static_cast<unsigned>(value);
  }
  return {};
}

Result<CronLine> read_every(std::string_view line) {
  constexpr std::int64_t kSecondInNs = 1'000'000'000;
  const auto span = read_duration(line.substr(kEvery.size()));
  if (!span.has_value()) return invalid("failed to parse duration {}", line);
  CronLine read;
  read.every_s = std::max<std::int64_t>(*span / kSecondInNs, 1);
  return read;
}

}  // namespace

Result<ZonedCron> split_cron_zone(std::string_view text) {
  if (text.empty()) return invalid("empty spec string");
  if (!text.starts_with("TZ=") && !text.starts_with("CRON_TZ=")) {
    return ZonedCron{.has_zone = false, .zone = {}, .line = text};
  }
  const std::size_t blank = text.find(' ');
  const std::size_t start = text.find('=') + 1;
  if (blank == std::string_view::npos) return invalid("no schedule after the time zone: {}", text);
  const std::size_t line = std::min(text.find_first_not_of(' ', blank), text.size());
  return ZonedCron{
      .has_zone = true, .zone = text.substr(start, blank - start), .line = text.substr(line)};
}

Result<CronLine> read_cron_line(std::string_view line) {
  if (line.starts_with(kEvery)) return read_every(line);
  if (line.starts_with('@')) {
    const auto word = std::ranges::find(kWords, line, &Word::word);
    if (word == kWords.end()) return invalid("unrecognized descriptor: {}", line);
    line = word->line;
  }
  const std::vector<std::string_view> fields = words_of(line);
  if (fields.size() != kFields.size()) {
    return invalid("expected exactly {} fields, found {}", kFields.size(), fields.size());
  }
  CronLine read;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    for (const std::string_view range : split(fields[i], ',')) {
      if (!range.empty()) JOGAK_TRY_VOID(read_range(range, kFields[i], read.fields[i]));
    }
  }
  return read;
}

}  // namespace jogak::schema
