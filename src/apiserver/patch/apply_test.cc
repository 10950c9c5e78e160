// SPDX-License-Identifier: Apache-2.0
//
// Server-side apply: what comes out, who owns it, and what is refused.
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "apiserver/patch/managed_fields.h"
#include "apiserver/patch/testing/json.h"

namespace jogak::patch {
namespace {

constexpr TimeUs kStart = 1'767'225'600 * kSecondInUs;

// A config map and those who apply it, a second apart.
class ConfigMap {
 public:
  // Data as "x:1 y:2". Returns the data of the result, or the refusal.
  std::string apply_data(std::string_view manager, std::string_view data, bool is_forced = false) {
    Doc intent = json("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a'}}");
    intent.set("data", json(data));
    return apply_intent(manager, std::move(intent), is_forced);
  }

  std::string apply_intent(std::string_view manager, Doc intent, bool is_forced = false) {
    now_ += kSecondInUs;
    const auto result = patch::apply(live_, std::move(intent), writer(manager), is_forced, kType);
    if (!result) {
      return std::to_string(result.error().code) + " " + result.error().message;
    }
    live_ = *result;
    live_.at("metadata").set("uid", "u");
    return text(live_["data"]);
  }

  void update(std::string_view manager, std::string_view key, std::string_view value) {
    now_ += kSecondInUs;
    Doc object = live_;
    object.at("data").set(key, value);
    track_update(live_, object, writer(manager), kType);
    live_ = std::move(object);
  }

  std::string managers() const {
    std::string out;
    for (const Doc& manager : live_["metadata"]["managedFields"].items()) {
      const std::string& time = manager["time"].as_string();
      out += manager["manager"].as_string() + " " + manager["operation"].as_string() +
             (time.empty() ? " - " : " " + time.substr(17, 2) + " ") + text(manager["fieldsV1"]) +
             "\n";
    }
    return out;
  }

  Doc& live() { return live_; }

 private:
  Writer writer(std::string_view manager) const {
    return {.manager = std::string(manager), .api_version = "v1", .subresource = "", .now = now_};
  }

