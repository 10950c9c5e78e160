// SPDX-License-Identifier: Apache-2.0
//
// Quotes, floats, UTF-8 and base64 as Go writes them; expected texts come from Go.
#include "apiserver/schema/go_text.h"

#include <string>

#include <gtest/gtest.h>

#include "apiserver/schema/base64.h"

namespace jogak::schema {
namespace {

TEST(GoText, Quoted) {
  EXPECT_EQ(quoted("a.b"), "\"a.b\"");
  EXPECT_EQ(quoted("a\"\\\n\x01\x7f"), "\"a\\\"\\\\\\n\\x01\\x7f\"");
  EXPECT_EQ(quoted("가"), "\"가\"");
  EXPECT_EQ(quoted("\xff"), "\"\\xff\"");
}

TEST(GoText, Floats) {
  struct Case {
    double value;
    const char* text;
  };
  const Case cases[] = {{0, "0"},
                        {1, "1"},
                        {1.5, "1.5"},
                        {-0.25, "-0.25"},
                        {1e20, "100000000000000000000"},
                        {1e21, "1e+21"},
                        {1e-6, "0.000001"},
                        {1e-7, "1e-7"},
                        {1.5e300, "1.5e+300"},
                        {1e-10, "1e-10"},
                        {0.1, "0.1"},
                        {123456789.125, "123456789.125"}};
  for (const Case& c : cases) EXPECT_EQ(float_text(c.value), c.text);
}

TEST(GoText, FloatsOfDigits) {
  EXPECT_EQ(read_float("1e3"), 1000);
  EXPECT_EQ(read_float("1e-400"), 0);
  EXPECT_EQ(read_float("1e400"), std::nullopt);
  EXPECT_EQ(read_float("-1e400"), std::nullopt);
  EXPECT_EQ(read_float("x"), std::nullopt);
  EXPECT_EQ(read_float(""), std::nullopt);
}

TEST(GoText, Utf8Lengths) {
  EXPECT_EQ(utf8_length("a"), 1U);
  EXPECT_EQ(utf8_length("é"), 2U);
  EXPECT_EQ(utf8_length("가"), 3U);
  EXPECT_EQ(utf8_length("😀"), 4U);
  // Overlong, surrogate, too large, cut off, a byte in the middle of one.
  for (const char* text : {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                           "\xf5\x80\x80\x80", "\xe2\x82", "\x80"}) {
    EXPECT_EQ(utf8_length(text), 0U);
  }
}

TEST(GoText, Utf8IsWritten) {
  std::string text;
  for (const std::uint32_t code : {0x61U, 0xe9U, 0xac00U, 0x1f600U}) append_utf8(text, code);
  EXPECT_EQ(text, "aé가😀");
}

TEST(Base64, BothWays) {
  for (const std::string bytes : {"", "a", "ab", "abc", "abcd", "\xff\xfe\xfd"}) {
    const std::string text = encode_base64(bytes);
    EXPECT_TRUE(is_canonical_base64(text)) << text;
    EXPECT_EQ(decode_base64(text).value(), bytes);
  }
  EXPECT_EQ(encode_base64("abcd"), "YWJjZA==");
}

TEST(Base64, LineEndsAndLooseBitsAreRead) {
  EXPECT_EQ(decode_base64("YW\r\nJj").value(), "abc");
  EXPECT_EQ(decode_base64("YR==").value(), "a");
  EXPECT_FALSE(is_canonical_base64("YR=="));
  EXPECT_FALSE(is_canonical_base64("YW\nJj"));
}

TEST(Base64, TheFirstWrongByteIsNamed) {
  EXPECT_EQ(decode_base64("YW!j").error(), 2U);
  EXPECT_EQ(decode_base64("YWJ").error(), 3U);
  EXPECT_EQ(decode_base64("=WJj").error(), 0U);
  EXPECT_EQ(decode_base64("YQ==YQ==").error(), 4U);
  EXPECT_EQ(decode_base64("YQ=a").error(), 3U);
}

}  // namespace
}  // namespace jogak::schema
