// SPDX-License-Identifier: Apache-2.0
//
// Values against schemas: the findings of a real server, then each keyword.
#include "apiserver/crd/value_check.h"

#include "apiserver/crd/testing.h"

namespace jogak::api {
namespace {

using testing::doc;
using testing::Lines;

Lines check(std::string_view schema, std::string_view value, std::string_view old = "",
            std::string_view prefix = "") {
  FieldErrors errors;
  const Doc before = old.empty() ? Doc() : doc(old);
  check_value(doc(value), old.empty() ? nullptr : &before, doc(schema), prefix, errors);
  return testing::lines(errors);
}

TEST(CheckValue, WidgetsOfARealServer) {
  const auto widget = [](std::string_view spec) {
    return check(testing::kWidgetSchema, std::string(R"({"spec": )") + std::string(spec) + "}");
  };
  EXPECT_EQ(widget(R"({"size": 3})"), Lines{});
  EXPECT_EQ(widget(R"({"size": 0})"),
            Lines{"FieldValueInvalid spec.size: Invalid value: 0: spec.size in body should be "
                  "greater than or equal to 1"});
  EXPECT_EQ(widget("{}"), Lines{"FieldValueRequired spec.size: Required value"});
  EXPECT_EQ(widget(R"({"size": "3"})"),
            Lines{"FieldValueTypeInvalid spec.size: Invalid value: \"string\": spec.size in body "
                  "must be of type integer: \"string\""});
  EXPECT_EQ(widget(R"({"size": 3, "color": "green"})"),
            Lines{"FieldValueNotSupported spec.color: Unsupported value: \"green\": supported "
                  "values: \"red\", \"blue\""});
  EXPECT_EQ(widget(R"({"size": 3, "tags": ["aaaaaaa"]})"),
            Lines{"FieldValueTooLong spec.tags[0]: Too long: may not be more than 5 bytes"});
  EXPECT_EQ(widget(R"({"size": 3, "ports": [{"p": 1, "n": "X9"}]})"),
            Lines{"FieldValueInvalid spec.ports[0].n: Invalid value: \"X9\": spec.ports[0].n in "
                  "body should match '^[a-z]+$'"});
  EXPECT_EQ(widget(R"({"size": 3, "is": "50%"})"), Lines{});
  EXPECT_EQ(widget(R"({"size": 3, "is": 50})"), Lines{});
  EXPECT_EQ(widget(R"({"size": 3, "is": true})").size(), 1U);
}

TEST(CheckValue, Numbers) {
  EXPECT_EQ(check(R"({"type": "integer"})", "1.0"), Lines{});
  EXPECT_EQ(check(R"({"type": "integer"})", "1.5").size(), 2U);
  EXPECT_EQ(check(R"({"type": "number"})", "1"), Lines{});
  EXPECT_EQ(check(R"({"type": "number", "maximum": 1.5, "exclusiveMaximum": true})", "1.5"),
            Lines{"FieldValueInvalid <nil>: Invalid value: 1.5:  in body should be less than 1.5"});
  EXPECT_EQ(check(R"({"type": "integer", "multipleOf": 3})", "9"), Lines{});
  EXPECT_EQ(check(R"({"type": "integer", "multipleOf": 3})", "10").size(), 1U);
  EXPECT_EQ(check(R"({"type": "number", "multipleOf": 0.1})", "0.3"), Lines{});
  EXPECT_EQ(check(R"({"type": "integer", "format": "int32"})", "3000000000"),
            Lines{"FieldValueInvalid <nil>: Invalid value: \"\": Checked value must be of type "
                  "integer with format int32 in "});
}

TEST(CheckValue, Strings) {
  EXPECT_EQ(check(R"({"type": "string", "minLength": 2})", R"("a")").size(), 1U);
  EXPECT_EQ(check(R"({"type": "string", "maxLength": 2})", R"("öö")"), Lines{});
  EXPECT_EQ(check(R"({"type": "string", "format": "date-time"})", R"("x")", "", "spec.t"),
            Lines{"FieldValueTypeInvalid spec.t: Invalid value: \"x\":  in body must be of type "
                  "date-time: \"x\""});
  EXPECT_EQ(check(R"({"type": "string", "format": "nobody-knows"})", R"("x")"), Lines{});
  EXPECT_EQ(check(R"({"type": "string", "pattern": "("})", R"("x")").size(), 1U);
}

TEST(CheckValue, Lists) {
  const std::string_view schema =
      R"({"properties": {"l": {"type": "array", "minItems": 1, "maxItems": 2, "items": {}}}})";
  EXPECT_EQ(check(schema, R"({"l": []})"),
            Lines{"FieldValueInvalid l: Invalid value: 0: l in body should have at least 1 items"});
  EXPECT_EQ(check(schema, R"({"l": [1, 2, 3]})"),
            Lines{"FieldValueTooMany l: Too many: 3: must have at most 2 items"});
}

TEST(CheckValue, Objects) {
  EXPECT_EQ(check(R"({"type": "object", "additionalProperties": {"type": "string"}})",
                  R"({"a": "b", "c": 1})"),
            Lines{"FieldValueTypeInvalid c: Invalid value: \"integer\": .c in body must be of type "
                  "string: \"integer\""});
  EXPECT_EQ(check(R"({"type": "object", "maxProperties": 1})", R"({"a": 1, "b": 2})").size(), 1U);
  EXPECT_EQ(
      check(R"({"properties": {"o": {"additionalProperties": false}}})", R"({"o": {"a": 1}})"),
      Lines{"FieldValueInvalid o: Invalid value: \"a\": o.a in body is a forbidden "
            "property"});
}

TEST(CheckValue, Nulls) {
  EXPECT_EQ(check(R"({"properties": {"a": {"type": "string"}}})", R"({"a": null})"),
            Lines{"FieldValueTypeInvalid a: Invalid value: \"null\": a in body must be of type "
                  "string: \"null\""});
  EXPECT_EQ(
      check(R"({"properties": {"a": {"type": "string", "nullable": true}}})", R"({"a": null})"),
      Lines{});
}

TEST(CheckValue, Combinations) {
  const std::string_view any = R"({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]})";
  EXPECT_EQ(check(any, R"({"b": 1})"), Lines{});
  EXPECT_EQ(check(any, "{}"),
            (Lines{"FieldValueInvalid <nil>: Invalid value: \"\": \"\" must validate at least one "
                   "schema (anyOf)",
                   "FieldValueRequired a: Required value"}));
  const std::string_view one = R"({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]})";
  EXPECT_EQ(check(one, R"({"a": 1})"), Lines{});
  EXPECT_EQ(check(one, R"({"a": 1, "b": 1})"),
            Lines{"FieldValueInvalid <nil>: Invalid value: \"\": \"\" must validate one and only "
                  "one schema (oneOf). Found 2 valid alternatives"});
  EXPECT_EQ(check(R"({"allOf": [{"minimum": 1}, {"maximum": 5}]})", "7").size(), 2U);
  EXPECT_EQ(check(R"({"not": {"required": ["a"]}})", R"({"a": 1})").size(), 1U);
  EXPECT_EQ(check(R"({"not": {"required": ["a"]}})", "{}"), Lines{});
}

TEST(CheckValue, TheBestAlternativeSpeaks) {
  // The second alternative matches more of the value than the first.
  const Lines found = check(
      R"({"anyOf": [{"properties": {"a": {"maximum": 1}, "b": {"maximum": 1}}},
                    {"properties": {"a": {"maximum": 9}, "b": {"maximum": 1}}}]})",
      R"({"a": 5, "b": 5})");
  ASSERT_EQ(found.size(), 3U);  // numbers count as matches even when out of bounds
}

