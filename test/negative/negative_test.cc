// SPDX-License-Identifier: Apache-2.0
// Every scheduler that is wrong on purpose must be caught, by name; an honest one must not. A
// checker that never fires proves nothing about the runs it watches.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/model/testing.h"
#include "core/plan/validate.h"
#include "test/negative/faults.h"

namespace jogak::negative {
namespace {

using core::Decision;
using core::testing::add;
using core::testing::NodeBuilder;
using core::testing::PodBuilder;

constexpr std::uint64_t kSeeds = 12;
constexpr int kArrivals = 160;

std::string rule_of(const std::string& broken) { return broken.substr(0, broken.find(':')); }

// What a run of pods brought to light.
struct Findings {
  std::set<std::string> rules;
  int spoilt = 0;
  int caught = 0;
  int placed = 0;
};

// Runs pods past the checker; what it lets pass is booked, and then the books must be right.
void run(std::uint64_t seed, const Fault* fault, Findings& found) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Trial trial(seed);
  for (int i = 0; i < kArrivals && !testing::Test::HasFailure(); ++i) {
    if (trial.rng.chance(1, 3)) trial.depart();
    const core::PodId pod = trial.arrive();
    Decision decision = trial.decide(pod);
    const Decision honest = decision;
    const bool spoilt = fault != nullptr && fault->spoil(trial, decision);
    const std::string broken = core::validate(trial.cluster, decision);
    found.spoilt += spoilt ? 1 : 0;
    if (!broken.empty()) {
      ASSERT_TRUE(spoilt) << "an honest decision is refused: " << broken;
      ++found.caught;
      found.rules.insert(rule_of(broken));
      decision = honest;
    }
    if (decision.node.valid()) {
      trial.cluster.place(decision.pod, decision.node, decision.holds);
      ++found.placed;
    } else {
      trial.cluster.remove_pod(pod);
    }
    ASSERT_EQ(core::validate_cluster(trial.cluster), "");
    ASSERT_EQ(trial.cluster.recount(), "");
  }
}

TEST(Negative, TheHonestSchedulerIsNotFlagged) {
  Findings found;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) run(seed, nullptr, found);
  EXPECT_EQ(found.caught, 0);
  EXPECT_GT(found.placed, 500) << "a canary in an empty mine";
}

class WrongScheduler : public testing::TestWithParam<Fault> {};

TEST_P(WrongScheduler, IsCaughtByName) {
  const Fault& fault = GetParam();
  Findings found;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) run(seed, &fault, found);
  EXPECT_GT(found.spoilt, 0) << "it never had an occasion: the workload is too kind";
  EXPECT_EQ(found.caught, found.spoilt) << "some of its mistakes went through";
  EXPECT_TRUE(found.rules.contains(std::string(fault.rule))) << testing::PrintToString(found.rules);
}

INSTANTIATE_TEST_SUITE_P(Each, WrongScheduler, testing::ValuesIn(faults()), [](const auto& suite) {
  std::string name;
  bool upper = true;
  for (const char c : suite.param.name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter) name += upper && c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = !letter;
  }
  return name;
});

// ---- mistakes that need a state of their own ----

class NegativeState : public testing::Test {
 protected:
  Decision on(const PodBuilder& pod, core::NodeId node, std::vector<core::GpuHold> holds = {}) {
    Decision decision;
    decision.pod = add(cluster, pod);
    decision.node = node;
    decision.holds = std::move(holds);
    return decision;
  }
  std::string rule(const Decision& decision) { return rule_of(validate(cluster, decision)); }

  core::Cluster cluster;
};

TEST_F(NegativeState, GatesAndDeletion) {
  const core::NodeId node = add(cluster, NodeBuilder("n1"));
  PodBuilder gated("gated");
  gated.shape().gates = {"example.com/wait"};
  EXPECT_EQ(rule(on(gated, node)), "gates");
  EXPECT_EQ(rule(on(PodBuilder("leaving").terminating(), node)), "terminating");
}

