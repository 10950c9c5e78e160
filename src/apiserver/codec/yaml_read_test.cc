// SPDX-License-Identifier: Apache-2.0
//
// YAML as sigs.k8s.io/yaml turns it into JSON; expected values come from that program.
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "apiserver/codec/codec.h"

namespace jogak::codec {
namespace {

using Strings = std::vector<std::string>;

std::string read(std::string_view text) {
  const auto parsed = parse_yaml(text);
  return parsed ? parsed->doc.json(JsonWriter::Style::Compact) : parsed.error().what;
}

struct Case {
  const char *text, *expected;
};

TEST(ParseYaml, BareScalars) {
  const Case cases[] = {
      {"y", "true"},
      {"Yes", "true"},
      {"ON", "true"},
      {"n", "false"},
      {"No", "false"},
      {"off", "false"},
      {"~", "null"},
      {"Null", "null"},
      {"nUll", "\"nUll\""},
      {"yES", "\"yES\""},
      {"ya", "\"ya\""},
      {"12", "12"},
      {"+1", "1"},
      {"-0", "0"},
      {"0x1F", "31"},
      {"-0x10", "-16"},
      {"010", "8"},
      {"0o17", "15"},
      {"0b11", "3"},
      {"08", "8"},
      {"1_000", "1000"},
      {"1e3", "1000"},
      {"1.e3", "1000"},
      {".5", "0.5"},
      {"-.5", "-0.5"},
      {"1.0", "1"},
      {"1e21", "1e+21"},
      {"1e-7", "1e-7"},
      {"1.5", "1.5"},
      {"0xg", "\"0xg\""},
      {"100m", "\"100m\""},
      {"1.2.3", "\"1.2.3\""},
      {"12:30:45", "\"12:30:45\""},
      {"2024-01-01", "\"2024-01-01\""},
      {"18446744073709551615", "18446744073709551615"},
      {"18446744073709551616", "18446744073709552000"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"1e400", "\"1e400\""},
      {"e1", "\"e1\""},
      {".", "\".\""},
      {"=", "\"=\""},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(read(std::string("k: ") + c.text + "\n"), std::string("{\"k\":") + c.expected + "}");
  }
}

TEST(ParseYaml, QuotedAndTaggedScalars) {
  const Case cases[] = {
      {"\"y\"", "\"y\""},
      {"'1'", "\"1\""},
      {"'it''s'", "\"it's\""},
      {"!!str 1", "\"1\""},
      {"!!int \"3\"", "3"},
      {"!!float 3", "3"},
      {"!!bool \"yes\"", "true"},
      {"!!binary aGk=", "\"hi\""},
      {"!foo x", "\"x\""},
      {"!!null ~", "null"},
      {"|\n  x\n  y", "\"x\\ny\\n\""},
      {">-\n  x\n  y", "\"x y\""},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(read(std::string("k: ") + c.text + "\n"), std::string("{\"k\":") + c.expected + "}");
  }
}

TEST(ParseYaml, WhatHasNoMeaningInJson) {
  EXPECT_EQ(read("k: !!int a\n"), "yaml: cannot decode !!str `a` as a !!int");
  EXPECT_EQ(read("k: .inf\n"), "json: unsupported value: .inf");
  EXPECT_EQ(read("k: .nan\n"), "json: unsupported value: .nan");
  EXPECT_EQ(read("~: a\n"), "unsupported map key of type: null");
  EXPECT_EQ(read("[1]: a\n"), "yaml: invalid map key: [1]");
}

TEST(ParseYaml, KeysAreSortedStrings) {
  EXPECT_EQ(read("b: 1\na: 2\n1: 3\ntrue: 4\n1.5: 5\n"), R"({"1":3,"1.5":5,"a":2,"b":1,"true":4})");
}

TEST(ParseYaml, Structures) {
  const Case cases[] = {
      {"a:\n- b\n- c: d\n  e: f\n", R"({"a":["b",{"c":"d","e":"f"}]})"},
      {"a: [1, y]\nb: {c: n}\n", R"({"a":[1,true],"b":{"c":false}})"},
      {"a: 1\n---\nb: 2\n", R"({"a":1})"},
      {"---\na: 1\n...\n", R"({"a":1})"},
      {"", "null"},
      {"# only\n", "null"},
      {"? a\n", R"({"a":null})"},
      {"a:\nb:\n", R"({"a":null,"b":null})"},
      {"{\"a\":1,\"b\":{\"c\":[1.0,null]}}", R"({"a":1,"b":{"c":[1,null]}})"},
      {"{\"b\":1,\"a\":2}", R"({"a":2,"b":1})"},
      {"a: 1\r\nb: 2\r\n", R"({"a":1,"b":2})"},
  };
  for (const Case& c : cases) EXPECT_EQ(read(c.text), c.expected) << c.text;
}

TEST(ParseYaml, AnchorsAndMerges) {
  const Case cases[] = {
      {"a: &x {b: 1}\nc: *x\n", R"({"a":{"b":1},"c":{"b":1}})"},
      {"base: &b {p: 1, q: 2}\nd:\n  <<: *b\n  q: 3\n",
       R"({"base":{"p":1,"q":2},"d":{"p":1,"q":3}})"},
      {"d:\n  q: 3\n  <<: {q: 4, z: 5}\n", R"({"d":{"q":4,"z":5}})"},
      {"d:\n  <<: [{a: 1}, {a: 2, b: 3}]\n", R"({"d":{"a":1,"b":3}})"},
      {"d:\n  <<: 5\n", "yaml: map merge requires map or sequence of maps as the value"},
      {"d: {\"<<\": 1}\n", R"({"d":{"<<":1}})"},
      {"&x a: *x\n", R"({"a":"a"})"},
      {"a: &x [*x]\n", "yaml: anchor contains itself"},
  };
  for (const Case& c : cases) EXPECT_EQ(read(c.text), c.expected) << c.text;
  EXPECT_TRUE(read("a: *b\n").starts_with("yaml: line 1: "));
}

TEST(ParseYaml, AliasesDoNotExplode) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    text += fmt::format("a{0}: &a{0} [", i);
    for (int k = 0; k < 9; ++k) text += fmt::format("{}*a{}", k == 0 ? "" : ", ", i - 1);
    text += "]\n";
  }
  EXPECT_EQ(read(text), "yaml: document contains excessive aliasing");
  std::string large = "a: &a \"" + std::string(1'000'000, 'x') + "\"\nb:\n";
  for (int i = 0; i < 50; ++i) large += "- *a\n";
  EXPECT_EQ(read(large), "yaml: document contains excessive aliasing");
}

