// SPDX-License-Identifier: Apache-2.0
//
// Schemas that are right, and the finding of each rule that one can break.
#include "apiserver/crd/schema_check.h"

#include "apiserver/crd/structural_check.h"
#include "apiserver/crd/testing.h"

namespace jogak::api {
namespace {

using testing::doc;
using testing::Lines;

// Findings on a schema, at "v".
Lines check(std::string_view schema, bool has_status = false) {
  FieldErrors errors;
  Doc validation = Doc::object();
  validation.set("openAPIV3Schema", doc(schema));
  check_validation(validation, has_status, Path("v"), errors);
  Lines out = testing::lines(errors);
  for (std::string& line : out) {
    if (const auto at = line.find("v.openAPIV3Schema"); at != std::string::npos) {
      line.replace(at, std::string("v.openAPIV3Schema").size(), "$");
    }
  }
  return out;
}

// The same for the schema of one property "a".
Lines property(std::string_view schema) {
  return check(R"({"type": "object", "properties": {"a": )" + std::string(schema) + "}}");
}

TEST(CheckSchema, TheWidgetIsRight) { EXPECT_EQ(check(testing::kWidgetSchema, true), Lines{}); }

TEST(CheckSchema, TypesAreNeeded) {
  EXPECT_EQ(check("{}"), Lines{"FieldValueRequired $.type: Required value: must not be empty at "
                               "the root"});
  EXPECT_EQ(property("{}"),
            Lines{"FieldValueRequired $.properties[a].type: Required value: must not be empty for "
                  "specified object fields"});
  EXPECT_EQ(property(R"({"type": "array", "items": {}})"),
            Lines{"FieldValueRequired $.properties[a].items.type: Required value: must not be "
                  "empty for specified array items"});
  EXPECT_EQ(property(R"({"type": "array"})"),
            Lines{"FieldValueRequired $.properties[a].items: Required value: must be specified"});
  EXPECT_EQ(property(R"({"x-kubernetes-int-or-string": true})"), Lines{});
  EXPECT_EQ(property(R"({"x-kubernetes-preserve-unknown-fields": true})"), Lines{});
  EXPECT_EQ(check(R"({"type": "array", "items": {"type": "string"}})"),
            Lines{"FieldValueInvalid $.type: Invalid value: \"array\": must be object at the "
                  "root"});
}

TEST(CheckSchema, UnknownTypes) {
  EXPECT_EQ(property(R"({"type": "float"})"),
            Lines{"FieldValueNotSupported $.properties[a].type: Unsupported value: \"float\": "
                  "supported values: \"array\", \"boolean\", \"integer\", \"number\", \"object\", "
                  "\"string\""});
}

TEST(CheckSchema, CombinationsOnlyNarrow) {
  EXPECT_EQ(property(R"({"type": "object", "anyOf": [{"required": ["x"]}]})"), Lines{});
  EXPECT_EQ(property(R"({"type": "string", "anyOf": [{"type": "string"}]})"),
            Lines{"FieldValueForbidden $.properties[a].anyOf[0].type: Forbidden: must be empty to "
                  "be structural"});
  EXPECT_EQ(property(R"({"type": "object", "allOf": [{"properties": {"x": {"maximum": 1}}}]})"),
            Lines{});  // completeness is asked of the root only
  EXPECT_EQ(check(R"({"type": "object", "allOf": [{"properties": {"x": {"maximum": 1}}}]})"),
            Lines{"FieldValueRequired $.properties[x]: Required value: because it is defined in "
                  "v.openAPIV3Schema.allOf[0].properties[x]"});
  EXPECT_EQ(property(R"({"x-kubernetes-int-or-string": true,
                         "anyOf": [{"type": "integer"}, {"type": "string"}]})"),
            Lines{});
  EXPECT_EQ(property(R"({"x-kubernetes-int-or-string": true, "allOf": [{"anyOf":
                         [{"type": "integer"}, {"type": "string"}]}, {"maximum": 1}]})"),
            Lines{});
}

TEST(CheckSchema, PatternsMustCompile) {
  const Lines found = property(R"({"type": "string", "pattern": "("})");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].starts_with(
      "FieldValueInvalid $.properties[a].pattern: Invalid value: \"(\": must be a valid regular "
      "expression, but isn't: "))
      << found[0];
}

TEST(CheckSchema, MetadataIsImplied) {
  EXPECT_EQ(check(R"({"type": "object", "properties": {"metadata": {"type": "object",
                      "properties": {"name": {"type": "string"}}}}})"),
            Lines{});
  EXPECT_EQ(check(R"({"type": "object", "properties": {"metadata": {"type": "object",
                      "properties": {"labels": {"type": "object"}}}}})"),
            Lines{"FieldValueForbidden $.properties[metadata]: Forbidden: must not specify "
                  "anything other than name and generateName, but metadata is implicitly "
                  "specified"});
  EXPECT_EQ(check(R"({"type": "object", "properties": {"kind": {"type": "integer"}}})").size(), 1U);
}

TEST(CheckSchema, AdditionalProperties) {
  EXPECT_EQ(check(R"({"type": "object", "additionalProperties": {"type": "string"}})"),
            Lines{"FieldValueForbidden $.additionalProperties: Forbidden: must not be used at the "
                  "root"});
  EXPECT_EQ(property(R"({"type": "object", "additionalProperties": {"type": "string"},
                         "properties": {"x": {"type": "string"}}})"),
            Lines{"FieldValueForbidden $.properties[a].additionalProperties: Forbidden: "
                  "additionalProperties and properties are mutual exclusive"});
}

