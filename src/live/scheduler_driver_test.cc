// SPDX-License-Identifier: Apache-2.0
//
// The driver against a scripted cluster: what it binds, refuses and preempts, and that late and
// refused answers leave nothing behind.
#include "live/scheduler_driver.h"

#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live/testing/driver_fixture.h"

namespace jogak::live {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::pod;

class Driver : public testing::DriverTest {};

TEST_F(Driver, RefusesAPolicyThatDoesNotExist) {
  const auto made =
      SchedulerDriver::make(cluster_, {.profiles = {{.scheduler_name = "x", .policy = "wishful"}}});
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, Errc::Invalid);
  EXPECT_THAT(made.error().what, HasSubstr("wishful"));
}

TEST_F(Driver, BindsWhatFitsAndSaysSo) {
  cluster_.put_node("n", 4);
  start();
  add(pod("a", 2));
  settle();
  ASSERT_EQ(cluster_.bindings.size(), 1U);
  EXPECT_EQ(cluster_.bindings[0].pod.ns, "ns");
  EXPECT_EQ(cluster_.bindings[0].pod.name, "a");
  EXPECT_EQ(cluster_.bindings[0].pod.uid, "a-uid");
  EXPECT_EQ(cluster_.bindings[0].node, "n");
  EXPECT_EQ(cluster_.bindings[0].gpu_holds, "");
  ASSERT_EQ(cluster_.notes.size(), 1U);
  EXPECT_EQ(cluster_.notes[0].reason, "Scheduled");
  EXPECT_EQ(cluster_.notes[0].message, "Successfully assigned ns/a to n");
  EXPECT_EQ(driver_->counts().bound, 1U);
  EXPECT_EQ(driver_->waiting(), 0U);
}

TEST_F(Driver, SeesWhatWasThereBeforeIt) {
  cluster_.put_node("n", 4);
  add(placed("old", 3, "n"));
  add(pod("small", 1));
  add(pod("big", 2));
  start();
  settle();
  EXPECT_THAT(cluster_.bound, ElementsAre("small"));
  EXPECT_EQ(driver_->waiting(), 1U);
}

TEST_F(Driver, RefusesOnceWithTheReason) {
  cluster_.put_node("n", 1);
  start();
  add(pod("a", 2));
  settle();
  EXPECT_THAT(cluster_.refused,
              ElementsAre(HasSubstr("a: 0/1 nodes are available: 1 Insufficient cpu.")));
  ASSERT_EQ(cluster_.notes.size(), 1U);
  EXPECT_EQ(cluster_.notes[0].type, "Warning");
  EXPECT_EQ(cluster_.notes[0].reason, "FailedScheduling");
  // What changes and does not help is tried, but not told again.
  cluster_.put("namespaces", Doc::object()
                                 .set("apiVersion", "v1")
                                 .set("kind", "Namespace")
                                 .set("metadata", Doc::object().set("name", "x")));
  wait(60 * kSecondInUs);
  EXPECT_EQ(cluster_.refused.size(), 1U);
  EXPECT_EQ(cluster_.notes.size(), 1U);
  EXPECT_GT(driver_->counts().refused, 1U);
}

TEST_F(Driver, SaysANewReason) {
  start();
  add(pod("a", 2));
  settle();
  ASSERT_EQ(cluster_.refused.size(), 1U);
  cluster_.put_node("n", 1);
  wait(20 * kSecondInUs);
  ASSERT_EQ(cluster_.refused.size(), 2U);
  EXPECT_THAT(cluster_.refused[1], HasSubstr("Insufficient cpu"));
}

TEST_F(Driver, TriesAgainWhenANodeComesButNotBeforeTheBackOff) {
  start();
  add(pod("a", 2));
  settle();
  const TimeUs refused_at = loop_.now();
  cluster_.put_node("n", 4);
  TimeUs bound_at = 0;
  cluster_.on_bind = [&](const Binding&) { bound_at = loop_.now(); };
  wait(5 * kSecondInUs);
  EXPECT_THAT(cluster_.bound, ElementsAre("a"));
  EXPECT_EQ(bound_at - refused_at, kSecondInUs);
}

