// SPDX-License-Identifier: Apache-2.0
//
// What waiting pods are told, and preemption step by step: nomination, then victims, once each.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live/testing/driver_fixture.h"

namespace jogak::live {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::pod;

class DriverRefuse : public testing::DriverTest {};

TEST_F(DriverRefuse, ARestartSaysNothingTwice) {
  cluster_.put_node("n", 1);
  start();
  add(pod("a", 2));
  settle();
  ASSERT_EQ(cluster_.refused.size(), 1U);
  driver_ = nullptr;
  start();
  wait(60 * kSecondInUs);
  EXPECT_EQ(cluster_.refused.size(), 1U);
  EXPECT_EQ(cluster_.notes.size(), 1U);
  EXPECT_EQ(driver_->waiting(), 1U);
}

TEST_F(DriverRefuse, WhatCouldNotBeToldIsToldLater) {
  cluster_.put_node("n", 1);
  cluster_.refuse_errors = {Errc::Unavailable, Errc::Timeout};
  start();
  add(pod("a", 2));
  wait(30 * kSecondInUs);
  EXPECT_EQ(cluster_.refused.size(), 3U);
  EXPECT_EQ(cluster_.notes.size(), 1U);
  EXPECT_THAT(cluster_.find("pods", "ns", "a")
                  ->get("status", "conditions")
                  .json(JsonWriter::Style::Compact),
              HasSubstr("Insufficient cpu"));
}

TEST_F(DriverRefuse, APodWithDeviceClaimsIsToldWhyItWaits) {
  cluster_.put_node("n", 4);
  start();
  Doc claims = pod("a", 1);
  claims.at("spec").set(
      "resourceClaims",
      Doc::array().push(Doc::object().set("name", "gpu").set("resourceClaimName", "gpu-0")));
  add(claims);
  wait(60 * kSecondInUs);
  EXPECT_THAT(cluster_.bindings, IsEmpty());
  EXPECT_THAT(cluster_.refused, ElementsAre(HasSubstr("a: spec.resourceClaims: ")));
}

TEST_F(DriverRefuse, NoHalfOfAPodGroupIsStarted) {
  cluster_.put_node("n", 4);
  start();
  Doc member = pod("a", 1);
  member.at("spec", "schedulingGroup").set("podGroupName", "g");
  add(member);
  wait(60 * kSecondInUs);
  EXPECT_THAT(cluster_.bindings, IsEmpty());
  EXPECT_THAT(cluster_.refused, ElementsAre(HasSubstr("a: spec.schedulingGroup: ")));
}

TEST_F(DriverRefuse, WhatNobodyElseChecksIsToldByField) {
  cluster_.put_node("n", 4);
  start();
  Doc wrong = pod("a", 1);
  wrong.at("metadata", "annotations").set("jogak.io/gpu-milli", "half");
  add(wrong);
  settle();
  EXPECT_THAT(cluster_.refused, ElementsAre(HasSubstr("jogak.io/gpu-milli")));
  wrong.at("metadata", "annotations").set("jogak.io/gpu-milli", Doc());
  add(wrong);
  wait(5 * kSecondInUs);
  EXPECT_THAT(cluster_.bound, ElementsAre("a"));
}

TEST_F(DriverRefuse, ManyOfOneKindAreRefusedAlike) {
  cluster_.put_node("n", 4);
  start();
  for (int i = 0; i < 200; ++i) add(pod("p" + std::to_string(i), 9));
  settle();
  ASSERT_EQ(cluster_.refused.size(), 200U);
  add(placed("other", 1, "n"));
  add(pod("late", 9));
  settle();
  EXPECT_THAT(cluster_.refused.back(), HasSubstr("late: 0/1 nodes are available: 1 Insufficient"));
}

TEST_F(DriverRefuse, NobodyIsDeletedBeforeTheNominationIsWritten) {
  cluster_.put_node("n", 4);
  cluster_.refuse_errors = {Errc::Timeout, Errc::Unavailable};
  start();
  add(placed("low", 4, "n"));
  add(pod("high", 4, 100));
  settle();
  EXPECT_EQ(cluster_.refused.size(), 1U);
  EXPECT_THAT(cluster_.preempted, IsEmpty());
  wait(30 * kSecondInUs);
  EXPECT_THAT(cluster_.preempted, ElementsAre("low"));
  EXPECT_THAT(cluster_.bound, ElementsAre("high"));
}

TEST_F(DriverRefuse, RoomThatComesByItselfSparesTheVictims) {
  cluster_.put_node("n", 4);
  cluster_.refuse_errors = {Errc::Unavailable};
  start();
  add(placed("low", 4, "n"));
  add(pod("high", 4, 100));
  settle();
  cluster_.put_node("m", 4);
  wait(30 * kSecondInUs);
  EXPECT_THAT(cluster_.preempted, IsEmpty());
  EXPECT_EQ(cluster_.node_of("high"), "m");
}

TEST_F(DriverRefuse, APreemptorThatGoesSparesTheVictims) {
  cluster_.put_node("n", 4);
  cluster_.answer_delay = 2 * kSecondInUs;
  start();
  add(placed("low", 4, "n"));
  add(pod("high", 4, 100));
  settle();
  cluster_.remove("pods", "ns", "high");
  wait(30 * kSecondInUs);
  EXPECT_THAT(cluster_.preempted, IsEmpty());
}

TEST_F(DriverRefuse, ASlowServerDeletesEachVictimOnce) {
  cluster_.put_node("n", 4);
  cluster_.answer_delay = 2 * kSecondInUs;
  cluster_.change_delay = 4 * kSecondInUs;
  cluster_.stop_time = 30 * kSecondInUs;
  start();
  add(placed("low-1", 2, "n"));
  add(placed("low-2", 2, "n"));
  wait(6 * kSecondInUs);
  add(pod("high", 4, 100));
  wait(120 * kSecondInUs);
  EXPECT_EQ(cluster_.accepted_victims.size(), 2U);
  EXPECT_THAT(cluster_.bound, ElementsAre("high"));
}

TEST_F(DriverRefuse, TheVictimHearsForWhom) {
  cluster_.put_node("n", 4);
  start();
  add(placed("low", 4, "n"));
  add(pod("high", 4, 100));
  settle();
  const auto note = std::ranges::find(cluster_.notes, "Preempted", &PodNote::reason);
  ASSERT_NE(note, cluster_.notes.end());
  EXPECT_EQ(note->pod.name, "low");
  EXPECT_EQ(note->related.name, "high");
  EXPECT_EQ(note->message, "Preempted by pod high-uid on node n");
  EXPECT_EQ(note->reporter, "default-scheduler");
}

TEST_F(DriverRefuse, APromiseOutlivesARestart) {
  cluster_.put_node("n", 4);
  cluster_.stop_time = 60 * kSecondInUs;
  start();
  add(placed("low", 4, "n"));
  add(pod("high", 4, 100));
  wait(5 * kSecondInUs);
  driver_ = nullptr;
  start();
  add(pod("sneaky", 4));
  wait(120 * kSecondInUs);
  EXPECT_EQ(cluster_.node_of("high"), "n");
  EXPECT_EQ(cluster_.accepted_victims.size(), 1U);
}

TEST_F(DriverRefuse, APromiseThatIsNeverUsedEnds) {
  cluster_.put_node("n", 4);
  cluster_.stop_time = 3600 * kSecondInUs;  // the victim does not end
  DriverOptions options;
  options.nomination_max = 120 * kSecondInUs;
  start(options);
  add(placed("low", 4, "n"));
  add(pod("high", 4, 100));
  wait(60 * kSecondInUs);
  cluster_.stop_time = kSecondInUs;
  cluster_.put_node("m", 4);
  add(placed("other", 4, "m", 50));
  wait(600 * kSecondInUs);
  EXPECT_EQ(cluster_.node_of("high"), "m");
}

}  // namespace
}  // namespace jogak::live
