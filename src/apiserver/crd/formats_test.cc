// SPDX-License-Identifier: Apache-2.0
//
// A right and a wrong text for the formats, and patterns.
#include "apiserver/crd/formats.h"

#include <gtest/gtest.h>

#include "apiserver/crd/pattern.h"

namespace jogak::api {
namespace {

TEST(Formats, RightAndWrong) {
  struct Row {
    std::string_view format, text;
    bool is_right;
  };
  constexpr Row kRows[] = {
      {"date-time", "2024-01-01T00:00:00Z", true},
      {"date-time", "2024-01-01T00:00:00.123+02:00", true},
      {"date-time", "2024-01-01", false},
      {"date-time", "2024-01-01T25:00:00Z", false},
      {"date", "2024-02-29", true},
      {"date", "2023-02-29", false},
      {"duration", "1h30m", true},
      {"duration", "3 days", true},
      {"duration", "soon", false},
      {"email", "a@b.example", true},
      {"email", "Ann <a@b.example>", true},
      {"email", "nobody", false},
      {"hostname", "node-1.example", true},
      {"hostname", "-a", false},
      {"ipv4", "10.0.0.1", true},
      {"ipv4", "10.0.0.256", false},
      {"ipv6", "::1", true},
      {"ipv6", "10.0.0.1", false},
      {"cidr", "10.0.0.0/8", true},
      {"cidr", "fd00::/64", true},
      {"cidr", "10.0.0.0/33", false},
      {"cidr", "10.0.0.0", false},
      {"mac", "00:1b:44:11:3a:b7", true},
      {"mac", "00:1b", false},
      {"uri", "https://a.example/x?y", true},
      {"uri", "a b", false},
      {"uuid", "6fa459ea-ee8a-3ca4-894e-db77e160355e", true},
      {"uuid4", "6fa459ea-ee8a-3ca4-894e-db77e160355e", false},
      {"isbn", "978-0321751041", true},
      {"isbn10", "0321751043", true},
      {"isbn13", "0321751043", false},
      {"creditcard", "4111 1111 1111 1111", true},
      {"creditcard", "4111 1111 1111 1112", false},
      {"ssn", "123-45-6789", true},
      {"hexcolor", "#FFFFFF", true},
      {"hexcolor", "#FFFF", false},
      {"rgbcolor", "rgb(255, 0, 10)", true},
      {"byte", "aGVsbG8=", true},
      {"byte", "a", false},
      {"k8s-short-name", "abc", true},
      {"k8s-short-name", "a.b", false},
      {"k8s-long-name", "a.b", true},
      {"nobody-knows", "anything", true},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(has_format(row.format, row.text), row.is_right) << row.format << " " << row.text;
  }
}

TEST(Formats, KnownByType) {
  EXPECT_TRUE(is_known_format("string", "date-time"));
  EXPECT_TRUE(is_known_format("", "date-time"));
  EXPECT_FALSE(is_known_format("integer", "date-time"));
  EXPECT_TRUE(is_known_format("integer", "int32"));
  EXPECT_FALSE(is_known_format("number", "int32"));
  EXPECT_FALSE(is_known_format("object", "byte"));
}

TEST(Pattern, FindsAnywhere) {
  EXPECT_TRUE(pattern_matches("b+", "abbc"));
  EXPECT_FALSE(pattern_matches("^b+$", "abbc"));
  EXPECT_FALSE(pattern_matches("(", "("));
  EXPECT_EQ(pattern_error("a"), "");
  EXPECT_NE(pattern_error("("), "");
}

}  // namespace
}  // namespace jogak::api
