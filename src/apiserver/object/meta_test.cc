// SPDX-License-Identifier: Apache-2.0
//
// Times, conditions, owners and finalizers.
#include "apiserver/object/meta.h"

#include <gtest/gtest.h>

namespace jogak::api {
namespace {

constexpr TimeUs kFeb2 = 1'769'998'179LL * kSecondInUs;  // 2026-02-02T02:09:39Z

TEST(Time, RoundTrip) {
  EXPECT_EQ(format_time(kFeb2), "2026-02-02T02:09:39Z");
  EXPECT_EQ(format_micro_time(kFeb2 + 123'456), "2026-02-02T02:09:39.123456Z");
  EXPECT_EQ(parse_time("2026-02-02T02:09:39Z"), kFeb2);
  EXPECT_EQ(parse_time("2026-02-02T02:09:39.123456Z"), kFeb2 + 123'456);
  EXPECT_EQ(parse_time("1969-12-31T23:59:59.5Z"), -kSecondInUs / 2);
  EXPECT_EQ(format_time(-kSecondInUs / 2), "1969-12-31T23:59:59Z");
}

TEST(Time, OffsetsAndFractions) {
  EXPECT_EQ(parse_time("2026-02-02T04:09:39+02:00"), kFeb2);
  EXPECT_EQ(parse_time("2026-02-01T21:09:39.9-05:00"), kFeb2 + 900'000);
  EXPECT_EQ(parse_time("2026-02-02T02:09:39.1234569Z"), kFeb2 + 123'456);
}

TEST(Time, WhatIsNoTime) {
  for (const std::string_view text :
       {"", "yesterday", "2026-02-02", "2026-02-02 02:09:39Z", "2026-02-30T00:00:00Z",
        "2026-02-02T24:00:00Z", "2026-02-02T02:09:39", "2026-02-02T02:09:39.Z",
        "2026-02-02T02:09:39z", "2026-02-02T02:09:39Zx"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

TEST(Condition, AddedAndChanged) {
  Doc object = Doc::object();
  EXPECT_FALSE(condition_is(object, "Ready", "True"));
  EXPECT_TRUE(set_condition(object, "Ready", "False", "Starting", "wait", kFeb2));
  EXPECT_FALSE(set_condition(object, "Ready", "False", "Starting", "wait", kFeb2 + kSecondInUs));
  EXPECT_TRUE(set_condition(object, "Ready", "False", "Slow", "", kFeb2 + kSecondInUs));
  const Doc& ready = condition_of(object, "Ready");
  EXPECT_EQ(ready["lastTransitionTime"].as_string(), "2026-02-02T02:09:39Z");
  EXPECT_EQ(ready["reason"].as_string(), "Slow");
  EXPECT_FALSE(ready.has("message"));
  EXPECT_TRUE(set_condition(object, "Ready", "True", "Slow", "", kFeb2 + kSecondInUs));
  EXPECT_EQ(condition_of(object, "Ready")["lastTransitionTime"].as_string(),
            "2026-02-02T02:09:40Z");
  EXPECT_TRUE(condition_is(object, "Ready", "True"));
  EXPECT_EQ(object.get("status", "conditions").size(), 1U);
}

TEST(Meta, OwnersAndFinalizers) {
  Doc object = Doc::object();
  EXPECT_TRUE(controller_of(object).is_null());
  EXPECT_FALSE(has_finalizer(object, "a/b"));
  Doc first = Doc::object();
  first.set("name", "o1");
  Doc second = Doc::object();
  second.set("name", "o2").set("controller", true);
  object.at("metadata", "ownerReferences").push(first).push(second);
  object.at("metadata", "finalizers").push("a/b");
  EXPECT_EQ(controller_of(object)["name"].as_string(), "o2");
  EXPECT_TRUE(has_finalizer(object, "a/b"));
  EXPECT_FALSE(is_deleting(object));
}

}  // namespace
}  // namespace jogak::api
