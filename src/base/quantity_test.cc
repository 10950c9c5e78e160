// SPDX-License-Identifier: Apache-2.0
//
// Tables of quantities with their values, and of texts that are none.
#include "base/quantity.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace jogak {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kKi = 1024;
constexpr std::int64_t kMi = kKi * kKi;
constexpr std::int64_t kGi = kMi * kKi;
constexpr std::int64_t kTi = kGi * kKi;
constexpr std::int64_t kPi = kTi * kKi;
constexpr std::int64_t kEi = kPi * kKi;

struct Case {
  std::string_view text;
  std::int64_t value;
};

TEST(Quantity, WholeUnits) {
  const Case cases[] = {
      {"0", 0},
      {"-0", 0},
      {"+0", 0},
      {"0.0", 0},
      {"00012", 12},
      {"1", 1},
      {"+1", 1},
      {"-1", -1},
      {"5.", 5},
      {".5", 1},  // rounded up
      {"128974848", 128974848},
      {"9223372036854775807", kMax},
      {"-9223372036854775808", kMin},
      // powers of ten
      {"1k", 1'000},
      {"2M", 2'000'000},
      {"3G", 3'000'000'000},
      {"4T", 4'000'000'000'000},
      {"5P", 5'000'000'000'000'000},
      {"9E", 9'000'000'000'000'000'000},
      {"1.5k", 1'500},
      {"0.001k", 1},
      {"1000m", 1},
      {"1500000u", 2},
      {"3000000000n", 3},
      // powers of two
      {"1Ki", kKi},
      {"1Mi", kMi},
      {"1Gi", kGi},
      {"1Ti", kTi},
      {"1Pi", kPi},
      {"1Ei", kEi},
      {"7Ei", 7 * kEi},
      {"1.5Gi", kGi + kGi / 2},
      {"0.5Mi", kMi / 2},
      {"123Mi", 123 * kMi},
      {"-2Ki", -2 * kKi},
      {"7.999999999999999999Ei", kMax},  // 2^63 - 1.15, rounded up
      // exponents
      {"2e3", 2'000},
      {"2E3", 2'000},
      {"2e+3", 2'000},
      {"129e6", 129'000'000},
      {"5e0", 5},
      {"1.25e2", 125},
      {"12000e-3", 12},
      {"0e99999999", 0},
      {"0.00000000000000000009e20", 9},
  };
  for (const Case& c : cases) {
    const auto value = parse_quantity(c.text);
    ASSERT_TRUE(value.has_value()) << c.text << ": " << value.error().what;
    EXPECT_EQ(*value, c.value) << c.text;
  }
}

TEST(Quantity, RoundsAwayFromZeroUnlessToldDown) {
  struct Rounded {
    std::string_view text;
    std::int64_t up;
    std::int64_t down;
  };
  const Rounded cases[] = {
      {"1.1", 2, 1},
      {"0.1", 1, 0},
      {"1m", 1, 0},
      {"1001m", 2, 1},
      {"-0.5", -1, 0},
      {"-1.5", -2, -1},
      {"0.0000000000000000000000000000001n", 1, 0},
      {"1e-99999999", 1, 0},
      {"1.0000000000000000000000000000000001Ki", 1025, 1024},
      {"0.3Ki", 308, 307},  // 307.2
      {"9223372036854775806.5", kMax, kMax - 1},
      {"0.000000000000000000867361737988403547205962240695953369140624Ei", 1, 0},  // under one
      {"0.000000000000000000867361737988403547205962240695953369140625Ei", 1, 1},  // 2^-60 Ei
      {"0.000000000000000000867361737988403547205962240695953369140626Ei", 2, 1},
  };
  for (const Rounded& c : cases) {
    EXPECT_EQ(parse_quantity(c.text, Rounding::Up).value(), c.up) << c.text;
    EXPECT_EQ(parse_quantity(c.text, Rounding::Down).value(), c.down) << c.text;
  }
}

TEST(Quantity, Thousandths) {
  const Case cases[] = {
      {"0", 0},
      {"1", 1'000},
      {"100m", 100},
      {"0.5", 500},
      {"1.5", 1'500},
      {"2k", 2'000'000},
      {"1u", 1},
      {"1n", 1},
      {"0.0001", 1},
      {"1500u", 2},
      {"1Ki", 1'024'000},
      {"0.5Ki", 512'000},
      {"1e-3", 1},
      {"-250m", -250},
      {"9223372036854775807m", kMax},
      {"9223372036854775.807", kMax},
  };
  for (const Case& c : cases) {
    const auto value = parse_quantity_milli(c.text);
    ASSERT_TRUE(value.has_value()) << c.text << ": " << value.error().what;
    EXPECT_EQ(*value, c.value) << c.text;
  }
}

TEST(Quantity, TooLargeIsAnError) {
  for (const std::string_view text :
       {"9223372036854775808", "-9223372036854775809", "9223372036854775807.1", "10E", "8Ei",
        "9.3e18", "1e19", "1e99999999", "99999999999999999999", "1000000000000000000000000Ki"}) {
    const auto value = parse_quantity(text);
    ASSERT_FALSE(value.has_value()) << text;
    EXPECT_EQ(value.error().code, Errc::Invalid);
    EXPECT_NE(value.error().what.find("does not fit"), std::string::npos) << value.error().what;
  }
  EXPECT_FALSE(parse_quantity_milli("9223372036854775808m").has_value());
  EXPECT_FALSE(parse_quantity_milli("10P").has_value());
  EXPECT_EQ(parse_quantity_milli("9P").value(), 9'000'000'000'000'000'000);
}

TEST(Quantity, BadSyntaxIsAnErrorThatNamesTheText) {
  for (const std::string_view text :
       {"",     "+",    "-",   ".",     "k",   "Ki",   "e3",  " 1",  "1 ",
        "1 Gi", "--1",  "+-1", "1.2.3", "1,5", "0x10", "1K",  "1g",  "1t",
        "1Gb",  "1GB",  "1gi", "1kI",   "1ki", "1mi",  "1e",  "1e+", "1e1.5",
        "1e3k", "1Kik", "1mm", "1E3E",  "one", "1\n",  "NaN", "inf", "1_000"}) {
    const auto value = parse_quantity(text);
    ASSERT_FALSE(value.has_value()) << text;
    EXPECT_EQ(value.error().code, Errc::Invalid);
    EXPECT_NE(value.error().what.find("\"" + std::string(text) + "\""), std::string::npos)
        << value.error().what;
  }
  EXPECT_FALSE(parse_quantity(std::string(100'000, '1')).has_value());
}

TEST(Quantity, UnknownSuffixSaysWhatWouldBeRight) {
  EXPECT_EQ(parse_quantity("1.5Gb").error().what,
            "quantity \"1.5Gb\": unknown suffix \"Gb\"; use one of n u m k M G T P E, "
            "Ki Mi Gi Ti Pi Ei, or an exponent such as e3");
}

}  // namespace
}  // namespace jogak
