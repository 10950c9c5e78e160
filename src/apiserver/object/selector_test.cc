// SPDX-License-Identifier: Apache-2.0
//
// Selectors: what they match, how they print, what is wrong with bad ones.
#include "apiserver/object/selector.h"

#include <gtest/gtest.h>

namespace jogak::api {
namespace {

bool selects(std::string_view selector, const Labels& labels) {
  const auto parsed = LabelSelector::parse(selector);
  EXPECT_TRUE(parsed) << selector;
  return parsed && parsed->matches(labels);
}

std::string error_of(std::string_view selector) {
  const auto parsed = LabelSelector::parse(selector);
  return parsed ? "fine: " + parsed->text() : parsed.error().what;
}

TEST(LabelSelector, EmptySelectsEverything) {
  EXPECT_TRUE(LabelSelector::parse("")->is_everything());
  EXPECT_TRUE(selects("", {}));
  EXPECT_TRUE(selects("  ", {{"a", "b"}}));
}

TEST(LabelSelector, Operators) {
  const Labels labels = {{"a", "b"}, {"n", "5"}};
  EXPECT_TRUE(selects("a=b", labels));
  EXPECT_TRUE(selects("a == b", labels));
  EXPECT_FALSE(selects("a!=b", labels));
  EXPECT_TRUE(selects("x!=b", labels));
  EXPECT_TRUE(selects("a in (c, b)", labels));
  EXPECT_FALSE(selects("a notin (c,b)", labels));
  EXPECT_TRUE(selects("x notin (c)", labels));
  EXPECT_TRUE(selects("a,n", labels));
  EXPECT_FALSE(selects("!a", labels));
  EXPECT_TRUE(selects("!x", labels));
  EXPECT_TRUE(selects("n>4,n<6", labels));
  EXPECT_FALSE(selects("n>5", labels));
  EXPECT_FALSE(selects("a>5", labels));
}

TEST(LabelSelector, OddButLegal) {
  EXPECT_TRUE(selects("a in ()", {{"a", ""}}));
  EXPECT_TRUE(selects("a=", {{"a", ""}}));
  EXPECT_TRUE(selects("in in (in,notin)", {{"in", "notin"}}));
  EXPECT_EQ(error_of("a in (,b,)"), "fine: a in (,b)");
}

TEST(LabelSelector, ErrorsInTheServersWords) {
  EXPECT_EQ(error_of("a b"),
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
  EXPECT_EQ(error_of("==x"), "found '==', expected: !, identifier, or 'end of string'");
  EXPECT_EQ(error_of("a,"), "found '', expected: identifier after ','");
  EXPECT_EQ(error_of("a=b c"), "found 'c', expected: ',' or 'end of string'");
  EXPECT_EQ(error_of("a in b"), "unable to parse requirement: found 'b' expected: '('");
  EXPECT_EQ(error_of("a in (b"), "unable to parse requirement: found '', expected: ',' or ')'");
  EXPECT_EQ(error_of("a>b"),
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' "
            "operators, the value must be an integer");
  EXPECT_TRUE(error_of("a/b/c=d").starts_with(
      "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key"));
  EXPECT_TRUE(error_of("a=b_").starts_with(
      "unable to parse requirement: values[0][a]: Invalid value: \"b_\": a valid label"));
}

TEST(LabelSelector, TextIsSortedByKey) {
  EXPECT_EQ(LabelSelector::parse("c in (e,d),a=b,!f,g>5")->text(), "a=b,c in (d,e),!f,g>5");
}

TEST(LabelSelector, FromObject) {
  Doc selector = Doc::object();
  EXPECT_TRUE(LabelSelector::from_object(selector).is_everything());
  EXPECT_FALSE(LabelSelector::from_object(Doc()).matches(Labels{}));
  selector.at("matchLabels").set("z", "1").set("a", "b");
  Doc term = Doc::object();
  term.set("key", "k").set("operator", "NotIn").set("values", Doc::strings({"y", "x"}));
  selector.at("matchExpressions").push(term);
  const LabelSelector parsed = LabelSelector::from_object(selector);
  EXPECT_EQ(parsed.text(), "a=b,k notin (x,y),z=1");
  Doc labels = Doc::object();
  labels.set("a", "b").set("z", "1");
  EXPECT_TRUE(parsed.matches(labels));
  labels.set("k", "x");
  EXPECT_FALSE(parsed.matches(labels));
}

TEST(LabelSelector, EmptyMapSelectsNothing) {
  EXPECT_FALSE(LabelSelector::from_map(Doc::object()).matches(Labels{{"a", "b"}}));
  Doc map = Doc::object();
  map.set("a", "b");
  EXPECT_TRUE(LabelSelector::from_map(map).matches(Labels{{"a", "b"}}));
}

TEST(FieldSelector, Terms) {
  const auto parsed =
      FieldSelector::parse("spec.nodeName=n1,status.phase!=Failed,metadata.name==x");
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->terms.size(), 3U);
  EXPECT_EQ(parsed->terms[0].path, "metadata.name");
  EXPECT_EQ(parsed->terms[0].value, "x");
  EXPECT_FALSE(parsed->terms[2].equals);
  const auto field = [](std::string_view path) -> std::string_view {
    if (path == "spec.nodeName") return "n1";
    return path == "metadata.name" ? "x" : "";
  };
  EXPECT_TRUE(parsed->matches(field));
}

TEST(FieldSelector, Escapes) {
  EXPECT_EQ(FieldSelector::parse("a=b\\,c\\=d\\\\")->terms[0].value, "b,c=d\\");
  EXPECT_FALSE(FieldSelector::parse("a=b=c"));
  EXPECT_FALSE(FieldSelector::parse("a=\\x"));
}

TEST(FieldSelector, ErrorsInTheServersWords) {
  EXPECT_EQ(FieldSelector::parse("abc").error().what,
            "invalid selector: 'abc'; can't understand 'abc'");
  EXPECT_TRUE(FieldSelector::parse(",")->terms.empty());
}

}  // namespace
}  // namespace jogak::api
