// SPDX-License-Identifier: Apache-2.0
// Facts: kube-scheduler 1.36, filterPodsWithPDBViolation.
#include "core/preempt/pdb.h"

#include <algorithm>
#include <string>

#include "core/filter/selector.h"

namespace jogak::core {
namespace {

// An empty selector means "no pod" to a budget, unlike everywhere else. Pods the API server already
// counted as disrupted cost nothing more.
bool covers(const PdbSpec& pdb, const Identity& identity, const std::string& name) {
  if (!pdb.selector || pdb.selector->requirements.empty()) return false;
  if (pdb.ns != identity.ns || !matches(*pdb.selector, identity.labels)) return false;
  return std::ranges::find(pdb.disrupted_pods, name) == pdb.disrupted_pods.end();
}

}  // namespace

SplitByBudget split_by_budget(const Cluster& cluster, std::span<const PodId> pods) {
  SplitByBudget split;
  const auto& pdbs = cluster.objects().pdbs;
  std::vector<std::int64_t> used(pdbs.size(), 0);
  for (const PodId pod : pods) {
    const Identity& identity = cluster.identity_of(pod);
    bool violates = false;
    std::size_t i = 0;
    for (const auto& [key, pdb] : pdbs) {
      const std::size_t budget = i++;
      // A pod without labels matches no budget, also none with a negative selector.
      if (identity.labels.empty() || !covers(pdb, identity, cluster.pod(pod).name)) continue;
      if (++used[budget] > pdb.disruptions_allowed) violates = true;
    }
    (violates ? split.violating : split.others).push_back(pod);
  }
  return split;
}

}  // namespace jogak::core
