// SPDX-License-Identifier: Apache-2.0
//
// Quantities: the texts a real server stores, and the errors it gives.
#include "apiserver/object/amount.h"

#include <gtest/gtest.h>

namespace jogak::api {
namespace {

// As the server stores a memory request: rounded to thousandths.
std::string stored(std::string_view text) {
  const auto amount = Amount::parse(text);
  return amount ? amount->rounded_to_milli().text() : "error";
}

// Read back from a real 1.36 server.
TEST(Amount, CanonicalTextOfARealServer) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"1.5", "1500m"},
      {"1.5Gi", "1536Mi"},
      {"1024Mi", "1Gi"},
      {"1000Mi", "1000Mi"},
      {"1048576Ki", "1Gi"},
      {"0.5Mi", "512Ki"},
      {"0.5Ki", "512"},
      {"0.9Ki", "921600m"},
      {"0.1Gi", "107374182400m"},
      {"1.23456789Gi", "1325607178061m"},
      {"1000m", "1"},
      {"1000000k", "1G"},
      {"2000000u", "2"},
      {"0.0001", "1m"},
      {"1n", "1m"},
      {"100n", "1m"},
      {"0.5", "500m"},
      {"1e3", "1e3"},
      {"1e2", "100"},
      {"15e-1", "1500e-3"},
      {"12e6", "12e6"},
      {"1E3", "1E3"},
      {"1E", "1E"},
      {"1Ei", "1Ei"},
      {"8Ei", "9223372036854775807"},
      {"-0", "0"},
      {"1.0", "1"},
      {"1e+21", "1e+21"},
      {"1e21", "1e21"},
      {"+1", "+1"},
      {"01", "01"},
      {"5.", "5."},
      {".5", "500m"},
      {"1.0005", "1001m"},
      {"1u", "1m"},
      {"0", "0"},
      {"1024", "1024"},
      {"1000", "1k"},
      {"1024Ki", "1Mi"},
      {"-1.5", "-1500m"},
      {"-1.0005", "-1001m"},
      {"1025Ki", "1025Ki"},
  };
  for (const auto& [in, out] : rows) EXPECT_EQ(stored(in), out) << in;
}

TEST(Amount, ParsingKeepsNanoPrecision) {
  EXPECT_EQ(Amount::parse("1n")->text(), "1n");
  EXPECT_EQ(Amount::parse("0.1n")->text(), "1n");
  EXPECT_EQ(Amount::parse("1.0005")->text(), "1000500u");
}

TEST(Amount, CanonicalTextIsStable) {
  for (const std::string_view in : {"1.5", "0.9Ki", "15e-1", "1000000k", "8Ei", "+1", "5.", "1e21",
                                    "1.23456789Gi", "-3.25", "100m", "1e2", "0.1n"}) {
    const std::string once = Amount::parse(in)->text();
    EXPECT_EQ(Amount::parse(once)->text(), once) << in;
    EXPECT_EQ(*Amount::parse(once), *Amount::parse(in)) << in;
  }
}

TEST(Amount, SaysWhatIsWrongInTheServersWords) {
  constexpr std::string_view kForm = "quantities must match the regular expression";
  constexpr std::string_view kSuffix = "unable to parse quantity's suffix";
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"1gi", kForm},   {"1GB", kForm},   {"1K", kSuffix}, {"1e3Ki", kForm}, {"1_000", kForm},
      {"1 Gi", kForm},  {"", kForm},      {"abc", kForm},  {"0x10", kForm},  {"1e", kSuffix},
      {"--1", kSuffix}, {"1.2.3", kForm}, {"one", kForm},  {"true", kForm}};
  for (const auto& [in, what] : rows) {
    const auto amount = Amount::read(in);
    ASSERT_FALSE(amount) << in;
    EXPECT_TRUE(amount.error().what.starts_with(what)) << in << ": " << amount.error().what;
  }
}

TEST(Amount, BlanksAroundAreSkipped) { EXPECT_EQ(Amount::parse(" 1Gi ")->text(), "1Gi"); }

TEST(Amount, ValuesRoundUp) {
  EXPECT_EQ(Amount::parse("1500m")->value(), 2);
  EXPECT_EQ(Amount::parse("-1500m")->value(), -2);
  EXPECT_EQ(Amount::parse("100u")->milli_value(), 1);
  EXPECT_EQ(Amount::parse("2Ki")->value(), 2048);
}

TEST(Amount, ValuesAreCapped) {
  EXPECT_EQ(Amount::parse("99999999999999999999")->value(), INT64_MAX);
  EXPECT_EQ(Amount::parse("9E")->milli_value(), INT64_MAX);
  EXPECT_EQ(Amount::parse("1e100")->value(), INT64_MAX);
  EXPECT_EQ(Amount::parse("1e-100")->text(), "1e-9");
}

TEST(Amount, TheLargestStaysLargest) {
  Amount most = *Amount::parse("99e99");
  EXPECT_EQ(most.rounded_to_milli(), most);
  const Amount before = most;
  most += before;
  EXPECT_EQ(most, before);
  EXPECT_EQ(Amount::parse("170141183460469231731687303715.1")->rounded_to_milli(), before);
}

TEST(Amount, ComparesByValue) {
  EXPECT_EQ(*Amount::parse("1000m"), *Amount::parse("1"));
  EXPECT_LT(*Amount::parse("1G"), *Amount::parse("1Gi"));
  EXPECT_TRUE(Amount::parse("1000m")->is_whole());
  EXPECT_FALSE(Amount::parse("500m")->is_whole());
  EXPECT_TRUE(Amount::parse("-1")->is_negative());
}

TEST(Amount, SumsKeepTheFormatOfTheLeftSide) {
  Amount sum;
  sum += *Amount::parse("1Gi");
  sum += *Amount::parse("1Mi");
  EXPECT_EQ(sum.text(), "1025Mi");
  sum -= *Amount::parse("1025Mi");
  EXPECT_TRUE(sum.is_zero());
  EXPECT_EQ(sum.text(), "0");
  sum += Amount::of(2);
  sum += Amount::of_milli(500);
  EXPECT_EQ(sum.text(), "2500m");
}

TEST(Amount, LongFractionsOfBinaryUnitsDoNotOverflow) {
  EXPECT_EQ(Amount::parse("0.5000000000000000000000Ei")->text(), "512Pi");
}

}  // namespace
}  // namespace jogak::api
