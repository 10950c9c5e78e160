// SPDX-License-Identifier: Apache-2.0
//
// JSON merge patch.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "apiserver/patch/patch.h"
#include "apiserver/patch/testing/json.h"

namespace jogak::patch {
namespace {

std::string merged(std::string_view object, std::string_view patch) {
  const auto result = merge_patch(json(object), json(patch));
  return result ? text(*result) : std::to_string(result.error().code);
}

TEST(MergePatch, ObjectsMerge) {
  EXPECT_EQ(merged("{'a':{'b':1,'c':2}}", "{'a':{'b':3},'d':4}"), "{'a':{'b':3,'c':2},'d':4}");
}

TEST(MergePatch, NullRemoves) {
  EXPECT_EQ(merged("{'a':1,'b':2}", "{'a':null,'c':null}"), "{'b':2}");
}

TEST(MergePatch, ListsAreReplacedAsAWhole) {
  EXPECT_EQ(merged("{'a':[1,2]}", "{'a':[3]}"), "{'a':[3]}");
}

TEST(MergePatch, NewObjectsLoseTheirNulls) {
  EXPECT_EQ(merged("{}", "{'a':{'b':null,'c':{'d':null}}}"), "{'a':{'c':{}}}");
  EXPECT_EQ(merged("{'a':1}", "{'a':{'b':null}}"), "{'a':{}}");
}

TEST(MergePatch, ListsKeepTheirNullsButTheObjectsInThemDoNot) {
  EXPECT_EQ(merged("{'a':[1]}", "{'a':[null,{'b':null}]}"), "{'a':[null,{}]}");
}

TEST(MergePatch, AListInPlaceOfAnObjectIsTakenAsItIs) {
  EXPECT_EQ(merged("{'a':{}}", "{'a':[{'b':null}]}"), "{'a':[{'b':null}]}");
}

TEST(MergePatch, ANullMemberIsLikeAnAbsentOne) {
  EXPECT_EQ(merged("{'a':null}", "{'a':{'b':null,'c':1}}"), "{'a':{'c':1}}");
}

TEST(MergePatch, OnlyObjectsPatch) {
  EXPECT_EQ(merged("{}", "[]"), "400");
  EXPECT_EQ(merged("{}", "'x'"), "400");
  EXPECT_EQ(merged("{}", "null"), "400");
}

}  // namespace
}  // namespace jogak::patch
