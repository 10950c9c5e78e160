// SPDX-License-Identifier: Apache-2.0
//
// From a decision to a pod on its node when answers are lost, late or no: what the driver asks,
// what it repeats, and whose room counts as taken meanwhile.
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

class DriverBind : public testing::DriverTest {};

TEST_F(DriverBind, ALostAnswerIsAskedAbout) {
  cluster_.put_node("n", 4);
  cluster_.bind_answers_lost = 1;
  start();
  add(pod("a", 2));
  wait(5 * kSecondInUs);
  EXPECT_EQ(cluster_.reads, 1);
  EXPECT_EQ(cluster_.bindings.size(), 1U);
  EXPECT_EQ(driver_->counts().bound, 1U);
  ASSERT_EQ(cluster_.notes.size(), 1U);
  EXPECT_EQ(cluster_.notes[0].reason, "Scheduled");
}

TEST_F(DriverBind, ABindingThatNobodyAnsweredIsRepeatedOnTheSameNode) {
  cluster_.put_node("n", 4);
  cluster_.bind_errors = {Errc::Timeout, Errc::Timeout};
  start();
  add(pod("a", 2));
  settle();
  cluster_.put_node("better", 64);
  wait(5 * kSecondInUs);
  ASSERT_EQ(cluster_.bindings.size(), 3U);
  for (const Binding& binding : cluster_.bindings) EXPECT_EQ(binding.node, "n");
  EXPECT_EQ(cluster_.node_of("a"), "n");
}

TEST_F(DriverBind, WhatIsUnknownCountsAsTaken) {
  cluster_.put_node("n", 4);
  for (int i = 0; i < 50; ++i) cluster_.bind_errors.emplace_back(Errc::Timeout);
  start();
  add(pod("a", 3));
  settle();
  add(pod("b", 3));
  wait(30 * kSecondInUs);
  for (const Binding& binding : cluster_.bindings) EXPECT_EQ(binding.pod.name, "a");
  cluster_.bind_errors.clear();
  wait(60 * kSecondInUs);
  EXPECT_THAT(cluster_.bound, ElementsAre("a"));
}

TEST_F(DriverBind, AfterALostAnswerANoSettlesNothing) {
  cluster_.put_node("n", 4);
  cluster_.bind_errors = {Errc::Timeout, Errc::Unavailable};
  start();
  add(pod("a", 2));
  wait(10 * kSecondInUs);
  for (const Binding& binding : cluster_.bindings) EXPECT_EQ(binding.node, "n");
  EXPECT_EQ(cluster_.node_of("a"), "n");
}

TEST_F(DriverBind, ANodeThatWentWithAnUnknownBindingIsWaitedFor) {
  cluster_.put_node("n", 4);
  cluster_.bind_errors = {Errc::Timeout};
  start();
  add(pod("a", 2));
  settle();
  cluster_.remove("nodes", "", "n");
  cluster_.put_node("m", 4);
  wait(30 * kSecondInUs);
  EXPECT_EQ(cluster_.bindings.size(), 1U);  // the late write could still come
  wait(120 * kSecondInUs);
  EXPECT_EQ(cluster_.node_of("a"), "m");
}

TEST_F(DriverBind, SomebodyElseWasFaster) {
  cluster_.put_node("n", 4);
  cluster_.put_node("other", 4);
  cluster_.change_delay = 3 * kSecondInUs;
  start();
  wait(5 * kSecondInUs);
  add(pod("a", 4));
  cluster_.on_bind = [this](const Binding& binding) {
    cluster_.on_bind = nullptr;
    Doc stolen = *cluster_.find("pods", "ns", binding.pod.name);
    stolen.at("spec").set("nodeName", binding.node == "n" ? "other" : "n");
    cluster_.put("pods", stolen);
  };
  wait(4 * kSecondInUs);
  EXPECT_THAT(cluster_.bound, IsEmpty());
  EXPECT_EQ(driver_->counts().bound, 0U);
  add(pod("b", 4));  // the room that was given up serves another
  wait(20 * kSecondInUs);
  EXPECT_THAT(cluster_.bound, ElementsAre("b"));
  EXPECT_NE(cluster_.node_of("a"), cluster_.node_of("b"));
}

TEST_F(DriverBind, OnlySoManyAtOnce) {
  cluster_.put_node("n", 64);
  cluster_.answer_delay = kSecondInUs;
  cluster_.change_delay = kSecondInUs;
  DriverOptions options;
  options.bindings_max = 2;
  start(options);
  wait(2 * kSecondInUs);
  for (int i = 0; i < 5; ++i) add(pod("p" + std::to_string(i), 1));
  wait(1100 * kMsInUs);
  EXPECT_EQ(cluster_.bindings.size(), 2U);
  EXPECT_EQ(driver_->binds_in_flight(), 2U);
  wait(1000 * kMsInUs);
  EXPECT_EQ(cluster_.bindings.size(), 4U);
  wait(5 * kSecondInUs);
  EXPECT_EQ(cluster_.bound.size(), 5U);
  EXPECT_EQ(driver_->binds_in_flight(), 0U);
}

