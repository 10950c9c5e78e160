// SPDX-License-Identifier: Apache-2.0
// The moves of one try and how they are taken back.
#include "core/preempt/dry_run.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "core/preempt/importance.h"
#include "core/preempt/pdb.h"

namespace jogak::core {
namespace {

// Pods taken off one node for a try. The destructor puts back what is still out, first for the
// cycle's counts and then, by rolling back, exactly.
class Removal {
 public:
  Removal(Cluster& cluster, FilterCycle& cycle, NodeId node)
      : cluster_(cluster), cycle_(cycle), node_(node), mark_(cluster.checkpoint()) {}
  Removal(const Removal&) = delete;
  Removal& operator=(const Removal&) = delete;
  ~Removal() {
    while (!taken_.empty()) put_back(taken_.back().pod);
    cluster_.rollback_to(mark_);
  }

  void take(PodId pod) {
    const Pod& p = cluster_.pod(pod);
    taken_.push_back({pod, p.holds, p.holds_known});
    cycle_.pod_moved(pod, node_, -1);
    cluster_.unplace(pod);
  }

  void put_back(PodId pod) {
    const auto at = std::ranges::find(taken_, pod, &Taken::pod);
    JOGAK_CHECK(at != taken_.end());
    cluster_.place_back(pod, node_, at->holds, at->holds_known);
    cycle_.pod_moved(pod, node_, +1);
    taken_.erase(at);
  }

 private:
  struct Taken {
    PodId pod;
    std::vector<GpuHold> holds;
    bool holds_known = true;
  };

  Cluster& cluster_;
  FilterCycle& cycle_;
  NodeId node_;
  Cluster::Checkpoint mark_;
  std::vector<Taken> taken_;
};

std::vector<PodId> lower_priority_pods(const Cluster& cluster, NodeId node, std::int32_t priority) {
  std::vector<PodId> pods;
  for (const PodId pod : cluster.node(node).pods) {
    if (cluster.shape_of(pod).spec.priority < priority) pods.push_back(pod);
  }
  sort_by_importance(cluster, pods);
  return pods;
}

DryRun rejected(NodeId node, Verdict verdict, Reasons reasons) {
  return {std::nullopt, {node, verdict, std::move(reasons)}};
}

}  // namespace

DryRun dry_run(Cluster& cluster, const PodView& pod, FilterCycle& cycle, NodeId node) {
  const std::vector<PodId> lower = lower_priority_pods(cluster, node, pod.shape->spec.priority);
  if (lower.empty()) {
    return rejected(node, {Plugin::None, Code::Unresolvable},
                    {"No preemption victims found for incoming pod"});
  }
  Removal removal(cluster, cycle, node);
  for (const PodId other : lower) removal.take(other);
  Reasons reasons;
  const Verdict emptied = check_with_nominated(cluster, pod, cycle, node, &reasons);
  if (!emptied.fits()) return rejected(node, emptied, std::move(reasons));

  PreemptionCandidate candidate;
  candidate.node = node;
  const auto reprieve = [&](PodId other) {
    removal.put_back(other);
    if (check_with_nominated(cluster, pod, cycle, node, nullptr).fits()) return true;
    removal.take(other);
    candidate.victims.push_back(other);
    return false;
  };
  // Violating ones first: what fits beside the pod is rather kept of them.
  const SplitByBudget split = split_by_budget(cluster, lower);
  for (const PodId other : split.violating) candidate.pdb_violations += reprieve(other) ? 0 : 1;
  for (const PodId other : split.others) reprieve(other);
  if (candidate.victims.empty()) {
    // The node refused the pod with all of them there, so one of them must have been in the way.
    return rejected(node, {Plugin::DefaultPreemption, Code::Error},
                    {"expected at least one victim pod on the node"});
  }
  sort_by_importance(cluster, candidate.victims);
  for (const PodId victim : candidate.victims) {
    if (cluster.pod(victim).terminating) candidate.already_terminating.push_back(victim);
  }
  return {std::move(candidate), {}};
}

}  // namespace jogak::core
