// SPDX-License-Identifier: Apache-2.0
//
// Which paths differ between two objects, for built-in types and for schemas of custom ones.
#include "apiserver/patch/compare.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "apiserver/patch/testing/json.h"
#include "apiserver/patch/typed_value.h"

namespace jogak::patch {
namespace {

std::string paths_of(const FieldSet& set) {
  std::string paths;
  each_path(set,
            [&](const FieldPath& path) { paths += (paths.empty() ? "" : " ") + path_text(path); });
  return paths;
}

// "+.a .b -.c": what was added or changed, and what was removed.
std::string differences(const Comparison& comparison) {
  const std::string changed = paths_of(comparison.changed);
  const std::string removed = paths_of(comparison.removed);
  return changed + (removed.empty() ? "" : (changed.empty() ? "- " : " - ") + removed);
}

std::string pod(std::string_view old, std::string_view now) {
  return differences(
      compare(json(old), json(now), TypeView::of({.builtin = &schema::get("core.v1.Pod")})));
}

std::string custom(std::string_view schema, std::string_view old, std::string_view now) {
  const Doc definition = json(schema);
  return differences(compare(json(old), json(now), TypeView::of({.custom = &definition})));
}

TEST(Compare, EqualObjectsDoNotDiffer) {
  EXPECT_EQ(pod("{'spec':{'nodeName':'a'}}", "{'spec':{'nodeName':'a'}}"), "");
}

TEST(Compare, Scalars) {
  EXPECT_EQ(
      pod("{'spec':{'nodeName':'a','hostname':'h'}}", "{'spec':{'nodeName':'b','subdomain':'s'}}"),
      ".spec.nodeName .spec.subdomain - .spec.hostname");
}

TEST(Compare, ServerMetadataIsNobodys) {
  EXPECT_EQ(pod("{'apiVersion':'v1','metadata':{'uid':'1','resourceVersion':'1'}}",
                "{'apiVersion':'v2','metadata':{'uid':'2','managedFields':[{}]}}"),
            "");
}

TEST(Compare, ANewMapBelongsToItsMaker) {
  EXPECT_EQ(pod("{'metadata':{}}", "{'metadata':{'labels':{'a':'1'}}}"),
            ".metadata.labels .metadata.labels.a");
  EXPECT_EQ(pod("{'metadata':{'labels':{'b':'1'}}}", "{'metadata':{'labels':{'a':'1','b':'1'}}}"),
            ".metadata.labels.a");
}

TEST(Compare, EmptyMapsAreLeaves) {
  EXPECT_EQ(pod("{'spec':{}}", "{'spec':{'securityContext':{}}}"), ".spec.securityContext");
}

TEST(Compare, WhatGoAlwaysWritesIsThereAlready) {
  // A pod's spec and status are structs, its containers a list that is written as null.
  EXPECT_EQ(pod("null", "{'spec':{'containers':[{'name':'c'}]},'status':{}}"),
            ".spec.containers[name=\"c\"] .spec.containers[name=\"c\"].name "
            ".spec.containers[name=\"c\"].resources");
}

TEST(Compare, AbsentAndZeroAreTheSameWhereGoWritesIt) {
  EXPECT_EQ(pod("{'status':{'conditions':[{'type':'A','status':'True'}]}}",
                "{'status':{'conditions':[{'type':'A','status':'True','lastProbeTime':null}]}}"),
            "");
}

TEST(Compare, ListItemsAreFoundByTheirKeys) {
  EXPECT_EQ(pod("{'spec':{'containers':[{'name':'a','image':'1'},{'name':'b'}]}}",
                "{'spec':{'containers':[{'name':'b','image':'2'},{'name':'a','image':'1'}]}}"),
            ".spec.containers[name=\"b\"].image");
}

TEST(Compare, KeysHaveDefaults) {
  EXPECT_EQ(pod("{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80}]}]}}",
                "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':80,'name':'x'}]}]}}"),
            ".spec.containers[name=\"a\"].ports[containerPort=80,protocol=\"TCP\"].name");
}

TEST(Compare, SetsHaveTheirValuesAsPaths) {
  EXPECT_EQ(
      pod("{'metadata':{'finalizers':['a/b','c/d']}}", "{'metadata':{'finalizers':['c/d','e/f']}}"),
      ".metadata.finalizers[=\"e/f\"] - .metadata.finalizers[=\"a/b\"]");
}

TEST(Compare, AtomicListsAndStructsAreOneValue) {
  EXPECT_EQ(pod("{'spec':{'tolerations':[{'key':'a'}]}}",
                "{'spec':{'tolerations':[{'key':'a'},{'key':'b'}]}}"),
            ".spec.tolerations");
  EXPECT_EQ(pod("{'spec':{'nodeSelector':{'a':'1'}}}", "{'spec':{'nodeSelector':{'b':'1'}}}"),
            ".spec.nodeSelector");
}

TEST(Compare, ItemsWithOneKeyAreOneValueTogether) {
  EXPECT_EQ(pod("{'spec':{'containers':[{'name':'a','env':[{'name':'X'},{'name':'X'}]}]}}",
                "{'spec':{'containers':[{'name':'a','env':[{'name':'X'},{'name':'X','value':'1'}]}"
                "]}}"),
            ".spec.containers[name=\"a\"].env[name=\"X\"]");
  EXPECT_EQ(pod("{'spec':{'containers':[{'name':'a','env':[{'name':'X'}]}]}}",
                "{'spec':{'containers':[{'name':'a','env':[{'name':'X'},{'name':'X'}]}]}}"),
            ".spec.containers[name=\"a\"].env[name=\"X\"] - "
            ".spec.containers[name=\"a\"].env[name=\"X\"] "
            ".spec.containers[name=\"a\"].env[name=\"X\"].name");
}

TEST(Compare, CustomRootHasNothingAtFirst) {
  EXPECT_EQ(custom("{'type':'object','properties':{'spec':{'type':'object','properties':"
                   "{'size':{'type':'integer'}}}}}",
                   "null", "{'spec':{'size':1}}"),
            ".spec .spec.size");
}

TEST(Compare, CustomListsByTheirSchema) {
  constexpr std::string_view kSchema =
      "{'type':'object','properties':{'l':{'type':'array','x-kubernetes-list-type':'map',"
      "'x-kubernetes-list-map-keys':['k'],'items':{'type':'object','properties':"
      "{'k':{'type':'string','default':'d'},'v':{'type':'integer'}}}},"
      "'s':{'type':'array','x-kubernetes-list-type':'set','items':{'type':'integer'}},"
      "'a':{'type':'array','items':{'type':'integer'}}}}";
  EXPECT_EQ(custom(kSchema, "{'l':[{'v':1}],'s':[1],'a':[1]}", "{'l':[{'v':2}],'s':[2],'a':[2]}"),
            ".a .l[k=\"d\"].v .s[=2] - .s[=1]");
}

TEST(Compare, WithoutASchemaMapsMergeAndListsDoNot) {
  const TypeView deduced = TypeView::of({});
  EXPECT_EQ(
      differences(compare(json("{'a':{'b':1,'c':[1]}}"), json("{'a':{'b':2,'c':[2]}}"), deduced)),
      ".a.b .a.c");
}

TEST(Compare, NumbersAreComparedByValue) {
  const TypeView deduced = TypeView::of({});
  EXPECT_EQ(differences(compare(json("{'a':1}"), json("{'a':1.0}"), deduced)), "");
  EXPECT_EQ(differences(compare(json("{'a':1}"), json("{'a':1.5}"), deduced)), ".a");
}

// --- types

std::string problem(const char* type, std::string_view value) {
  return type_problem(json(value), TypeView::of({.builtin = &schema::get(type)}));
}

TEST(TypeProblem, AGoodIntentHasNone) {
  EXPECT_EQ(problem("core.v1.Pod",
                    "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p'},'spec':{'containers':"
                    "[{'name':'c','resources':{'limits':{'cpu':1,'memory':'1Gi'}},'ports':"
                    "[{'containerPort':80}]}],'nodeName':null}}"),
            "");
}

TEST(TypeProblem, UnknownMembersAndWrongTypes) {
  EXPECT_EQ(problem("core.v1.ConfigMap", "{'foo':1}"), ".foo: field not declared in schema");
  EXPECT_EQ(problem("core.v1.ConfigMap", "{'data':{'x':1}}"),
            ".data.x: expected string, got int64");
  EXPECT_EQ(problem("core.v1.ConfigMap", "{'data':[]}"), ".data: expected map, got []interface {}");
  EXPECT_EQ(problem("core.v1.Pod", "{'spec':{'containers':{}}}"),
            ".spec.containers: expected list, got map[string]interface {}");
}

TEST(TypeProblem, ItemsWithTheSameKey) {
  EXPECT_EQ(problem("core.v1.Pod", "{'spec':{'containers':[{'name':'c'},{'name':'c'}]}}"),
            ".spec.containers: duplicate entries for key [name=\"c\"]");
  EXPECT_EQ(problem("core.v1.Pod", "{'metadata':{'finalizers':['a','a']}}"),
            ".metadata.finalizers: duplicate entries for key [=\"a\"]");
}

TEST(TypeProblem, AMissingKeyCountsAsItsDefault) {
  EXPECT_EQ(problem("core.v1.Pod", "{'spec':{'containers':[{'image':'i'}]}}"), "");
  EXPECT_EQ(problem("core.v1.Pod", "{'spec':{'containers':[null]}}"),
            ".spec.containers: element 0: associative list with keys may not have a null element");
}

TEST(NamedFields, LeavesItemsAndWhatIsEmpty) {
  const Doc intent = json(
      "{'metadata':{'labels':{'a':'1'},'annotations':{},'finalizers':['x/y']},'spec':"
      "{'containers':[{'name':'c','args':['x']}],'tolerations':[],'nodeName':null}}");
  EXPECT_EQ(paths_of(named_fields(intent, TypeView::of({.builtin = &schema::get("core.v1.Pod")}))),
            ".metadata.annotations .metadata.finalizers[=\"x/y\"] .metadata.labels.a "
            ".spec.nodeName .spec.tolerations .spec.containers[name=\"c\"] "
            ".spec.containers[name=\"c\"].args .spec.containers[name=\"c\"].name");
}

std::string merged(std::string_view live, std::string_view intent) {
  return text(merge_values(json(live), json(intent),
                           TypeView::of({.builtin = &schema::get("core.v1.Pod")})));
}

// Lists of finalizers: the shortest way to speak of order.
std::string merged_set(std::string_view live, std::string_view intent) {
  const auto whole = [](std::string_view items) {
    return "{'metadata':{'finalizers':" + std::string(items) + "}}";
  };
  return merged(whole(live), whole(intent)).substr(26);
}

TEST(MergeValues, TheIntentWins) {
  EXPECT_EQ(merged("{'spec':{'nodeName':'a','hostname':'h'}}", "{'spec':{'nodeName':'b'}}"),
            "{'spec':{'nodeName':'b','hostname':'h'}}");
}

TEST(MergeValues, ListsKeepTheLiveOrder) {
  EXPECT_EQ(merged_set("['a','b']", "['c']"), "['a','b','c']}}");
  EXPECT_EQ(merged_set("['a','b','c']", "['c','d']"), "['a','b','c','d']}}");
  EXPECT_EQ(merged_set("['a','b']", "['c','b']"), "['a','c','b']}}");
}

TEST(MergeValues, TheIntentsOrderWins) {
  EXPECT_EQ(merged_set("['a','b']", "['b','a']"), "['b','a']}}");
  EXPECT_EQ(merged_set("['a','x','b']", "['b','a']"), "['x','b','a']}}");
}

TEST(MergeValues, NullsDoNotRemoveMaps) {
  EXPECT_EQ(merged("{'metadata':{'labels':{'a':'1'}}}", "{'metadata':{'labels':null}}"),
            "{'metadata':{'labels':{'a':'1'}}}");
}

}  // namespace
}  // namespace jogak::patch
