// SPDX-License-Identifier: Apache-2.0
// Preemption on random clusters against what a fresh look at the changed cluster says: without the
// victims the pod fits, with any of them back it does not, and a node that was given up refuses the
// pod even without all lower-priority pods.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"
#include "core/model/testing.h"
#include "core/preempt/nominated.h"
#include "core/preempt/preempt.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::in;
using testing::NodeBuilder;
using testing::PodBuilder;

constexpr std::string_view kZone = "topology.kubernetes.io/zone";
constexpr std::string_view kHost = "kubernetes.io/hostname";

// Constraints only of the kind that more pods make worse: affinity would let a victim help.
void constrain(Rng& rng, PodBuilder& pod) {
  const std::string app = rng.chance(1, 2) ? "a" : "b";
  const std::string key(rng.chance(1, 2) ? kZone : kHost);
  pod.label("app", app);
  if (rng.chance(1, 5)) {
    const std::string other = rng.chance(1, 2) ? "a" : "b";
    pod.shape().required_anti_affinity.push_back(
        {LabelSelector{{in("app", {other})}}, key, {}, {}, 0});
  }
  if (rng.chance(1, 6)) {
    SpreadConstraint spread;
    spread.max_skew = static_cast<std::int32_t>(rng.between(1, 2));
    spread.topology_key = key;
    spread.selector = LabelSelector{{in("app", {app})}};
    pod.spread(spread);
  }
  if (rng.chance(1, 6)) pod.host_port(static_cast<std::int32_t>(rng.between(80, 81)));
}

void ask_gpu(Rng& rng, PodBuilder& pod) {
  const std::uint64_t kind = rng.below(6);
  if (kind == 0) pod.gpus(static_cast<std::int32_t>(rng.between(1, 2)));
  if (kind == 1) pod.gpu_milli(static_cast<std::int32_t>(rng.between(1, 9) * 100));
  if (kind == 2) pod.gpu_mib(static_cast<std::int32_t>(rng.between(1, 4) * 4096));
  if (kind == 3) pod.mig(rng.chance(1, 2) ? "1g.5gb" : "3g.20gb");
}

PodBuilder random_pod(Rng& rng, const std::string& name) {
  PodBuilder pod(name);
  pod.cpu(rng.between(0, 4)).start_time(rng.between(1, 1 << 30));
  pod.priority(static_cast<std::int32_t>(rng.between(0, 3)));
  constrain(rng, pod);
  ask_gpu(rng, pod);
  return pod;
}

void add_nodes(Rng& rng, Cluster& cluster, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    NodeBuilder node("n" + std::to_string(i));
    node.cpu(rng.between(4, 10)).pods(rng.between(3, 8)).zone(rng.chance(1, 2) ? "x" : "y");
    node.gpus("NVIDIA-A100-SXM4-40GB", 3, 40960);
    node.spec().gpus[2].mig_enabled = node.spec().gpus[2].mig_dynamic = true;
    if (rng.chance(1, 5)) node.spec().gpus[0].health = GpuHealth::Unhealthy;
    add(cluster, node);
  }
}

// Fills the cluster as a scheduler would: a pod goes where it fits, and stays out where nothing
// does.
void fill(Rng& rng, Cluster& cluster, std::int64_t pods) {
  for (std::int64_t i = 0; i < pods; ++i) {
    const PodId pod = add(cluster, random_pod(rng, "p" + std::to_string(i)));
    const PodView view = PodView::of(cluster, pod);
    const FilterCycle cycle(cluster, view);
    std::vector<NodeId> nodes(cluster.node_order().begin(), cluster.node_order().end());
    rng.shuffle(std::span(nodes));
    const auto at =
        std::ranges::find_if(nodes, [&](NodeId n) { return cycle.check(n, nullptr).fits(); });
    if (at == nodes.end()) {
      cluster.remove_pod(pod);
      continue;
    }
    place_guess(cluster, pod, *at);
    if (rng.chance(1, 10)) cluster.set_terminating(pod);
  }
}

bool fits_fresh(Cluster& cluster, PodId pod, NodeId node) {
  const PodView view = PodView::of(cluster, pod);
  FilterCycle cycle(cluster, view);
  return check_with_nominated(cluster, view, cycle, node, nullptr).fits();
}

void check_candidate(Cluster& cluster, PodId pod, const PreemptionCandidate& candidate) {
  const auto mark = cluster.checkpoint();
  for (const PodId victim : candidate.victims) cluster.unplace(victim);
  EXPECT_TRUE(fits_fresh(cluster, pod, candidate.node)) << "the victims are not enough";
  cluster.rollback_to(mark);
  for (const PodId spared : candidate.victims) {
    const auto again = cluster.checkpoint();
    for (const PodId victim : candidate.victims) {
      if (victim != spared) cluster.unplace(victim);
    }
    EXPECT_FALSE(fits_fresh(cluster, pod, candidate.node)) << cluster.pod_full_name(spared);
    cluster.rollback_to(again);
  }
}

void check_rejected(Cluster& cluster, PodId pod, const NodeVerdict& rejected) {
  const auto mark = cluster.checkpoint();
  const std::vector<PodId> there = cluster.node(rejected.node).pods;
  for (const PodId other : there) {
    if (cluster.shape_of(other).spec.priority < cluster.shape_of(pod).spec.priority) {
      cluster.unplace(other);
    }
  }
  EXPECT_FALSE(fits_fresh(cluster, pod, rejected.node));
  cluster.rollback_to(mark);
}

TEST(PreemptProp, VictimsAreEnoughAndNoneTooMany) {
  int candidates = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed, "preempt");
    Cluster cluster;
    const std::int64_t nodes = rng.between(1, 4);
    add_nodes(rng, cluster, nodes);
    fill(rng, cluster, nodes * 6);
    if (rng.chance(1, 3)) {
      PodBuilder promised = random_pod(rng, "promised");
      add(cluster, promised.priority(9).nominate("n0"));
    }
    PdbSpec& pdb = cluster.mutable_objects().pdbs["default/a"];
    pdb.ns = "default";
    pdb.selector = LabelSelector{{in("app", {"a"})}};
    pdb.disruptions_allowed = static_cast<std::int32_t>(rng.between(0, 2));
    const PodId pod = add(cluster, random_pod(rng, "in").priority(4));

    const PodView view = PodView::of(cluster, pod);
    std::vector<NodeVerdict> verdicts;
    FilterCycle cycle(cluster, view);
    bool feasible = false;
    for (const NodeId node : cluster.node_order()) {
      NodeVerdict v{node, {}, {}};
      v.verdict = check_with_nominated(cluster, view, cycle, node, nullptr);
      feasible = feasible || v.verdict.fits();
      verdicts.push_back(v);
    }
    if (feasible) continue;
    const std::uint64_t before = cluster.digest();
    const PreemptionResult result = find_preemption(cluster, view, verdicts);
    ASSERT_EQ(cluster.digest(), before);
    ASSERT_EQ(cluster.recount(), "");
    for (const PreemptionCandidate& c : result.candidates) check_candidate(cluster, pod, c);
    for (const NodeVerdict& r : result.rejected) check_rejected(cluster, pod, r);
    candidates += static_cast<int>(result.candidates.size());
    if (HasFailure()) return;
  }
  EXPECT_GT(candidates, 50) << "the generator no longer makes clusters that need preemption";
}

}  // namespace
}  // namespace jogak::core
