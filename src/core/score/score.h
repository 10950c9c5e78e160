// SPDX-License-Identifier: Apache-2.0
// Scores of kube-scheduler's default profile (1.36): per plugin a raw score per node, normalised
// over the feasible nodes to 0..100, weighted and summed. Integers; normalisation is written once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/filter/pod_view.h"
#include "core/filter/verdict.h"

namespace jogak::core {

struct PluginScores {
  Plugin plugin = Plugin::None;
  std::int32_t weight = 1;
  std::vector<std::int64_t> values;  // weighted, per feasible node, in the order given
};

enum class FitStrategy : std::uint8_t { LeastAllocated, MostAllocated, RequestedToCapacityRatio };

struct ShapePoint {
  std::int32_t utilization = 0;  // 0..100, strictly increasing
  std::int32_t score = 0;        // 0..10
};

struct ResourceWeight {
  std::string name;
  std::int64_t weight = 1;
};

// NodeResourcesFitArgs and NodeResourcesBalancedAllocationArgs.
struct ScoreConfig {
  FitStrategy strategy = FitStrategy::LeastAllocated;
  std::vector<ResourceWeight> fit_resources = {{"cpu", 1}, {"memory", 1}};
  std::vector<ShapePoint> shape = {{0, 0}, {100, 10}};
  std::vector<ResourceWeight> balanced_resources = {{"cpu", 1}, {"memory", 1}};
};

// Plugins that skip themselves for this pod are absent. `feasible` has two or more nodes.
std::vector<PluginScores> kube_scores(const Cluster& cluster, const PodView& pod,
                                      std::span<const NodeId> feasible,
                                      const ScoreConfig& config = {});

}  // namespace jogak::core
