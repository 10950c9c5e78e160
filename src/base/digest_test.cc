// SPDX-License-Identifier: Apache-2.0
//
// Equal content gives equal digests, on every machine; any difference shows.
#include "base/digest.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

namespace jogak {
namespace {

enum class Colour : std::uint8_t { Red, Green };

TEST(Digest, IsFixed) {
  EXPECT_EQ(Digest().hex(), "9dcf397294f8257f");
  EXPECT_EQ(Digest().add("node-1").add(8).hex(), "7c4a83051aca17ab");
}

TEST(Digest, WidthAndKindOfIntegerDoNotMatter) {
  EXPECT_EQ(Digest().add(std::int8_t{-1}).value(), Digest().add(std::int64_t{-1}).value());
  EXPECT_EQ(Digest().add(std::uint8_t{7}).value(), Digest().add(std::int64_t{7}).value());
  EXPECT_EQ(Digest().add(Colour::Green).value(), Digest().add(1).value());
  EXPECT_EQ(Digest().add(true).value(), Digest().add(1).value());
}

TEST(Digest, BoundariesAndOrderMatter) {
  EXPECT_NE(Digest().add("ab").add("c").value(), Digest().add("a").add("bc").value());
  EXPECT_NE(Digest().add(1).add(2).value(), Digest().add(2).add(1).value());
  EXPECT_NE(Digest().value(), Digest().add(0).value());
  EXPECT_NE(Digest().add(0).value(), Digest().add(0).add(0).value());
  EXPECT_NE(Digest().add("").value(), Digest().value());
  EXPECT_NE(Digest().add(std::string("a\0", 2)).value(), Digest().add("a").value());
}

TEST(Digest, SmallDifferencesSpread) {
  std::set<std::uint64_t> seen;
  std::set<std::uint64_t> top_bytes;
  for (int a = 0; a < 100; ++a) {
    for (int b = 0; b < 100; ++b) {
      const std::uint64_t value = Digest().add(a).add(b).value();
      seen.insert(value);
      top_bytes.insert(value >> 56);
    }
  }
  EXPECT_EQ(seen.size(), 10'000U);
  EXPECT_EQ(top_bytes.size(), 256U);
}

}  // namespace
}  // namespace jogak
