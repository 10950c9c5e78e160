// SPDX-License-Identifier: Apache-2.0
//
// States that made schedulers of this field go wrong, with their numbers, on the live driver: those
// that concern single pods. Each name begins with the case's number.
#include <map>
#include <set>
#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/livesim/scene.h"

namespace jogak::livesim {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr TimeUs kSoon = 30 * kSecondInUs;

// A device of so many MiB.
std::string devices(int count, int memory_mib) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += fmt::format("{}{{\"memoryMiB\":{}}}", i == 0 ? "" : ",", memory_mib);
  }
  return "[" + text + "]";
}

void node_with_memory(Scene& scene, int count, int memory_mib) {
  Doc node = node_object({.name = "n0", .cpu = 64, .gpus = count, .pods = 110});
  node.at("metadata", "annotations").set("jogak.io/gpus", devices(count, memory_mib));
  scene.world().add("nodes", "", std::move(node));
}

void pod_with_memory(Scene& scene, std::string_view name, int memory_mib) {
  Doc pod = pod_object({.name = std::string(name), .cpu_milli = 100});
  pod.at("metadata", "annotations").set("jogak.io/gpu-memory-mib", std::to_string(memory_mib));
  scene.world().add("pods", "default", std::move(pod));
}

// Devices of the node and the share of each that is held, in thousandths.
std::map<std::int64_t, std::int64_t> held(Scene& scene, std::string_view node) {
  std::map<std::int64_t, std::int64_t> devices;
  for (const auto& [uid, pod] : scene.world().facts().pods()) {
    if (pod.node != node || !pod.takes_room()) continue;
    for (const Holding& holding : pod.holds) devices[holding.gpu] += holding.milli;
  }
  return devices;
}

// ---- A: the ledger ----------------------------------------------------------------------------

TEST(LiveCases, A1_MemoryIsCountedInMibNotInFractions) {
  Scene scene;
  node_with_memory(scene, 1, 46068);
  for (int i = 0; i < 24; ++i) pod_with_memory(scene, fmt::format("p{}", i), 2000);
  scene.run_for(kSoon);
  EXPECT_EQ(scene.bound("p"), 23U);  // 23 x 2000 <= 46068 < 24 x 2000
}

TEST(LiveCases, A1_SecondSize) {
  Scene scene;
  node_with_memory(scene, 1, 15360);
  for (int i = 0; i < 5; ++i) pod_with_memory(scene, fmt::format("p{}", i), 4096);
  scene.run_for(kSoon);
  EXPECT_EQ(scene.bound("p"), 3U);  // 3 x 4096 <= 15360 < 4 x 4096
}

TEST(LiveCases, A3_TwoSharersWhileTheWatchIsLate) {
  Scene scene;
  scene.node({.name = "n0", .gpus = 2, .has_devices = true});
  scene.run_for(kSoon);
  scene.faults() = {.delay = 1000, .delay_max = 5 * kSecondInUs, .watch_batch = 1000};
  scene.pod({.name = "a", .share_milli = 500, .share_count = 1});
  scene.run_for(kSecondInUs);
  scene.pod({.name = "b", .share_milli = 500, .share_count = 1});
  scene.run_for(2 * kSoon);
  EXPECT_EQ(scene.bound(""), 2U);
  std::int64_t sum = 0;
  for (const auto& [device, milli] : held(scene, "n0")) {
    EXPECT_LE(milli, 1000);
    sum += milli;
  }
  EXPECT_EQ(sum, 1000);
  EXPECT_EQ(scene.broken(), "");
}

