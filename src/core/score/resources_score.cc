// SPDX-License-Identifier: Apache-2.0
// See resources_score.h.
#include "core/score/resources_score.h"

#include <algorithm>

#include "core/score/normalize.h"

namespace jogak::core {
namespace {

constexpr std::int64_t kShapeScale = 10;  // points are written 0..10

// 100 * part / whole, rounded down; 0 <= part <= whole, whole > 0.
std::int64_t percent(std::int64_t part, std::int64_t whole) {
  constexpr std::int64_t kExact = INT64_MAX / kMaxNodeScore;
  if (part <= kExact) return kMaxNodeScore * part / whole;
  return static_cast<std::int64_t>(static_cast<unsigned __int128>(part) * 100U /
                                   static_cast<unsigned __int128>(whole));
}

std::int64_t one_score(const ScoreConfig& config, std::int64_t used, std::int64_t capacity) {
  switch (config.strategy) {
    case FitStrategy::LeastAllocated:
      return used > capacity ? 0 : percent(capacity - used, capacity);
    case FitStrategy::MostAllocated:
      return percent(std::min(used, capacity), capacity);
    case FitStrategy::RequestedToCapacityRatio:
      return shape_value(config.shape, used > capacity ? 100 : percent(used, capacity));
  }
  return 0;
}

}  // namespace

std::int64_t shape_value(std::span<const ShapePoint> shape, std::int64_t utilization) {
  if (shape.empty()) return 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (utilization > shape[i].utilization) continue;
    const std::int64_t right = kShapeScale * shape[i].score;
    if (i == 0) return right;
    const std::int64_t left = kShapeScale * shape[i - 1].score;
    const std::int64_t width = shape[i].utilization - shape[i - 1].utilization;
    return left + (right - left) * (utilization - shape[i - 1].utilization) / width;
  }
  return kShapeScale * shape.back().score;
}

std::int64_t resources_score(const Node& node, std::span<const ScoredResource> resources,
                             const ScoreConfig& config) {
  const bool ratio = config.strategy == FitStrategy::RequestedToCapacityRatio;
  std::int64_t sum = 0;
  std::int64_t weights = 0;
  for (const ScoredResource& resource : resources) {
    const ResourceUse use = resource_use(node, resource, Usage::NonZero);
    if (use.capacity == 0) continue;
    const std::int64_t score = one_score(config, use.used + resource.ask, use.capacity);
    if (ratio && score == 0) continue;  // the original leaves such resources out
    sum += score * resource.weight;
    weights += resource.weight;
  }
  if (weights == 0) return 0;
  // The ratio rounds to the nearest, the others down.
  return ratio ? (2 * sum + weights) / (2 * weights) : sum / weights;
}

std::vector<std::int64_t> resources_scores(const Cluster& cluster, const PodView& pod,
                                           std::span<const NodeId> feasible,
                                           const ScoreConfig& config) {
  const auto resources =
      scored_resources(cluster, *pod.shape, config.fit_resources, Usage::NonZero);
  std::vector<std::int64_t> scores;
  scores.reserve(feasible.size());
  for (const NodeId id : feasible) {
    scores.push_back(resources_score(cluster.node(id), resources, config));
  }
  return scores;
}

}  // namespace jogak::core
