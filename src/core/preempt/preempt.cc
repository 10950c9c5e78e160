// SPDX-License-Identifier: Apache-2.0
// Eligibility, the nodes worth trying, and what is said when none helps.
#include "core/preempt/preempt.h"

#include <algorithm>

#include "base/digest.h"
#include "core/plan/message.h"
#include "core/preempt/dry_run.h"
#include "core/preempt/importance.h"
#include "core/preempt/nominated.h"

namespace jogak::core {
namespace {

constexpr std::string_view kNotHelpful = "Preemption is not helpful for scheduling";
// kube-scheduler's DynamicResources runs its PostFilter first and always leaves these words; tools
// and the recorded messages expect them.
constexpr std::string_view kPrefix = "no new claims to deallocate, preemption: ";

// As kube-scheduler's defaults (minCandidateNodesPercentage, minCandidateNodesAbsolute): a tenth of
// the nodes worth trying, but a hundred if there are so many.
constexpr std::size_t kCandidatesPercent = 10;
constexpr std::size_t kCandidatesMin = 100;

// Room is already being made on the nominated node: wait for it rather than evict more pods.
bool waits_for_victims(const Cluster& cluster, const PodView& pod,
                       const std::vector<NodeVerdict>& verdicts) {
  if (!pod.id.valid()) return false;
  const NodeId nominated = cluster.pod(pod.id).nominated;
  if (!nominated.valid()) return false;
  const auto at = std::ranges::find(verdicts, nominated, &NodeVerdict::node);
  if (at == verdicts.end() || at->verdict.code == Code::Unresolvable) return false;
  return std::ranges::any_of(cluster.node(nominated).pods, [&](PodId other) {
    const Pod& p = cluster.pod(other);
    return p.terminating && p.preemption_victim &&
           cluster.shape_of(other).spec.priority < pod.shape->spec.priority;
  });
}

std::string why_not_eligible(const Cluster& cluster, const PodView& pod,
                             const std::vector<NodeVerdict>& verdicts) {
  if (pod.shape->spec.preemption == PreemptionPolicy::Never) {
    return "not eligible due to preemptionPolicy=Never.";
  }
  if (waits_for_victims(cluster, pod, verdicts)) {
    return "not eligible due to a terminating pod on the nominated node.";
  }
  return {};
}

// Where in the list of nodes the search starts. It stops early in large clusters; without an offset
// of its own every pod would evict on the same first nodes.
std::size_t search_offset(const Cluster& cluster, const PodView& pod, std::size_t nodes) {
  if (!pod.id.valid() || nodes <= kCandidatesMin) return 0;
  return static_cast<std::size_t>(Digest().add(cluster.pod(pod.id).uid).value() % nodes);
}

void try_nodes(Cluster& cluster, const PodView& pod, const std::vector<NodeId>& nodes,
               PreemptionResult& result) {
  FilterCycle cycle(cluster, pod);
  if (!cycle.prefilter().verdict.fits()) return;
  const std::size_t enough =
      std::min(nodes.size(), std::max(nodes.size() * kCandidatesPercent / 100, kCandidatesMin));
  const std::size_t offset = search_offset(cluster, pod, nodes.size());
  bool harmless = false;  // some candidate violates no budget
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    DryRun run = dry_run(cluster, pod, cycle, nodes[(offset + i) % nodes.size()]);
    if (!run.candidate) {
      result.rejected.push_back(std::move(run.rejected));
      continue;
    }
    harmless = harmless || run.candidate->pdb_violations == 0;
    result.candidates.push_back(std::move(*run.candidate));
    if (result.candidates.size() >= enough && harmless) break;
  }
  const auto by_rank = [&](const auto& a, const auto& b) {
    return cluster.rank(a.node) < cluster.rank(b.node);
  };
  std::ranges::sort(result.candidates, by_rank);
  std::ranges::sort(result.rejected, by_rank);
}

std::string no_candidate_message(std::size_t nodes, const PreemptionResult& result) {
  ReasonCounts counts;
  for (const NodeVerdict& r : result.rejected) counts.add(r.reasons);
  if (nodes > result.rejected.size()) {
    counts.add(kNotHelpful, static_cast<std::int64_t>(nodes - result.rejected.size()));
  }
  return unavailable_message(nodes, counts.text());
}

}  // namespace

PreemptionResult find_preemption(Cluster& cluster, const PodView& pod,
                                 const std::vector<NodeVerdict>& verdicts) {
  PreemptionResult result;
  result.not_eligible = why_not_eligible(cluster, pod, verdicts);
  result.eligible = result.not_eligible.empty();
  if (!result.eligible) {
    result.message = std::string(kPrefix) + result.not_eligible;
    return result;
  }
  std::vector<NodeId> worth_trying;
  for (const NodeVerdict& v : verdicts) {
    if (v.verdict.code == Code::Unschedulable) worth_trying.push_back(v.node);
  }
  if (!worth_trying.empty()) try_nodes(cluster, pod, worth_trying, result);
  if (result.candidates.empty()) {
    result.nomination = NominationChange::Clear;
    result.message = std::string(kPrefix) + no_candidate_message(cluster.node_count(), result);
    return result;
  }
  result.nomination = NominationChange::Set;
  result.best = cheapest(cluster, result.candidates);
  for (const std::size_t best : result.best) {
    result.loses_nomination.push_back(
        nominated_below(cluster, result.candidates[best].node, pod.shape->spec.priority));
  }
  return result;
}

}  // namespace jogak::core
