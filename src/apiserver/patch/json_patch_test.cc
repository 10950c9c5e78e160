// SPDX-License-Identifier: Apache-2.0
//
// JSON patch, one rule a test.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "apiserver/patch/patch.h"
#include "apiserver/patch/testing/json.h"

namespace jogak::patch {
namespace {

// The patched object as text, or the code of the refusal.
std::string patched(std::string_view object, std::string_view operations) {
  const auto result = json_patch(json(object), json(operations));
  return result ? text(*result) : std::to_string(result.error().code);
}

TEST(JsonPatch, AddsMembersAndReplacesThem) {
  EXPECT_EQ(patched("{'a':1}", "[{'op':'add','path':'/b','value':2}]"), "{'a':1,'b':2}");
  EXPECT_EQ(patched("{'a':1}", "[{'op':'add','path':'/a','value':[]}]"), "{'a':[]}");
}

TEST(JsonPatch, AddWithoutValueIsNull) {
  EXPECT_EQ(patched("{}", "[{'op':'add','path':'/b'}]"), "{'b':null}");
}

TEST(JsonPatch, AddsItemsByIndexAndAtTheEnd) {
  EXPECT_EQ(patched("{'a':[1,3]}", "[{'op':'add','path':'/a/1','value':2}]"), "{'a':[1,2,3]}");
  EXPECT_EQ(patched("{'a':[1]}", "[{'op':'add','path':'/a/-','value':2}]"), "{'a':[1,2]}");
  EXPECT_EQ(patched("{'a':[1]}", "[{'op':'add','path':'/a/1','value':2}]"), "{'a':[1,2]}");
  EXPECT_EQ(patched("{'a':[1]}", "[{'op':'add','path':'/a/2','value':2}]"), "422");
}

TEST(JsonPatch, NegativeIndexesCountFromTheEnd) {
  EXPECT_EQ(patched("{'a':[1,2,3]}", "[{'op':'remove','path':'/a/-1'}]"), "{'a':[1,2]}");
  EXPECT_EQ(patched("{'a':[1,2]}", "[{'op':'add','path':'/a/-1','value':3}]"), "{'a':[1,2,3]}");
  EXPECT_EQ(patched("{'a':[1,2]}", "[{'op':'replace','path':'/a/-2','value':0}]"), "{'a':[0,2]}");
  EXPECT_EQ(patched("{'a':[1,2]}", "[{'op':'remove','path':'/a/-3'}]"), "422");
}

TEST(JsonPatch, IndexesAreReadAsGoReadsNumbers) {
  EXPECT_EQ(patched("{'a':[1,2]}", "[{'op':'remove','path':'/a/01'}]"), "{'a':[1]}");
  EXPECT_EQ(patched("{'a':[1,2]}", "[{'op':'remove','path':'/a/+1'}]"), "{'a':[1]}");
  EXPECT_EQ(patched("{'a':[1,2]}", "[{'op':'remove','path':'/a/+-1'}]"), "422");
  EXPECT_EQ(patched("{'a':[1,2]}", "[{'op':'remove','path':'/a/1e0'}]"), "422");
  EXPECT_EQ(patched("{'a':[1,2]}", "[{'op':'remove','path':'/a/'}]"), "422");
  EXPECT_EQ(patched("{'a':[1,2]}", "[{'op':'remove','path':'/a/99999999999999999999'}]"), "422");
}

TEST(JsonPatch, EscapesInPaths) {
  EXPECT_EQ(patched("{'x/y':{'m~n':1}}", "[{'op':'remove','path':'/x~1y/m~0n'}]"), "{'x/y':{}}");
  EXPECT_EQ(patched("{}", "[{'op':'add','path':'/~01','value':1}]"), "{'~1':1}");
  EXPECT_EQ(patched("{}", "[{'op':'add','path':'/a~2','value':1}]"), "{'a~2':1}");
  EXPECT_EQ(patched("{}", "[{'op':'add','path':'/','value':1}]"), "{'':1}");
}

TEST(JsonPatch, RemoveNeedsTheMember) {
  EXPECT_EQ(patched("{'a':1}", "[{'op':'remove','path':'/b'}]"), "422");
  EXPECT_EQ(patched("{'a':1}", "[{'op':'remove','path':''}]"), "422");
}

TEST(JsonPatch, ReplaceOfAnAbsentMemberAddsIt) {
  EXPECT_EQ(patched("{'a':1}", "[{'op':'replace','path':'/b','value':2}]"), "{'a':1,'b':2}");
  EXPECT_EQ(patched("{'a':[]}", "[{'op':'replace','path':'/a/0','value':2}]"), "422");
}

TEST(JsonPatch, ReplaceOfTheWhole) {
  EXPECT_EQ(patched("{'a':1}", "[{'op':'replace','path':'','value':{'b':2}}]"), "{'b':2}");
  EXPECT_EQ(patched("{'a':1}", "[{'op':'replace','path':'','value':2}]"), "422");
}

TEST(JsonPatch, TestComparesValues) {
  EXPECT_EQ(patched("{'a':{'b':[1]}}", "[{'op':'test','path':'/a','value':{'b':[1]}}]"),
            "{'a':{'b':[1]}}");
  EXPECT_EQ(patched("{'a':1}", "[{'op':'test','path':'/a','value':'1'}]"), "422");
  EXPECT_EQ(patched("{'a':1}", "[{'op':'test','path':'','value':{'a':1}}]"), "{'a':1}");
  EXPECT_EQ(patched("{'a':1}", "[{'op':'test','path':'/b/c','value':1}]"), "422");
}

TEST(JsonPatch, AbsentIsNullForTest) {
  EXPECT_EQ(patched("{}", "[{'op':'test','path':'/a','value':null}]"), "{}");
  EXPECT_EQ(patched("{}", "[{'op':'test','path':'/a'}]"), "{}");
  EXPECT_EQ(patched("{'a':1}", "[{'op':'test','path':'/a'}]"), "422");
}

TEST(JsonPatch, MoveAndCopy) {
  EXPECT_EQ(patched("{'a':1}", "[{'op':'move','from':'/a','path':'/b'}]"), "{'b':1}");
  EXPECT_EQ(patched("{'a':{}}", "[{'op':'move','from':'/a','path':'/a/b'}]"), "422");
  EXPECT_EQ(patched("{'a':[1,2]}", "[{'op':'move','from':'/a/0','path':'/a/1'}]"), "{'a':[2,1]}");
  EXPECT_EQ(patched("{'a':{'b':1}}", "[{'op':'copy','from':'/a','path':'/a/c'}]"),
            "{'a':{'b':1,'c':{'b':1}}}");
  EXPECT_EQ(patched("{}", "[{'op':'copy','from':'/a','path':'/b'}]"), "{'b':null}");
  EXPECT_EQ(patched("{'a':1}", "[{'op':'copy','path':'/b'}]"), "422");
}

TEST(JsonPatch, PathsThroughScalarsLeadNowhere) {
  EXPECT_EQ(patched("{'a':'x'}", "[{'op':'add','path':'/a/b','value':1}]"), "422");
  EXPECT_EQ(patched("{'a':null}", "[{'op':'add','path':'/a/b','value':1}]"), "422");
}

TEST(JsonPatch, UnknownOperationsAreRefusedLikeBadPaths) {
  EXPECT_EQ(patched("{}", "[{'op':'foo','path':'/a'}]"), "422");
  EXPECT_EQ(patched("{}", "[{'path':'/a','value':1}]"), "422");
  EXPECT_EQ(patched("{}", "[{'op':'add','value':1}]"), "422");
  EXPECT_EQ(patched("{}", "[null]"), "422");
}

TEST(JsonPatch, MustBeAListOfOperations) {
  EXPECT_EQ(patched("{}", "{'op':'add'}"), "400");
  EXPECT_EQ(patched("{}", "[1]"), "400");
  EXPECT_EQ(patched("{}", "[{'op':1,'path':'/a'}]"), "400");
  EXPECT_EQ(patched("{'a':1}", "[]"), "{'a':1}");
}

TEST(JsonPatch, RefusalsOfOperationsHaveNoCauses) {
  const auto result = json_patch(json("{}"), json("[{'op':'remove','path':'/a'}]"));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(text(api::status_of(result.error())),
            "{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Failure','message':'the "
            "server rejected our request due to an error in our request','reason':'Invalid',"
            "'details':{},'code':422}");
}

TEST(JsonPatch, TenThousandOperationsAndNotOneMore) {
  Doc patch = Doc::array();
  for (int i = 0; i < 10'000; ++i) patch.push(json("{'op':'add','path':'/a','value':1}"));
  EXPECT_TRUE(json_patch(json("{}"), patch).has_value());
  patch.push(json("{'op':'add','path':'/a','value':1}"));
  const auto result = json_patch(json("{}"), patch);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, 413);
  EXPECT_EQ(result.error().reason, "RequestEntityTooLarge");
}

TEST(JsonPatch, CopiesOfCopiesEndSomewhere) {
  Doc patch = Doc::array();
  for (int i = 0; i < 60; ++i) patch.push(json("{'op':'copy','from':'/a','path':'/a/-'}"));
  const auto result = json_patch(json("{'a':[1]}"), patch);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, 422);
}

}  // namespace
}  // namespace jogak::patch
