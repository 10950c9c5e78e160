// SPDX-License-Identifier: Apache-2.0
//
// Simulated kubelets in a whole cluster: what becomes of pods and nodes, second by second.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/object/meta.h"
#include "base/testing/temp_folder.h"
#include "test/playground/world.h"

namespace jogak::playground::testing {
namespace {

using ::testing::ElementsAre;

std::vector<Doc> one_node() {
  std::vector<Doc> nodes;
  nodes.push_back(simulated_node("n", 8, 4));
  return nodes;
}

class Kubelet : public ::testing::Test {
 protected:
  Kubelet() : world_(one_node()) {}
  // While no node is ready nobody is evicted, so there must be another.
  void add_second_node() {
    world_.add(simulated_node("spare", 1, 0));
    run_for(kSecondInUs);
  }

  void add(std::string_view name, std::string_view key = "", std::string_view value = "",
           std::string_view policy = "Always") {
    Doc pod = simple_pod(name, 1, 1);
    if (!key.empty()) pod.at("metadata", "annotations").set(key, value);
    pod.at("spec").set("restartPolicy", policy).set("terminationGracePeriodSeconds", 30);
    world_.add(std::move(pod));
  }
  std::string phase(std::string_view name) {
    return world_.pod(name).get("status", "phase").as_string();
  }
  Doc container(std::string_view name) {
    const Doc pod = world_.pod(name);
    const auto& list = pod.get("status", "containerStatuses").items();
    return list.empty() ? Doc() : list.front();
  }
  void remove(std::string_view name, const Doc& options = {}) {
    ASSERT_TRUE(world_.api().remove("pods", "default", name, options).has_value());
  }
  bool is_there(std::string_view name) { return world_.pod(name).is_object(); }
  void run_for(TimeUs span) { world_.run_for(span); }
  Doc node() { return *world_.api().get("nodes", "", "n"); }

