// SPDX-License-Identifier: Apache-2.0
// Decisions from remembered verdicts: each case is something that may change behind the memory's
// back.
#include "core/engine/scheduler.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/filter/verdict.h"
#include "core/model/testing.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::in;
using testing::NodeBuilder;
using testing::PodBuilder;

constexpr const char* kT4 = "Tesla-T4";

PodAffinityTerm term(std::string key, std::string app) {
  PodAffinityTerm t;
  t.selector = LabelSelector{{in("app", {std::move(app)})}};
  t.topology_key = std::move(key);
  return t;
}

class SchedulerTest : public ::testing::Test {
 protected:
  // The node the pod would get now; the same pod may be asked for again.
  std::string where(const PodBuilder& pod) { return name(decide(pod).node); }
  Decision decide(const PodBuilder& pod) { return scheduler().decide(add(cluster_, pod)); }
  std::string run(const PodBuilder& pod) {
    const Decision decision = decide(pod);
    if (decision.node.valid()) scheduler().accept(decision);
    return name(decision.node);
  }
  std::string name(NodeId node) const {
    return node.valid() ? std::string(cluster_.text(cluster_.node(node).name)) : "none";
  }
  std::uint32_t refused(const PodBuilder& pod, Plugin plugin) {
    return scheduler().refusals(add(cluster_, pod))[static_cast<std::size_t>(plugin)];
  }
  Scheduler& scheduler() {
    if (!scheduler_) scheduler_ = std::make_unique<Scheduler>(cluster_, *policy_);
    return *scheduler_;
  }

  Cluster cluster_;
  std::unique_ptr<Policy> policy_ = std::move(make_policy("best-fit", 1)).value();
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, EqualScoresFallToTheFirstNodeInOrder) {
  add(cluster_, NodeBuilder("b"));
  add(cluster_, NodeBuilder("a"));
  add(cluster_, NodeBuilder("c").order(-1));
  EXPECT_EQ(where(PodBuilder("p").cpu(1)), "c");
}

TEST_F(SchedulerTest, EmptyClusterAndGatedAndTerminatingPods) {
  EXPECT_EQ(where(PodBuilder("p")), "none");
  add(cluster_, NodeBuilder("n1"));
  EXPECT_EQ(where(PodBuilder("p")), "n1");
  PodBuilder gated("p");
  gated.shape().gates = {"wait"};
  EXPECT_EQ(where(gated), "none");
  EXPECT_EQ(where(PodBuilder("p").terminating()), "none");
}

TEST_F(SchedulerTest, FollowsUsageAndFacts) {
  add(cluster_, NodeBuilder("n1").cpu(4));
  add(cluster_, NodeBuilder("n2").cpu(8));
  EXPECT_EQ(run(PodBuilder("a").cpu(3)), "n1");
  EXPECT_EQ(where(PodBuilder("p").cpu(3)), "n2");
  add(cluster_, NodeBuilder("n2").cpu(8).taint("t"));
  EXPECT_EQ(where(PodBuilder("p").cpu(3)), "none");
  EXPECT_EQ(refused(PodBuilder("p").cpu(3), Plugin::TaintToleration), 1U);
  EXPECT_EQ(refused(PodBuilder("p").cpu(3), Plugin::NodeResourcesFit), 1U);
  cluster_.remove_pod(*cluster_.find_pod("default", "a"));
  EXPECT_EQ(where(PodBuilder("p").cpu(3)), "n1");
  cluster_.remove_node(*cluster_.find_node("n1"));
  EXPECT_EQ(where(PodBuilder("p").cpu(3)), "none");
  add(cluster_, NodeBuilder("n3"));
  EXPECT_EQ(where(PodBuilder("p").cpu(3)), "n3");
}

// ---- rules that look beyond the node ----------------------------------------------------------

TEST_F(SchedulerTest, AntiAffinityOfPlacedPodsComesAndGoes) {
  add(cluster_, NodeBuilder("n1").zone("a"));
  add(cluster_, NodeBuilder("n2").zone("b"));
  const PodBuilder plain = PodBuilder("p").label("app", "x");
  EXPECT_EQ(where(plain), "n1");
  PodBuilder guard("guard");
  guard.on("n1").shape().required_anti_affinity = {term("topology.kubernetes.io/zone", "x")};
  add(cluster_, guard);
  EXPECT_EQ(where(plain), "n2");
  EXPECT_EQ(where(PodBuilder("p").label("app", "y")), "n1");
  cluster_.remove_pod(*cluster_.find_pod("default", "guard"));
  EXPECT_EQ(where(plain), "n1");
}