TEST(LiveCases, A5_TheLastSharerEndsAsANewOneComes) {
  Scene scene;
  scene.node({.name = "n0", .gpus = 1, .has_devices = true});
  scene.pod({.name = "old", .share_milli = 500, .share_count = 1});
  scene.run_for(kSoon);
  ASSERT_EQ(scene.node_of("old"), "n0");
  scene.faults() = {.delay = 1000, .delay_max = 3 * kSecondInUs};
  scene.pod({.name = "new", .share_milli = 500, .share_count = 1});
  scene.pod({.name = "whole", .gpus = 1});
  scene.world().remove("pods", "default", "old");
  scene.run_for(2 * kSoon);
  // one of them has it, and the other waits: never both, never neither
  EXPECT_EQ(scene.bound(""), 1U);
  EXPECT_EQ(scene.broken(), "");
}

TEST(LiveCases, A9_SidecarsAddToTheMainContainer) {
  Scene scene;
  scene.node({.name = "n0", .cpu = 3, .gpus = 2});
  const std::string container =
      R"("image":"i","resources":{"requests":{"cpu":"2","nvidia.com/gpu":"1"},)"
      R"("limits":{"nvidia.com/gpu":"1"}})";
  scene.pod_json(fmt::format(R"({{"metadata":{{"name":"a"}},"spec":{{"schedulerName":"jogak",)"
                             R"("initContainers":[{{"name":"side","restartPolicy":"Always",{0}}}],)"
                             R"("containers":[{{"name":"main",{0}}}]}}}})",
                             container));
  scene.run_for(kSoon);
  EXPECT_EQ(scene.node_of("a"), "");
  EXPECT_THAT(scene.said("a"), HasSubstr("cpu"));
  // with 4 cpus, what it asks for together, it runs
  scene.node({.name = "n1", .cpu = 4, .gpus = 2});
  scene.run_for(kSoon);
  EXPECT_EQ(scene.node_of("a"), "n1");
}

TEST(LiveCases, A13_DevicesDropOutWhileAllAreInUse) {
  Scene scene;
  scene.node({.name = "n0", .gpus = 8});
  scene.pod({.name = "a", .gpus = 8});
  scene.run_for(kSoon);
  ASSERT_EQ(scene.node_of("a"), "n0");
  Doc sick = Doc::object();
  sick.at("metadata", "annotations").set("jogak.io/unhealthy", "nvidia.com/gpu=2");
  scene.world().patch("nodes", "", "n0", sick);
  scene.run_for(kSoon);
  Doc label = Doc::object();
  label.at("metadata", "labels").set("touched", "yes");
  scene.world().patch("nodes", "", "n0", label);
  scene.pod({.name = "b", .gpus = 6});
  scene.run_for(kSoon);
  EXPECT_EQ(scene.world().facts().nodes().at("n0").allocatable.gpus, 6);
  EXPECT_EQ(scene.node_of("b"), "");
  EXPECT_THAT(scene.said("b"), HasSubstr("Insufficient nvidia.com/gpu"));
  EXPECT_EQ(scene.broken(), "");
}

TEST(LiveCases, A15_ARestartBetweenTwoSharersCountsNobodyTwice) {
  Scene scene;
  node_with_memory(scene, 1, 24576);
  pod_with_memory(scene, "p0", 12288);
  scene.run_for(kSoon);
  EXPECT_EQ(scene.bound("p"), 1U);
  scene.restart();
  pod_with_memory(scene, "p1", 12288);
  scene.run_for(kSoon);
  EXPECT_EQ(scene.bound("p"), 2U);
  pod_with_memory(scene, "p2", 12288);
  scene.run_for(kSoon);
  EXPECT_EQ(scene.bound("p"), 2U);
}

