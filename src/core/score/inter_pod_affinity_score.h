// SPDX-License-Identifier: Apache-2.0
// InterPodAffinity, the preferred part: weights of preferred (anti-)affinity between this pod and
// the placed ones, in both directions, summed per topology domain.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/filter/pod_view.h"

namespace jogak::core {

// 0..100 per feasible node, not yet weighted; nullopt where the plugin skips itself for this pod.
std::optional<std::vector<std::int64_t>> inter_pod_affinity_score(const Cluster& cluster,
                                                                  const PodView& pod,
                                                                  std::span<const NodeId> feasible);

}  // namespace jogak::core
