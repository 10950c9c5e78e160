// SPDX-License-Identifier: Apache-2.0
//
// Clusters of a few nodes, drawn as "name: what it has [pods there]", and what would become of
// their pods. Pods are of ReplicaSets unless a test says that nobody owns them.
#include "sim/whatif.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "core/model/testing.h"
#include "core/plan/validate.h"
#include "sim/node_copy.h"

namespace jogak::sim {
namespace {

using core::Cluster;
using core::PodId;
using core::testing::add;
using core::testing::NodeBuilder;
using core::testing::PodBuilder;

constexpr const char* kA100 = "NVIDIA-A100-SXM4-80GB";

PodBuilder owned(std::string name, std::string kind = "ReplicaSet") {
  PodBuilder pod(std::move(name));
  pod.spec().owner_kind = std::move(kind);
  pod.spec().owner_name = "owner";
  return pod;
}

NodeBuilder cpu_node(std::string name, int cpu) { return NodeBuilder(std::move(name)).cpu(cpu); }

WhatifReport ask(Cluster& cluster, WhatifChanges changes) {
  auto report = whatif(cluster, changes);
  EXPECT_TRUE(report.has_value()) << report.error().what;
  EXPECT_EQ(cluster.recount(), "");
  EXPECT_EQ(core::validate_cluster(cluster), "");
  return report.has_value() ? std::move(*report) : WhatifReport();
}

// "a>n1", or "a:" for one that waits; "a<n0" says that it was on n0, "!b" that b preempted it.
std::string drawn(const WhatifReport& report) {
  std::vector<std::string> words;
  for (const WhatifPod& pod : report.pods) {
    std::string word = pod.name.substr(pod.name.find('/') + 1);
    if (!pod.was_on.empty()) word += "<" + pod.was_on;
    if (!pod.preempted_by.empty()) {
      word += "!" + pod.preempted_by.substr(pod.preempted_by.find('/') + 1);
    }
    words.push_back(word + (pod.starts() ? ">" + pod.node : ":"));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

// ---- waiting pods -----------------------------------------------------------------------------

TEST(Whatif, WithoutChangesTheWaitingAreTriedByPriorityThenAge) {
  // n1: 4 cpu []
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, owned("old").cpu(2));
  add(cluster, owned("young").cpu(2));
  add(cluster, owned("urgent").cpu(2).priority(10));
  const WhatifReport report = ask(cluster, {});
  EXPECT_EQ(drawn(report), "old>n1 young: urgent>n1");
  EXPECT_EQ(report.count_waiting(), 1);
  EXPECT_EQ(report.pods[1].message,
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
            "0/1 nodes are available: 1 No preemption victims found for incoming pod.");
}

TEST(Whatif, RunningPodsThatStayAreNotMentioned) {
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, owned("busy").cpu(2).on("n1"));
  const WhatifReport report = ask(cluster, {});
  EXPECT_TRUE(report.pods.empty());
  EXPECT_EQ(report.before.running, 1);
  EXPECT_EQ(report.after.running, 1);
}

TEST(Whatif, GatedPodsWaitForTheirGates) {
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  PodBuilder gated = owned("gated").cpu(1);
  gated.shape().gates = {"example.com/quota"};
  add(cluster, gated);
  const WhatifReport report = ask(cluster, {});
  EXPECT_EQ(drawn(report), "gated:");
  EXPECT_EQ(report.pods[0].message, "waiting for scheduling gates: [example.com/quota]");
}

TEST(Whatif, PodsBeingDeletedAreGoneAndTheirRoomIsFree) {
  // n1: 4 cpu [leaving 4]
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, owned("leaving").cpu(4).on("n1").terminating());
  add(cluster, owned("next").cpu(4));
  const WhatifReport report = ask(cluster, {});
  EXPECT_EQ(drawn(report), "next>n1");
  EXPECT_EQ(report.being_deleted, 1);
}

TEST(Whatif, AnEmptyClusterHasNoNodes) {
  Cluster cluster;
  add(cluster, owned("p").cpu(1));
  EXPECT_EQ(ask(cluster, {}).pods[0].message, "no nodes available to schedule pods");
}

TEST(Whatif, OnePolicyFillsUpAndAnotherSpreads) {
  // n1: 8 cpu [busy 2]   n2: 8 cpu []
  const auto node_of = [](std::string policy) {
    Cluster cluster;
    add(cluster, cpu_node("n1", 8));
    add(cluster, cpu_node("n2", 8));
    add(cluster, owned("busy").cpu(2).on("n1"));
    add(cluster, owned("p").cpu(2));
    return ask(cluster, {.policy = std::move(policy)}).pods[0].node;
  };
  EXPECT_EQ(node_of("kube"), "n2");
  EXPECT_EQ(node_of("best-fit"), "n1");
}

TEST(Whatif, AnUnknownPolicyIsNamed) {
  Cluster cluster;
  const auto report = whatif(cluster, {.policy = "kub"});
  ASSERT_FALSE(report.has_value());
  EXPECT_TRUE(report.error().what.starts_with("--policy: ")) << report.error().what;
}

// ---- nodes that go ----------------------------------------------------------------------------

TEST(Whatif, PodsOfARemovedNodeGoElsewhereOrWait) {
  // n1: 8 cpu [a 4, b 4]   n2: 8 cpu [c 4]
  Cluster cluster;
  add(cluster, cpu_node("n1", 8));
  add(cluster, cpu_node("n2", 8));
  add(cluster, owned("a").cpu(4).on("n1"));
  add(cluster, owned("b").cpu(4).on("n1"));
  add(cluster, owned("c").cpu(4).on("n2"));
  const WhatifReport report = ask(cluster, {.remove_nodes = {"n1"}});
  EXPECT_EQ(drawn(report), "a<n1>n2 b<n1:");
  EXPECT_EQ(report.removed_nodes, std::vector<std::string>{"n1"});
  EXPECT_EQ(report.before.nodes, 2);
  EXPECT_EQ(report.after.nodes, 1);
  EXPECT_EQ(report.after.running, 2);
  EXPECT_EQ(report.after.waiting, 1);
  EXPECT_FALSE(cluster.find_node("n1"));
}

TEST(Whatif, DaemonAndStaticPodsEndWithTheirNode) {
  Cluster cluster;
  add(cluster, cpu_node("n1", 8));
  add(cluster, cpu_node("n2", 8));
  add(cluster, owned("agent", "DaemonSet").cpu(1).on("n1"));
  add(cluster, owned("proxy", "Node").cpu(1).on("n1"));
  const WhatifReport report = ask(cluster, {.remove_nodes = {"n1"}});
  EXPECT_TRUE(report.pods.empty());
  EXPECT_EQ(report.ended, (std::vector<std::string>{"default/agent", "default/proxy"}));
}

TEST(Whatif, ADrainedNodeStaysAndKeepsItsDaemons) {
  Cluster cluster;
  add(cluster, cpu_node("n1", 8));
  add(cluster, cpu_node("n2", 8));
  add(cluster, owned("agent", "DaemonSet").cpu(1).on("n1"));
  add(cluster, owned("web").cpu(1).on("n1"));
  const WhatifReport report = ask(cluster, {.drain_nodes = {"n1"}});
  EXPECT_EQ(drawn(report), "web<n1>n2");
  EXPECT_TRUE(report.ended.empty());
  EXPECT_EQ(report.after.nodes, 2);
  EXPECT_EQ(cluster.node(*cluster.find_node("n1")).pod_count(), 1);
}

TEST(Whatif, WhoWaitedBeforeComesBeforeWhoLostItsPlace) {
  // n1: 4 cpu [moved 4]   n2: 4 cpu []
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, cpu_node("n2", 4).taint("later"));
  add(cluster, owned("moved").cpu(4).on("n1").tolerate_key("later"));
  add(cluster, owned("waits").cpu(4).tolerate_key("later"));
  EXPECT_EQ(drawn(ask(cluster, {.remove_nodes = {"n1"}})), "moved<n1: waits>n2");
}