TEST_F(Driver, AGoneRefusalDoesNotKeepTheLoopBusy) {
  start();
  add(pod("a", 2));
  settle();
  wait(30 * kSecondInUs);
  EXPECT_EQ(driver_->counts().refused, 1U);  // nothing changes, nothing is tried
  wait(300 * kSecondInUs);
  EXPECT_EQ(driver_->counts().refused, 2U);  // but for a look every five minutes
}

TEST_F(Driver, HigherPriorityGoesFirstThenAge) {
  cluster_.put_node("n", 3);
  start();
  add(pod("first", 1, 5));
  add(pod("second", 1, 5));
  add(pod("urgent", 1, 9));
  settle();
  EXPECT_THAT(cluster_.bound, ElementsAre("urgent", "first", "second"));
}

TEST_F(Driver, ABindingThatFailsAfterItsNodeWentIsTriedAgain) {
  cluster_.put_node("n", 4);
  cluster_.bind_errors = {Errc::Unavailable};
  cluster_.answer_delay = kSecondInUs;
  start();
  add(pod("a", 2));
  settle();
  cluster_.remove("nodes", "", "n");
  wait(5 * kSecondInUs);
  cluster_.put_node("m", 4);
  wait(20 * kSecondInUs);
  EXPECT_EQ(cluster_.node_of("a"), "m");
}

TEST_F(Driver, AConflictIsTriedAgain) {
  cluster_.put_node("n", 4);
  cluster_.bind_errors = {Errc::Conflict, Errc::Unavailable};
  start();
  add(pod("a", 2));
  settle();
  EXPECT_THAT(cluster_.bound, IsEmpty());
  EXPECT_EQ(driver_->waiting(), 1U);
  wait(10 * kSecondInUs);
  EXPECT_THAT(cluster_.bound, ElementsAre("a"));
  EXPECT_EQ(cluster_.bindings.size(), 3U);
  EXPECT_EQ(driver_->counts().bind_errors, 2U);
}

TEST_F(Driver, AFailedBindingFreesItsRoom) {
  cluster_.put_node("n", 2);
  cluster_.bind_errors = {Errc::Unavailable};
  start();
  add(pod("a", 2));
  settle();
  cluster_.remove("pods", "ns", "a");
  add(pod("b", 2));
  settle();
  EXPECT_THAT(cluster_.bound, ElementsAre("b"));
}

TEST_F(Driver, APodThatIsGoneIsForgotten) {
  cluster_.put_node("n", 4);
  cluster_.bind_errors = {Errc::NotFound};
  start();
  add(pod("a", 2));
  cluster_.change_delay = kSecondInUs;
  settle();
  cluster_.remove("pods", "ns", "a");
  wait(60 * kSecondInUs);
  EXPECT_EQ(cluster_.bindings.size(), 1U);
  EXPECT_EQ(driver_->waiting(), 0U);
  EXPECT_TRUE(loop_.idle());
}

TEST_F(Driver, AssumedRoomIsTakenUntilTheBindingShows) {
  cluster_.put_node("n", 3);
  cluster_.answer_delay = kSecondInUs;
  cluster_.change_delay = 3 * kSecondInUs;
  start();
  wait(5 * kSecondInUs);
  add(pod("a", 2));
  add(pod("b", 2));
  wait(4 * kSecondInUs);
  EXPECT_EQ(cluster_.bindings.size(), 1U);
  wait(60 * kSecondInUs);
  EXPECT_THAT(cluster_.bound, ElementsAre("a"));
}

TEST_F(Driver, OldNewsDoesNotUndoABinding) {
  cluster_.put_node("n", 2);
  cluster_.answer_delay = 5 * kSecondInUs;
  start();
  cluster_.change_delay = 5 * kSecondInUs;
  add(pod("a", 2));
  wait(6 * kSecondInUs);
  ASSERT_EQ(cluster_.bindings.size(), 1U);
  cluster_.change_delay = 0;
  Doc stale = pod("a", 2);  // somebody's label, from before the binding
  stale.at("metadata", "labels").set("x", "y");
  const Doc now = *cluster_.find("pods", "ns", "a");
  add(stale);
  settle();
  cluster_.put("pods", now);
  add(pod("b", 2));
  wait(20 * kSecondInUs);
  EXPECT_EQ(cluster_.bindings.size(), 1U);  // a is bound once, b has no room
}

