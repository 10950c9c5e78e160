// SPDX-License-Identifier: Apache-2.0
//
// Strategic merge patch: each directive, the order of lists, and what is refused.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "apiserver/patch/patch.h"
#include "apiserver/patch/testing/json.h"

namespace jogak::patch {
namespace {

std::string patched(const char* type, std::string_view object, std::string_view patch) {
  const auto result = strategic_merge_patch(json(object), json(patch), schema::get(type));
  if (result) return text(*result);
  return std::to_string(result.error().code) + " " + result.error().reason;
}

// On a pod's spec.
std::string spec(std::string_view object, std::string_view patch) {
  return patched("core.v1.PodSpec", object, patch);
}
// On an object's metadata.
std::string meta(std::string_view object, std::string_view patch) {
  return patched("meta.v1.ObjectMeta", object, patch);
}
// On containers, given by their names: "c e" patched with "$patch..." texts.
std::string containers(std::string_view live, std::string_view patch) {
  const std::string result = spec("{'containers':" + std::string(live) + "}", patch);
  return result;
}

TEST(StrategicPatch, MapsMergeAndNullRemoves) {
  EXPECT_EQ(meta("{'labels':{'a':'1','b':'2'}}", "{'labels':{'a':null,'c':'3'}}"),
            "{'labels':{'b':'2','c':'3'}}");
}

TEST(StrategicPatch, ListsMergeByKey) {
  EXPECT_EQ(
      containers("[{'name':'c','image':'i:1'}]", "{'containers':[{'name':'c','image':'i:2'}]}"),
      "{'containers':[{'name':'c','image':'i:2'}]}");
}

TEST(StrategicPatch, NewItemsComeBeforeTheLiveOnes) {
  EXPECT_EQ(containers("[{'name':'c'}]", "{'containers':[{'name':'d'}]}"),
            "{'containers':[{'name':'d'},{'name':'c'}]}");
}

TEST(StrategicPatch, SharedItemsHoldTheLiveOrderTogether) {
  EXPECT_EQ(containers("[{'name':'a'},{'name':'b'},{'name':'c'}]",
                       "{'containers':[{'name':'c'},{'name':'d'}]}"),
            "{'containers':[{'name':'a'},{'name':'b'},{'name':'c'},{'name':'d'}]}");
}

TEST(StrategicPatch, PrimitiveListsMergeAsSets) {
  EXPECT_EQ(meta("{'finalizers':['a/b']}", "{'finalizers':['d/e']}"),
            "{'finalizers':['d/e','a/b']}");
  EXPECT_EQ(meta("{'finalizers':['a/b','c/d']}", "{'finalizers':['c/d']}"),
            "{'finalizers':['a/b','c/d']}");
}

TEST(StrategicPatch, ListsWithoutAKeyAreReplaced) {
  EXPECT_EQ(spec("{'tolerations':[{'key':'a'}]}", "{'tolerations':[{'key':'b'}]}"),
            "{'tolerations':[{'key':'b'}]}");
}

TEST(StrategicPatch, DeletesAnItem) {
  EXPECT_EQ(
      containers("[{'name':'a'},{'name':'b'}]", "{'containers':[{'name':'a','$patch':'delete'}]}"),
      "{'containers':[{'name':'b'}]}");
}

TEST(StrategicPatch, ReplacesAList) {
  EXPECT_EQ(containers("[{'name':'a'},{'name':'b'}]",
                       "{'containers':[{'$patch':'replace'},{'name':'d'}]}"),
            "{'containers':[{'name':'d'}]}");
}

TEST(StrategicPatch, ReplacesAndDeletesAMap) {
  EXPECT_EQ(meta("{'labels':{'a':'1'}}", "{'labels':{'$patch':'replace','b':'2'}}"),
            "{'labels':{'b':'2'}}");
  EXPECT_EQ(meta("{'labels':{'a':'1'}}", "{'labels':{'$patch':'delete'}}"), "{'labels':{}}");
}

TEST(StrategicPatch, DirectivesOfWhatIsNewFallAway) {
  EXPECT_EQ(spec("{}", "{'containers':[{'name':'a'},{'name':'b','$patch':'delete'}]}"),
            "{'containers':[{'name':'a'}]}");
  EXPECT_EQ(meta("{}", "{'labels':{'$patch':'replace','a':'1'}}"), "{}");
}

TEST(StrategicPatch, DeletesFromPrimitiveLists) {
  EXPECT_EQ(meta("{'finalizers':['a/b','c/d','e/f']}",
                 "{'$deleteFromPrimitiveList/finalizers':['a/b','e/f']}"),
            "{'finalizers':['c/d']}");
  EXPECT_EQ(meta("{}", "{'$deleteFromPrimitiveList/finalizers':['a/b']}"), "{}");
  EXPECT_EQ(meta("{}", "{'$deleteFromPrimitiveList':['a/b']}"), "400 BadRequest");
}

TEST(StrategicPatch, SetElementOrderOfObjects) {
  EXPECT_EQ(containers("[{'name':'a'},{'name':'b'}]",
                       "{'$setElementOrder/containers':[{'name':'b'},{'name':'a'}],"
                       "'containers':[{'name':'a','image':'i'}]}"),
            "{'containers':[{'name':'b'},{'name':'a','image':'i'}]}");
}

TEST(StrategicPatch, SetElementOrderAlone) {
  EXPECT_EQ(containers("[{'name':'a'},{'name':'b'},{'name':'c'}]",
                       "{'$setElementOrder/containers':[{'name':'c'},{'name':'a'}]}"),
            "{'containers':[{'name':'b'},{'name':'c'},{'name':'a'}]}");
}

TEST(StrategicPatch, SetElementOrderOfPrimitives) {
  EXPECT_EQ(meta("{'finalizers':['a/b','c/d']}",
                 "{'$setElementOrder/finalizers':['e/f','a/b'],'finalizers':['e/f']}"),
            "{'finalizers':['e/f','a/b','c/d']}");
}

TEST(StrategicPatch, SetElementOrderMustNameThePatchedItemsInOrder) {
  EXPECT_EQ(containers("[{'name':'a'}]",
                       "{'$setElementOrder/containers':[{'name':'a'}],"
                       "'containers':[{'name':'b'}]}"),
            "500 ");
  EXPECT_EQ(containers("[{'name':'a'}]",
                       "{'$setElementOrder/containers':[{'name':'a'},{'name':'b'}],"
                       "'containers':[{'name':'b'},{'name':'a'}]}"),
            "500 ");
}

TEST(StrategicPatch, RetainKeysDropsTheOtherMembers) {
  EXPECT_EQ(patched("apps.v1.DeploymentStrategy",
                    "{'type':'RollingUpdate','rollingUpdate':{'maxSurge':1}}",
                    "{'$retainKeys':['type'],'type':'Recreate'}"),
            "{'type':'Recreate'}");
}

TEST(StrategicPatch, RetainKeysMustNameWhatThePatchSets) {
  EXPECT_EQ(patched("apps.v1.DeploymentStrategy", "{'type':'RollingUpdate'}",
                    "{'$retainKeys':['rollingUpdate'],'type':'Recreate'}"),
            "400 BadRequest");
  EXPECT_EQ(patched("apps.v1.DeploymentStrategy", "{}", "{'$retainKeys':'type'}"),
            "400 BadRequest");
}

TEST(StrategicPatch, AnItemWithoutItsKeyIsAGoError) {
  EXPECT_EQ(containers("[{'name':'a'}]", "{'containers':[{'image':'i'}]}"), "500 ");
  EXPECT_EQ(containers("[{'name':'a'}]", "{'containers':[{'$patch':'delete'}]}"), "500 ");
}

TEST(StrategicPatch, UnknownDirectivesAreGoErrors) {
  EXPECT_EQ(containers("[{'name':'a'}]", "{'containers':[{'name':'a','$patch':'bogus'}]}"), "500 ");
  EXPECT_EQ(containers("[{'name':'a'}]", "{'containers':[{'name':'a','$patch':'merge'}]}"), "500 ");
  EXPECT_EQ(meta("{'labels':{'a':'1'}}", "{'labels':{'$patch':'merge'}}"), "500 ");
}

TEST(StrategicPatch, ItemsOfTwoKindsAreRefused) {
  EXPECT_EQ(meta("{'finalizers':['a/b']}", "{'finalizers':[1]}"), "500 ");
  EXPECT_EQ(meta("{'finalizers':['a/b']}", "{'finalizers':[['x']]}"), "422 Invalid");
}

TEST(StrategicPatch, AnotherKindOfValueReplaces) {
  EXPECT_EQ(meta("{'labels':{'a':'1'}}", "{'labels':'x'}"), "{'labels':'x'}");
  EXPECT_EQ(spec("{'containers':null}", "{'containers':[{'name':'a','image':null}]}"),
            "{'containers':[{'name':'a'}]}");
}

TEST(StrategicPatch, APatchMustBeAnObject) {
  EXPECT_EQ(meta("{}", "[]"), "400 BadRequest");
  EXPECT_EQ(meta("{'name':'a'}", "null"), "{'name':'a'}");
}

TEST(StrategicPatch, ItemsThatThePatchNamesTwiceMergeIntoOne) {
  EXPECT_EQ(containers("[]", "{'containers':[{'name':'a','image':'1'},{'name':'a','tty':true}]}"),
            "{'containers':[{'name':'a','image':'1','tty':true}]}");
}

TEST(StrategicPatch, AReAddedItemStandsWhereTheListHasRoom) {
  EXPECT_EQ(containers("[{'name':'c'},{'name':'d'},{'name':'e'}]",
                       "{'$setElementOrder/containers':[{'name':'c'}],"
                       "'containers':[{'name':'c','image':'i'},{'name':'c','$patch':'delete'}]}"),
            "{'containers':[{'name':'d'},{'name':'e'},{'name':'c','image':'i'}]}");
}

}  // namespace
}  // namespace jogak::patch