  World world_;
};

TEST_F(Kubelet, APodStartsAfterASecondAndIsReady) {
  add("a");
  run_for(kSecondInUs / 2);
  EXPECT_EQ(phase("a"), "Pending");
  EXPECT_EQ(container("a").get("state", "waiting", "reason").as_string(), "ContainerCreating");
  run_for(kSecondInUs);
  EXPECT_EQ(phase("a"), "Running");
  EXPECT_TRUE(api::condition_is(world_.pod("a"), "Ready", "True"));
  EXPECT_TRUE(container("a")["ready"].as_bool());
  EXPECT_FALSE(world_.pod("a").get("status", "podIP").as_string().empty());
}

TEST_F(Kubelet, APodThatIsDoneGivesItsRoomBack) {
  add("a", "jogak.io/run-seconds", "5", "Never");
  run_for(10 * kSecondInUs);
  EXPECT_EQ(phase("a"), "Succeeded");
  EXPECT_EQ(container("a").get("state", "terminated", "exitCode").as_int(), 0);
  world_.add(simple_pod("b", 1, 4));
  run_for(15 * kSecondInUs);
  EXPECT_EQ(phase("b"), "Running");
}

TEST_F(Kubelet, AFailingPodIsRestartedWithABackOffThatDoubles) {
  Doc pod = simple_pod("a", 1, 0);
  pod.at("metadata", "annotations").set("jogak.io/run-seconds", "1").set("jogak.io/exit-code", "3");
  world_.add(std::move(pod));
  std::vector<std::int64_t> waits;  // in seconds, between the end of a run and the next
  TimeUs ended = 0;
  bool was_running = false;
  for (int i = 0; i < 4000 && waits.size() < 7; ++i) {
    run_for(kSecondInUs / 2);
    const bool is_running = container("a")["state"].has("running");
    const TimeUs now = world_.loop().now();
    if (was_running && !is_running) {
      ended = now;
      EXPECT_EQ(container("a").get("state", "waiting", "reason").as_string(), "CrashLoopBackOff");
      EXPECT_EQ(container("a").get("lastState", "terminated", "exitCode").as_int(), 3);
    }
    if (!was_running && is_running && ended != 0) waits.push_back((now - ended) / kSecondInUs);
    was_running = is_running;
  }
  EXPECT_THAT(waits, ElementsAre(10, 20, 40, 80, 160, 300, 300));
  EXPECT_EQ(container("a")["restartCount"].as_int(), 7);
  EXPECT_EQ(phase("a"), "Running");
}

TEST_F(Kubelet, OnFailureRestartsOnlyFailures) {
  add("good", "jogak.io/run-seconds", "1", "OnFailure");
  run_for(30 * kSecondInUs);
  EXPECT_EQ(phase("good"), "Succeeded");
  Doc bad = simple_pod("bad", 1, 0);
  bad.at("metadata", "annotations").set("jogak.io/run-seconds", "1").set("jogak.io/exit-code", "1");
  bad.at("spec").set("restartPolicy", "OnFailure");
  world_.add(bad);
  bad.at("metadata").set("name", "never");
  bad.at("spec").set("restartPolicy", "Never");
  world_.add(bad);
  run_for(30 * kSecondInUs);
  EXPECT_GT(container("bad")["restartCount"].as_int(), 0);
  EXPECT_EQ(phase("never"), "Failed");
}

TEST_F(Kubelet, AWellBehavedPodEndsSoonAfterItIsTold) {
  add("a");
  run_for(5 * kSecondInUs);
  remove("a");
  EXPECT_TRUE(api::is_deleting(world_.pod("a")));
  run_for(kSecondInUs / 2);
  EXPECT_TRUE(is_there("a"));
  run_for(kSecondInUs);
  EXPECT_FALSE(is_there("a"));
}

TEST_F(Kubelet, APodThatIgnoresTermUsesItsWholeGrace) {
  add("a", "jogak.io/ignores-term", "true");
  run_for(5 * kSecondInUs);
  remove("a");
  run_for(29 * kSecondInUs);
  EXPECT_TRUE(is_there("a"));
  EXPECT_EQ(phase("a"), "Running");
  run_for(2 * kSecondInUs);
  EXPECT_FALSE(is_there("a"));
}

TEST_F(Kubelet, GraceOfZeroRemovesAtOnce) {
  add("a", "jogak.io/ignores-term", "true");
  run_for(5 * kSecondInUs);
  remove("a", Doc::object().set("gracePeriodSeconds", 0));
  EXPECT_FALSE(is_there("a"));
  world_.add(simple_pod("b", 1, 4));  // all devices are free again
  run_for(5 * kSecondInUs);
  EXPECT_EQ(phase("b"), "Running");
}

TEST_F(Kubelet, AFinalizerKeepsAStoppedPod) {
  Doc pod = simple_pod("a", 1, 4);
  pod.at("metadata").set("finalizers", Doc::strings({"example.com/wait"}));
  world_.add(std::move(pod));
  run_for(5 * kSecondInUs);
  remove("a");
  run_for(5 * kSecondInUs);
  EXPECT_TRUE(is_there("a"));
  EXPECT_EQ(phase("a"), "Failed");
  const Doc patch = Doc::object().set("metadata", Doc::object().set("finalizers", Doc()));
  ASSERT_TRUE(world_.api().patch("pods", "default", "a", api::PatchType::Merge, patch));
  EXPECT_FALSE(is_there("a"));
}

TEST_F(Kubelet, ANodeThatFailsIsNoticedAndItsPodsAreEvicted) {
  add_second_node();
  add("a");
  run_for(5 * kSecondInUs);
  world_.annotate_node("n", "jogak.io/fault", "down");
  run_for(30 * kSecondInUs);
  EXPECT_TRUE(api::condition_is(node(), "Ready", "True"));  // the lease is not over yet
  run_for(40 * kSecondInUs);
  EXPECT_TRUE(api::condition_is(node(), "Ready", "Unknown"));
  EXPECT_TRUE(api::condition_is(world_.pod("a"), "Ready", "False"));
  EXPECT_FALSE(api::is_deleting(world_.pod("a")));
  run_for(320 * kSecondInUs);  // the default toleration
  EXPECT_TRUE(api::is_deleting(world_.pod("a")));
  run_for(600 * kSecondInUs);
  EXPECT_TRUE(is_there("a"));  // nobody is there to stop it
  world_.annotate_node("n", "jogak.io/fault", "");
  run_for(20 * kSecondInUs);
  EXPECT_TRUE(api::condition_is(node(), "Ready", "True"));
  EXPECT_TRUE(node().get("spec", "taints").empty());
  EXPECT_FALSE(is_there("a"));
  world_.add(simple_pod("b", 1, 4));
  run_for(15 * kSecondInUs);
  EXPECT_EQ(phase("b"), "Running");
}

TEST_F(Kubelet, WhenAllNodesFailNobodyIsEvicted) {
  add("a");
  run_for(5 * kSecondInUs);
  world_.annotate_node("n", "jogak.io/fault", "down");
  run_for(1000 * kSecondInUs);
  EXPECT_TRUE(api::condition_is(node(), "Ready", "Unknown"));
  EXPECT_FALSE(api::is_deleting(world_.pod("a")));
  world_.annotate_node("n", "jogak.io/fault", "");
  run_for(20 * kSecondInUs);
  EXPECT_TRUE(api::condition_is(node(), "Ready", "True"));
  EXPECT_TRUE(node().get("spec", "taints").empty());
  EXPECT_TRUE(api::condition_is(world_.pod("a"), "Ready", "True"));
}

TEST_F(Kubelet, AShortFailureIsForgiven) {
  add_second_node();
  add("a");
  run_for(5 * kSecondInUs);
  const std::string uid = api::uid_of(world_.pod("a"));
  world_.annotate_node("n", "jogak.io/fault", "down");
  run_for(100 * kSecondInUs);
  EXPECT_TRUE(api::condition_is(world_.pod("a"), "Ready", "False"));
  world_.annotate_node("n", "jogak.io/fault", "");
  run_for(60 * kSecondInUs);
  EXPECT_EQ(api::uid_of(world_.pod("a")), uid);
  EXPECT_TRUE(api::condition_is(world_.pod("a"), "Ready", "True"));
}

TEST_F(Kubelet, UnhealthyDevicesCannotBeAllocated) {
  world_.annotate_node("n", "jogak.io/unhealthy", "nvidia.com/gpu=3");
  run_for(kSecondInUs);
  EXPECT_EQ(node().get("status", "allocatable", "nvidia.com/gpu").as_string(), "1");
  EXPECT_EQ(node().get("status", "capacity", "nvidia.com/gpu").as_string(), "4");
  world_.add(simple_pod("a", 1, 2));
  run_for(20 * kSecondInUs);
  EXPECT_EQ(phase("a"), "Pending");
  world_.annotate_node("n", "jogak.io/unhealthy", "");
  run_for(20 * kSecondInUs);
  EXPECT_EQ(phase("a"), "Running");
}

TEST_F(Kubelet, RefusesWhatDoesNotFit) {
  Doc pod = simple_pod("a", 1, 5);  // past the scheduler, straight to the node
  pod.at("spec").set("nodeName", "n");
  world_.add(std::move(pod));
  run_for(5 * kSecondInUs);
  EXPECT_EQ(phase("a"), "Failed");
  EXPECT_EQ(world_.pod("a").get("status", "reason").as_string(), "UnexpectedAdmissionError");
}

// The process ends and another begins on the same folder.
TEST(KubeletRestart, RunningPodsAreTakenOverAsTheyAre) {
  const TempFolder folder;
  std::string uid;
  {
    PlaygroundOptions options;
    options.server.data_dir = folder.path();
    World world(one_node(), std::move(options));
    world.add(simple_pod("stays", 1, 2));
    Doc ends = simple_pod("ends", 1, 1);
    ends.at("metadata", "annotations").set("jogak.io/run-seconds", "60");
    ends.at("spec").set("restartPolicy", "Never");
    world.add(std::move(ends));
    world.run_for(10 * kSecondInUs);
    EXPECT_EQ(world.count("", "Running"), 2U);
    uid = api::uid_of(world.pod("stays"));
    ASSERT_TRUE(world.playground().server().flush().has_value());
  }
  {
    PlaygroundOptions options;
    options.server.data_dir = folder.path();
    World world(one_node(), std::move(options));  // the clock begins anew, ten seconds back
    world.run_for(5 * kSecondInUs);
    EXPECT_EQ(api::uid_of(world.pod("stays")), uid);
    EXPECT_EQ(world.count("", "Running"), 2U);
    EXPECT_EQ(world.broken_rule(), "");
    world.add(simple_pod("more", 1, 2));  // two are held by "stays", one by "ends"
    world.run_for(20 * kSecondInUs);
    EXPECT_EQ(world.pod("more").get("status", "phase").as_string(), "Pending");
    world.run_for(70 * kSecondInUs);
    EXPECT_EQ(world.pod("ends").get("status", "phase").as_string(), "Succeeded");
    EXPECT_EQ(world.pod("more").get("status", "phase").as_string(), "Running");
    EXPECT_EQ(world.broken_rule(), "");
  }
}

}  // namespace
}  // namespace jogak::playground::testing