TEST_F(Driver, DeletedWhileItsBindingIsUnderWay) {
  cluster_.put_node("n", 2);
  cluster_.answer_delay = 2 * kSecondInUs;
  start();
  add(pod("a", 2));
  settle();
  cluster_.remove("pods", "ns", "a");
  add(pod("b", 2));
  wait(10 * kSecondInUs);
  EXPECT_EQ(cluster_.node_of("b"), "n");
}

TEST_F(Driver, ANewPodOfTheSameNameIsAnotherPod) {
  cluster_.put_node("n", 2);
  start();
  add(pod("a", 2));
  settle();
  Doc other = pod("a", 1);
  other.at("metadata").set("uid", "other");
  cluster_.remove("pods", "ns", "a");
  add(other);
  settle();
  ASSERT_EQ(cluster_.bindings.size(), 2U);
  EXPECT_EQ(cluster_.bindings[1].pod.uid, "other");
}

TEST_F(Driver, ABindingOfTheOldPodSaysNothingAboutTheNewOne) {
  cluster_.put_node("n", 4);
  cluster_.answer_delay = kSecondInUs;
  start();
  add(pod("a", 1));
  settle();  // bound, but nobody has said so yet
  cluster_.remove("pods", "ns", "a");
  Doc other = pod("a", 8);
  other.at("metadata").set("uid", "other");
  add(other);
  wait(5 * kSecondInUs);
  EXPECT_EQ(driver_->waiting(), 1U);
  cluster_.put_node("m", 8);
  wait(20 * kSecondInUs);
  EXPECT_EQ(cluster_.node_of("a"), "m");
}

TEST_F(Driver, ANewPodTakesTheNameBeforeTheOldOneIsSeenToGo) {
  cluster_.put_node("n", 2);
  start();
  add(placed("a", 2, "n"));
  settle();
  Doc other = pod("a", 2);
  other.at("metadata").set("uid", "other");
  add(other);  // the deletion between was not seen
  settle();
  ASSERT_EQ(cluster_.bindings.size(), 1U);
  EXPECT_EQ(cluster_.bindings[0].pod.uid, "other");
}

TEST_F(Driver, FinishedPodsGiveTheirRoomBack) {
  cluster_.put_node("n", 2);
  start();
  add(placed("a", 2, "n"));
  add(pod("b", 2));
  settle();
  EXPECT_THAT(cluster_.bound, IsEmpty());
  Doc done = placed("a", 2, "n");
  done.at("status").set("phase", "Succeeded");
  add(done);
  wait(20 * kSecondInUs);
  EXPECT_THAT(cluster_.bound, ElementsAre("b"));
}

TEST_F(Driver, PodsOfOtherSchedulersOnlyTakeRoom) {
  cluster_.put_node("n", 3);
  start();
  Doc theirs = pod("theirs", 2);
  theirs.at("spec").set("schedulerName", "somebody-else");
  add(theirs);
  settle();
  EXPECT_THAT(cluster_.bindings, IsEmpty());
  add(pod("a", 1));
  settle();
  theirs.at("spec").set("nodeName", "n");
  add(theirs);
  add(pod("b", 1));
  settle();
  EXPECT_THAT(cluster_.bound, ElementsAre("a"));
  EXPECT_EQ(driver_->waiting(), 1U);
}

TEST_F(Driver, AnswersToTheNamesItIsGiven) {
  cluster_.put_node("n", 3);
  start({.profiles = {{.scheduler_name = "mine"}}});
  add(pod("a", 1));
  Doc mine = pod("b", 1);
  mine.at("spec").set("schedulerName", "mine");
  add(mine);
  settle();
  EXPECT_THAT(cluster_.bound, ElementsAre("b"));
}

TEST_F(Driver, GatedPodsWaitForTheirGates) {
  cluster_.put_node("n", 3);
  start();
  Doc gated = pod("a", 1);
  gated.at("spec").set("schedulingGates", Doc::array().push(Doc::object().set("name", "later")));
  add(gated);
  settle();
  EXPECT_THAT(cluster_.bindings, IsEmpty());
  EXPECT_EQ(driver_->waiting(), 0U);
  add(pod("a", 1));
  settle();
  EXPECT_THAT(cluster_.bound, ElementsAre("a"));
}

TEST_F(Driver, DeletingPodsAreNotBound) {
  cluster_.put_node("n", 3);
  start();
  Doc going = pod("a", 1);
  going.at("metadata").set("deletionTimestamp", "2030-01-01T00:00:00Z");
  add(going);
  wait(20 * kSecondInUs);
  EXPECT_THAT(cluster_.bindings, IsEmpty());
}

