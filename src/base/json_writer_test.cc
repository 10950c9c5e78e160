// SPDX-License-Identifier: Apache-2.0
//
// Commas, nesting, escapes, numbers; and misuse, which is a bug and dies.
#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace jogak {
namespace {

std::string quoted(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

void write_sample(JsonWriter& json) {
  json.begin_object();
  json.field("name", "n1").field("gpus", 8).field("ready", true);
  json.field("used", 0.5, 2).key("none").null();
  json.key("empty").begin_array().end_array();
  json.key("list").begin_array().value(1).value("two").begin_object().end_object().end_array();
  json.end_object();
}

TEST(JsonWriter, Compact) {
  JsonWriter json;
  write_sample(json);
  EXPECT_EQ(json.take(), R"({"name":"n1","gpus":8,"ready":true,"used":0.50,"none":null,"empty":[],)"
                         R"("list":[1,"two",{}]})");
}

TEST(JsonWriter, Pretty) {
  JsonWriter json(JsonWriter::Style::Pretty);
  write_sample(json);
  EXPECT_EQ(json.take(), R"({
  "name": "n1",
  "gpus": 8,
  "ready": true,
  "used": 0.50,
  "none": null,
  "empty": [],
  "list": [
    1,
    "two",
    {}
  ]
}
)");
}

TEST(JsonWriter, Scalars) {
  JsonWriter json;
  EXPECT_EQ(json.value(std::numeric_limits<std::int64_t>::min()).take(), "-9223372036854775808");
  EXPECT_EQ(json.value(std::numeric_limits<std::uint64_t>::max()).take(), "18446744073709551615");
  EXPECT_EQ(json.value(std::string("x")).take(), "\"x\"");
}

TEST(JsonWriter, EscapesWhatMustBe) {
  EXPECT_EQ(quoted("plain /text/ 'here'"), "\"plain /text/ 'here'\"");
  EXPECT_EQ(quoted("a\"b\\c\n\r\t"), R"("a\"b\\c\n\r\t")");
  EXPECT_EQ(quoted(std::string_view("\0\x01\x1f\x7f", 4)), R"("\u0000\u0001\u001f\u007f")");
  EXPECT_EQ(quoted("조각 🧩 é"), "\"조각 🧩 é\"");
  EXPECT_EQ(quoted("\xc2\x85"), R"("\u0085")");  // a line break to some YAML readers
}

TEST(JsonWriter, BytesThatAreNotUtf8BecomeReplacements) {
  EXPECT_EQ(quoted("\xff"), R"("\ufffd")");
  EXPECT_EQ(quoted("a\xc3"), R"("a\ufffd")");                                // cut short
  EXPECT_EQ(quoted("\xc0\xaf"), R"("\ufffd\ufffd")");                        // overlong
  EXPECT_EQ(quoted("\xed\xa0\x80"), R"("\ufffd\ufffd\ufffd")");              // a surrogate
  EXPECT_EQ(quoted("\xf4\x90\x80\x80z"), R"("\ufffd\ufffd\ufffd\ufffdz")");  // past the end
  EXPECT_EQ(quoted("\xf0\x9f\xa7\xa9"), "\"🧩\"");
}

TEST(FixedDecimal, Doubles) {
  EXPECT_EQ(fixed_decimal(0.125, 2), "0.12");  // the tie goes to even
  EXPECT_EQ(fixed_decimal(99.999, 1), "100.0");
  EXPECT_EQ(fixed_decimal(-0.001, 2), "0.00");
  EXPECT_EQ(fixed_decimal(-1.5, 0), "-2");
  EXPECT_EQ(fixed_decimal(std::nan(""), 2), "null");
  EXPECT_EQ(fixed_decimal(HUGE_VAL, 2), "null");
}

TEST(FixedDecimal, Exact) {
  EXPECT_EQ(fixed_decimal(std::int64_t{1234}, 2), "12.34");
  EXPECT_EQ(fixed_decimal(std::int64_t{5}, 3), "0.005");
  EXPECT_EQ(fixed_decimal(std::int64_t{-5}, 3), "-0.005");
  EXPECT_EQ(fixed_decimal(std::int64_t{7}, 0), "7");
  EXPECT_EQ(fixed_decimal(std::numeric_limits<std::int64_t>::min(), 18), "-9.223372036854775808");
}

TEST(JsonWriterDeathTest, RefusesWhatIsNotJson) {
  JsonWriter json;
  EXPECT_DEATH(json.take(), "not finished");
  EXPECT_DEATH(json.key("a"), "outside an object");
  EXPECT_DEATH(json.value(1).value(2), "second value");
  EXPECT_DEATH(json.begin_object().value(1), "without a key");
  EXPECT_DEATH(json.begin_object().key("a").end_object(), "without its value");
  EXPECT_DEATH(json.begin_array().end_object(), "unexpected");
}

}  // namespace
}  // namespace jogak
