// SPDX-License-Identifier: Apache-2.0
//
// What stands twice in a list, and embedded resources that are none.
#include "apiserver/crd/list_check.h"

#include "apiserver/crd/testing.h"

namespace jogak::api {
namespace {

using testing::doc;
using testing::Lines;

Lines lists(std::string_view schema, std::string_view value) {
  FieldErrors errors;
  check_lists(doc(value), doc(schema), errors);
  return testing::lines(errors);
}

Lines embedded(std::string_view value) {
  FieldErrors errors;
  check_embedded(doc(value),
                 doc(R"({"properties": {"t": {"x-kubernetes-embedded-resource": true}}})"), Path(),
                 errors);
  return testing::fields(errors);
}

TEST(CheckLists, SetsAndMapsOfARealServer) {
  EXPECT_EQ(lists(testing::kWidgetSchema, R"({"spec": {"tags": ["a", "b", "a", "a"]}})"),
            Lines{"FieldValueDuplicate spec.tags[2]: Duplicate value: \"a\""});
  EXPECT_EQ(lists(testing::kWidgetSchema, R"({"spec": {"ports": [{"p": 1}, {"p": 1}]}})"),
            Lines{"FieldValueDuplicate spec.ports[1]: Duplicate value: {\"p\":1}"});
  EXPECT_EQ(
      lists(testing::kWidgetSchema, R"({"spec": {"tags": ["a"], "ports": [{"p": 1}, {"p": 2}]}})"),
      Lines{});
}

TEST(CheckLists, SeveralKeys) {
  const std::string_view schema = R"({"properties": {"l": {"x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["a", "b"], "items": {}}}})";
  EXPECT_EQ(lists(schema, R"({"l": [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2}]})"),
            Lines{"FieldValueDuplicate l[2]: Duplicate value: {\"a\":1,\"b\":2}"});
  EXPECT_EQ(lists(schema, R"({"l": [1]})").size(), 1U);
}

TEST(CheckLists, BelowMapsTheKeyStandsInBrackets) {
  EXPECT_EQ(lists(R"({"properties": {"m": {"additionalProperties": {"x-kubernetes-list-type":
                      "set", "items": {}}}}})",
                  R"({"m": {"k": [1, 1]}})"),
            Lines{"FieldValueDuplicate m[k][1]: Duplicate value: 1"});
}

TEST(CheckEmbedded, TypeMembersAreNeeded) {
  EXPECT_EQ(embedded(R"({"t": {}})"), (Lines{"t.apiVersion", "t.kind"}));
  EXPECT_EQ(embedded(R"({"t": {"apiVersion": "v1", "kind": "Pod"}})"), Lines{});
  EXPECT_EQ(embedded(R"({"t": {"apiVersion": "", "kind": "a b"}})"),
            (Lines{"t.apiVersion", "t.kind"}));
}

TEST(CheckEmbedded, MetadataIsChecked) {
  EXPECT_EQ(embedded(R"({"t": {"apiVersion": "v1", "kind": "Pod", "metadata":
                         {"name": "Any_Case", "labels": {"a": "b c"}}}})"),
            Lines{"t.metadata.labels"});
  EXPECT_EQ(embedded(R"({"t": {"apiVersion": "v1", "kind": "Pod", "metadata":
                         {"name": "a/b"}}})"),
            Lines{"t.metadata.name"});
}

}  // namespace
}  // namespace jogak::api
