// SPDX-License-Identifier: Apache-2.0
//
// Lines for machines and for people, and what never gets into them.
#include "base/log.h"

#include <array>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/sim_loop.h"

namespace jogak {
namespace {

constexpr TimeUs kTime = 1'770'000'000 * kSecondInUs + 123'456;  // 2026-02-02 02:40:00 UTC

TEST(Log, JsonLine) {
  const std::array<LogField, 4> fields = {LogField{"pod", "team/a \"x\""}, LogField{"n", -3},
                                          LogField{"ok", true}, LogField{"what", "w"}};
  EXPECT_EQ(json_line({.time = kTime, .level = LogLevel::Warn, .message = "odd", .fields = fields}),
            "{\"time\":\"2026-02-02T02:40:00.123456Z\",\"level\":\"warn\",\"msg\":\"odd\","
            "\"pod\":\"team/a \\\"x\\\"\",\"n\":-3,\"ok\":true,\"what\":\"w\"}\n");
}

TEST(Log, TextLine) {
  const std::array<LogField, 3> fields = {LogField{"pod", "team/a"}, LogField{"why", "no room"},
                                          LogField{"none", ""}};
  EXPECT_EQ(
      text_line({.time = kTime, .level = LogLevel::Info, .message = "bound", .fields = fields}),
      "02:40:00.123 INFO  bound  pod=team/a why=\"no room\" none=\"\"\n");
  EXPECT_EQ(text_line({.time = kTime, .level = LogLevel::Error, .message = "stop", .fields = {}}),
            "02:40:00.123 ERROR stop\n");
}

TEST(Log, LineBreaksStayInsideALine) {
  const std::array<LogField, 1> fields = {LogField{"error", "a\nb\x01"}};
  const LogEvent event{.time = kTime, .level = LogLevel::Info, .message = "m", .fields = fields};
  for (const std::string& line : {json_line(event), text_line(event)}) {
    EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
    EXPECT_EQ(line.find('\x01'), std::string::npos) << line;
  }
}

TEST(Log, SecretsAreNotShown) {
  EXPECT_TRUE(is_secret_name("token"));
  EXPECT_TRUE(is_secret_name("bearerToken"));
  EXPECT_TRUE(is_secret_name("Authorization"));
  EXPECT_TRUE(is_secret_name("client-key-data"));
  EXPECT_FALSE(is_secret_name("pod"));
  EXPECT_FALSE(is_secret_name("key"));
  const std::array<LogField, 1> fields = {LogField{"token", "abc"}};
  const LogEvent event{.time = kTime, .level = LogLevel::Info, .message = "m", .fields = fields};
  EXPECT_EQ(json_line(event).find("abc"), std::string::npos);
  EXPECT_EQ(text_line(event).find("abc"), std::string::npos);
}

TEST(Log, LongValuesAreCutBetweenCharacters) {
  std::string text = "x";
  while (text.size() < 6000) text += "\xc3\xa9";
  const std::array<LogField, 1> fields = {LogField{"v", text}};
  const std::string line =
      json_line({.time = kTime, .level = LogLevel::Info, .message = "m", .fields = fields});
  EXPECT_LT(line.size(), 4300U);
  EXPECT_EQ(line.find("\xef\xbf\xbd"), std::string::npos) << "half a character";
  EXPECT_NE(line.find("...\"}"), std::string::npos);
}

TEST(Log, LevelsSelect) {
  SimLoop loop;
  CapturedLog captured;
  Log log(loop, captured, LogLevel::Warn);
  log.info("not this", {{"a", 1}});
  log.warn("this", {{"a", 1}});
  log.error("and this");
  log.set_level(LogLevel::Debug);
  log.debug("now all");
  EXPECT_EQ(captured.lines,
            (std::vector<std::string>{"warn: this  a=1", "error: and this", "debug: now all"}));
}

TEST(Log, LevelNames) {
  EXPECT_EQ(parse_level("debug").value(), LogLevel::Debug);
  EXPECT_EQ(parse_level("wran").error().what,
            "no log level wran; there are error, warn, info and debug; did you mean warn?");
}

TEST(Log, ToADescriptor) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  EXPECT_EQ(form_for(ends[1]), LogForm::Json);
  SimLoop loop(kTime);
  const auto sink = fd_sink(ends[1], LogForm::Text);
  Log log(loop, *sink);
  log.info("hello", {{"n", 1}});
  std::array<char, 100> read{};
  const ssize_t size = ::read(ends[0], read.data(), read.size());
  EXPECT_EQ(std::string(read.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))),
            "02:40:00.123 INFO  hello  n=1\n");
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace jogak
