// SPDX-License-Identifier: Apache-2.0
// See taint_score.h.
#include "core/score/taint_score.h"

#include <algorithm>

#include "core/filter/selector.h"
#include "core/score/normalize.h"

namespace jogak::core {

std::vector<std::int64_t> taint_scores(const Cluster& cluster, const PodView& pod,
                                       std::span<const NodeId> feasible) {
  const auto unwelcome = [&](const Taint& taint) {
    return taint.effect == TaintEffect::PreferNoSchedule &&
           !tolerates(pod.shape->spec.tolerations, taint);
  };
  std::vector<std::int64_t> scores;
  scores.reserve(feasible.size());
  for (const NodeId id : feasible) {
    scores.push_back(std::ranges::count_if(cluster.node(id).taints, unwelcome));
  }
  normalize(scores, Direction::LessIsBetter);
  return scores;
}

}  // namespace jogak::core
