// SPDX-License-Identifier: Apache-2.0
//
// The index lists of indexed jobs: increasing numbers and intervals, "0-3,5".
#include <optional>

#include "apiserver/kinds/batch.h"
#include "base/parse_number.h"

namespace jogak::api {

namespace {

struct Interval {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

// Cuts `text` at the first `mark`: the part before it, and the rest stays in `text`; nullopt when
// nothing is left to cut.
std::optional<std::string_view> next_part(std::optional<std::string_view>& text, char mark) {
  if (!text.has_value()) return std::nullopt;
  const std::size_t end = text->find(mark);
  const std::string_view part = text->substr(0, end);
  if (end == std::string_view::npos) {
    text.reset();
  } else {
    text->remove_prefix(end + 1);
  }
  return part;
}

Result<std::int64_t> read_index(std::string_view text, std::int64_t completions) {
  const auto number = parse_int(text);
  if (!number.has_value()) {
    return invalid("cannot convert string to integer for index: \"{}\"", text);
  }
  if (*number >= completions) return invalid("too large index: \"{}\"", text);
  return *number;
}

Result<Interval> read_interval(std::string_view text, std::int64_t completions) {
  std::optional<std::string_view> rest = text;
  const std::string_view first_text = *next_part(rest, '-');
  const std::optional<std::string_view> last_text = next_part(rest, '-');
  if (rest.has_value()) {
    return invalid(
        "the fragment \"{}\" violates the requirement that an index interval can have "
        "at most two parts separated by '-'",
        text);
  }
  JOGAK_TRY(const std::int64_t first, read_index(first_text, completions));
  if (!last_text.has_value()) return Interval{.first = first, .last = first};
  JOGAK_TRY(const std::int64_t last, read_index(*last_text, completions));
  if (first >= last) {
    return invalid("non-increasing order, previous: {}, current: {}", first, last);
  }
  return Interval{.first = first, .last = last};
}

std::vector<Interval> readable_intervals(std::string_view text, std::int64_t completions) {
  std::vector<Interval> intervals;
  std::optional<std::string_view> rest;
  if (!text.empty()) rest = text;
  while (const auto part = next_part(rest, ',')) {
    if (const auto interval = read_interval(*part, completions)) intervals.push_back(*interval);
  }
  return intervals;
}

}  // namespace

Result<std::int64_t> count_indexes(std::string_view text, std::int64_t completions) {
  std::int64_t total = 0;
  std::optional<std::int64_t> previous;
  std::optional<std::string_view> rest;
  if (!text.empty()) rest = text;
  while (const auto part = next_part(rest, ',')) {
    JOGAK_TRY(const Interval interval, read_interval(*part, completions));
    if (previous.has_value() && *previous >= interval.first) {
      return invalid("non-increasing order, previous: {}, current: {}", *previous, interval.first);
    }
    total += interval.last - interval.first + 1;
    previous = interval.last;
  }
  return total;
}

std::int64_t first_common_index(std::string_view a, std::string_view b, std::int64_t completions) {
  const std::vector<Interval> left = readable_intervals(a, completions);
  const std::vector<Interval> right = readable_intervals(b, completions);
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < left.size() && j < right.size()) {
    if (left[i].first <= right[j].last && right[j].first <= left[i].last) {
      return std::max(left[i].first, right[j].first);
    }
    if (left[i].first <= right[j].first) {
      ++i;
    } else {
      ++j;
    }
  }
  return -1;
}

}  // namespace jogak::api
