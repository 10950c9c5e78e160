// SPDX-License-Identifier: Apache-2.0
//
// Paths over one object, each with the values it finds.
#include "apiserver/tables/json_path.h"

#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "apiserver/codec/codec.h"

namespace jogak::api {
namespace {

constexpr std::string_view kObject =
    "{a: {b: 1, c.d/e: two}, list: [{k: one, v: 1}, {k: two, v: 2}, {k: three, v: 3}], empty: [], "
    "conditions: [{type: Ready, status: 'True'}, {type: Busy, status: 'False'}], flag: true}";

// The values found, as compact JSON with blanks between; "!" where the path cannot be walked, "?"
// where it is no path.
std::string found(std::string_view path) {
  const auto root = codec::parse_yaml(kObject);
  EXPECT_TRUE(root.has_value());
  const auto parsed = JsonPath::parse(path);
  if (!parsed) {
    return "?";
  }
  const auto values = parsed->find(root->doc);
  if (!values) {
    return "!";
  }
  std::string text;
  for (const Doc& value : *values) {
    text += (text.empty() ? "" : " ") + value.json(JsonWriter::Style::Compact);
  }
  return text;
}

TEST(JsonPath, WalksMembers) {
  EXPECT_EQ(found(".a.b"), "1");
  EXPECT_EQ(found("$.a.b"), "1");
  EXPECT_EQ(found(".a.c\\.d/e"), "\"two\"");
  EXPECT_EQ(found(".a['b']"), "1");
  EXPECT_EQ(found(".a['c\\.d/e']"), "\"two\"");
  EXPECT_EQ(found(".a.nope"), "");
  EXPECT_EQ(found(".nope.deeper"), "");
  EXPECT_EQ(found(".flag.deeper"), "");
}

TEST(JsonPath, TakesElements) {
  EXPECT_EQ(found(".list[0].k"), "\"one\"");
  EXPECT_EQ(found(".list[-1].k"), "\"three\"");
  EXPECT_EQ(found(".list[-1:].k"), "\"three\"");
  EXPECT_EQ(found(".list[1:3].k"), "\"two\" \"three\"");
  EXPECT_EQ(found(".list[0:3:2].k"), "\"one\" \"three\"");
  EXPECT_EQ(found(".list[*].v"), "1 2 3");
  EXPECT_EQ(found(".list[0,2].v"), "1 3");
  EXPECT_EQ(found(".list[:].v"), "1 2 3");
}

TEST(JsonPath, RefusesIndicesOutsideOfTheList) {
  EXPECT_EQ(found(".list[3]"), "!");
  EXPECT_EQ(found(".list[-4]"), "!");
  EXPECT_EQ(found(".list[2:1]"), "!");
  EXPECT_EQ(found(".empty[0]"), "!");
  EXPECT_EQ(found(".empty[*]"), "");
  EXPECT_EQ(found(".a[0]"), "!");
  EXPECT_EQ(found(".nope[0]"), "");
}

TEST(JsonPath, Filters) {
  EXPECT_EQ(found(".conditions[?(@.type==\"Ready\")].status"), "\"True\"");
  EXPECT_EQ(found(".conditions[?(@.type=='Busy')].status"), "\"False\"");
  EXPECT_EQ(found(".conditions[?(@.type!=\"Ready\")].type"), "\"Busy\"");
  EXPECT_EQ(found(".conditions[?(@.type==\"None\")].status"), "");
  EXPECT_EQ(found(".list[?(@.v>1)].k"), "\"two\" \"three\"");
  EXPECT_EQ(found(".list[?(@.v>=3)].k"), "\"three\"");
  EXPECT_EQ(found(".list[?(@.v<2)].k"), "\"one\"");
  EXPECT_EQ(found(".list[?(@.v<=2)].k"), "\"one\" \"two\"");
  EXPECT_EQ(found(".list[?(@.k)].v"), "1 2 3");
  EXPECT_EQ(found(".list[?(@.nope)].v"), "");
  EXPECT_EQ(found(".list[?(@.v==\"1\")]"), "!") << "a number is no string";
  EXPECT_EQ(found(".a[?(@.b)]"), "!") << "only lists are filtered";
}

TEST(JsonPath, FindsMembersAnywhere) {
  EXPECT_EQ(found("..v"), "1 2 3");
  EXPECT_EQ(found(".a.*"), "1 \"two\"");
}

// A chain 40 deep: with 20 steps that each go on from anywhere below, C(40, 20) ways.
TEST(JsonPath, GivesUpBeforeItFindsTooMuch) {
  Doc deep = Doc::object();
  for (int i = 0; i < 40; ++i) {
    Doc outer = Doc::object();
    outer.set("a", std::move(deep));
    deep = std::move(outer);
  }
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += "..*";
  }
  const auto path = JsonPath::parse(text);
  ASSERT_TRUE(path.has_value());
  EXPECT_FALSE(path->find(deep).has_value());
}

TEST(JsonPath, RefusesWhatIsNoPath) {
  EXPECT_EQ(found(".list[0"), "?");
  EXPECT_EQ(found(".list[x]"), "?");
  EXPECT_EQ(found(".list[]"), "?");
  EXPECT_EQ(found(".list[1:2:3:4]"), "?");
  EXPECT_EQ(found(".list[?(@.v==1]"), "?");
  EXPECT_EQ(found(".list[?(==1)]"), "?");
  EXPECT_EQ(found(".list[?(@.v==)]"), "?");
  EXPECT_EQ(found(".list[?(@.v==\"1)]"), "?");
  EXPECT_EQ(found("....a"), "?");
  EXPECT_EQ(found("%"), "?");
}

}  // namespace
}  // namespace jogak::api