TEST_F(DriverBind, AStandbyFollowsAndWritesNothing) {
  cluster_.put_node("n", 4);
  DriverOptions options;
  options.is_standby = true;
  start(options);
  add(pod("a", 2));
  add(pod("big", 9));
  wait(60 * kSecondInUs);
  EXPECT_THAT(cluster_.bindings, IsEmpty());
  EXPECT_THAT(cluster_.refused, IsEmpty());
  driver_->lead();
  settle();
  EXPECT_THAT(cluster_.bound, ElementsAre("a"));
  EXPECT_EQ(cluster_.refused.size(), 1U);
}

TEST_F(DriverBind, PodsThatNeedAnotherAreTriedWhenItComes) {
  cluster_.put_node("n", 8);
  start();
  Doc follower = pod("follower", 1);
  Doc term = Doc::object();
  term.set("topologyKey", "kubernetes.io/hostname");
  term.at("labelSelector", "matchLabels").set("app", "db");
  follower.at("spec", "affinity", "podAffinity")
      .set("requiredDuringSchedulingIgnoredDuringExecution", Doc::array().push(std::move(term)));
  Doc node = *cluster_.find("nodes", "", "n");
  node.at("metadata", "labels").set("kubernetes.io/hostname", "n");
  cluster_.put("nodes", node);
  add(follower);
  wait(5 * kSecondInUs);
  EXPECT_THAT(cluster_.bound, IsEmpty());
  Doc db = pod("db", 1);
  db.at("metadata", "labels").set("app", "db");
  add(db);
  wait(15 * kSecondInUs);
  EXPECT_THAT(cluster_.bound, ElementsAre("db", "follower"));
}

// ---- claims ---------------------------------------------------------------------------------

class DriverClaims : public testing::DriverTest {
 protected:
  void SetUp() override {
    for (const char* name : {"n", "m"}) {
      cluster_.put_node(name, 8);
      Doc node = *cluster_.find("nodes", "", name);
      node.at("metadata", "labels").set("kubernetes.io/hostname", name);
      cluster_.put("nodes", node);
    }
  }
  void storage_class(std::string_view provisioner) {
    Doc object = Doc::object();
    object.set("apiVersion", "storage.k8s.io/v1").set("kind", "StorageClass");
    object.at("metadata").set("name", "wait");
    object.set("provisioner", provisioner).set("volumeBindingMode", "WaitForFirstConsumer");
    cluster_.put("storageclasses.storage.k8s.io", object);
  }
  void claim(std::string_view name) {
    Doc object = Doc::object();
    object.set("apiVersion", "v1").set("kind", "PersistentVolumeClaim");
    object.at("metadata")
        .set("name", name)
        .set("namespace", "ns")
        .set("uid", std::string(name) + "-uid");
    object.at("spec")
        .set("storageClassName", "wait")
        .set("accessModes", Doc::array().push("ReadWriteOnce"));
    object.at("spec", "resources", "requests").set("storage", "1Gi");
    object.at("status").set("phase", "Pending");
    cluster_.put("persistentvolumeclaims", object);
  }
  void volume(std::string_view name, std::string_view node) {
    Doc object = Doc::object();
    object.set("apiVersion", "v1").set("kind", "PersistentVolume");
    object.at("metadata").set("name", name).set("uid", std::string(name) + "-uid");
    object.at("spec")
        .set("storageClassName", "wait")
        .set("accessModes", Doc::array().push("ReadWriteOnce"));
    object.at("spec", "capacity").set("storage", "2Gi");
    Doc match = Doc::object();
    match.set("key", "kubernetes.io/hostname")
        .set("operator", "In")
        .set("values", Doc::array().push(std::string(node)));
    Doc term = Doc::object();
    term.set("matchExpressions", Doc::array().push(std::move(match)));
    object.at("spec", "nodeAffinity", "required")
        .set("nodeSelectorTerms", Doc::array().push(std::move(term)));
    object.at("status").set("phase", "Available");
    cluster_.put("persistentvolumes", object);
  }
  static Doc with_claim(std::string_view name, std::string_view claim) {
    Doc object = pod(name, 1);
    Doc volume = Doc::object().set("name", "data");
    volume.at("persistentVolumeClaim").set("claimName", claim);
    object.at("spec").set("volumes", Doc::array().push(std::move(volume)));
    return object;
  }
  // What the volume controller does once a claim has its volume.
  void complete(std::string_view name, std::string_view volume) {
    Doc object = *cluster_.find("persistentvolumeclaims", "ns", name);
    object.at("spec").set("volumeName", volume);
    object.at("metadata", "annotations").set("pv.kubernetes.io/bind-completed", "yes");
    object.at("status").set("phase", "Bound");
    cluster_.put("persistentvolumeclaims", object);
  }
};