TEST(CheckValue, WhatDidNotChangeIsNotComplainedAbout) {
  const std::string_view schema = R"({"properties": {"a": {"maximum": 1}, "b": {"maximum": 1},
      "l": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"properties": {"v": {"maximum": 1}}}}}})";
  EXPECT_EQ(check(schema, R"({"a": 5, "b": 1})", R"({"a": 5})"), Lines{});
  EXPECT_EQ(check(schema, R"({"a": 6})", R"({"a": 5})").size(), 1U);
  EXPECT_EQ(check(schema, R"({"l": [{"k": 2, "v": 1}, {"k": 1, "v": 9}]})",
                  R"({"l": [{"k": 1, "v": 9}]})"),
            Lines{});
  EXPECT_EQ(check(schema, R"({"l": [{"k": 1, "v": 8}]})", R"({"l": [{"k": 1, "v": 9}]})").size(),
            1U);
}

TEST(CheckValue, AMissingMemberIsNotForgivenWhenTheRestChanges) {
  EXPECT_EQ(check(R"({"properties": {"s": {"required": ["a"]}}})", R"({"s": {"b": 2}})",
                  R"({"s": {"b": 1}})"),
            Lines{"FieldValueRequired s.a: Required value"});
}

TEST(CheckValue, ThePrefixStandsInFront) {
  EXPECT_EQ(
      check(R"({"properties": {"phase": {"type": "string"}}})", R"({"phase": 1})", "", "status"),
      Lines{"FieldValueTypeInvalid status.phase: Invalid value: \"integer\": phase in body "
            "must be of type string: \"integer\""});
}

TEST(GoFloat, AsGoShowsThem) {
  EXPECT_EQ(go_float(1.5), "1.5");
  EXPECT_EQ(go_float(0.1), "0.1");
  EXPECT_EQ(go_float(100), "100");
  EXPECT_EQ(go_float(1e20), "100000000000000000000");
  EXPECT_EQ(go_float(1e21), "1e+21");
  EXPECT_EQ(go_float(1e-5), "1e-05");
  EXPECT_EQ(go_float(-2.25), "-2.25");
  EXPECT_EQ(go_float(0), "0");
}

}  // namespace
}  // namespace jogak::api