TEST_F(NegativeState, TheNodeIsGone) {
  const core::NodeId node = add(cluster, NodeBuilder("n1"));
  const Decision decision = on(PodBuilder("p"), node);
  EXPECT_EQ(rule(decision), "");
  cluster.remove_node(node);
  EXPECT_EQ(rule(decision), "stale");
}

// Two decisions from one look at the cluster; the second is stale once the first is booked.
TEST_F(NegativeState, TwoDecisionsFromOneLook) {
  const core::NodeId node = add(cluster, NodeBuilder("n1").gpus("A100", 1, 40960));
  const Decision first = on(PodBuilder("a").gpus(1), node, {{0, 0, -1}});
  const Decision second = on(PodBuilder("b").gpus(1), node, {{0, 0, -1}});
  EXPECT_EQ(rule(second), "");
  cluster.place(first.pod, first.node, first.holds);
  EXPECT_EQ(rule(second), "capacity");  // nvidia.com/gpu is counted, too
}

TEST_F(NegativeState, TheRoomWasPromised) {
  const core::NodeId node = add(cluster, NodeBuilder("n1").cpu(4));
  add(cluster, PodBuilder("promised").cpu(3).priority(5).nominate("n1"));
  EXPECT_EQ(rule(on(PodBuilder("equal").cpu(2).priority(5), node)), "capacity");
  EXPECT_EQ(rule(on(PodBuilder("higher").cpu(2).priority(6), node)), "");
}

// A pod runs with one GPU and nobody knows which of the two.
TEST_F(NegativeState, TheDeviceMayBeAnybodys) {
  const core::NodeId node = add(cluster, NodeBuilder("n1").gpus("A100", 2, 40960));
  add(cluster, PodBuilder("somewhere").gpus(1).on("n1"));
  EXPECT_EQ(rule(on(PodBuilder("one").gpus(1), node, {{0, 0, -1}})), "");
  EXPECT_EQ(rule(on(PodBuilder("two").gpu_milli(100, 2), node, {{0, 100, -1}, {1, 100, -1}})),
            "unknown-holders");
  PodBuilder both("both");
  both.gpu_ask({core::GpuAsk::Whole, 2, 0, "", {}});  // past the count of nvidia.com/gpu
  EXPECT_EQ(rule(on(both, node, {{0, 0, -1}, {1, 0, -1}})), "unknown-holders");
}

// Another scheduler, that only counts, put two pods on a node with one device left: a share beside
// the share on device 0 takes nothing that those may have, one on device 1 does.
TEST_F(NegativeState, WhatOthersOvercommittedIsNotThePlansFault) {
  const core::NodeId node = add(cluster, NodeBuilder("n1").gpus("A100", 2, 40960));
  add(cluster, PodBuilder("share").gpu_milli(250).on("n1", {{0, 250, -1}}));
  PodBuilder counted("counted");
  counted.gpu_ask({core::GpuAsk::Whole, 2, 0, "", {}}).on("n1");
  add(cluster, counted);
  EXPECT_EQ(rule(on(PodBuilder("beside").gpu_milli(250), node, {{0, 250, -1}})), "");
  EXPECT_EQ(rule(on(PodBuilder("alone").gpu_milli(250), node, {{1, 250, -1}})), "unknown-holders");
}

TEST_F(NegativeState, ModelsAreNamedByWholeWords) {
  const core::NodeId node = add(cluster, NodeBuilder("n1").gpus("NVIDIA-A100-SXM4-80GB", 1, 81920));
  const auto asks = [&](const char* model) {
    return rule(on(PodBuilder(model).gpus(1).gpu_model(model), node, {{0, 0, -1}}));
  };
  EXPECT_EQ(asks("a100"), "");
  EXPECT_EQ(asks("A100-SXM4"), "");
  EXPECT_EQ(asks("A10"), "gpu-model");
}