TEST(LiveCases, A19_ARecreatedPodGetsTheCardsThatWereFreed) {
  Scene scene;
  scene.node({.name = "n0", .gpus = 8, .has_devices = true});
  for (int i = 0; i < 4; ++i) scene.pod({.name = fmt::format("p{}", i), .gpus = 2});
  scene.run_for(kSoon);
  ASSERT_EQ(scene.bound("p"), 4U);
  std::set<std::int64_t> freed;
  for (const Holding& holding : scene.find("p1")->holds) freed.insert(holding.gpu);
  scene.faults() = {.delay = 1000, .delay_max = 10 * kSecondInUs, .watch_batch = 1000};
  scene.world().remove("pods", "default", "p1", 0);
  scene.pod({.name = "p1", .gpus = 2});
  scene.run_for(3 * kSoon);
  ASSERT_EQ(scene.node_of("p1"), "n0");
  std::set<std::int64_t> given;
  for (const Holding& holding : scene.find("p1")->holds) given.insert(holding.gpu);
  EXPECT_EQ(given, freed);
  EXPECT_EQ(scene.broken(), "");
}

TEST(LiveCases, A21_TerminatingPodsHoldWhatTheyHave) {
  Scene scene;
  scene.node({.name = "n0", .gpus = 8});
  scene.pod({.name = "a", .gpus = 8, .ignores_term = true, .grace_s = 600});
  scene.run_for(kSoon);
  scene.world().remove("pods", "default", "a");
  scene.pod({.name = "b", .gpus = 8});
  scene.run_for(500 * kSecondInUs);
  EXPECT_EQ(scene.node_of("b"), "");
  scene.run_for(200 * kSecondInUs);
  EXPECT_EQ(scene.node_of("b"), "n0");
  EXPECT_EQ(scene.broken(), "");
}

TEST(LiveCases, A21_ANodeFullOfPodsIsNoCandidate) {
  Scene scene;
  scene.node({.name = "n0", .gpus = 8, .pods = 2});
  for (const char* name : {"a", "b"}) scene.pod({.name = name, .cpu_milli = 100});
  scene.run_for(kSoon);
  scene.pod({.name = "c", .gpus = 8});
  scene.run_for(kSoon);
  EXPECT_EQ(scene.node_of("c"), "");
  EXPECT_THAT(scene.said("c"), HasSubstr("Too many pods"));
}

TEST(LiveCases, A27_TheHealthyDeviceIsUsableThoughAnotherFellIll) {
  Scene scene;
  NodeSpec node{.name = "n0", .gpus = 2, .has_devices = true};
  scene.node(node);
  scene.pod({.name = "a", .gpus = 1});
  scene.run_for(kSoon);
  ASSERT_EQ(scene.find("a")->holds.size(), 1U);
  const std::int64_t sick = scene.find("a")->holds.front().gpu;
  node.sick = {static_cast<int>(sick)};
  scene.world().set_devices("n0", node);
  scene.run_for(kSoon);
  scene.pod({.name = "b", .gpus = 1});
  scene.run_for(kSoon);
  ASSERT_EQ(scene.node_of("b"), "n0");
  EXPECT_EQ(scene.find("b")->holds.front().gpu, 1 - sick);
  EXPECT_EQ(scene.broken(), "");
}

// The node is registered anew under pods that go on running: they have the devices they had.
TEST(LiveCases, ANodeThatReturnsKeepsItsPodsDevices) {
  Scene scene;
  const NodeSpec node{.name = "n0", .gpus = 2, .has_devices = true};
  scene.node(node);
  scene.pod({.name = "a", .gpus = 1});
  scene.run_for(kSoon);
  ASSERT_EQ(scene.node_of("a"), "n0");
  scene.world().remove("nodes", "", "n0");
  scene.run_for(kSecondInUs);
  scene.node(node);
  scene.pod({.name = "b", .gpus = 1});
  scene.run_for(2 * kSecondInUs);
  ASSERT_EQ(scene.node_of("a"), "n0");
  ASSERT_EQ(scene.node_of("b"), "n0");
  EXPECT_NE(scene.find("a")->holds.front().gpu, scene.find("b")->holds.front().gpu);
  EXPECT_EQ(scene.broken(), "");
}

// ---- D: preemption ----------------------------------------------------------------------------

