// SPDX-License-Identifier: Apache-2.0
// The default profile's score plugins with their weights. DynamicResources, which gives every node
// the same without ResourceClaims, is left out.
#include "core/score/score.h"

#include <optional>
#include <utility>

#include "core/score/balanced_allocation.h"
#include "core/score/image_locality.h"
#include "core/score/inter_pod_affinity_score.h"
#include "core/score/node_affinity_score.h"
#include "core/score/pod_topology_spread_score.h"
#include "core/score/resources_score.h"
#include "core/score/taint_score.h"

namespace jogak::core {
namespace {

constexpr std::int32_t kTaintWeight = 3;
constexpr std::int32_t kNodeAffinityWeight = 2;
constexpr std::int32_t kSpreadWeight = 2;
constexpr std::int32_t kInterPodAffinityWeight = 2;

void add(std::vector<PluginScores>& all, Plugin plugin, std::int32_t weight,
         std::optional<std::vector<std::int64_t>> values) {
  if (!values) return;
  for (std::int64_t& value : *values) value *= weight;
  all.push_back({plugin, weight, *std::move(values)});
}

}  // namespace

std::vector<PluginScores> kube_scores(const Cluster& cluster, const PodView& pod,
                                      std::span<const NodeId> feasible, const ScoreConfig& config) {
  std::vector<PluginScores> all;
  add(all, Plugin::TaintToleration, kTaintWeight, taint_scores(cluster, pod, feasible));
  add(all, Plugin::NodeAffinity, kNodeAffinityWeight, node_affinity_scores(cluster, pod, feasible));
  add(all, Plugin::NodeResourcesFit, 1, resources_scores(cluster, pod, feasible, config));
  add(all, Plugin::PodTopologySpread, kSpreadWeight,
      pod_topology_spread_score(cluster, pod, feasible));
  add(all, Plugin::InterPodAffinity, kInterPodAffinityWeight,
      inter_pod_affinity_score(cluster, pod, feasible));
  add(all, Plugin::NodeResourcesBalancedAllocation, 1,
      balanced_allocation_scores(cluster, pod, feasible, config));
  add(all, Plugin::ImageLocality, 1, image_locality_scores(cluster, pod, feasible));
  return all;
}

}  // namespace jogak::core