TEST(Whatif, WhatNobodyOwnsIsTriedLastAndMarked) {
  // n1: 4 cpu [bare 4, of high priority]   n2: 4 cpu []
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, cpu_node("n2", 4));
  add(cluster, PodBuilder("bare").cpu(4).priority(100).on("n1"));
  add(cluster, owned("waits").cpu(4).node_selector("kubernetes.io/hostname", "n2"));
  const WhatifReport report = ask(cluster, {.remove_nodes = {"n1"}});
  EXPECT_EQ(drawn(report), "bare<n1: waits>n2");
  EXPECT_TRUE(report.pods[0].has_no_owner);
  EXPECT_FALSE(report.pods[1].has_no_owner);
}

TEST(Whatif, APodBoundToItsNodeByNameWaitsAndSaysWhy) {
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, cpu_node("n2", 4));
  add(cluster, owned("pinned").cpu(1).node_selector("kubernetes.io/hostname", "n1").on("n1"));
  const WhatifReport report = ask(cluster, {.remove_nodes = {"n1"}});
  EXPECT_EQ(drawn(report), "pinned<n1:");
  EXPECT_TRUE(report.pods[0].message.starts_with(
      "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."))
      << report.pods[0].message;
}

TEST(Whatif, AnUnknownNodeIsNamedWithTheNearest) {
  Cluster cluster;
  add(cluster, cpu_node("train-0", 4));
  for (const WhatifChanges& changes :
       {WhatifChanges{.remove_nodes = {"trian-0"}}, WhatifChanges{.drain_nodes = {"trian-0"}},
        WhatifChanges{.copy_nodes = {{"trian-0", 1}}}}) {
    const auto report = whatif(cluster, changes);
    ASSERT_FALSE(report.has_value());
    EXPECT_EQ(report.error().code, Errc::NotFound);
    EXPECT_TRUE(report.error().what.ends_with("no node trian-0 among 1; did you mean train-0?"))
        << report.error().what;
  }
}

