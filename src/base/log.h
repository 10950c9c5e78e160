// SPDX-License-Identifier: Apache-2.0
//
// Log events: a short constant message and fields, with a level that means something. A Log is
// passed to whoever needs it; there is no global one. Where lines go is the sink's affair: JSON
// lines for machines, text for people, a list for tests.
//
//   error  somebody should look          warn   handled, but odd
//   info   state changed                 debug  the story of one decision
//
//   log.warn("binding failed", {{"pod", "team/a"}, {"error", error.what}});
//
// Fields that are named like secrets are not written (is_secret_name), whoever puts them in.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/loop.h"
#include "base/result.h"

namespace jogak {

enum class LogLevel : std::uint8_t { Error, Warn, Info, Debug };
std::string_view level_name(LogLevel level);  // "error"
// Invalid: no such level, with the nearest.
Result<LogLevel> parse_level(std::string_view name);

struct LogField {
  LogField(std::string_view name, std::string_view text) : key(name), value(text) {}
  LogField(std::string_view name, const std::string& text)
      : LogField(name, std::string_view(text)) {}
  LogField(std::string_view name, const char* text) : LogField(name, std::string_view(text)) {}
  LogField(std::string_view name, std::same_as<bool> auto flag) : key(name), value(flag) {}
  LogField(std::string_view name, std::integral auto number)
    requires(!std::same_as<decltype(number), bool>)
      : key(name), value(static_cast<std::int64_t>(number)) {}

  std::string_view key;
  std::variant<std::string_view, bool, std::int64_t> value;
};

// Views hold during the call only.
struct LogEvent {
  TimeUs time = 0;
  LogLevel level = LogLevel::Info;
  std::string_view message;
  std::span<const LogField> fields;
};

class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void write(const LogEvent& event) = 0;
};

// "token", "password", "client-key-data", "Authorization", ...: part of the name tells.
bool is_secret_name(std::string_view key);

// One line each, with its end. Values of secret names are "[not shown]", long values are cut.
std::string json_line(const LogEvent& event);
// "18:12:23.123 WARN  binding failed  pod=team/a error="no such pod"".
std::string text_line(const LogEvent& event);

enum class LogForm : std::uint8_t { Json, Text };
// Whole lines to a file descriptor, which it does not close. Lines that cannot be written (a full
// disk, a closed pipe) are lost: nothing waits for a log.
std::unique_ptr<LogSink> fd_sink(int fd, LogForm form);
// Text on a terminal, else JSON.
LogForm form_for(int fd);

// `loop` is the clock.
class Log {
 public:
  Log(const Loop& loop, LogSink& sink, LogLevel level = LogLevel::Info)
      : loop_(loop), sink_(sink), level_(level) {}

  using Fields = std::initializer_list<LogField>;
  void error(std::string_view message, Fields fields = {}) {
    add(LogLevel::Error, message, fields);
  }
  void warn(std::string_view message, Fields fields = {}) { add(LogLevel::Warn, message, fields); }
  void info(std::string_view message, Fields fields = {}) { add(LogLevel::Info, message, fields); }
  void debug(std::string_view message, Fields fields = {}) {
    add(LogLevel::Debug, message, fields);
  }

  LogLevel level() const { return level_; }
  TimeUs now() const { return loop_.now(); }
  void set_level(LogLevel level) { level_ = level; }
  // For fields that cost something to make.
  bool is_on(LogLevel level) const { return level <= level_; }

 private:
  void add(LogLevel level, std::string_view message, Fields fields);

  const Loop& loop_;
  LogSink& sink_;
  LogLevel level_;
};

// Keeps what was logged, as text lines without the time.
class CapturedLog : public LogSink {
 public:
  void write(const LogEvent& event) override;
  std::vector<std::string> lines;
};

}  // namespace jogak
