// SPDX-License-Identifier: Apache-2.0
//
// Path elements and the algebra of field sets.
#include "apiserver/patch/field_set.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "apiserver/patch/testing/json.h"

namespace jogak::patch {
namespace {

// A set from its readable form; sets in tests are written in FieldsV1.
FieldSet set(std::string_view text) { return json(text); }

std::vector<std::string> paths_of(const FieldSet& fields) {
  std::vector<std::string> paths;
  each_path(fields, [&](const FieldPath& path) { paths.push_back(path_text(path)); });
  return paths;
}

TEST(PathElement, Spelling) {
  EXPECT_EQ(field_element("spec"), "f:spec");
  EXPECT_EQ(value_element(Doc("a/b")), "v:\"a/b\"");
  EXPECT_EQ(value_element(Doc(5)), "v:5");
  const Doc port(80);
  const Doc tcp("TCP");
  EXPECT_EQ(key_element({{"protocol", &tcp}, {"containerPort", &port}}),
            "k:{\"containerPort\":80,\"protocol\":\"TCP\"}");
}

TEST(PathElement, HtmlIsEscapedAsGoDoes) {
  EXPECT_EQ(value_element(Doc("a<b>&")), "v:\"a\\u003cb\\u003e\\u0026\"");
}

TEST(PathElement, Texts) {
  EXPECT_EQ(element_text("f:spec"), ".spec");
  EXPECT_EQ(element_text("k:{\"name\":\"c\"}"), "[name=\"c\"]");
  EXPECT_EQ(element_text("k:{\"containerPort\":80,\"protocol\":\"TCP\"}"),
            "[containerPort=80,protocol=\"TCP\"]");
  EXPECT_EQ(element_text("v:\"a\\u003cb\""), "[=\"a<b\"]");
  EXPECT_EQ(element_text("i:3"), "[3]");
}

TEST(PathElement, NumbersAreOrderedByValue) {
  EXPECT_LT(compare_elements("k:{\"p\":80}", "k:{\"p\":443}"), 0);
  EXPECT_LT(compare_elements("v:9", "v:10"), 0);
  EXPECT_LT(compare_elements("v:9.5", "v:10"), 0);
  EXPECT_GT(compare_elements("f:9", "f:10"), 0);
}

TEST(PathElement, KindsAreOrdered) {
  const std::vector<std::string> order = {
      "f:z",    "k:{\"a\":1}", "k:{\"a\":1,\"b\":1}", "k:{\"a\":\"x\"}", "v:1", "v:\"a\"",
      "v:true", "i:0"};
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t k = 0; k < order.size(); ++k) {
      const int expected = i < k ? -1 : (i > k ? 1 : 0);
      const int found = compare_elements(order[i], order[k]);
      EXPECT_EQ((found > 0) - (found < 0), expected) << order[i] << " and " << order[k];
    }
  }
}

TEST(PathElement, CanonicalSpelling) {
  EXPECT_EQ(canonical_element("k:{ \"b\":1, \"a\":\"\\u0041\" }"), "k:{\"a\":\"A\",\"b\":1}");
  EXPECT_EQ(canonical_element("i:07"), "i:7");
  EXPECT_EQ(canonical_element("x:whatever"), "");
  EXPECT_EQ(canonical_element("v:"), std::nullopt);
  EXPECT_EQ(canonical_element("k:{\"a\"}"), std::nullopt);
  EXPECT_EQ(canonical_element("k:[]"), std::nullopt);
  EXPECT_EQ(canonical_element("."), std::nullopt);
}

TEST(FieldSet, WhatIsSentIsSortedAndMerged) {
  const auto read = canonical_set(set("{'f:b':{},'f:a':{'f:y':{},'.':{},'f:x':{}}}"));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(text(*read), "{'f:a':{'.':{},'f:x':{},'f:y':{}},'f:b':{}}");
}

TEST(FieldSet, UnknownElementsArePassedOver) {
  const auto read = canonical_set(set("{'q:b':{},'f:a':{}}"));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(text(*read), "{'f:a':{}}");
}

TEST(FieldSet, NonsenseIsRefused) {
  EXPECT_FALSE(canonical_set(set("{'f:a':1}")).has_value());
  EXPECT_FALSE(canonical_set(set("{'v:x':{}}")).has_value());
  EXPECT_FALSE(canonical_set(set("[]")).has_value());
}

TEST(FieldSet, PathsOfALevelComeBeforeThoseBelow) {
  EXPECT_EQ(paths_of(set("{'f:a':{'.':{},'f:x':{}},'f:b':{}}")),
            (std::vector<std::string>{".a", ".b", ".a.x"}));
}

TEST(FieldSet, HasAndInsert) {
  FieldSet fields = Doc::object();
  insert_path(fields, {"f:a", "f:x"});
  EXPECT_TRUE(has_path(fields, {"f:a", "f:x"}));
  EXPECT_FALSE(has_path(fields, {"f:a"}));
  insert_path(fields, {"f:a"});
  EXPECT_TRUE(has_path(fields, {"f:a"}));
  EXPECT_EQ(text(fields), "{'f:a':{'.':{},'f:x':{}}}");
}

TEST(FieldSet, Union) {
  EXPECT_EQ(text(unite(set("{'f:a':{},'f:c':{'f:x':{}}}"), set("{'f:b':{},'f:c':{'f:y':{}}}"))),
            "{'f:a':{},'f:b':{},'f:c':{'f:x':{},'f:y':{}}}");
  EXPECT_EQ(text(unite(set("{'f:a':{}}"), set("{'f:a':{'f:x':{}}}"))), "{'f:a':{'.':{},'f:x':{}}}");
}

TEST(FieldSet, Intersection) {
  EXPECT_EQ(text(intersect(set("{'f:a':{'.':{},'f:x':{}},'f:b':{}}"),
                           set("{'f:a':{'f:x':{}},'f:c':{}}"))),
            "{'f:a':{'f:x':{}}}");
  EXPECT_EQ(text(intersect(set("{'f:a':{}}"), set("{'f:a':{'f:x':{}}}"))), "{}");
}

TEST(FieldSet, Difference) {
  EXPECT_EQ(text(subtract(set("{'f:a':{'.':{},'f:x':{}},'f:b':{}}"), set("{'f:a':{}}"))),
            "{'f:a':{'f:x':{}},'f:b':{}}");
  EXPECT_EQ(text(subtract_deep(set("{'f:a':{'.':{},'f:x':{}},'f:b':{}}"), set("{'f:a':{}}"))),
            "{'f:b':{}}");
  EXPECT_EQ(text(subtract(set("{'f:a':{'f:x':{}}}"), set("{'f:a':{'f:x':{}}}"))), "{}");
}

TEST(FieldSet, ErasePath) {
  FieldSet fields = set("{'f:a':{'.':{},'f:x':{'f:y':{}}},'f:b':{'f:x':{}}}");
  erase_path(fields, {"f:a", "f:x"});
  erase_path(fields, {"f:b", "f:x"});
  erase_path(fields, {"f:none"});
  EXPECT_EQ(text(fields), "{'f:a':{}}");
}

TEST(FieldSet, KeepMatching) {
  const FieldSet fields =
      set("{'f:spec':{'f:containers':{'k:1':{'.':{},'f:image':{},'f:resources':{'f:limits':{}}}},"
          "'f:x':{}}}");
  EXPECT_EQ(text(keep_matching(fields, {{"f:spec", "f:containers", "*", "f:resources"}})),
            "{'f:spec':{'f:containers':{'k:1':{'.':{},'f:resources':{'f:limits':{}}}}}}");
}

}  // namespace
}  // namespace jogak::patch
