// SPDX-License-Identifier: Apache-2.0
//
// managedFields over creates and updates.
#include <algorithm>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "apiserver/patch/managed_fields.h"
#include "apiserver/patch/testing/json.h"

namespace jogak::patch {
namespace {

constexpr TimeUs kStart = 1'767'225'600 * kSecondInUs;  // 2026-01-01T00:00:00Z

// An object through its writes, a second apart.
class Story {
 public:
  explicit Story(const char* type, std::string_view object = "{}") : type_(schema::get(type)) {
    next_ = json(object);
  }

  Doc& next() { return next_; }
  // `next` is written.
  Story& write(std::string_view manager, std::string_view subresource = "") {
    Doc object = next_;
    now_ += kSecondInUs;
    track_update(now_object_, object,
                 {.manager = std::string(manager),
                  .api_version = "v1",
                  .subresource = std::string(subresource),
                  .has_status = type_.find("status") != nullptr,
                  .now = now_},
                 {.builtin = &type_});
    object.at("metadata").set("uid", "u");
    now_object_ = object;
    next_ = std::move(object);
    return *this;
  }

  // "a:Update=.data.x(12s)" would be too terse: name, door, seconds and set of every manager.
  std::string managers() const {
    std::string out;
    for (const Doc& manager : now_object_["metadata"]["managedFields"].items()) {
      out += manager["manager"].as_string();
      const std::string& door = manager["subresource"].as_string();
      if (!door.empty()) out += "/" + door;
      const std::string& time = manager["time"].as_string();
      out += time.empty() ? " -" : " " + time.substr(17, 2);
      out += " " + text(manager["fieldsV1"]) + "\n";
    }
    return out;
  }
  const Doc& object() const { return now_object_; }

