// SPDX-License-Identifier: Apache-2.0
// Score of NodeAffinity: the summed weights of the preferred terms that the node matches. A term
// that does not parse is ignored; the original fails the whole cycle there, which is a known bug.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/filter/pod_view.h"

namespace jogak::core {

// Normalised, 0..100. nullopt: the pod prefers no node; the plugin skips itself.
std::optional<std::vector<std::int64_t>> node_affinity_scores(const Cluster& cluster,
                                                              const PodView& pod,
                                                              std::span<const NodeId> feasible);

}  // namespace jogak::core