// ---- nodes that come --------------------------------------------------------------------------

TEST(Whatif, CopiesOfANodeTakeWhatWaits) {
  // n1: 8 A100 [full 8]   waiting: a 8, b 8, c 8
  Cluster cluster;
  add(cluster, cpu_node("n1", 64).gpus(kA100, 8, 81920));
  add(cluster, owned("full").gpus(8).on("n1", {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}));
  for (const char* name : {"a", "b", "c"}) add(cluster, owned(name).gpus(8));
  const WhatifReport report = ask(cluster, {.copy_nodes = {{"n1", 2}}});
  EXPECT_EQ(drawn(report), "a>n1-new-1 b>n1-new-2 c:");
  EXPECT_EQ(report.added_nodes, (std::vector<std::string>{"n1-new-1", "n1-new-2"}));
  EXPECT_EQ(report.pods[0].holds.size(), 8U);
  EXPECT_EQ(report.before.gpu_milli, 8000);
  EXPECT_EQ(report.before.gpu_allocated_milli, 8000);
  EXPECT_EQ(report.after.gpu_milli, 24000);
  EXPECT_EQ(report.after.gpu_allocated_milli, 24000);
}

TEST(Whatif, ACopyBringsTheDaemonsOfItsNode) {
  // n1: 4 cpu [agent 1 (DaemonSet), web 3]   waiting: next 4, small 3
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, owned("agent", "DaemonSet").cpu(1).on("n1"));
  add(cluster, owned("web").cpu(3).on("n1"));
  add(cluster, owned("next").cpu(4));
  add(cluster, owned("small").cpu(3));
  EXPECT_EQ(drawn(ask(cluster, {.copy_nodes = {{"n1", 1}}})), "next: small>n1-new-1");
}

TEST(Whatif, ANodeCanBeReplacedByItsCopy) {
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, owned("a").cpu(4).on("n1"));
  EXPECT_EQ(drawn(ask(cluster, {.remove_nodes = {"n1"}, .copy_nodes = {{"n1", 1}}})),
            "a<n1>n1-new-1");
}

TEST(Whatif, MadeUpNodesAreAddedUnderTheirNames) {
  Cluster cluster;
  add(cluster, cpu_node("n1", 1));
  add(cluster, owned("a").cpu(4));
  EXPECT_EQ(drawn(ask(cluster, {.add_nodes = {cpu_node("big", 8).spec()}})), "a>big");
}

