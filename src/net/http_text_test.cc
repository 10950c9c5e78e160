// SPDX-License-Identifier: Apache-2.0
//
// Names, lists of tokens, phrases and dates.
#include "net/http_text.h"

#include <gtest/gtest.h>

#include "net/http.h"

namespace jogak::net {
namespace {

TEST(HttpTextTest, NamesCompareWithoutCase) {
  EXPECT_TRUE(is_same_name("Content-TYPE", "content-type"));
  EXPECT_FALSE(is_same_name("content-type", "content-typ"));
  EXPECT_FALSE(is_same_name("a[", "a{"));
  const Headers headers = {{"A", "1"}, {"a", "2"}};
  EXPECT_EQ(header(headers, "a"), "1");
  EXPECT_EQ(header(headers, "b"), "");
}

TEST(HttpTextTest, TokensOfAList) {
  EXPECT_TRUE(has_token("keep-alive, Upgrade", "upgrade"));
  EXPECT_TRUE(has_token(" close ", "close"));
  EXPECT_TRUE(has_token("a,,\tb\t,", "b"));
  EXPECT_FALSE(has_token("closed", "close"));
  EXPECT_FALSE(has_token("", "close"));
}

TEST(HttpTextTest, Phrases) {
  EXPECT_EQ(reason_phrase(422), "Unprocessable Entity");
  EXPECT_EQ(reason_phrase(299), "Status");
}

TEST(HttpTextTest, Dates) {
  EXPECT_EQ(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(http_date(1'769'998'179 * kSecondInUs + 999'999), "Mon, 02 Feb 2026 02:09:39 GMT");
  EXPECT_EQ(http_date(1'709'251'199 * kSecondInUs), "Thu, 29 Feb 2024 23:59:59 GMT");
}

}  // namespace
}  // namespace jogak::net