TEST_F(DriverClaims, AClaimIsProvisionedForTheNodeAndThenThePodIsBound) {
  storage_class("csi.example.com");
  claim("c");
  start();
  add(with_claim("a", "c"));
  settle();
  ASSERT_EQ(cluster_.claim_plans.size(), 1U);
  const ClaimPlan plan = cluster_.claim_plans[0];
  EXPECT_EQ(plan.name, "c");
  EXPECT_EQ(plan.volume, "");
  EXPECT_THAT(cluster_.bindings, IsEmpty());
  volume("made", plan.node);
  complete("c", "made");
  settle();
  ASSERT_THAT(cluster_.bound, ElementsAre("a"));
  EXPECT_EQ(cluster_.node_of("a"), plan.node);
}

TEST_F(DriverClaims, ALocalVolumeIsClaimedBeforeThePodIsBound) {
  storage_class("kubernetes.io/no-provisioner");
  volume("local", "m");
  claim("c");
  start();
  add(with_claim("a", "c"));
  settle();
  ASSERT_EQ(cluster_.claim_plans.size(), 1U);
  EXPECT_EQ(cluster_.claim_plans[0].volume, "local");
  EXPECT_EQ(cluster_.claim_plans[0].node, "m");
  complete("c", "local");
  settle();
  EXPECT_EQ(cluster_.node_of("a"), "m");
}

TEST_F(DriverClaims, OneVolumeIsPromisedOnce) {
  storage_class("kubernetes.io/no-provisioner");
  volume("only", "n");
  claim("c1");
  claim("c2");
  cluster_.answer_delay = 2 * kSecondInUs;
  cluster_.change_delay = 5 * kSecondInUs;
  start();
  wait(6 * kSecondInUs);
  add(with_claim("a", "c1"));
  add(with_claim("b", "c2"));
  wait(20 * kSecondInUs);
  EXPECT_EQ(cluster_.claim_plans.size(), 1U);
  complete("c1", "only");
  wait(20 * kSecondInUs);
  EXPECT_THAT(cluster_.bound, ElementsAre("a"));
}

TEST_F(DriverClaims, WhatIsNotBoundInTimeIsGivenUpAndTriedAgain) {
  storage_class("csi.example.com");
  claim("c");
  DriverOptions options;
  options.volume_bind_timeout = 30 * kSecondInUs;
  start(options);
  add(with_claim("a", "c"));
  wait(29 * kSecondInUs);
  EXPECT_EQ(cluster_.claim_plans.size(), 1U);
  wait(10 * kSecondInUs);
  EXPECT_EQ(cluster_.claim_plans.size(), 1U);  // its claim names the node already
  EXPECT_THAT(cluster_.refused, ElementsAre(HasSubstr("not bound in time")));
}

TEST_F(DriverClaims, ANodeThatWhoProvisionsRejectsIsGivenUp) {
  storage_class("csi.example.com");
  claim("c");
  start();
  add(with_claim("a", "c"));
  settle();
  ASSERT_EQ(cluster_.claim_plans.size(), 1U);
  claim("c");  // without the annotation
  wait(5 * kSecondInUs);
  EXPECT_EQ(cluster_.claim_plans.size(), 2U);
  EXPECT_THAT(cluster_.bindings, IsEmpty());
}

TEST_F(DriverClaims, AClaimThatWasTakenBackUnseenIsToldAgain) {
  storage_class("csi.example.com");
  claim("c");
  start();
  add(with_claim("a", "c"));
  cluster_.change_delay = 3600 * kSecondInUs;  // the watch is silent from now on
  settle();
  wait(40 * kSecondInUs);
  EXPECT_EQ(cluster_.claim_plans.size(), 2U);
  EXPECT_EQ(cluster_.claim_plans[0], cluster_.claim_plans[1]);
  EXPECT_THAT(cluster_.bindings, IsEmpty());
}

TEST_F(DriverClaims, APodThatGoesReleasesWhatItWasPromised) {
  storage_class("kubernetes.io/no-provisioner");
  volume("only", "n");
  claim("c1");
  claim("c2");
  cluster_.answer_delay = 10 * kSecondInUs;
  start();
  add(with_claim("a", "c1"));
  settle();
  // the write was refused on its way, and the pod is gone before that is known
  Doc free = *cluster_.find("persistentvolumes", "", "only");
  cluster_.remove("pods", "ns", "a");
  settle();
  free.at("spec").set("claimRef", Doc());
  cluster_.put("persistentvolumes", free);
  cluster_.answer_delay = 0;
  add(with_claim("b", "c2"));
  wait(20 * kSecondInUs);
  ASSERT_EQ(cluster_.claim_plans.size(), 2U);
  EXPECT_EQ(cluster_.claim_plans[1].name, "c2");
}

}  // namespace
}  // namespace jogak::live
