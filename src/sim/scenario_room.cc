// SPDX-License-Identifier: Apache-2.0
// Asks the core's own filters on a cluster of the scenario's nodes with nothing on them.
// See scenario_room.h.
#include "sim/scenario_room.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "core/filter/gpu_devices.h"
#include "core/filter/resources_fit.h"
#include "core/model/cluster.h"

namespace jogak::sim {
namespace {

// Nothing if the empty node can hold the pod, else what it lacks.
std::vector<std::string> lacks(const core::Cluster& cluster, const core::PodView& pod,
                               const core::Node& node) {
  core::Reasons reasons;
  if (core::resources_fit_filter(cluster, pod, node, &reasons).fits()) {
    static_cast<void>(core::gpu_devices_filter(cluster, pod, node, &reasons));
  }
  return reasons;
}

Result<void> check_pod(const core::Cluster& cluster, const ScenarioPod& pod,
                       const core::PodView& view) {
  std::set<std::string> reasons;
  for (const core::NodeId id : cluster.node_order()) {
    const std::vector<std::string> missing = lacks(cluster, view, cluster.node(id));
    if (missing.empty()) return {};
    reasons.insert(missing.begin(), missing.end());
  }
  const std::string where = pod.origin.empty() ? "" : pod.origin + ": ";
  return invalid("{}pod {}/{} fits no node even if that is empty: {}; ask for less or add a node",
                 where, pod.spec.ns, pod.spec.name, fmt::join(reasons, ", "));
}

}  // namespace

Result<void> check_room(const Scenario& scenario) {
  core::Cluster cluster;
  for (const core::NodeSpec& node : scenario.nodes) JOGAK_TRY_VOID(cluster.upsert_node(node));
  std::vector<bool> seen;  // by shape
  for (const ScenarioPod& pod : scenario.pods) {
    if (pod.is_observed) continue;
    core::PodView view;
    view.shape_id = cluster.intern_shape(pod.spec.shape);
    if (view.shape_id.value < seen.size() && seen[view.shape_id.value]) continue;
    seen.resize(std::max<std::size_t>(seen.size(), view.shape_id.value + 1));
    seen[view.shape_id.value] = true;
    view.shape = &cluster.shape(view.shape_id);
    JOGAK_TRY_VOID(check_pod(cluster, pod, view));
  }
  return {};
}

}  // namespace jogak::sim