TEST(CheckSchema, EmbeddedResources) {
  EXPECT_EQ(property(R"({"type": "object", "x-kubernetes-embedded-resource": true,
                         "x-kubernetes-preserve-unknown-fields": true})"),
            Lines{});
  EXPECT_EQ(property(R"({"type": "object", "x-kubernetes-embedded-resource": true})").size(), 1U);
  EXPECT_EQ(property(R"({"x-kubernetes-embedded-resource": true,
                         "x-kubernetes-preserve-unknown-fields": true})")
                .size(),
            1U);
}

TEST(CheckSchema, ListTypes) {
  EXPECT_EQ(property(R"({"type": "string", "x-kubernetes-list-type": "set"})"),
            Lines{"FieldValueInvalid $.properties[a].type: Invalid value: \"string\": must be "
                  "array if x-kubernetes-list-type is specified"});
  EXPECT_EQ(property(R"({"type": "array", "items": {"type": "object"},
                         "x-kubernetes-list-type": "set"})")
                .size(),
            1U);
  EXPECT_EQ(property(R"({"type": "array", "items": {"type": "object", "properties":
                         {"k": {"type": "string"}}}, "x-kubernetes-list-type": "map",
                         "x-kubernetes-list-map-keys": ["k"]})"),
            Lines{"FieldValueRequired $.properties[a].items.properties[k].default: Required value: "
                  "this property is in x-kubernetes-list-map-keys, so it must have a default or be "
                  "a required property"});
  EXPECT_EQ(property(R"({"type": "array", "items": {"type": "object", "required": ["k"]},
                         "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]})")
                .size(),
            1U);
  EXPECT_EQ(property(R"({"type": "array", "items": {"type": "object"},
                         "x-kubernetes-list-map-keys": ["k"]})")
                .size(),
            1U);
  EXPECT_EQ(property(R"({"type": "array", "items": {"type": "string"},
                         "x-kubernetes-list-type": "bag"})")
                .size(),
            1U);
}

TEST(CheckSchema, Defaults) {
  EXPECT_EQ(property(R"({"type": "integer", "default": "x"})"),
            Lines{"FieldValueTypeInvalid $.properties[a].default: Invalid value: \"string\":  in "
                  "body must be of type integer: \"string\""});
  EXPECT_EQ(property(R"({"type": "object", "default": {"x": 1}})"),
            Lines{"FieldValueInvalid $.properties[a].default: Invalid value: {\"x\":1}: must not "
                  "have unknown fields"});
  EXPECT_EQ(property(R"({"type": "integer", "default": 3})"), Lines{});
}

TEST(CheckSchema, UnsupportedKeywords) {
  EXPECT_EQ(property(R"({"type": "array", "items": {"type": "string"}, "uniqueItems": true})"),
            Lines{"FieldValueForbidden $.properties[a].uniqueItems: Forbidden: uniqueItems cannot "
                  "be set to true since the runtime complexity becomes quadratic"});
  EXPECT_EQ(property(R"({"type": "object", "$ref": "#/x"})"),
            Lines{"FieldValueForbidden $.properties[a].$ref: Forbidden: $ref is not supported"});
}

TEST(CheckSchema, RootsWithAStatus) {
  EXPECT_EQ(check(R"({"type": "object", "properties": {}, "maxProperties": 5})", true).size(), 1U);
  EXPECT_EQ(check(R"({"type": "object", "description": "d"})", true), Lines{});
  EXPECT_EQ(check(R"({"type": "object", "nullable": true})"),
            Lines{"FieldValueForbidden $.nullable: Forbidden: nullable cannot be true at the "
                  "root"});
}

TEST(CheckSchema, Rules) {
  const auto rule = [](std::string_view text) {
    return property(R"({"type": "string", "x-kubernetes-validations": [)" + std::string(text) +
                    "]}");
  };
  EXPECT_EQ(rule(R"({"rule": "self == 'a'"})"), Lines{});
  EXPECT_EQ(rule(R"({"rule": " "})"),
            Lines{"FieldValueRequired $.properties[a].x-kubernetes-validations[0].rule: Required "
                  "value: rule is not specified"});
  EXPECT_EQ(rule(R"({"rule": "self ==\n 'a'"})").size(), 1U);
  EXPECT_EQ(rule(R"({"rule": "self == 'a'", "message": "a\nb"})").size(), 1U);
  EXPECT_EQ(rule(R"({"rule": "self == 'a'", "reason": "Other"})").size(), 1U);
  const Lines broken = rule(R"({"rule": "self =="})");
  ASSERT_EQ(broken.size(), 1U);
  EXPECT_NE(broken[0].find("compilation failed"), std::string::npos) << broken[0];
}

TEST(CheckStructural, FindingsAreSorted) {
  const FieldErrors errors =
      check_structural(doc(R"({"type": "object", "properties": {"b": {}, "a": {}}})"), Path("v"));
  EXPECT_EQ(testing::fields(errors), (Lines{"v.properties[a].type", "v.properties[b].type"}));
}

TEST(SchemaAtPath, FindsMembers) {
  const Doc schema = doc(testing::kWidgetSchema);
  const Doc* color = schema_at_path(schema, ".spec.color");
  ASSERT_NE(color, nullptr);
  EXPECT_EQ((*color)["type"].as_string(), "string");
  EXPECT_EQ(schema_at_path(schema, ".spec.none"), nullptr);
  EXPECT_EQ(schema_at_path(schema, "spec"), nullptr);
}

}  // namespace
}  // namespace jogak::api