TEST(LiveCases, D5_NobodyIsEvictedWhenTheLastFilterFails) {
  Scene scene;
  scene.node({.name = "n0", .zone = "x", .cpu = 4});
  scene.node({.name = "n1", .zone = "y", .cpu = 4});
  // its volume is in zone y
  scene.pod({.name = "first", .cpu_milli = 1000, .zone = "y", .needs_volume = true});
  scene.run_for(kSoon);
  ASSERT_EQ(scene.node_of("first"), "n1");
  scene.world().remove("pods", "default", "first", 0);
  scene.run_for(kSoon);
  scene.pod({.name = "low", .cpu_milli = 4000, .zone = "x", .priority_class = "low"});
  scene.run_for(kSoon);
  ASSERT_EQ(scene.node_of("low"), "n0");
  // the same claim, but only nodes of zone x are wanted: no victim there helps
  scene.pod({.name = "first",
             .cpu_milli = 4000,
             .zone = "x",
             .priority_class = "high",
             .needs_volume = true});
  scene.run_for(10 * kSoon);
  EXPECT_EQ(scene.node_of("first"), "");
  EXPECT_EQ(scene.node_of("low"), "n0");
  EXPECT_EQ(scene.checkers().counts().evicted, 0U);
}

TEST(LiveCases, D5_NorWhenItsPortIsTakenByOneOfHigherRank) {
  Scene scene;
  scene.node({.name = "n0", .cpu = 4});
  const auto with_port = [&](std::string_view name, int cpu, std::string_view priority) {
    scene.pod_json(fmt::format(
        R"({{"metadata":{{"name":"{}"}},"spec":{{"schedulerName":"jogak","priorityClassName":"{}",)"
        R"("containers":[{{"name":"main","image":"i","resources":{{"requests":{{"cpu":"{}"}}}},)"
        R"("ports":[{{"containerPort":80,"hostPort":8080}}]}}]}}}})",
        name, priority, cpu));
  };
  with_port("port", 1, "high");
  scene.pod({.name = "low", .cpu_milli = 3000, .priority_class = "low"});
  scene.run_for(kSoon);
  ASSERT_EQ(scene.bound(""), 2U);
  with_port("mid", 2, "mid");
  scene.run_for(10 * kSoon);
  EXPECT_EQ(scene.node_of("mid"), "");
  EXPECT_EQ(scene.node_of("low"), "n0");
  EXPECT_EQ(scene.checkers().counts().evicted, 0U);
}

TEST(LiveCases, D7_OneDeletePerVictimHoweverSlowTheServer) {
  Scene scene;
  scene.node({.name = "n0", .cpu = 4});
  for (int i = 0; i < 4; ++i) {
    scene.pod({.name = fmt::format("low{}", i), .priority_class = "low", .grace_s = 30});
  }
  scene.run_for(kSoon);
  ASSERT_EQ(scene.bound("low"), 4U);
  scene.faults() = {.delay = 1000, .delay_max = 2 * kSecondInUs};
  scene.pod({.name = "high", .cpu_milli = 4000, .priority_class = "high"});
  scene.run_for(4 * kSoon);
  EXPECT_EQ(scene.node_of("high"), "n0");
  EXPECT_EQ(scene.checkers().counts().evicted, 4U);
  EXPECT_EQ(scene.broken(), "");
}