// The guard's node has no rack at first: its term counts nobody, and the class is under no rule.
// Once a guard stands in a rack the class must be asked per rack, not as one domain.
TEST_F(SchedulerTest, TermThatCountedNobodyBeginsToCount) {
  add(cluster_, NodeBuilder("n0"));
  add(cluster_, NodeBuilder("n1").label("rack", "r1"));
  add(cluster_, NodeBuilder("n2").label("rack", "r2"));
  PodBuilder guard("guard");
  guard.shape().required_anti_affinity = {term("rack", "x")};
  add(cluster_, PodBuilder(guard).on("n0"));
  const PodBuilder plain =
      PodBuilder("p").label("app", "x").node_affinity({testing::exists("rack")});
  EXPECT_EQ(where(plain), "n1");
  PodBuilder second = guard;
  second.spec().name = "guard2";
  add(cluster_, second.on("n1"));
  EXPECT_EQ(where(plain), "n2");
  EXPECT_EQ(decide(plain).feasible_nodes, 1U);
  EXPECT_EQ(refused(plain, Plugin::InterPodAffinity), 1U);
}

// A label that no node had when the class was first looked at.
TEST_F(SchedulerTest, NodeGetsTheLabelThatAPlacedPodKeepsAwayFrom) {
  add(cluster_, NodeBuilder("n1"));
  add(cluster_, NodeBuilder("n2").cpu(70));
  PodBuilder guard("guard");
  guard.on("n1").shape().required_anti_affinity = {term("rack", "x")};
  add(cluster_, guard);
  const PodBuilder plain = PodBuilder("p").label("app", "x").cpu(1);
  EXPECT_EQ(where(plain), "n1");
  add(cluster_, NodeBuilder("n1").label("rack", "r1"));
  EXPECT_EQ(where(plain), "n2");
  add(cluster_, NodeBuilder("n2").cpu(70).label("rack", "r1"));
  EXPECT_EQ(where(plain), "none");
}

// The rule has gone quiet when the node changes its zone, and wakes up afterwards.
TEST_F(SchedulerTest, LabelsChangeWhileARuleCountsNobody) {
  add(cluster_, NodeBuilder("n1").zone("a"));
  add(cluster_, NodeBuilder("n2").zone("b").cpu(70));
  PodBuilder other("other");  // keeps identities relevant all along
  other.on("n2").shape().required_anti_affinity = {term("topology.kubernetes.io/zone", "nobody")};
  add(cluster_, other);
  PodBuilder guard("guard");
  guard.on("n1").shape().required_anti_affinity = {term("topology.kubernetes.io/zone", "x")};
  const PodBuilder plain = PodBuilder("p").label("app", "x").cpu(1);
  add(cluster_, guard);
  EXPECT_EQ(where(plain), "n2");
  cluster_.remove_pod(*cluster_.find_pod("default", "guard"));
  EXPECT_EQ(where(plain), "n1");
  add(cluster_, NodeBuilder("n1").zone("b"));
  EXPECT_EQ(where(plain), "n1");
  add(cluster_, guard);
  EXPECT_EQ(where(plain), "none");  // both are in zone b now
}

TEST_F(SchedulerTest, NamespaceLabelsChangeUnderAPlacedTerm) {
  add(cluster_, NodeBuilder("n1").zone("a"));
  add(cluster_, NodeBuilder("n2").zone("b").cpu(70));
  cluster_.mutable_objects().namespaces["default"] = {"default", {}};
  PodBuilder guard("guard");
  PodAffinityTerm t = term("topology.kubernetes.io/zone", "x");
  t.namespace_selector = LabelSelector{{in("env", {"prod"})}};
  guard.ns("elsewhere").on("n1").shape().required_anti_affinity = {t};
  add(cluster_, guard);
  const PodBuilder plain = PodBuilder("p").label("app", "x").cpu(1);
  EXPECT_EQ(where(plain), "n1");
  cluster_.mutable_objects().namespaces["default"].labels = {{"env", "prod"}};
  EXPECT_EQ(where(plain), "n2");
}

TEST_F(SchedulerTest, SpreadFollowsPodsThatStartTerminating) {
  add(cluster_, NodeBuilder("n1").zone("a"));
  add(cluster_, NodeBuilder("n2").zone("b").taint("full"));
  SpreadConstraint c;
  c.topology_key = "topology.kubernetes.io/zone";
  c.selector = LabelSelector{{in("app", {"x"})}};
  const PodBuilder pod = PodBuilder("p").label("app", "x").spread(c);
  add(cluster_, PodBuilder("first").label("app", "x").on("n1"));
  EXPECT_EQ(where(pod), "none");  // one in a, none in b
  cluster_.set_terminating(*cluster_.find_pod("default", "first"));
  EXPECT_EQ(where(pod), "n1");
}

// ---- promised room ----------------------------------------------------------------------------

TEST_F(SchedulerTest, PromisedRoomIsLeftAlone) {
  add(cluster_, NodeBuilder("n1").cpu(4));
  add(cluster_, NodeBuilder("n2").cpu(8));
  add(cluster_, PodBuilder("waits").cpu(3).priority(10).nominate("n1"));
  EXPECT_EQ(where(PodBuilder("low").cpu(2)), "n2");
  EXPECT_EQ(decide(PodBuilder("low").cpu(2)).feasible_nodes, 1U);
  EXPECT_EQ(where(PodBuilder("equal").cpu(2).priority(10)), "n2");
  EXPECT_EQ(where(PodBuilder("high").cpu(2).priority(11)), "n1");
  EXPECT_EQ(where(PodBuilder("small").cpu(1)), "n1");  // fits beside it
  EXPECT_EQ(decide(PodBuilder("small").cpu(1)).feasible_nodes, 2U);
}

