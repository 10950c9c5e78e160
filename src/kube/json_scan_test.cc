// SPDX-License-Identifier: Apache-2.0
// Pieces of texts, whole and cut short anywhere.
#include "kube/json_scan.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace jogak::kube {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

Result<Fields> fields_of(std::string_view text) {
  Fields result;
  JsonScanner scanner(text);
  JOGAK_TRY_VOID(scanner.each_field([&](std::string_view key, std::string_view value) {
    result.emplace_back(key, value);
    return Result<void>();
  }));
  return result;
}

TEST(JsonScanner, CutsFields) {
  const auto fields =
      fields_of(R"( { "a" : 1, "b":"x,}\"]" ,"c":[1,{"d":"]"}], "e":{} , "f":null})");
  ASSERT_TRUE(fields.has_value()) << fields.error().what;
  const Fields want = {
      {"a", "1"}, {"b", R"("x,}\"]")"}, {"c", R"([1,{"d":"]"}])"}, {"e", "{}"}, {"f", "null"}};
  EXPECT_EQ(*fields, want);
  EXPECT_TRUE(fields_of("{}")->empty());
}

TEST(JsonScanner, ReadsBackslashesBeforeQuotes) {
  const auto fields = fields_of(R"({"a":"\\","b":"\\\"","c":"\\\\"})");
  ASSERT_TRUE(fields.has_value()) << fields.error().what;
  EXPECT_EQ(fields->at(0).second, R"("\\")");
  EXPECT_EQ(fields->at(1).second, R"("\\\"")");
  EXPECT_EQ(fields->at(2).second, R"("\\\\")");
}

TEST(JsonScanner, CutsItemsAndDocuments) {
  JsonScanner scanner(" [1, \"two\", [3]]\n{} ");
  std::vector<std::string> items;
  ASSERT_TRUE(scanner.each_item([&](std::string_view item) {
    items.emplace_back(item);
    return Result<void>();
  }));
  EXPECT_EQ(items, (std::vector<std::string>{"1", "\"two\"", "[3]"}));
  EXPECT_FALSE(scanner.at_end());
  EXPECT_EQ(*scanner.next_value(), "{}");
  EXPECT_TRUE(scanner.at_end());
}

TEST(JsonScanner, SaysThatATextIsCutShort) {
  const std::string whole = R"({"a": {"b": "c\"d"}, "e": [1, 2], "f": true})";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(fields_of(whole.substr(0, size)).has_value()) << whole.substr(0, size);
  }
  EXPECT_TRUE(fields_of(whole).has_value());
  const auto error = fields_of("{\n\"a\": {\n\"b\": 1").error();
  EXPECT_EQ(error.what, "the text ends inside an object that began on line 2; it is not complete");
}

TEST(JsonScanner, SaysWhatItWantedWhere) {
  EXPECT_EQ(fields_of("{\n \"a\" 1}").error().what,
            "line 2: want a colon after the name of a field, found '1'");
  EXPECT_EQ(fields_of("{\"a\":1 \"b\":2}").error().what,
            "line 1: want a comma or the end of the object, found '\"'");
  EXPECT_EQ(fields_of("{a:1}").error().what,
            "line 1: want the name of a field in quotes, found 'a'");
  EXPECT_EQ(fields_of("[]").error().what, "line 1: want an object, found '['");
  EXPECT_EQ(fields_of("{\"a\":,}").error().what, "line 1: want a value, found ','");
}

TEST(JsonScanner, StopsAtTheFirstErrorOfTheCaller) {
  JsonScanner scanner("[1,2,3]");
  int calls = 0;
  const auto result = scanner.each_item([&](std::string_view) -> Result<void> {
    if (++calls == 2) return invalid("enough");
    return {};
  });
  EXPECT_EQ(result.error().what, "enough");
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace jogak::kube
