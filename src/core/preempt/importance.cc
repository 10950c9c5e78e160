// SPDX-License-Identifier: Apache-2.0
// Orders as in kube-scheduler 1.36, completed by names where it leaves the choice to chance.
#include "core/preempt/importance.h"

#include <algorithm>
#include <compare>
#include <cstdint>

#include "base/check.h"

namespace jogak::core {
namespace {

std::int32_t priority_of(const Cluster& cluster, PodId pod) {
  return cluster.shape_of(pod).spec.priority;
}

bool more_important(const Cluster& cluster, PodId a, PodId b) {
  const std::int32_t pa = priority_of(cluster, a);
  const std::int32_t pb = priority_of(cluster, b);
  if (pa != pb) return pa > pb;
  const Pod& x = cluster.pod(a);
  const Pod& y = cluster.pod(b);
  if (x.start_time != y.start_time) return x.start_time < y.start_time;
  const std::string& na = cluster.identity_of(a).ns;
  const std::string& nb = cluster.identity_of(b).ns;
  return na != nb ? na < nb : x.name < y.name;
}

// What losing the victims costs; smaller is better, fields in the order in which they decide.
struct Cost {
  std::int64_t violations = 0;
  std::int64_t highest = 0;
  std::int64_t sum = 0;
  std::size_t count = 0;
  std::int64_t age = 0;  // start time, negated: the latest start is the smallest
  friend auto operator<=>(const Cost&, const Cost&) = default;
};

Cost cost_of(const Cluster& cluster, const PreemptionCandidate& candidate) {
  JOGAK_CHECK(!candidate.victims.empty());
  // Priorities may be negative; shifted, every further victim adds to the sum.
  constexpr std::int64_t kShift = std::int64_t{1} << 31;
  Cost cost;
  cost.violations = candidate.pdb_violations;
  cost.highest = priority_of(cluster, candidate.victims.front());
  cost.count = candidate.victims.size();
  std::int64_t oldest = kNoTime;
  for (const PodId victim : candidate.victims) {
    const std::int32_t priority = priority_of(cluster, victim);
    cost.sum += priority + kShift;
    if (priority == cost.highest) oldest = std::min(oldest, cluster.pod(victim).start_time);
  }
  cost.age = -oldest;
  return cost;
}

}  // namespace

void sort_by_importance(const Cluster& cluster, std::span<PodId> pods) {
  std::ranges::sort(pods, [&](PodId a, PodId b) { return more_important(cluster, a, b); });
}

std::vector<std::size_t> cheapest(const Cluster& cluster,
                                  std::span<const PreemptionCandidate> candidates) {
  std::vector<std::size_t> best;
  Cost least;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Cost cost = cost_of(cluster, candidates[i]);
    if (best.empty() || cost < least) {
      best.assign(1, i);
      least = cost;
    } else if (cost == least) {
      best.push_back(i);
    }
  }
  return best;
}

}  // namespace jogak::core