 private:
  const schema::Struct& type_;
  Doc now_object_;
  Doc next_;
  TimeUs now_ = kStart;
};

TEST(TrackUpdate, ACreateOwnsWhatItSends) {
  Story map("core.v1.ConfigMap", "{'metadata':{'name':'a','labels':{'l':'1'}},'data':{'x':'1'}}");
  map.write("one");
  EXPECT_EQ(map.managers(),
            "one 01 {'f:data':{'.':{},'f:x':{}},'f:metadata':{'f:labels':{'.':{},'f:l':{}}}}\n");
}

TEST(TrackUpdate, TheEntryHasTheOrderOfTheWire) {
  Story map("core.v1.ConfigMap", "{'data':{'x':'1'}}");
  map.write("one", "status");
  EXPECT_EQ(text(map.object()["metadata"]["managedFields"]),
            "[{'manager':'one','operation':'Update','apiVersion':'v1','time':"
            "'2026-01-01T00:00:01Z','fieldsType':'FieldsV1','fieldsV1':{'f:data':{'.':{},"
            "'f:x':{}}},'subresource':'status'}]");
}

TEST(TrackUpdate, AnUpdateTakesWhatItChanges) {
  Story map("core.v1.ConfigMap", "{'data':{'x':'1','y':'1'}}");
  map.write("one");
  map.next().at("data").set("x", "2").set("z", "1");
  map.write("two");
  EXPECT_EQ(map.managers(),
            "one 01 {'f:data':{'.':{},'f:y':{}}}\ntwo 02 {'f:data':{'f:x':{},'f:z':{}}}\n");
}

TEST(TrackUpdate, WhatIsRemovedIsNobodys) {
  Story map("core.v1.ConfigMap", "{'data':{'x':'1','y':'1'}}");
  map.write("one");
  map.next().at("data").erase("x");
  map.write("two");
  EXPECT_EQ(map.managers(), "one 01 {'f:data':{'.':{},'f:y':{}}}\n");
}

TEST(TrackUpdate, AManagerWithoutFieldsGoes) {
  Story map("core.v1.ConfigMap", "{'data':{'x':'1'}}");
  map.write("one");
  map.next().erase("data");
  map.write("two");
  EXPECT_FALSE(map.object()["metadata"].has("managedFields"));
}

TEST(TrackUpdate, AChangeOfNothingKeepsTheTime) {
  Story map("core.v1.ConfigMap", "{'data':{'x':'1'}}");
  map.write("one").write("one");
  EXPECT_EQ(map.managers(), "one 01 {'f:data':{'.':{},'f:x':{}}}\n");
}

TEST(TrackUpdate, TheSameManagerHasOneEntry) {
  Story map("core.v1.ConfigMap", "{'data':{'x':'1'}}");
  map.write("one");
  map.next().at("data").set("y", "1");
  map.write("one");
  EXPECT_EQ(map.managers(), "one 02 {'f:data':{'.':{},'f:x':{},'f:y':{}}}\n");
}

TEST(TrackUpdate, AnotherDoorIsAnotherManager) {
  Story pod("core.v1.Pod", "{'metadata':{'labels':{'a':'1'}}}");
  pod.write("one");
  pod.next().set("status", json("{'phase':'Running'}"));
  pod.write("one", "status");
  EXPECT_EQ(pod.managers(),
            "one 01 {'f:metadata':{'f:labels':{'.':{},'f:a':{}}}}\n"
            "one/status 02 {'f:status':{'f:phase':{}}}\n");
}

TEST(TrackUpdate, TheMainDoorIgnoresTheStatusAndTheStatusTheRest) {
  Story pod("core.v1.Pod", "{'spec':{'nodeName':'n'},'status':{'phase':'Pending'}}");
  pod.write("one");
  EXPECT_EQ(pod.managers(), "one 01 {'f:spec':{'f:nodeName':{}}}\n");
  pod.next().at("spec").set("hostname", "h");
  pod.next().at("status").set("phase", "Running");
  pod.write("two", "status");
  EXPECT_EQ(pod.managers(),
            "one 01 {'f:spec':{'f:nodeName':{}}}\ntwo/status 02 {'f:status':{'f:phase':{}}}\n");
}

TEST(TrackUpdate, EphemeralContainersAndResizesTrackTheirOwn) {
  Story pod("core.v1.Pod", "{'metadata':{'labels':{'a':'1'}}}");
  pod.write("one");
  pod.next().at("metadata", "labels").set("b", "1");
  pod.next().at("spec").set("ephemeralContainers", json("[{'name':'e'}]"));
  pod.write("two", "ephemeralcontainers");
  EXPECT_NE(pod.managers().find("two/ephemeralcontainers 02 {'f:spec':{'f:ephemeralContainers':"),
            std::string::npos)
      << pod.managers();
  EXPECT_EQ(pod.managers().find("'f:b'"), std::string::npos);
}

TEST(TrackUpdate, ClientsMaySendTheirManagers) {
  Story map("core.v1.ConfigMap", "{'data':{'x':'1'}}");
  map.write("one");
  map.next()
      .at("metadata")
      .set("managedFields",
           json("[{'manager':'m','operation':'Apply','apiVersion':'v1','fieldsType':"
                "'FieldsV1','fieldsV1':{'f:data':{'f:x':{}}}}]"));
  map.write("two");
  EXPECT_EQ(map.managers(), "m - {'f:data':{'f:x':{}}}\n");
}

TEST(TrackUpdate, NonsenseFromClientsIsPassedOver) {
  Story map("core.v1.ConfigMap", "{'data':{'x':'1'}}");
  map.write("one");
  map.next().at("metadata").set("managedFields", json("[{'manager':'m'}]"));
  map.write("two");
  EXPECT_EQ(map.managers(), "one 01 {'f:data':{'.':{},'f:x':{}}}\n");
}

TEST(TrackUpdate, EmptyManagersForgetAllAndStayForgotten) {
  for (const std::string_view reset : {"[]", "[{}]"}) {
    Story map("core.v1.ConfigMap", "{'data':{'x':'1'}}");
    map.write("one");
    map.next().at("metadata").set("managedFields", json(reset));
    map.write("two");
    EXPECT_EQ(map.managers(), "");
    map.next().at("data").set("x", "2");
    map.write("two");
    EXPECT_EQ(map.managers(), "") << "who is not tracked so far is not tracked from now on";
  }
}

TEST(TrackUpdate, SubresourcesCannotSendManagers) {
  Story pod("core.v1.Pod", "{'metadata':{'labels':{'a':'1'}}}");
  pod.write("one");
  pod.next().at("metadata").set("managedFields", json("[]"));
  pod.write("two", "status");
  EXPECT_EQ(pod.managers(), "one 01 {'f:metadata':{'f:labels':{'.':{},'f:a':{}}}}\n");
}

TEST(TrackUpdate, ScalingMovesTheReplicasOnlyWhenSomebodyOwnsThem) {
  Story set("apps.v1.ReplicaSet", "{'spec':{'replicas':1}}");
  set.write("one");
  set.next().at("spec").set("replicas", 2);
  set.write("two", "scale");
  EXPECT_EQ(set.managers(), "two/scale - {'f:spec':{'f:replicas':{}}}\n");
  Story unowned("apps.v1.ReplicaSet", "{'metadata':{'labels':{'a':'1'}}}");
  unowned.write("one");
  unowned.next().at("spec").set("replicas", 2);
  unowned.write("two", "scale");
  EXPECT_EQ(unowned.managers(), "one 01 {'f:metadata':{'f:labels':{'.':{},'f:a':{}}}}\n");
}

TEST(TrackUpdate, TenUpdatersAreEnough) {
  Story map("core.v1.ConfigMap", "{'data':{'x':'1'}}");
  for (int i = 0; i < 12; ++i) {
    map.next().at("data").set("k" + std::to_string(i), "1");
    map.write("m" + std::to_string(i));
  }
  const std::string managers = map.managers();
  EXPECT_EQ(std::ranges::count(managers, '\n'), 10) << managers;
  EXPECT_TRUE(
      managers.starts_with("ancient-changes 03 {'f:data':{'.':{},'f:k0':{},'f:k1':{},"
                           "'f:k2':{},'f:x':{}}}\nm3 04"))
      << managers;
}

TEST(TrackUpdate, AnEmptyManagerNameIsUnknown) {
  Story map("core.v1.ConfigMap", "{'data':{'x':'1'}}");
  map.write("");
  EXPECT_TRUE(map.managers().starts_with("unknown 01")) << map.managers();
}

TEST(TrackUpdate, CustomObjectsThatDoNotFitLoseTheirManagers) {
  const Doc schema = json("{'type':'object','properties':{'a':{'type':'string'}}}");
  Doc object = json("{'metadata':{},'a':1}");
  track_update(Doc(), object,
               {.manager = "m", .api_version = "g/v1", .subresource = "", .now = kStart},
               {.custom = &schema});
  EXPECT_EQ(text(object), "{'metadata':{},'a':1}");
}

TEST(TrackUpdate, WhatBecameAtomicIsOwnedAsOne) {
  const Doc schema = json(
      "{'type':'object','properties':{'a':{'type':'object','x-kubernetes-map-type':'atomic',"
      "'properties':{'b':{'type':'string'},'c':{'type':'string'}}},'d':{'type':'string'}}}");
  const Doc old = json(
      "{'metadata':{'uid':'u','managedFields':[{'manager':'m','operation':'Update','apiVersion':"
      "'g/v1','fieldsType':'FieldsV1','fieldsV1':{'f:a':{'.':{},'f:b':{}}}}]},"
      "'a':{'b':'1','c':'1'}}");
  Doc object = old;
  object.set("d", "1");
  track_update(old, object,
               {.manager = "n", .api_version = "g/v1", .subresource = "", .now = kStart},
               {.custom = &schema});
  EXPECT_EQ(text(object["metadata"]["managedFields"].items()[0]["fieldsV1"]), "{'f:a':{}}");
}

TEST(KeepTimes, OnlyWhenNothingElseDiffers) {
  Story map("core.v1.ConfigMap", "{'data':{'x':'1'}}");
  map.write("one");
  const Doc old = map.object();
  Doc later = old;
  later.at("metadata").at("managedFields").items()[0].set("time", "2027-01-01T00:00:00Z");
  Doc same = later;
  keep_times_if_same(old, same);
  EXPECT_EQ(same, old);
  Doc other = later;
  other.at("data").set("x", "2");
  const Doc before = other;
  keep_times_if_same(old, other);
  EXPECT_EQ(other, before);
}

}  // namespace
}  // namespace jogak::patch
