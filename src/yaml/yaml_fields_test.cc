// SPDX-License-Identifier: Apache-2.0
//
// Spans of time as text, and what readers of maps say of mistakes. More of it is tested by the
// readers themselves (sim/scenario_read_test.cc, live/config_test.cc).
#include "yaml/yaml_fields.h"

#include <gtest/gtest.h>

namespace jogak {
namespace {

TEST(YamlFields, SpansAreRead) {
  EXPECT_EQ(parse_span("15s"), 15 * kSecondInUs);
  EXPECT_EQ(parse_span("1m30s"), 90 * kSecondInUs);
  EXPECT_EQ(parse_span("250ms"), 250 * kMsInUs);
  EXPECT_EQ(parse_span("1h0.5s"), 3'600'500 * kMsInUs);
  EXPECT_EQ(parse_span(".5m"), 30 * kSecondInUs);
  EXPECT_EQ(parse_span("1.5h"), 5400 * kSecondInUs);
  EXPECT_EQ(parse_span("7us"), 7);
  EXPECT_EQ(parse_span("0"), 0);
  EXPECT_EQ(parse_span("0s"), 0);
}

TEST(YamlFields, WhatIsNoSpan) {
  for (const std::string_view text : {"", "15", "s", ".s", "-1s", "1.2.3s", "1 s", "1d", "15sm",
                                      "1s2", "99999999999999999999s", "900000h", "1.1234567s"}) {
    EXPECT_EQ(parse_span(text), std::nullopt) << text;
  }
}

TEST(YamlFields, SpansAreWritten) {
  for (const std::string_view text : {"0s", "15s", "1m30s", "250ms", "1h1s", "1s500ms", "7us"}) {
    EXPECT_EQ(span_text(parse_span(text).value()), text);
  }
}

std::string error_of(std::string_view text) {
  const auto read = read_yaml_map("f.yaml", text, "a map of things", [](YamlFields& fields) {
    fields.span("wait", 0, kSecondInUs, 60 * kSecondInUs);
    fields.finish();
  });
  return read ? "" : read.error().what;
}

TEST(YamlFields, MistakesAreNamedWithTheirPlace) {
  EXPECT_EQ(error_of("wait: 2s"), "");
  EXPECT_EQ(error_of("wait: 2"), "f.yaml:1: wait: expected a time like 15s or 1m30s, got 2");
  EXPECT_EQ(error_of("wait: 2m"), "f.yaml:1: wait: must be 1s to 1m, got 2m");
  EXPECT_EQ(error_of("\nwaits: 2m"), "f.yaml:2: waits: unknown field; did you mean wait?");
  EXPECT_EQ(error_of("wait: 1s\nwait: 2s"), "f.yaml:2: wait: given twice");
  EXPECT_EQ(error_of(""), "f.yaml: expected one YAML document, a map of things");
  EXPECT_EQ(error_of("- a"), "f.yaml: expected one YAML document, a map of things");
  EXPECT_EQ(error_of("a: 1\n---\nb: 2"), "f.yaml: expected one YAML document, a map of things");
  EXPECT_NE(error_of("wait: [").find("f.yaml:1: "), std::string::npos);
}

}  // namespace
}  // namespace jogak
