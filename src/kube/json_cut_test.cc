// SPDX-License-Identifier: Apache-2.0
// Values whole, split anywhere, and against a scan that looks at every byte.
#include "kube/json_cut.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"

namespace jogak::kube {
namespace {

// The end of the value as one reads it: byte by byte. A backslash guards the quote or backslash
// after it, also where it should not stand.
std::size_t slow_end(std::string_view text) {
  std::size_t depth = 0;
  bool is_in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\') {
      const char next = at + 1 < text.size() ? text[at + 1] : ' ';
      if (next == '"' || next == '\\') ++at;
    } else if (c == '"') {
      is_in_string = !is_in_string;
    } else if (!is_in_string && (c == '{' || c == '[')) {
      ++depth;
    } else if (!is_in_string && (c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return BracketScan::npos;
}

// Text of the characters that matter, often.
std::string random_value(Rng& rng, std::size_t size) {
  constexpr std::string_view kChars = "{}[]\"\\\"\\ab,: \n{";
  std::string text = "{";
  for (std::size_t i = 0; i < size; ++i) text += kChars[rng.below(kChars.size())];
  return text;
}

TEST(BracketScan, AgreesWithASlowOne) {
  Rng rng(1, "brackets");
  for (int round = 0; round < 20'000; ++round) {
    const std::string text = random_value(rng, rng.below(300));
    BracketScan scan;
    ASSERT_EQ(scan.find_end(text), slow_end(text)) << text;
  }
}

TEST(BracketScan, AgreesWhereverTheBytesAreSplit) {
  Rng rng(2, "brackets");
  for (int round = 0; round < 20'000; ++round) {
    const std::string text = random_value(rng, rng.below(400));
    const std::size_t want = slow_end(text);
    BracketScan scan;
    std::size_t found = BracketScan::npos;
    for (std::size_t at = 0; at < text.size() && found == BracketScan::npos;) {
      const std::size_t size = std::min<std::size_t>(text.size() - at, 1 + rng.below(130));
      found = scan.find_end(std::string_view(text).substr(at, size));
      if (found != BracketScan::npos) found += at;
      at += size;
    }
    ASSERT_EQ(found, want) << text;
  }
}

TEST(BracketScan, BackslashesAcrossBlocks) {
  for (std::size_t before = 0; before < 140; ++before) {
    for (std::size_t slashes = 0; slashes < 140; slashes += 1 + slashes / 8) {
      const std::string text =
          "{" + std::string(before, ' ') + "\"" + std::string(slashes, '\\') + "\"}\"}";
      BracketScan scan;
      ASSERT_EQ(scan.find_end(text), slow_end(text)) << before << " " << slashes;
    }
  }
}

TEST(ValueCutter, PutsPiecesTogether) {
  ValueCutter cutter(1000);
  std::string_view bytes = R"({"a":)";
  EXPECT_EQ(*cutter.take(bytes), "");
  EXPECT_TRUE(cutter.is_inside());
  bytes = R"([1,2]}{"b":2} )";
  EXPECT_EQ(*cutter.take(bytes), R"({"a":[1,2]})");
  EXPECT_FALSE(cutter.is_inside());
  EXPECT_EQ(*cutter.take(bytes), R"({"b":2})");
  EXPECT_EQ(bytes, " ");
}

TEST(ValueCutter, TenMegabytes) {
  const std::string value = "{\"a\":\"" + std::string(10'000'000, '{') + "\"}";
  ValueCutter cutter(20'000'000);
  std::string got;
  for (std::size_t at = 0; at < value.size(); at += 16'384) {
    std::string_view bytes = std::string_view(value).substr(at, 16'384);
    got = std::string(*cutter.take(bytes));
  }
  EXPECT_TRUE(got == value);
}

TEST(ValueCutter, RefusesWhatIsTooLong) {
  ValueCutter cutter(10);
  std::string_view bytes = "{12345";
  EXPECT_TRUE(cutter.take(bytes).has_value());
  bytes = "67890}";
  const auto result = cutter.take(bytes);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().what, "a value of more than 10 bytes");
}

std::string fields_of(std::string_view text) {
  std::string result;
  FieldCursor fields(text);
  while (fields.next()) {
    result.append(fields.key()).append("=").append(fields.value()).append(";");
  }
  return result + (fields.is_whole() ? "" : "?");
}

TEST(FieldCursor, WalksOverFields) {
  EXPECT_EQ(fields_of(R"({"a":1,"b" : "x\"}" , "c":{"d":[1,{}]},"e":null})"),
            R"(a=1;b="x\"}";c={"d":[1,{}]};e=null;)");
  EXPECT_EQ(fields_of(" {} "), "");
  EXPECT_EQ(fields_of(R"({"a":[]}x)"), "a=[];");
}

TEST(FieldCursor, SkipsValuesThatNobodyAsksFor) {
  FieldCursor fields(R"({"a":{"b":[1]},"c":"}","d":2})");
  std::string keys;
  while (fields.next()) keys += fields.key();
  EXPECT_EQ(keys, "acd");
  EXPECT_TRUE(fields.is_whole());
}

TEST(FieldCursor, EndsAtNonsense) {
  for (const char* text : {"", "[]", "{", "{,}", R"({"a"})", R"({"a":)", R"({"a":1)", R"({"a":1,)",
                           R"({"a":1 "b":2})", R"({"a)", R"({a:1})", R"({"a":]})", "null"}) {
    EXPECT_TRUE(fields_of(text).ends_with("?")) << text;
  }
}

TEST(JsonString, ReadsStrings) {
  std::string scratch;
  EXPECT_EQ(*json_string("\"abc\"", scratch), "abc");
  EXPECT_EQ(*json_string("null", scratch), "");
  EXPECT_EQ(*json_string("", scratch), "");
  EXPECT_EQ(*json_string(R"("a\u0062\n")", scratch), "ab\n");
  for (const char* text : {"1", "{}", "\"", "\"a", R"("a\")", R"("\x")"}) {
    EXPECT_FALSE(json_string(text, scratch).has_value()) << text;
  }
}

}  // namespace
}  // namespace jogak::kube
