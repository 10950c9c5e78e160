// SPDX-License-Identifier: Apache-2.0
//
// Events to lines, lines to a descriptor.
#include "base/log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include <fmt/format.h>
#include <unistd.h>

#include "base/edit_distance.h"
#include "base/json_writer.h"

namespace jogak {

namespace {

constexpr std::array<std::string_view, 4> kLevels = {"error", "warn", "info", "debug"};
constexpr std::size_t kValueMax = 4096;  // bytes of a field
constexpr std::string_view kHidden = "[not shown]";

struct Moment {
  std::chrono::year_month_day day;
  std::chrono::hh_mm_ss<std::chrono::microseconds> time;
};

Moment moment_of(TimeUs time) {
  using namespace std::chrono;
  const sys_time<microseconds> at{microseconds{time}};
  const auto day = floor<days>(at);
  return {year_month_day{day}, hh_mm_ss<microseconds>{at - day}};
}

std::string clipped(std::string_view text) {
  if (text.size() <= kValueMax) return std::string(text);
  std::size_t end = kValueMax;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80)
    --end;  // inside a rune
  return std::string(text.substr(0, end)) + "...";
}

bool is_plain(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return c > ' ' && c != '"' && c != '=' && c != '\\' && c != '\x7f';
  });
}

void append_value(std::string& out, const LogField& field) {
  if (const auto* flag = std::get_if<bool>(&field.value)) {
    out += *flag ? "true" : "false";
  } else if (const auto* number = std::get_if<std::int64_t>(&field.value)) {
    out += std::to_string(*number);
  } else if (const std::string text = clipped(std::get<std::string_view>(field.value));
             is_plain(text)) {
    out += text;
  } else {
    append_json_string(out, text);
  }
}

std::string fields_text(std::span<const LogField> fields) {
  std::string out;
  for (const LogField& field : fields) {
    out.append(out.empty() ? "  " : " ").append(field.key).append("=");
    if (is_secret_name(field.key)) {
      out += kHidden;
    } else {
      append_value(out, field);
    }
  }
  return out;
}

class FdSink : public LogSink {
 public:
  FdSink(int fd, LogForm form) : fd_(fd), form_(form) {}

  void write(const LogEvent& event) override {
    const std::string line = form_ == LogForm::Json ? json_line(event) : text_line(event);
    std::string_view rest = line;
    while (!rest.empty()) {
      const ssize_t written = ::write(fd_, rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return;
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
  }

 private:
  int fd_;
  LogForm form_;
};

}  // namespace

std::string_view level_name(LogLevel level) { return kLevels[static_cast<std::size_t>(level)]; }

Result<LogLevel> parse_level(std::string_view name) {
  const auto at = std::ranges::find(kLevels, name);
  if (at != kLevels.end()) return static_cast<LogLevel>(at - kLevels.begin());
  return invalid("no log level {}; there are error, warn, info and debug{}", name,
                 did_you_mean(name, kLevels));
}

bool is_secret_name(std::string_view key) {
  std::string lower(key);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  constexpr std::array<std::string_view, 7> kSecret = {
      "token", "password", "secret", "authorization", "cookie", "credential", "key-data"};
  return std::ranges::any_of(
      kSecret, [&](std::string_view word) { return lower.find(word) != std::string::npos; });
}

std::string json_line(const LogEvent& event) {
  const Moment moment = moment_of(event.time);
  JsonWriter json;
  json.begin_object();
  json.field("time",
             fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", int{moment.day.year()},
                         unsigned{moment.day.month()}, unsigned{moment.day.day()},
                         moment.time.hours().count(), moment.time.minutes().count(),
                         moment.time.seconds().count(), moment.time.subseconds().count()));
  json.field("level", level_name(event.level)).field("msg", event.message);
  for (const LogField& field : event.fields) {
    json.key(field.key);
    if (is_secret_name(field.key)) {
      json.value(kHidden);
    } else if (const auto* text = std::get_if<std::string_view>(&field.value)) {
      json.value(clipped(*text));
    } else if (const auto* flag = std::get_if<bool>(&field.value)) {
      json.value(*flag);
    } else {
      json.value(std::get<std::int64_t>(field.value));
    }
  }
  json.end_object();
  return json.take() + "\n";
}

std::string text_line(const LogEvent& event) {
  const Moment moment = moment_of(event.time);
  std::string level(level_name(event.level));
  for (char& c : level) c = static_cast<char>(c - 'a' + 'A');
  return fmt::format("{:02}:{:02}:{:02}.{:03} {:<5} {}{}\n", moment.time.hours().count(),
                     moment.time.minutes().count(), moment.time.seconds().count(),
                     moment.time.subseconds().count() / 1000, level, event.message,
                     fields_text(event.fields));
}

std::unique_ptr<LogSink> fd_sink(int fd, LogForm form) {
  return std::make_unique<FdSink>(fd, form);
}

LogForm form_for(int fd) { return ::isatty(fd) == 1 ? LogForm::Text : LogForm::Json; }

void Log::add(LogLevel level, std::string_view message, Fields fields) {
  if (!is_on(level)) return;
  sink_.write({.time = loop_.now(), .level = level, .message = message, .fields = fields});
}

void CapturedLog::write(const LogEvent& event) {
  lines.push_back(
      fmt::format("{}: {}{}", level_name(event.level), event.message, fields_text(event.fields)));
}

}  // namespace jogak