  static const ObjectType kType;
  Doc live_;
  TimeUs now_ = kStart;
};
const ObjectType ConfigMap::kType = {.builtin = &schema::get("core.v1.ConfigMap")};

TEST(Apply, CreatesWhatIsNotThere) {
  ConfigMap map;
  EXPECT_EQ(map.apply_data("one", "{'x':'1'}"), "{'x':'1'}");
  EXPECT_EQ(map.managers(), "one Apply 01 {'f:data':{'f:x':{}}}\n");
}

TEST(Apply, TwiceChangesNothing) {
  ConfigMap map;
  map.apply_data("one", "{'x':'1'}");
  const Doc first = map.live();
  map.apply_data("one", "{'x':'1'}");
  EXPECT_EQ(map.live(), first);
}

TEST(Apply, WhatIsNamedNoMoreGoes) {
  ConfigMap map;
  map.apply_data("one", "{'x':'1','y':'1'}");
  EXPECT_EQ(map.apply_data("one", "{'x':'1'}"), "{'x':'1'}");
  EXPECT_EQ(map.managers(), "one Apply 02 {'f:data':{'f:x':{}}}\n");
}

TEST(Apply, WhatOthersOwnTooStays) {
  ConfigMap map;
  map.apply_data("one", "{'x':'1','y':'1'}");
  map.apply_data("two", "{'y':'1'}");
  EXPECT_EQ(map.apply_data("one", "{'x':'1'}"), "{'x':'1','y':'1'}");
}

TEST(Apply, AnotherValueIsAConflict) {
  ConfigMap map;
  map.apply_data("one", "{'x':'1'}");
  EXPECT_EQ(map.apply_data("two", "{'x':'2'}"),
            "409 Apply failed with 1 conflict: conflict with \"one\": .data.x");
  EXPECT_EQ(map.apply_data("two", "{'x':'2'}", true), "{'x':'2'}");
  EXPECT_EQ(map.managers(), "two Apply 03 {'f:data':{'f:x':{}}}\n");
}

TEST(Apply, TheSameValueIsShared) {
  ConfigMap map;
  map.apply_data("one", "{'x':'1'}");
  EXPECT_EQ(map.apply_data("two", "{'x':'1'}"), "{'x':'1'}");
  EXPECT_EQ(map.managers(),
            "two Apply - {'f:data':{'f:x':{}}}\none Apply 01 {'f:data':{'f:x':{}}}\n");
}

TEST(Apply, ConflictsAreListedByManager) {
  ConfigMap map;
  map.apply_data("one", "{'x':'1','y':'1'}");
  map.update("two", "z", "1");
  EXPECT_EQ(map.apply_data("three", "{'x':'2','y':'2','z':'2'}"),
            "409 Apply failed with 3 conflicts: conflicts with \"one\":\n- .data.x\n- .data.y\n"
            "conflicts with \"two\" using v1:\n- .data.z");
}

TEST(Apply, AnUpdateTakesFieldsAway) {
  ConfigMap map;
  map.apply_data("one", "{'x':'1'}");
  map.update("two", "x", "2");
  EXPECT_EQ(map.managers(), "two Update 02 {'f:data':{'f:x':{}}}\n");
}

TEST(Apply, UntrackedObjectsBelongToWhoCameBefore) {
  ConfigMap map;
  map.live() = json(
      "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','uid':'u'},"
      "'data':{'x':'1'}}");
  EXPECT_EQ(map.apply_data("one", "{'x':'2'}"),
            "409 Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: "
            ".data.x");
  EXPECT_EQ(map.apply_data("one", "{'y':'1'}"), "{'x':'1','y':'1'}");
  EXPECT_EQ(map.managers(),
            "one Apply 02 {'f:data':{'f:y':{}}}\n"
            "before-first-apply Update 02 {'f:data':{'.':{},'f:x':{}}}\n");
}

TEST(Apply, AnEmptyMapIsOwnedAsSuch) {
  ConfigMap map;
  map.apply_data("one", "{'x':'1'}");
  EXPECT_EQ(map.apply_data("one", "{}"), "null");
  EXPECT_EQ(map.managers(), "one Apply 02 {'f:data':{}}\n");
}

TEST(Apply, AnApplierOfNothingIsForgotten) {
  ConfigMap map;
  map.apply_data("one", "{'x':'1'}");
  map.apply_data("two", "{'y':'1'}");
  map.apply_intent("two", json("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a'}}"));
  EXPECT_EQ(map.managers(), "one Apply 01 {'f:data':{'f:x':{}}}\n");
}

TEST(Apply, TheIntentMustBeOfTheType) {
  ConfigMap map;
  EXPECT_EQ(map.apply_intent("one", json("{'data':{}}")), "400 invalid object type: /, Kind=");
  EXPECT_EQ(map.apply_intent("one", json("{'apiVersion':'v1','kind':'Secret'}")),
            "400 invalid object type: /v1, Kind=Secret");
  EXPECT_EQ(map.apply_intent("one", json("{'apiVersion':'apps/v1','kind':'ConfigMap'}")),
            "400 invalid object type: apps/v1, Kind=ConfigMap");
}

TEST(Apply, TheIntentMustNotHaveManagers) {
  ConfigMap map;
  EXPECT_EQ(map.apply_intent("one", json("{'apiVersion':'v1','kind':'ConfigMap','metadata':"
                                         "{'managedFields':[]}}")),
            "400 metadata.managedFields must be nil");
}

TEST(Apply, WhatDoesNotFitIsAGoError) {
  ConfigMap map;
  const auto refusal = [&](std::string_view data) {
    Doc intent = json("{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a'}}");
    intent.set("data", json(data));
    return map.apply_intent("one", std::move(intent));
  };
  EXPECT_EQ(refusal("{'x':1}"),
            "500 failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data.x: expected "
            "string, got int64");
}

// kubectl apply without and with --server-side.
constexpr std::string_view kAnnotation = "kubectl.kubernetes.io/last-applied-configuration";

ConfigMap client_side_applied(std::string_view last_applied) {
  ConfigMap map;
  Doc live = json(
      "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','uid':'u','annotations':{},"
      "'managedFields':[{'manager':'kubectl-client-side-apply','operation':'Update','apiVersion':"
      "'v1','fieldsType':'FieldsV1','fieldsV1':{'f:data':{'.':{},'f:x':{},'f:y':{}}}}]},"
      "'data':{'x':'1','y':'1'}}");
  live.at("metadata", "annotations").set(kAnnotation, json(last_applied).json());
  map.live() = std::move(live);
  return map;
}

TEST(Apply, KubectlOwnsWhatItLastAppliedOnTheClientSide) {
  constexpr std::string_view kLast =
      "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a'},'data':{'x':'1'}}";
  ConfigMap map = client_side_applied(kLast);
  EXPECT_EQ(map.apply_data("kubectl", "{'x':'2'}"), "{'x':'2','y':'1'}");
  ConfigMap other = client_side_applied(kLast);
  EXPECT_TRUE(other.apply_data("other", "{'x':'2'}").starts_with("409"));
}

TEST(Apply, KubectlDoesNotOwnWhatOthersChangedSince) {
  ConfigMap map = client_side_applied(
      "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a'},'data':{'x':'0'}}");
  EXPECT_TRUE(map.apply_data("kubectl", "{'x':'2'}").starts_with("409"));
}

TEST(Apply, KubectlKeepsTheAnnotationUpToDate) {
  ConfigMap map = client_side_applied(
      "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a'},'data':{'x':'1'}}");
  map.apply_data("kubectl", "{'x':'<'}");
  EXPECT_EQ(map.live()["metadata"]["annotations"][kAnnotation].as_string(),
            "{\"apiVersion\":\"v1\",\"data\":{\"x\":\"\\u003c\"},\"kind\":\"ConfigMap\","
            "\"metadata\":{\"name\":\"a\"}}\n");
}

TEST(Apply, StatusHasItsOwnDoor) {
  const ObjectType type = {.builtin = &schema::get("core.v1.Pod")};
  const Doc live = json("{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','uid':'u'}}");
  const Doc intent = json(
      "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p','labels':{'a':'1'}},'spec':"
      "{'nodeName':'n'},'status':{'conditions':[{'type':'X','status':'True'}]}}");
  const auto result = patch::apply(live, intent,
                                   {.manager = "m",
                                    .api_version = "v1",
                                    .subresource = "status",
                                    .has_status = true,
                                    .now = kStart},
                                   false, type);
  ASSERT_TRUE(result.has_value());
  const Doc& manager = (*result)["metadata"]["managedFields"].items().front();
  EXPECT_EQ(manager["subresource"].as_string(), "status");
  EXPECT_TRUE(manager["fieldsV1"].has("f:status"));
  EXPECT_TRUE(manager["fieldsV1"].has("f:metadata"));
  EXPECT_FALSE(manager["fieldsV1"].has("f:spec"));
}

}  // namespace
}  // namespace jogak::patch
