// SPDX-License-Identifier: Apache-2.0
// Scenarios that start from a cluster: what runs, what waits, what they say beside whatif.
#include "sim/scenario_cluster.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/model/testing.h"
#include "core/plan/evaluation.h"
#include "core/policy/policy.h"
#include "core/testing/random_world.h"
#include "sim/scenario_report.h"
#include "sim/scenario_run.h"
#include "sim/whatif.h"

namespace jogak::sim {
namespace {

using core::Cluster;
using core::testing::add;
using core::testing::NodeBuilder;
using core::testing::PodBuilder;

constexpr const char* kT4 = "Tesla-T4";

core::testing::PodBuilder owned(std::string name, std::string kind) {
  PodBuilder pod(std::move(name));
  pod.spec().owner_kind = std::move(kind);
  return pod;
}

Result<Scenario> scenario_on(const Cluster& cluster, std::string_view text) {
  Scenario scenario;
  if (!text.empty()) JOGAK_TRY_VOID(parse_scenario("s.yaml", text, scenario));
  start_from(cluster, scenario);
  JOGAK_TRY_VOID(check_scenario(scenario));
  return scenario;
}

ScenarioResult play(const Cluster& cluster, std::string_view text, std::string policy = "kube") {
  const auto scenario = scenario_on(cluster, text);
  EXPECT_TRUE(scenario.has_value()) << scenario.error().what;
  auto result = run_scenario(*scenario, {.policy = std::move(policy), .check = true});
  EXPECT_TRUE(result.has_value()) << result.error().what;
  return *std::move(result);
}

const PodRecord& pod_of(const ScenarioResult& result, std::string_view name) {
  return *std::ranges::find(result.pods, "default/" + std::string(name), &PodRecord::name);
}

std::int64_t start_s(const ScenarioResult& result, std::string_view name) {
  const std::int64_t ns = pod_of(result, name).start_ns;
  return ns < 0 ? -1 : ns / kSecondNs;
}

// n: 2 GPUs [a on 1]   waiting: b 2, c 1
void fill(Cluster& cluster) {
  add(cluster, NodeBuilder("n").cpu(8).gpus(kT4, 2, 16384));
  add(cluster, PodBuilder("a").cpu(1).gpus(1).on("n", {{1}}));
  add(cluster, PodBuilder("b").cpu(1).gpus(2));
  add(cluster, PodBuilder("c").cpu(1).gpus(1));
}

TEST(ScenarioCluster, RunningPodsKeepTheirDevicesToTheEnd) {
  Cluster cluster;
  fill(cluster);
  const ScenarioResult r = play(cluster, "");
  EXPECT_EQ(pod_of(r, "a").fate, PodFate::Running);
  EXPECT_TRUE(pod_of(r, "a").was_running);
  EXPECT_EQ(pod_of(r, "a").devices, "1");
  EXPECT_EQ(start_s(r, "a"), -1);
  EXPECT_EQ(start_s(r, "b"), -1);
  EXPECT_EQ(start_s(r, "c"), 0);
  EXPECT_EQ(pod_of(r, "c").devices, "0");
  EXPECT_EQ(r.running_at_start, 1);
  // Who ran before has not waited.
  EXPECT_EQ(r.wait.pods, 1);
  EXPECT_EQ(r.wait.never, 1);
  EXPECT_DOUBLE_EQ(r.allocated_percent, 100);
}

TEST(ScenarioCluster, ScenariosGiveLengths) {
  Cluster cluster;
  fill(cluster);
  // c 0-50, a to 100, b from then on
  const ScenarioResult r = play(cluster, "cluster: {running_for: 100, waiting_run: 50}");
  EXPECT_EQ(pod_of(r, "a").end_ns, 100 * kSecondNs);
  EXPECT_EQ(pod_of(r, "c").end_ns, 50 * kSecondNs);
  EXPECT_EQ(start_s(r, "b"), 100);
  EXPECT_EQ(r.end_ns, 150 * kSecondNs);
}

TEST(ScenarioCluster, ScenariosAddNodesPodsAndEvents) {
  Cluster cluster;
  fill(cluster);
  const ScenarioResult r = play(cluster, R"(
nodes: [{name: m, cpu: 8, gpu: {count: 1, model: T4}}]
pods: [{name: d, arrival: 10, run: 5, gpu: 1}]
events: [{at: 30, pod: a, do: delete}, {at: 40, node: m, do: cordon}])");
  EXPECT_EQ(r.pods.back().name, "default/d");
  EXPECT_EQ(start_s(r, "c"), 0);
  EXPECT_EQ(start_s(r, "d"), 10);
  EXPECT_NE(pod_of(r, "c").node, pod_of(r, "d").node);
  EXPECT_EQ(pod_of(r, "d").fate, PodFate::Done);
  EXPECT_EQ(pod_of(r, "a").fate, PodFate::Deleted);
  EXPECT_EQ(r.gpu_milli, 3000);
  EXPECT_EQ(r.samples.front().at_ns, 0);
}

// Nodes as a device plugin alone describes them: `plain` has two GPUs, of which one is taken.
TEST(ScenarioCluster, GpusThatAreOnlyCountedAreCountedForAddedPods) {
  Cluster cluster;
  add(cluster, NodeBuilder("cpus").cpu(8));
  add(cluster, NodeBuilder("plain").cpu(8).resource("nvidia.com/gpu", 2));
  add(cluster, PodBuilder("a").cpu(1).resource("nvidia.com/gpu", 1).on("plain"));
  const ScenarioResult r = play(cluster, R"(
nodes: [{name: more, cpu: 8, gpu: {count: 2, model: T4}}]
pods: [{name: two, cpu: 1, gpu: 2}, {name: one, arrival: 1, cpu: 1, gpu: 1},
       {name: late, arrival: 2, cpu: 1, gpu: 1}])");
  EXPECT_EQ(pod_of(r, "two").node, "more");
  EXPECT_EQ(pod_of(r, "one").node, "plain");
  EXPECT_EQ(pod_of(r, "late").fate, PodFate::Waiting);
}

TEST(ScenarioCluster, NothingThatWaitsIsAnAnswerToo) {
  Cluster cluster;
  add(cluster, NodeBuilder("n").cpu(8));
  add(cluster, PodBuilder("a").cpu(4).on("n"));
  const ScenarioResult r = play(cluster, "");
  EXPECT_EQ(r.end_ns, 0);
  EXPECT_EQ(r.samples.size(), 1U);
  EXPECT_NE(scenario_text(r, 10, false).find("before"), std::string::npos);
  const std::vector<ScenarioResult> all = {r};
  EXPECT_NE(comparison_html("t", "a", all).find("</html>"), std::string::npos);
}

TEST(ScenarioCluster, PodsThatFitNowhereWait) {
  Cluster cluster;
  add(cluster, NodeBuilder("n").cpu(8));
  add(cluster, PodBuilder("huge").cpu(100));
  EXPECT_EQ(pod_of(play(cluster, ""), "huge").fate, PodFate::Waiting);
  // In a file that is still a mistake.
  EXPECT_FALSE(scenario_on(cluster, "pods: [{name: x, cpu: 100}]").has_value());
}

TEST(ScenarioCluster, PodsThatAreBeingDeletedAreGone) {
  Cluster cluster;
  add(cluster, NodeBuilder("n").cpu(8));
  cluster.set_terminating(add(cluster, PodBuilder("old").cpu(8).on("n")));
  add(cluster, PodBuilder("lost").cpu(8).on("elsewhere"));
  add(cluster, PodBuilder("new").cpu(8));
  const ScenarioResult r = play(cluster, "");
  EXPECT_EQ(r.pods.size(), 1U);
  EXPECT_EQ(start_s(r, "new"), 0);
}

TEST(ScenarioCluster, NamesAreTakenAndLengthsNeedACluster) {
  Cluster cluster;
  fill(cluster);
  EXPECT_EQ(scenario_on(cluster, "pods: [{name: a}]").error().what, "two pods are named default/a");
  EXPECT_EQ(scenario_on(cluster, "nodes: [{name: n}]").error().what, "two nodes are named n");
  Scenario scenario;
  ASSERT_TRUE(parse_scenario("s",
                             "nodes: [{name: n}]\npods: [{name: p}]\ncluster: "
                             "{running_for: 5}",
                             scenario)
                  .has_value());
  EXPECT_EQ(check_scenario(scenario).error().what,
            "cluster: the scenario starts from none; give one or leave the lengths out");
}

TEST(ScenarioCluster, HigherPriorityGoesFirstThenAge) {
  Cluster cluster;
  add(cluster, NodeBuilder("n").cpu(1));
  add(cluster, PodBuilder("old").cpu(1));
  add(cluster, PodBuilder("young").cpu(1));
  add(cluster, PodBuilder("high").cpu(1).priority(9));
  const ScenarioResult r = play(cluster, "cluster: {waiting_run: 10}");
  EXPECT_EQ(start_s(r, "high"), 0);
  EXPECT_EQ(start_s(r, "old"), 10);
  EXPECT_EQ(start_s(r, "young"), 20);
}

// w1 and w2 share a budget of one. The first preemption spends it, so that the second takes `free`,
// though that is of higher priority; unless the first victim runs again by then.
TEST(ScenarioCluster, BudgetsAreSpentAndRefilled) {
  const auto make = [](Cluster& cluster) {
    for (const char* name : {"n1", "n2", "n3"}) add(cluster, NodeBuilder(name).cpu(1));
    add(cluster, PodBuilder("w1").cpu(1).label("app", "w").on("n1"));
    add(cluster, PodBuilder("w2").cpu(1).label("app", "w").on("n2"));
    PodBuilder free("free");
    free.shape().preemption = core::PreemptionPolicy::Never;
    add(cluster, free.cpu(1).priority(1).on("n3"));
    cluster.mutable_objects().pdbs["default/w"] = {
        .ns = "default",
        .name = "w",
        .selector = core::LabelSelector{{core::testing::in("app", {"w"})}},
        .disruptions_allowed = 1,
        .disrupted_pods = {}};
  };
  Cluster spent;
  make(spent);
  const ScenarioResult r =
      play(spent, "pods: [{name: high, count: 2, every: 10, cpu: 1, priority: 5}]");
  EXPECT_EQ(pod_of(r, "w1").evictions + pod_of(r, "w2").evictions, 1) << scenario_text(r, 9, false);
  EXPECT_EQ(pod_of(r, "free").evictions, 1);
  Cluster refilled;
  make(refilled);
  // On `more`, from 5.
  const ScenarioResult s = play(refilled, R"(
nodes: [{name: more, cpu: 1, unschedulable: true}]
pods: [{name: high, count: 2, every: 10, cpu: 1, priority: 5}]
events: [{at: 5, node: more, do: uncordon}])");
  EXPECT_EQ(pod_of(s, "w1").evictions + pod_of(s, "w2").evictions, 2);
  EXPECT_EQ(pod_of(s, "free").evictions, 0);
}

TEST(ScenarioCluster, PodsThatBelongToTheirNodeGoAndComeWithIt) {
  Cluster cluster;
  add(cluster, NodeBuilder("n").cpu(4));
  add(cluster, NodeBuilder("m").cpu(4));
  add(cluster, owned("agent", "DaemonSet").cpu(1).on("n"));
  add(cluster, owned("static", "Node").cpu(1).on("n"));
  add(cluster, owned("web", "ReplicaSet").cpu(1).on("n"));
  const std::string down = "events: [{at: 5, node: n, do: down}";
  const ScenarioResult gone = play(cluster, down + "]");
  EXPECT_EQ(pod_of(gone, "agent").fate, PodFate::Deleted);
  EXPECT_EQ(pod_of(gone, "static").end_ns, 5 * kSecondNs);
  EXPECT_EQ(pod_of(gone, "web").node, "m");
  EXPECT_EQ(gone.lost, 1);
  const ScenarioResult back =
      play(cluster, down + ", {at: 7, pod: static, do: delete}, {at: 9, node: n, do: up}]");
  EXPECT_EQ(pod_of(back, "agent").fate, PodFate::Running);
  EXPECT_EQ(pod_of(back, "agent").node, "n");
  EXPECT_EQ(start_s(back, "agent"), 9);
  EXPECT_EQ(pod_of(back, "static").fate, PodFate::Deleted);
}

TEST(ScenarioCluster, WhatARealClusterBreaksIsNoFaultOfADecision) {
  Cluster cluster;
  add(cluster, NodeBuilder("n").cpu(1).gpus(kT4, 1, 16384));
  add(cluster, PodBuilder("a").cpu(1).gpus(1).on("n", {{0}}));
  add(cluster, PodBuilder("b").cpu(1).gpus(1).on("n", {{0}}));
  const ScenarioResult r = play(cluster, "events: [{at: 5, pod: a, do: delete}]");
  EXPECT_EQ(pod_of(r, "b").fate, PodFate::Running);
}

TEST(ScenarioCluster, RunsAndPromisesAreInTheDigest) {
  const auto digest = [](std::int32_t gpu, bool is_promised) {
    Cluster cluster;
    add(cluster, NodeBuilder("n").cpu(8).gpus(kT4, 2, 16384));
    add(cluster, NodeBuilder("m").cpu(8).gpus(kT4, 2, 16384));
    add(cluster, PodBuilder("a").gpus(1).on("n", {{gpu}}));
    PodBuilder waits("waits");
    waits.gpus(1).priority(3);
    if (is_promised) waits.nominate("n");
    add(cluster, waits);
    const ScenarioResult r = play(cluster, "");
    EXPECT_EQ(pod_of(r, "waits").node, is_promised ? "n" : "m");
    return r.digest;
  };
  EXPECT_EQ(digest(0, false), digest(0, false));
  EXPECT_NE(digest(0, false), digest(1, false));
  EXPECT_NE(digest(0, false), digest(0, true));
}

// ---- beside whatif --------------------------------------------------------------------------

// Half of the pods run where a scheduler could have put them, the rest waits and preempts nobody.
void make_world(std::uint64_t seed, Cluster& cluster) {
  core::testing::RandomWorld world(seed, {.exact_holds = true});
  for (const core::testing::Event& event : world.start()) apply(cluster, event);
  const auto policy = core::make_policy("kube", 1);
  for (std::int32_t i = 0; i < world.options().pods; ++i) {
    core::PodSpec spec = world.pod(i);
    spec.shape.preemption = core::PreemptionPolicy::Never;
    const auto id = cluster.upsert_pod(spec);
    ASSERT_TRUE(id.has_value()) << id.error().what;
    if (world.rng().chance(1, 2)) continue;
    const core::Evaluation evaluation = core::evaluate(cluster, *id);
    if (evaluation.feasible.empty()) continue;
    const core::NodeId node = evaluation.feasible[world.rng().below(evaluation.feasible.size())];
    std::vector<core::GpuHold> holds;
    (*policy)->choose(cluster, cluster.shape_of(*id), cluster.node(node), holds);
    cluster.place(*id, node, holds);
    if (world.rng().chance(1, 10)) cluster.set_terminating(*id);
  }
}

TEST(ScenarioClusterProp, WaitingPodsGoWhereWhatifSays) {
  const auto trial = core::testing::Trial::from_env(300);
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    const core::PolicyInfo& info = core::policies()[round % core::policies().size()];
    if (info.name == "random") continue;  // draws once a decision, and whatif asks more often
    Cluster cluster;
    make_world(trial.seed_of(round), cluster);
    const auto scenario = scenario_on(cluster, "");
    ASSERT_TRUE(scenario.has_value()) << scenario.error().what;
    const ScenarioRunOptions options{.policy = std::string(info.name), .check = true};
    const auto first = run_scenario(*scenario, options);
    const auto second = run_scenario(*scenario, options);
    ASSERT_TRUE(first.has_value() && second.has_value());
    ASSERT_EQ(first->digest, second->digest) << trial.repeat(round);
    const auto report = whatif(cluster, {.policy = std::string(info.name)});
    ASSERT_TRUE(report.has_value()) << report.error().what;
    std::map<std::string, std::string> expected, got;
    for (const WhatifPod& pod : report->pods) expected[pod.name] = pod.node;
    for (const PodRecord& pod : first->pods) {
      if (!pod.was_running) got[pod.name] = pod.node;
    }
    ASSERT_EQ(expected, got) << info.name << trial.repeat(round);
  }
}

}  // namespace
}  // namespace jogak::sim