TEST_F(SchedulerTest, NominatedNodeComesFirst) {
  add(cluster_, NodeBuilder("n1").cpu(4));
  add(cluster_, NodeBuilder("n2").cpu(8));
  EXPECT_EQ(where(PodBuilder("p").cpu(2).nominate("n2")), "n2");
  add(cluster_, PodBuilder("big").cpu(7).on("n2"));
  EXPECT_EQ(where(PodBuilder("p").cpu(2).nominate("n2")), "n1");
}

TEST_F(SchedulerTest, AcceptingEndsTheNomination) {
  add(cluster_, NodeBuilder("n1"));
  EXPECT_EQ(run(PodBuilder("p").nominate("n1")), "n1");
  EXPECT_TRUE(cluster_.nominated_pods().empty());
}

// ---- devices ----------------------------------------------------------------------------------

// A device plugin registers after its node: policies learn of the resource then.
TEST_F(SchedulerTest, ResourceAppearsOnAKnownNode) {
  add(cluster_, NodeBuilder("n1"));
  add(cluster_, NodeBuilder("n2"));
  EXPECT_EQ(where(PodBuilder("p").cpu(1)), "n1");
  NodeBuilder counted("n1");
  counted.resource("nvidia.com/gpu", 8);
  add(cluster_, counted);
  // Least CPU and GPU left: the node without GPUs.
  EXPECT_EQ(where(PodBuilder("p").cpu(1)), "n2");
}

TEST_F(SchedulerTest, SharesKeepAwayFromDevicesThatUnknownHoldersMayNeed) {
  policy_ = std::move(make_policy("kube", 1)).value();  // takes the first device with room
  add(cluster_, NodeBuilder("n1").gpus(kT4, 2, 15360));
  add(cluster_, PodBuilder("shared").gpu_milli(500).on("n1", {{1, 500, -1}}));
  add(cluster_, PodBuilder("unknown").gpus(1).on("n1"));
  const Decision decision = decide(PodBuilder("p").gpu_milli(300));
  ASSERT_TRUE(decision.node.valid());
  EXPECT_EQ(decision.holds, (std::vector<GpuHold>{{1, 300, -1}}));
}

// ---- memory -----------------------------------------------------------------------------------

TEST_F(SchedulerTest, OldClassesAreDroppedAndComeBackRight) {
  scheduler_ = std::make_unique<Scheduler>(cluster_, *policy_, SchedulerOptions{.class_limit = 2});
  add(cluster_, NodeBuilder("n1").cpu(8));
  for (int cpu = 1; cpu <= 5; ++cpu) EXPECT_EQ(where(PodBuilder("p").cpu(cpu)), "n1");
  add(cluster_, PodBuilder("big").cpu(5).on("n1"));
  for (int cpu = 1; cpu <= 5; ++cpu) {
    EXPECT_EQ(where(PodBuilder("p").cpu(cpu)), cpu <= 3 ? "n1" : "none");
  }
}

TEST_F(SchedulerTest, ReaderThatFellBehindTheLogStartsOver) {
  const NodeId n1 = add(cluster_, NodeBuilder("n1").cpu(4));
  add(cluster_, NodeBuilder("n2").cpu(9));
  EXPECT_EQ(where(PodBuilder("p").cpu(2)), "n1");
  const PodId mover = add(cluster_, PodBuilder("mover").cpu(3));
  const std::uint64_t begin = cluster_.change_begin();
  cluster_.place(mover, n1, {});
  while (cluster_.change_begin() == begin || cluster_.change_begin() < 100'000) {
    cluster_.unplace(mover);
    cluster_.place(mover, n1, {});
  }
  EXPECT_EQ(where(PodBuilder("p").cpu(2)), "n2");
}

// ---- what a decision leaves behind ------------------------------------------------------------

TEST_F(SchedulerTest, DecidingChangesNothing) {
  add(cluster_, NodeBuilder("n1").cpu(4).gpus(kT4, 2, 15360));
  add(cluster_, PodBuilder("waits").gpus(1).priority(5).nominate("n1"));
  const PodId pod = add(cluster_, PodBuilder("p").gpus(1));
  const std::uint64_t digest = cluster_.digest();
  const std::uint64_t version = cluster_.node(*cluster_.find_node("n1")).version;
  const Decision first = scheduler().decide(pod);
  const Decision second = scheduler().decide(pod);
  EXPECT_EQ(first.node, second.node);
  EXPECT_EQ(first.holds, second.holds);
  EXPECT_EQ(cluster_.digest(), digest);
  EXPECT_EQ(cluster_.node(*cluster_.find_node("n1")).version, version);
}

TEST_F(SchedulerTest, StaleDecisionsAreRefused) {
  add(cluster_, NodeBuilder("n1").cpu(4));
  const Decision first = decide(PodBuilder("a").cpu(3));
  const Decision second = decide(PodBuilder("b").cpu(3));
  scheduler().accept(first);
  EXPECT_DEATH(scheduler().accept(second), "has changed since the decision");
}

}  // namespace
}  // namespace jogak::core