TEST(ParseYaml, DuplicateKeys) {
  const auto parsed = parse_yaml(
      "apiVersion: v1\nkind: Pod\nmetadata:\n  name: yy\nspec:\n  foo: 1\n  containers:\n"
      "  - name: c\n    image: i\n    image: j\nkind: Pod\n");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->doc["spec"]["containers"].items()[0]["image"].as_string(), "j");
  EXPECT_EQ(parsed->duplicates,
            (Strings{"yaml: unmarshal errors:\n  line 10: key \"image\" already set in map\n"
                     "  line 11: key \"kind\" already set in map"}));
}

TEST(ParseYaml, DuplicateKeysOfJson) {
  const auto parsed = parse_yaml(R"({"a":1,"a":2})");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->doc["a"].as_int(), 2);
  EXPECT_EQ(parsed->duplicates,
            (Strings{"yaml: unmarshal errors:\n  line 1: key \"a\" already set in map"}));
}

TEST(ParseYaml, BrokenTexts) {
  for (const char* text :
       {"a: [", "a: [1, 2\n", "a: {b\n", "a: b: c\n", "a:\n b: 1\n  c: 2\n", "a: \"x", "k: @x\n",
        "k: `x\n", "a: 'b' c\n", "- a\nb: 1\n", "a: 1\n- b\n", "k: \"\n", "a: \x01\n", "a: \xff\n",
        "kind Pod\nmetadata: {}\n", "metadata: {}\nkind Pod\n", ",a\n"}) {
    const auto parsed = parse_yaml(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_TRUE(parsed.error().what.starts_with("yaml: ")) << parsed.error().what;
  }
}

TEST(ParseYaml, DepthHasALimit) {
  EXPECT_FALSE(parse_yaml(std::string(5000, '[')).has_value());
  EXPECT_FALSE(parse_yaml(std::string(5000, '[') + std::string(5000, ']')).has_value());
}

}  // namespace
}  // namespace jogak::codec