TEST(Whatif, AMadeUpNodeMayNotHideAnother) {
  Cluster cluster;
  add(cluster, cpu_node("n1", 1));
  const auto report = whatif(cluster, {.add_nodes = {cpu_node("n1", 8).spec()}});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().what, "node n1 is there already; give the new one another name");
}

// ---- pods that come ---------------------------------------------------------------------------

TEST(Whatif, NewPodsComeAfterAllOthersOfTheirPriority) {
  // n1: 4 cpu []
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, owned("waits").cpu(2));
  const PodId new_1 = add(cluster, owned("new-1").cpu(2));
  const PodId new_2 = add(cluster, owned("new-2").cpu(2));
  const WhatifReport report = ask(cluster, {.new_pods = {new_2, new_1}});
  EXPECT_EQ(drawn(report), "waits>n1 new-2>n1 new-1:");
  EXPECT_FALSE(report.pods[0].is_new);
  EXPECT_TRUE(report.pods[1].is_new);
  EXPECT_EQ(report.before.waiting, 1);
  EXPECT_EQ(report.after.waiting, 1);
}

TEST(Whatif, NewPodsOfHigherPriorityComeFirst) {
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, owned("waits").cpu(4));
  const PodId urgent = add(cluster, owned("urgent").cpu(4).priority(5));
  EXPECT_EQ(drawn(ask(cluster, {.new_pods = {urgent}})), "waits: urgent>n1");
}

// ---- preemption -------------------------------------------------------------------------------

TEST(Whatif, APreemptorTakesTheRoomAndItsVictimsWait) {
  // n1: 4 cpu [low 4]
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, owned("low").cpu(4).on("n1"));
  add(cluster, owned("high").cpu(4).priority(10));
  const WhatifReport report = ask(cluster, {});
  EXPECT_EQ(drawn(report), "high>n1 low<n1!high:");
  EXPECT_EQ(report.pods[0].victims, std::vector<std::string>{"default/low"});
  EXPECT_EQ(report.pods[1].preempted_by, "default/high");
  EXPECT_TRUE(report.pods[1].message.starts_with("0/1 nodes are available: 1 Insufficient cpu."));
}

TEST(Whatif, AVictimGoesWhereThereIsRoomForIt) {
  // n1: 4 cpu [low 2]   n2: 2 cpu []
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, cpu_node("n2", 2));
  add(cluster, owned("low").cpu(2).on("n1"));
  add(cluster, owned("high").cpu(4).priority(10));
  EXPECT_EQ(drawn(ask(cluster, {})), "high>n1 low<n1!high>n2");
}

TEST(Whatif, AVictimMayItselfPreempt) {
  // n1: 4 cpu [mid 4, priority 5]   n2: 4 cpu, tainted against high [low 4]
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, cpu_node("n2", 4).taint("own"));
  add(cluster, owned("mid").cpu(4).priority(5).tolerate_key("own").on("n1"));
  add(cluster, owned("low").cpu(4).tolerate_key("own").on("n2"));
  add(cluster, owned("high").cpu(4).priority(10));
  EXPECT_EQ(drawn(ask(cluster, {})), "high>n1 mid<n1!high>n2 low<n2!mid:");
}

TEST(Whatif, WhoMayNotPreemptGetsWhatAnotherMadeFree) {
  // n1: 4 cpu [low 4]; polite would need 2 and may not preempt, high takes 2 of the 4
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, owned("low").cpu(4).on("n1"));
  PodBuilder polite = owned("polite").cpu(2).priority(20);
  polite.shape().preemption = core::PreemptionPolicy::Never;
  add(cluster, polite);
  add(cluster, owned("high").cpu(2).priority(10));
  EXPECT_EQ(drawn(ask(cluster, {})), "polite>n1 high>n1 low<n1!high:");
}

