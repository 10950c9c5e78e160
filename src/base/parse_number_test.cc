// SPDX-License-Identifier: Apache-2.0
//
// Whole texts that are numbers, and those that are not.
#include "base/parse_number.h"

#include <gtest/gtest.h>

#include <limits>

namespace jogak {
namespace {

TEST(ParseInt, TakesWholeNumbersOnly) {
  EXPECT_EQ(parse_int("0").value(), 0);
  EXPECT_EQ(parse_int("-12").value(), -12);
  EXPECT_EQ(parse_int("007").value(), 7);
  EXPECT_EQ(parse_int("9223372036854775807").value(), std::numeric_limits<std::int64_t>::max());
  for (const std::string_view text : {"", "-", "+1", " 1", "1 ", "1.0", "1e3", "0x1", "--1", "a"}) {
    EXPECT_FALSE(parse_int(text).has_value()) << text;
  }
}

TEST(ParseInt, SaysWhatIsWrong) {
  EXPECT_EQ(parse_int("x").error().what, "\"x\" is not a whole number");
  EXPECT_EQ(parse_int("9223372036854775808").error().what,
            "\"9223372036854775808\" does not fit in 64 bits");
  EXPECT_EQ(parse_int("99999999999999999999x").error().what,
            "\"99999999999999999999x\" is not a whole number");
  EXPECT_EQ(parse_int("11", 1, 10).error().what, "11 is not between 1 and 10");
  EXPECT_EQ(parse_int("10", 1, 10).value(), 10);
}

}  // namespace
}  // namespace jogak
