// SPDX-License-Identifier: Apache-2.0
//
// Texts, what they read as, and what is wrong with them in the words of encoding/json.
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "apiserver/codec/codec.h"

namespace jogak::codec {
namespace {

constexpr std::string_view kPrefix = "couldn't get version/kind; json parse error: ";

std::string read(std::string_view text) {
  const auto parsed = parse_json(text);
  return parsed ? parsed->doc.json(JsonWriter::Style::Compact) : parsed.error().what;
}

TEST(ParseJson, Values) {
  struct Case {
    const char *text, *expected;
  };
  const Case cases[] = {
      {"null", "null"},
      {" \n\t\r true ", "true"},
      {"false", "false"},
      {"0", "0"},
      {"-0", "0"},
      {"-12", "-12"},
      {"9223372036854775807", "9223372036854775807"},
      {"9223372036854775808", "9223372036854775808"},
      {"100000000000000000000000", "100000000000000000000000"},
      {"1.0", "1.0"},
      {"1e3", "1e3"},
      {"-1.5E-7", "-1.5E-7"},
      {"\"\"", "\"\""},
      {"[]", "[]"},
      {"{}", "{}"},
      {"[1,[2,{}],\"x\"]", "[1,[2,{}],\"x\"]"},
      {R"({"b":1,"a":{"c":null}})", R"({"b":1,"a":{"c":null}})"},
  };
  for (const Case& c : cases) EXPECT_EQ(read(c.text), c.expected) << c.text;
}

TEST(ParseJson, Strings) {
  struct Case {
    std::string text, expected;
  };
  const Case cases[] = {
      {R"("a\"\\\/\b\f\n\r\tz")", "a\"\\/\b\f\n\r\tz"},
      {R"("\u00e9\uac00")", "é가"},
      {R"("\ud83d\ude00")", "😀"},
      {R"("\ud800")", "\xef\xbf\xbd"},
      {R"("\ud800A")",
       "\xef\xbf\xbd"
       "A"},
      {R"("\ud800\u0041")",
       "\xef\xbf\xbd"
       "A"},
      {R"("\udc00")", "\xef\xbf\xbd"},
      {"\"a\xff"
       "b\"",
       "a\xef\xbf\xbd"
       "b"},
      {"\"\xe2\x82\"", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"\"가나다 and more than eight bytes\"", "가나다 and more than eight bytes"},
      {R"("\u0000")", std::string(1, '\0')},
      {"\"\x7f\"", "\x7f"},
  };
  for (const Case& c : cases) {
    const auto parsed = parse_json(c.text);
    ASSERT_TRUE(parsed.has_value()) << c.text << parsed.error().what;
    EXPECT_EQ(parsed->doc.as_string(), c.expected) << c.text;
  }
}

TEST(ParseJson, EscapesAtEveryOffset) {
  for (std::size_t i = 0; i < 20; ++i) {
    const std::string plain(i, 'x');
    EXPECT_EQ(read("\"" + plain + "\\n" + plain + "\""), "\"" + plain + "\\n" + plain + "\"");
    EXPECT_EQ(read("\"" + plain + "\""), "\"" + plain + "\"");
    EXPECT_EQ(read("\"" + plain + "é" + plain + "\""), "\"" + plain + "é" + plain + "\"");
  }
}

TEST(ParseJson, Errors) {
  struct Case {
    const char *text, *error;
  };
  const Case cases[] = {
      {"", "unexpected end of JSON input"},
      {" ", "unexpected end of JSON input"},
      {"{", "unexpected end of JSON input"},
      {"[1", "unexpected end of JSON input"},
      {"\"abc", "unexpected end of JSON input"},
      {R"({"a":)", "unexpected end of JSON input"},
      {"x", "invalid character 'x' looking for beginning of value"},
      {"é", "invalid character 'Ã' looking for beginning of value"},
      {"'a'", R"(invalid character '\'' looking for beginning of value)"},
      {"\x01", R"(invalid character '\x01' looking for beginning of value)"},
      {"[,]", "invalid character ',' looking for beginning of value"},
      {"[1,]", "invalid character ']' looking for beginning of value"},
      {"[1 2]", "invalid character '2' after array element"},
      {"{a:1}", "invalid character 'a' looking for beginning of object key string"},
      {R"({"a":1,})", "invalid character '}' looking for beginning of object key string"},
      {R"({"a" 1})", "invalid character '1' after object key"},
      {R"({"a":1 "b":2})", R"(invalid character '"' after object key:value pair)"},
      {R"({"metadata":{"name":"x"}} trailing)", "invalid character 't' after top-level value"},
      {"1 2", "invalid character '2' after top-level value"},
      {"01", "invalid character '1' after top-level value"},
      {"tru", "invalid character ' ' in literal true (expecting 'e')"},
      {"nulx", "invalid character 'x' in literal null (expecting 'l')"},
      {"-", "invalid character ' ' in numeric literal"},
      {"-a", "invalid character 'a' in numeric literal"},
      {"1.", "invalid character ' ' after decimal point in numeric literal"},
      {"1.x", "invalid character 'x' after decimal point in numeric literal"},
      {"1e", "invalid character ' ' in exponent of numeric literal"},
      {"\"\n\"", "invalid character '\\n' in string literal"},
      {R"("\x")", "invalid character 'x' in string escape code"},
      {R"("\u12g4")", "invalid character 'g' in \\u hexadecimal character escape"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(read(c.text), std::string(kPrefix) + c.error) << c.text;
  }
}

TEST(ParseJson, TheLastOfEqualKeysCounts) {
  const auto parsed = parse_json(R"({"a":1,"b":2,"a":3,"a":4})");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->doc.json(JsonWriter::Style::Compact), R"({"b":2,"a":4})");
  EXPECT_EQ(parsed->duplicates, (std::vector<std::string>{"duplicate field \"a\""}));
}

TEST(ParseJson, DuplicatesHavePaths) {
  const auto parsed = parse_json(
      R"({"spec":{"containers":[{"x":1},{"image":"i","image":"j"}]},"m":{"l":{"a":1,"a":2}},)"
      R"("x":1,"x":{"y":1,"y":2}})");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->duplicates,
            (std::vector<std::string>{"duplicate field \"spec.containers[1].image\"",
                                      "duplicate field \"m.l.a\"", "duplicate field \"x\"",
                                      "duplicate field \"x.y\""}));
}

TEST(ParseJson, ManyKeysAndDuplicates) {
  std::string text = "{";
  for (int i = 0; i < 3000; ++i) {
    text += (i == 0 ? "\"k" : ",\"k") + std::to_string(i % 1000) + "\":" + std::to_string(i);
  }
  const auto parsed = parse_json(text + "}");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->doc.size(), 1000U);
  EXPECT_EQ(parsed->doc["k7"].as_int(), 2007);
  EXPECT_EQ(parsed->duplicates.size(), 100U);  // no more are kept
}

TEST(ParseJson, DepthHasALimit) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(parse_json(nested(1000)).has_value());
  EXPECT_EQ(read(nested(1001)), std::string(kPrefix) + "exceeded max depth");
}

}  // namespace
}  // namespace jogak::codec
