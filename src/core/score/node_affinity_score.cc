// SPDX-License-Identifier: Apache-2.0
// See node_affinity_score.h.
#include "core/score/node_affinity_score.h"

#include "core/filter/selector.h"
#include "core/score/normalize.h"

namespace jogak::core {

std::optional<std::vector<std::int64_t>> node_affinity_scores(const Cluster& cluster,
                                                              const PodView& pod,
                                                              std::span<const NodeId> feasible) {
  const auto& preferred = pod.shape->spec.preferred_node;
  if (preferred.empty()) return std::nullopt;
  std::vector<std::int64_t> scores;
  scores.reserve(feasible.size());
  for (const NodeId id : feasible) {
    std::int64_t sum = 0;
    for (const PreferredNodeTerm& term : preferred) {
      if (node_matches(cluster, cluster.node(id), term.term)) sum += term.weight;
    }
    scores.push_back(sum);
  }
  normalize(scores, Direction::MoreIsBetter);
  return scores;
}

}  // namespace jogak::core
