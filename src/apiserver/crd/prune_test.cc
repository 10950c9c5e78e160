// SPDX-License-Identifier: Apache-2.0
//
// Pruning, nulls, defaults and metadata, each on small schemas.
#include "apiserver/crd/prune.h"

#include "apiserver/crd/testing.h"

namespace jogak::api {
namespace {

using testing::doc;
using testing::json;
using testing::Lines;

std::string pruned(std::string_view schema, std::string_view object, Lines& unknown) {
  Doc value = doc(object);
  const Doc parsed = doc(schema);
  unknown = prune(value, &parsed, true);
  return json(value);
}

TEST(Prune, UnknownMembersGoWithTheirPaths) {
  Lines unknown;
  EXPECT_EQ(pruned(R"({"properties": {"spec": {"properties": {"a": {}, "l": {"items":
                       {"properties": {"x": {}}}}}}}})",
                   R"({"kind": "K", "apiVersion": "v", "metadata": {"any": 1}, "spec": {"a": 1,
                       "b": {"c": 2}, "l": [{"x": 1, "y": 2}]}, "foo": 3})",
                   unknown),
            R"({"kind":"K","apiVersion":"v","metadata":{"any":1},"spec":{"a":1,"l":[{"x":1}]}})");
  EXPECT_EQ(unknown, (Lines{"foo", "spec.b", "spec.l[0].y"}));
}

TEST(Prune, WithoutASchemaOnlyTypeMembersStay) {
  Doc value = doc(R"({"kind": "K", "apiVersion": "v", "metadata": {"a": 1}, "spec": {}})");
  EXPECT_EQ(prune(value, nullptr, true), Lines{"spec"});
  EXPECT_EQ(json(value), R"({"kind":"K","apiVersion":"v","metadata":{"a":1}})");
}

TEST(Prune, PreservedPartsKeepWhatIsUnknownOnly) {
  Lines unknown;
  EXPECT_EQ(pruned(R"({"properties": {"any": {"x-kubernetes-preserve-unknown-fields": true,
                       "properties": {"known": {"properties": {"a": {}}}}}}})",
                   R"({"any": {"deep": {"x": [1]}, "known": {"a": 1, "b": 2}}})", unknown),
            R"({"any":{"deep":{"x":[1]},"known":{"a":1}}})");
  EXPECT_EQ(unknown, Lines{"any.known.b"});
}

TEST(Prune, AdditionalPropertiesAreKnown) {
  Lines unknown;
  EXPECT_EQ(pruned(R"({"properties": {"m": {"additionalProperties": {"properties": {"a": {}}}},
                       "n": {"additionalProperties": true}}})",
                   R"({"m": {"x": {"a": 1, "b": 2}}, "n": {"y": 1, "z": {"q": 1}}})", unknown),
            R"({"m":{"x":{"a":1}},"n":{"y":1,"z":{}}})");
  EXPECT_EQ(unknown, (Lines{"m.x.b", "n.z.q"}));
}

TEST(Prune, EmbeddedResourcesKeepTheirTypeMembers) {
  Lines unknown;
  pruned(R"({"properties": {"t": {"x-kubernetes-embedded-resource": true, "properties":
             {"spec": {}}}, "u": {"properties": {"spec": {}}}}})",
         R"({"t": {"kind": "K", "metadata": {}, "spec": 1, "x": 1}, "u": {"kind": "K"}})", unknown);
  EXPECT_EQ(unknown, (Lines{"t.x", "u.kind"}));
}

TEST(DropNulls, OnlyWhereNoneMayBeAndNoDefaultComes) {
  const Doc schema = doc(R"({"properties": {"a": {}, "b": {"nullable": true}, "c": {"default": 1},
                             "l": {"items": {}}}})");
  Doc value = doc(R"({"a": null, "b": null, "c": null, "l": [null], "unknown": null})");
  drop_nulls(value, &schema);
  EXPECT_EQ(json(value), R"({"b":null,"c":null,"l":[null],"unknown":null})");
}

TEST(ApplyDefaults, FillsInAndDescends) {
  const Doc schema = doc(R"({"properties": {
      "spec": {"properties": {"a": {"default": "x"}, "o": {"default": {},
               "properties": {"deep": {"default": 5}}}}},
      "l": {"items": {"properties": {"k": {"default": true}}}},
      "m": {"additionalProperties": {"properties": {"q": {"default": 1}}}}}})");
  Doc value = doc(R"({"spec": {"a": null}, "l": [{}, {"k": false}], "m": {"one": {}}})");
  apply_defaults(value, schema);
  EXPECT_EQ(value, doc(R"({"spec": {"a": "x", "o": {"deep": 5}}, "l": [{"k": true},
                           {"k": false}], "m": {"one": {"q": 1}}})"));
}

TEST(ApplyDefaults, NothingComesBelowWhatIsAbsent) {
  const Doc schema = doc(R"({"properties": {"spec": {"properties": {"a": {"default": 1}}}}})");
  Doc value = doc("{}");
  apply_defaults(value, schema);
  EXPECT_EQ(json(value), "{}");
}

TEST(CoerceEmbedded, MetadataBecomesProper) {
  Doc value = doc(R"({"metadata": {"name": "n", "foo": 1, "labels": {"a": "b"}}})");
  Lines unknown;
  ASSERT_TRUE(coerce_embedded(value, nullptr, true, unknown));
  EXPECT_EQ(unknown, Lines{"metadata.foo"});
  EXPECT_EQ(value, doc(R"({"metadata": {"name": "n", "labels": {"a": "b"}}})"));
}

TEST(CoerceEmbedded, WrongTypesAreRefused) {
  Lines unknown;
  Doc wrong = doc(R"({"metadata": {"labels": {"a": 1}}})");
  EXPECT_FALSE(coerce_embedded(wrong, nullptr, true, unknown));
  const Doc schema =
      doc(R"({"properties": {"t": {"x-kubernetes-embedded-resource": true, "properties": {}}}})");
  Doc embedded = doc(R"({"t": {"kind": 1}})");
  const auto result = coerce_embedded(embedded, &schema, true, unknown);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "t.kind: Invalid value: 1: must be a string");
}

}  // namespace
}  // namespace jogak::api