TEST_F(NegativeState, MediaEnginesAreGivenTwice) {
  NodeBuilder builder("n1");
  builder.gpus("NVIDIA-H100-80GB-HBM3", 1, 81559);
  builder.spec().gpus[0].mig_enabled = builder.spec().gpus[0].mig_dynamic = true;
  const core::NodeId node = add(cluster, builder);
  add(cluster, PodBuilder("first").mig("1g.10gb.me").on("n1", {{0, 0, 6}}));
  EXPECT_EQ(rule(on(PodBuilder("second").mig("1g.10gb+me"), node, {{0, 0, 5}})), "mig-engines");
}

TEST_F(NegativeState, AClaimHasOneUser) {
  const core::NodeId node = add(cluster, NodeBuilder("n1"));
  core::PersistentVolumeClaimSpec claim;
  claim.ns = "default";
  claim.name = "data";
  claim.access_modes = {"ReadWriteOncePod"};
  cluster.mutable_objects().pvcs["default/data"] = claim;
  PodBuilder user("user");
  user.shape().volumes.push_back({core::VolumeKind::Claim, "data", false, "", "", {}});
  PodBuilder second = user;
  second.spec().name = "second";
  add(cluster, user.on("n1"));
  EXPECT_EQ(rule(on(second, node)), "volumes");
}

// ---- a whole cluster that went wrong ----

// A driver that binds without asking the ledger: what it observes later is wrong.
TEST_F(NegativeState, BoundPastTheLedger) {
  add(cluster, NodeBuilder("n1").gpus("A100", 2, 40960));
  add(cluster, PodBuilder("a").gpus(1).on("n1", {{1, 0, -1}}));
  EXPECT_EQ(validate_cluster(cluster), "");
  add(cluster, PodBuilder("b").gpu_milli(300).on("n1", {{1, 300, -1}}));
  EXPECT_EQ(rule_of(validate_cluster(cluster)), "shared-whole");
  EXPECT_EQ(cluster.recount(), "") << "the books are right about what is wrong";
}

TEST_F(NegativeState, OverCapacityByDecisionButNotByObservation) {
  add(cluster, NodeBuilder("n1").cpu(4));
  add(cluster, PodBuilder("foreign").cpu(6).on("n1"));
  EXPECT_EQ(validate_cluster(cluster), "");
  const core::NodeId other = add(cluster, NodeBuilder("n2").cpu(4));
  cluster.place(add(cluster, PodBuilder("ours").cpu(6)), other, {});
  EXPECT_EQ(rule_of(validate_cluster(cluster)), "capacity");
}

// A ledger that lies, one number at a time.
TEST_F(NegativeState, CookedBooksAreRecounted) {
  NodeBuilder builder("n1");
  builder.gpus("NVIDIA-A100-SXM4-40GB", 2, 40960);
  builder.spec().gpus[1].mig_enabled = builder.spec().gpus[1].mig_dynamic = true;
  const core::NodeId id = add(cluster, builder);
  add(cluster, PodBuilder("a").cpu(1).gpu_milli(500).host_port(80).on("n1", {{0, 500, -1}}));
  add(cluster, PodBuilder("b").mig("1g.5gb").on("n1", {{1, 0, 3}}));
  ASSERT_EQ(cluster.recount(), "");
  auto& node = const_cast<core::Node&>(cluster.node(id));
  const auto lie = [&](auto& number, auto by, const char* what) {
    const auto truth = number;
    number = static_cast<std::remove_cvref_t<decltype(number)>>(number + by);
    EXPECT_NE(cluster.recount().find(what), std::string::npos) << cluster.recount();
    number = truth;
    EXPECT_EQ(cluster.recount(), "");
  };
  lie(node.cpu_requested, -1, "cpu");
  lie(node.memory_nonzero, 1, "memory");
  lie(node.unknown_gpus, 1, "unknown");
  lie(node.gpus[0].free_units, 1000, "units of device 0");
  lie(node.gpus[0].owner_count, 1, "owners of device 0");
  lie(node.gpus[1].mig_used_mask, 1, "slices of device 1");
}

}  // namespace
}  // namespace jogak::negative
