// SPDX-License-Identifier: Apache-2.0
// NodeResourcesBalancedAllocation: does the pod even out how full the node's resources are? 75 is
// neutral, more is better. The formula is that of Kubernetes 1.36, which compares the balance with
// and without the pod.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/score/score.h"
#include "core/score/scored_resources.h"

namespace jogak::core {

// `resources` as scored_resources() gives them for balanced_resources, Usage::Requested.
std::int64_t balanced_allocation_score(const Node& node, std::span<const ScoredResource> resources);

// nullopt: the pod asks for none of the resources; the plugin skips itself.
std::optional<std::vector<std::int64_t>> balanced_allocation_scores(
    const Cluster& cluster, const PodView& pod, std::span<const NodeId> feasible,
    const ScoreConfig& config);

}  // namespace jogak::core