TEST_F(Driver, PreemptsEachVictimOnceAndThenBinds) {
  cluster_.put_node("n", 4);
  start();
  add(placed("low-1", 2, "n"));
  add(placed("low-2", 2, "n"));
  cluster_.stop_time = 30 * kSecondInUs;
  add(pod("high", 4, 100));
  wait(20 * kSecondInUs);
  EXPECT_THAT(cluster_.preempted, ::testing::UnorderedElementsAre("low-1", "low-2"));
  ASSERT_EQ(cluster_.refused.size(), 1U);
  EXPECT_TRUE(cluster_.refused[0].ends_with(" -> n")) << cluster_.refused[0];
  EXPECT_THAT(cluster_.bound, IsEmpty());
  wait(30 * kSecondInUs);
  EXPECT_THAT(cluster_.bound, ElementsAre("high"));
  EXPECT_EQ(cluster_.preempted.size(), 2U);
  EXPECT_EQ(driver_->counts().preempted, 2U);
}

TEST_F(Driver, RoomMadeForOneIsNotGivenToALesserOne) {
  cluster_.put_node("n", 4);
  start();
  add(placed("low", 4, "n"));
  add(pod("high", 4, 100));
  settle();
  add(pod("sneaky", 4));
  wait(60 * kSecondInUs);
  EXPECT_EQ(cluster_.node_of("high"), "n");
  EXPECT_EQ(cluster_.node_of("sneaky"), "");
}

TEST_F(Driver, AVictimThatCouldNotBeDeletedIsAskedAgain) {
  cluster_.put_node("n", 4);
  cluster_.preempt_errors = {Errc::Unavailable};
  start();
  add(placed("low", 4, "n"));
  add(pod("high", 4, 100));
  wait(60 * kSecondInUs);
  EXPECT_EQ(cluster_.node_of("high"), "n");
  EXPECT_EQ(cluster_.preempted.size(), 2U);
}

TEST_F(Driver, APodThatNeverPreemptsWaits) {
  cluster_.put_node("n", 4);
  start();
  add(placed("low", 4, "n"));
  Doc polite = pod("polite", 4, 100);
  polite.at("spec").set("preemptionPolicy", "Never");
  add(polite);
  wait(60 * kSecondInUs);
  EXPECT_THAT(cluster_.preempted, IsEmpty());
  EXPECT_EQ(driver_->waiting(), 1U);
}

TEST_F(Driver, ANodeThatGoesTakesNothingMore) {
  cluster_.put_node("n", 4);
  start();
  cluster_.remove("nodes", "", "n");
  add(pod("a", 1));
  settle();
  EXPECT_THAT(cluster_.bindings, IsEmpty());
  EXPECT_EQ(cluster_.refused.size(), 1U);
}

TEST_F(Driver, WhatCannotBeReadIsCountedAndTheRestGoesOn) {
  cluster_.put_node("n", 4);
  start();
  Doc broken = pod("broken", 1);
  broken.at("spec").set("containers", "none");
  add(broken);
  add(pod("a", 1));
  settle();
  unreadable_ = 1;
  EXPECT_EQ(driver_->counts().unreadable, 1U);
  EXPECT_THAT(driver_->last_fault(), HasSubstr("ns/broken"));
  EXPECT_THAT(cluster_.bound, ElementsAre("a"));
}

TEST_F(Driver, NothingHappensAfterItsEnd) {
  cluster_.put_node("n", 4);
  cluster_.answer_delay = kSecondInUs;
  start();
  add(pod("a", 1));
  add(pod("never", 9));
  settle();
  cluster_.put_node("m", 1);
  driver_ = nullptr;
  const std::size_t asked = cluster_.bindings.size();
  add(pod("b", 1));
  wait(60 * kSecondInUs);
  EXPECT_EQ(cluster_.bindings.size(), asked);
}

TEST_F(Driver, ManyPodsAreDoneInTurnsThatLeaveOthersRoom) {
  cluster_.put_node("n", 500, 1000);
  start();
  for (int i = 0; i < 300; ++i) add(pod("p" + std::to_string(i), 1));
  settle();
  EXPECT_EQ(cluster_.bound.size(), 300U);
}

}  // namespace
}  // namespace jogak::live
