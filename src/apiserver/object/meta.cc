// SPDX-License-Identifier: Apache-2.0
//
// Members of metadata and status that many parts read or write, and times as the API writes them.
#include "apiserver/object/meta.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/utc_time.h"

namespace jogak::api {
namespace {

const Doc kNull;

// Takes a number of exactly so many digits, and the mark that follows it where one is given.
bool take(std::string_view& text, std::size_t digits, int& value, char mark = '\0') {
  const std::size_t size = digits + (mark == '\0' ? 0 : 1);
  if (text.size() < size) return false;
  value = 0;
  for (const char c : text.substr(0, digits)) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + (c - '0');
  }
  if (mark != '\0' && text[digits] != mark) return false;
  text.remove_prefix(size);
  return true;
}

// ".123": microseconds, what is finer cut off.
bool take_fraction(std::string_view& text, int& micros) {
  micros = 0;
  if (text.empty() || text[0] != '.') return true;
  std::size_t end = 1;
  int weight = 100'000;
  for (; end < text.size() && text[end] >= '0' && text[end] <= '9'; ++end, weight /= 10) {
    micros += (text[end] - '0') * weight;
  }
  if (end == 1) return false;
  text.remove_prefix(end);
  return true;
}

// "Z" or "+02:00", to the end of the text: seconds to subtract.
bool take_offset(std::string_view text, int& seconds) {
  seconds = 0;
  if (text == "Z") return true;
  if (text.empty() || (text[0] != '+' && text[0] != '-')) return false;
  const int sign = text[0] == '-' ? -1 : 1;
  text.remove_prefix(1);
  int hours = 0;
  int minutes = 0;
  if (!take(text, 2, hours, ':') || !take(text, 2, minutes) || !text.empty()) return false;
  if (hours > 24 || minutes > 60) return false;  // the limits of Go's parser
  seconds = sign * (hours * 3600 + minutes * 60);
  return true;
}

Doc* find_condition(Doc& object, std::string_view type) {
  Doc* status = object.find("status");
  Doc* conditions = status == nullptr ? nullptr : status->find("conditions");
  if (conditions == nullptr || !conditions->is_array()) return nullptr;
  for (Doc& condition : conditions->items()) {
    if (condition["type"].as_string() == type) return &condition;
  }
  return nullptr;
}

// Sets or, where the text is empty, removes; true when that changed something.
bool put_text(Doc& object, std::string_view key, std::string_view text) {
  if (object[key].as_string() == text) return false;
  if (text.empty()) return object.erase(key);
  object.set(key, text);
  return true;
}

}  // namespace

const Doc& controller_of(const Doc& object) {
  for (const Doc& owner : meta(object)["ownerReferences"].items()) {
    if (owner["controller"].as_bool()) return owner;
  }
  return kNull;
}

bool has_finalizer(const Doc& object, std::string_view name) {
  const auto& finalizers = meta(object)["finalizers"].items();
  return std::any_of(finalizers.begin(), finalizers.end(),
                     [&](const Doc& finalizer) { return finalizer.as_string() == name; });
}

const Doc& condition_of(const Doc& object, std::string_view type) {
  for (const Doc& condition : object.get("status", "conditions").items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return kNull;
}

bool condition_is(const Doc& object, std::string_view type, std::string_view status) {
  const Doc& condition = condition_of(object, type);
  return !condition.is_null() && condition["status"].as_string() == status;
}

bool set_condition(Doc& object, std::string_view type, std::string_view status,
                   std::string_view reason, std::string_view message, TimeUs now) {
  Doc* condition = find_condition(object, type);
  if (condition == nullptr) {
    Doc fresh = Doc::object();
    fresh.set("type", type).set("status", status).set("lastTransitionTime", format_time(now));
    put_text(fresh, "reason", reason);
    put_text(fresh, "message", message);
    object.at("status", "conditions").push(std::move(fresh));
    return true;
  }
  bool has_changed = put_text(*condition, "status", status);
  if (has_changed) condition->set("lastTransitionTime", format_time(now));
  has_changed |= put_text(*condition, "reason", reason);
  has_changed |= put_text(*condition, "message", message);
  return has_changed;
}

std::string format_time(TimeUs time) { return utc_seconds(time); }

std::string format_micro_time(TimeUs time) { return utc_micros(time); }

std::optional<TimeUs> parse_time(std::string_view text) {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, micros = 0, offset = 0;
  if (!take(text, 4, year, '-') || !take(text, 2, month, '-') || !take(text, 2, day, 'T') ||
      !take(text, 2, hour, ':') || !take(text, 2, minute, ':') || !take(text, 2, second) ||
      !take_fraction(text, micros) || !take_offset(text, offset)) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const std::int64_t seconds = days * 86'400 + hour * 3600 + minute * 60 + second - offset;
  return seconds * kSecondInUs + micros;
}

}  // namespace jogak::api