TEST(LiveCases, D9_AFreedSeatStaysEarmarkedUntilItIsTaken) {
  Scene scene;
  scene.node({.name = "n0", .cpu = 4});
  for (int i = 0; i < 4; ++i) {
    scene.pod({.name = fmt::format("low{}", i),
               .priority_class = "low",
               .ignores_term = i > 0,
               .grace_s = i == 0 ? 0 : 60});
  }
  scene.run_for(kSoon);
  ASSERT_EQ(scene.bound("low"), 4U);
  scene.pod({.name = "high", .cpu_milli = 4000, .priority_class = "high"});
  scene.run_for(10 * kSecondInUs);
  EXPECT_EQ(scene.find("high")->nominated, "n0");
  ASSERT_EQ(scene.node_of("low0"), "gone");  // its cpu is free, for a minute
  for (int i = 0; i < 4; ++i) scene.pod({.name = fmt::format("small{}", i)});
  scene.run_for(30 * kSecondInUs);
  EXPECT_EQ(scene.bound("small"), 0U);
  scene.run_for(60 * kSecondInUs);
  EXPECT_EQ(scene.node_of("high"), "n0");
  EXPECT_EQ(scene.bound("small"), 0U);
  EXPECT_EQ(scene.broken(), "");
}

TEST(LiveCases, D9_AlsoAcrossARestart) {
  Scene scene;
  scene.node({.name = "n0", .cpu = 4});
  scene.pod({.name = "low0", .cpu_milli = 2000, .priority_class = "low"});
  scene.pod({.name = "low1",
             .cpu_milli = 2000,
             .priority_class = "low",
             .ignores_term = true,
             .grace_s = 60});
  scene.run_for(kSoon);
  scene.pod({.name = "high", .cpu_milli = 4000, .priority_class = "high"});
  scene.run_for(10 * kSecondInUs);
  ASSERT_EQ(scene.node_of("low0"), "gone");
  scene.restart();
  scene.pod({.name = "small", .cpu_milli = 2000});
  scene.run_for(100 * kSecondInUs);
  EXPECT_EQ(scene.node_of("high"), "n0");
  EXPECT_EQ(scene.node_of("small"), "");
  EXPECT_EQ(scene.checkers().counts().evicted, 2U);
}

TEST(LiveCases, D9_ANominationEndsWithItsPod) {
  Scene scene;
  scene.node({.name = "n0", .cpu = 4});
  scene.pod({.name = "low",
             .cpu_milli = 4000,
             .priority_class = "low",
             .ignores_term = true,
             .grace_s = 60});
  scene.run_for(kSoon);
  scene.pod({.name = "high", .cpu_milli = 4000, .priority_class = "high"});
  scene.run_for(10 * kSecondInUs);
  scene.world().remove("pods", "default", "high");
  scene.pod({.name = "small", .cpu_milli = 4000});
  scene.run_for(100 * kSecondInUs);
  EXPECT_EQ(scene.node_of("small"), "n0");
}

TEST(LiveCases, D11_TheVictimWithoutABudgetGoes) {
  for (const std::string_view protected_pod : {"a", "b"}) {
    Scene scene;
    scene.node({.name = "n0", .zone = "x", .cpu = 2});
    scene.node({.name = "n1", .zone = "y", .cpu = 2});
    for (const char* name : {"a", "b"}) {
      scene.pod({.name = name,
                 .cpu_milli = 2000,
                 .priority_class = "low",
                 .app = name == protected_pod ? "kept" : "other"});
    }
    Doc budget = Doc::object();
    budget.set("apiVersion", "policy/v1").set("kind", "PodDisruptionBudget");
    budget.at("metadata").set("name", "keep");
    budget.at("spec").set("minAvailable", 1);
    budget.at("spec", "selector", "matchLabels").set("app", "kept");
    scene.world().add("poddisruptionbudgets.policy", "default", std::move(budget));
    scene.run_for(kSoon);
    ASSERT_EQ(scene.bound(""), 2U);
    scene.pod({.name = "high", .cpu_milli = 2000, .priority_class = "high"});
    scene.run_for(2 * kSoon);
    EXPECT_THAT(scene.node_of("high"), AnyOf("n0", "n1"));
    EXPECT_NE(scene.node_of(protected_pod), "gone");
    EXPECT_EQ(scene.broken(), "");
  }
}