TEST(Whatif, AVictimThatNobodyOwnsIsMarked) {
  Cluster cluster;
  add(cluster, cpu_node("n1", 4));
  add(cluster, PodBuilder("bare").cpu(4).on("n1"));
  add(cluster, owned("high").cpu(4).priority(10));
  const WhatifReport report = ask(cluster, {});
  EXPECT_EQ(drawn(report), "high>n1 bare<n1!high:");
  EXPECT_TRUE(report.pods[1].has_no_owner);
}

TEST(Whatif, ABudgetIsSpentByTheFirstPreemption) {
  // n1, n2: 4 cpu [web 4 each, budget of one]   n3: 4 cpu [other 4, of higher priority than web]
  Cluster cluster;
  for (const char* name : {"n1", "n2", "n3"}) add(cluster, cpu_node(name, 4));
  add(cluster, owned("web-1").cpu(4).label("app", "web").on("n1"));
  add(cluster, owned("web-2").cpu(4).label("app", "web").on("n2"));
  add(cluster, owned("other").cpu(4).priority(1).on("n3"));
  cluster.mutable_objects().pdbs["default/web"] = {
      .ns = "default",
      .name = "web",
      .selector = core::LabelSelector{{core::testing::in("app", {"web"})}},
      .disruptions_allowed = 1,
      .disrupted_pods = {}};
  add(cluster, owned("high-1").cpu(4).priority(10));
  add(cluster, owned("high-2").cpu(4).priority(10));
  const WhatifReport report = ask(cluster, {});
  // The first takes the cheapest, a web; for the second another web would break the budget. Other,
  // made anew, has nobody else below it.
  ASSERT_EQ(report.pods.size(), 5U) << drawn(report);
  EXPECT_EQ(report.pods[0].victims.size(), 1U);
  EXPECT_TRUE(report.pods[0].victims[0].starts_with("default/web-"));
  EXPECT_EQ(report.pods[1].victims, std::vector<std::string>{"default/other"});
}

// ---- copies of nodes --------------------------------------------------------------------------

TEST(NodeCopy, TheSpecOfANodeMakesItAgain) {
  Cluster cluster;
  core::GpuSpec mig;
  mig.memory_mib = 81920;
  mig.mig_enabled = true;
  mig.mig_instances = {{"1g.10gb", 0}, {"3g.40gb", 4}};
  NodeBuilder node = cpu_node("n1", 7)
                         .gpus(kA100, 3, 81920)
                         .gpu(mig)
                         .zone("z")
                         .taint("t", "v")
                         .image("img:1", 10)
                         .feature("F")
                         .resource("example.com/nic", 2)
                         .resource("ephemeral-storage", 1000)
                         .unschedulable()
                         .order(3);
  node.spec().gpus[1].health = core::GpuHealth::Unhealthy;
  node.spec().gpus[0].nvlink_mask = 0b110;
  node.spec().gpus[2].numa_node = 1;
  add(cluster, node);
  add(cluster, owned("p").gpus(1).resource("example.com/other", 0).on("n1", {{0}}));
  const std::uint64_t digest = cluster.digest();
  const core::NodeSpec spec = spec_of(cluster, *cluster.find_node("n1"));
  EXPECT_EQ(spec, node.spec());
  ASSERT_TRUE(cluster.upsert_node(spec).has_value());
  EXPECT_EQ(cluster.digest(), digest);
}

TEST(NodeCopy, ACopyIsAFreshNodeOfTheSameShape) {
  Cluster cluster;
  NodeBuilder node = cpu_node("n1", 7)
                         .gpus(kA100, 1, 81920)
                         .label("example.com/self", "n1")
                         .zone("z")
                         .taint("gpu")
                         .taint("node.kubernetes.io/unschedulable")
                         .image("img:1", 10)
                         .unschedulable();
  node.spec().gpus[0].health = core::GpuHealth::Unhealthy;
  add(cluster, node);
  const core::NodeSpec copy = copy_of(cluster, *cluster.find_node("n1"), "n2");
  EXPECT_EQ(copy, cpu_node("n2", 7)
                      .resource("ephemeral-storage", 0)
                      .gpus(kA100, 1, 81920)
                      .label("example.com/self", "n2")
                      .zone("z")
                      .taint("gpu")
                      .spec());
}

}  // namespace
}  // namespace jogak::sim
