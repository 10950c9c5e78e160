// SPDX-License-Identifier: Apache-2.0
// Score of NodeResourcesFit: how full the node would be, by one of three strategies. Not normalised
// over nodes; each value is within 0..100 by itself.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/score/score.h"
#include "core/score/scored_resources.h"

namespace jogak::core {

// `resources` as scored_resources() gives them for config.fit_resources, Usage::NonZero.
std::int64_t resources_score(const Node& node, std::span<const ScoredResource> resources,
                             const ScoreConfig& config);

std::vector<std::int64_t> resources_scores(const Cluster& cluster, const PodView& pod,
                                           std::span<const NodeId> feasible,
                                           const ScoreConfig& config);

// Piecewise linear through the points, constant outside; utilization 0..100 to 0..100.
std::int64_t shape_value(std::span<const ShapePoint> shape, std::int64_t utilization);

}  // namespace jogak::core