TEST(LiveCases, D11_ABudgetIsBrokenOnlyWhenNothingElseHelps) {
  Scene scene;
  scene.node({.name = "n0", .cpu = 2});
  scene.pod({.name = "a", .cpu_milli = 2000, .priority_class = "low", .app = "kept"});
  Doc budget = Doc::object();
  budget.set("apiVersion", "policy/v1").set("kind", "PodDisruptionBudget");
  budget.at("metadata").set("name", "keep");
  budget.at("spec").set("minAvailable", 1);
  budget.at("spec", "selector", "matchLabels").set("app", "kept");
  scene.world().add("poddisruptionbudgets.policy", "default", std::move(budget));
  scene.run_for(kSoon);
  scene.pod({.name = "high", .cpu_milli = 2000, .priority_class = "high"});
  scene.run_for(2 * kSoon);
  EXPECT_EQ(scene.node_of("high"), "n0");
  EXPECT_EQ(scene.node_of("a"), "gone");
}

// ---- G: life and operations -------------------------------------------------------------------

TEST(LiveCases, G3_AnExpiredTokenIsNotRetriedWithoutEndAndItsSuccessorWorks) {
  Scene scene;
  scene.node({.name = "n0"});
  scene.run_for(kSoon);
  scene.faults().is_token_expired = true;
  scene.pod({.name = "a"});
  const std::uint64_t before = scene.checkers().counts().calls;
  scene.run_for(300 * kSecondInUs);
  // 14 watches and one pod, each with its back-off
  EXPECT_LT(scene.checkers().counts().calls - before, 1000U);
  scene.faults().is_token_expired = false;
  scene.run_for(60 * kSecondInUs);
  EXPECT_EQ(scene.node_of("a"), "n0");
  EXPECT_EQ(scene.broken(), "");
}

TEST(LiveCases, G7_ABindingThatTimesOutKeepsItsSeatUntilItIsKnown) {
  Scene scene;
  scene.node({.name = "n0", .cpu = 4, .gpus = 1, .has_devices = true});
  scene.run_for(kSoon);
  scene.faults() = {.lose_answer = 1000};  // every write happens, and nobody hears of it
  scene.pod({.name = "a", .gpus = 1});
  scene.run_for(5 * kSecondInUs);
  scene.pod({.name = "b", .gpus = 1});
  scene.run_for(120 * kSecondInUs);
  EXPECT_EQ(scene.bound(""), 1U);
  scene.faults() = {};
  scene.run_for(120 * kSecondInUs);
  EXPECT_EQ(scene.bound(""), 1U);
  EXPECT_EQ(scene.broken(), "");
}

TEST(LiveCases, G7_ABindingThatNeverArrivesIsMadeAgain) {
  Scene scene;
  scene.node({.name = "n0", .cpu = 4});
  scene.run_for(kSoon);
  scene.faults() = {.lose = 1000};
  for (int i = 0; i < 4; ++i) scene.pod({.name = fmt::format("p{}", i)});
  scene.run_for(95 * kSecondInUs);
  EXPECT_EQ(scene.bound("p"), 0U);
  scene.faults() = {};
  scene.run_for(180 * kSecondInUs);
  EXPECT_EQ(scene.bound("p"), 4U);
  EXPECT_EQ(scene.broken(), "");
}

TEST(LiveCases, G9_ABurstNeedsNoWebhook) {
  Scene scene;
  for (int i = 0; i < 4; ++i) {
    scene.node({.name = fmt::format("n{}", i), .cpu = 64, .pods = 110});
  }
  scene.run_for(kSoon);
  for (int i = 0; i < 400; ++i) scene.pod({.name = fmt::format("p{}", i), .cpu_milli = 100});
  scene.run_for(kSoon);
  EXPECT_EQ(scene.bound("p"), 400U);
  EXPECT_TRUE(scene.world()
                  .api()
                  .list("mutatingwebhookconfigurations.admissionregistration.k8s.io")
                  .empty());
}

}  // namespace
}  // namespace jogak::livesim
