// SPDX-License-Identifier: Apache-2.0
//
// The vectors of RFC 4648, both ways, and what is no base64.
#include "base/base64.h"

#include <gtest/gtest.h>

#include <map>

namespace jogak {
namespace {

TEST(Base64Test, BothWays) {
  const std::map<std::string, std::string> vectors = {{"", ""},
                                                      {"f", "Zg=="},
                                                      {"fo", "Zm8="},
                                                      {"foo", "Zm9v"},
                                                      {"foob", "Zm9vYg=="},
                                                      {"fooba", "Zm9vYmE="},
                                                      {"foobar", "Zm9vYmFy"},
                                                      {"\xfb\xff\xfe", "+//+"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(base64_encode(bytes), text);
    EXPECT_EQ(base64_decode(text), bytes);
  }
}

TEST(Base64Test, LeavesPaddingBreaksAndAlphabetToTheWriter) {
  EXPECT_EQ(base64_decode("Zm9v\nYg==\n"), "foob");
  EXPECT_EQ(base64_decode("Zm9vYg"), "foob");
  EXPECT_EQ(base64_decode("-__-"), "\xfb\xff\xfe");
}

TEST(Base64Test, WhatIsNone) {
  for (const std::string_view text :
       {"Z", "Zm9v!", "Zg=", "Zg===", "Zg==Zg==", "=", "Zm9v=", "é"}) {
    EXPECT_EQ(base64_decode(text), std::nullopt) << text;
  }
}

TEST(Base64Test, EveryByte) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    EXPECT_EQ(base64_decode(base64_encode(bytes.substr(0, size))), bytes.substr(0, size));
  }
}

}  // namespace
}  // namespace jogak
