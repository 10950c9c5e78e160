// SPDX-License-Identifier: Apache-2.0
// See scenario_cluster.h.
#include "sim/scenario_cluster.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/node_copy.h"

namespace jogak::sim {

namespace {

void append_pods(const core::Cluster& cluster, core::PodState state, std::int64_t run_ns,
                 std::vector<ScenarioPod>& out) {
  for (std::uint32_t i = 0; i < cluster.pods().size(); ++i) {
    const core::Pod& pod = cluster.pods()[i];
    if (pod.state != state || pod.terminating) continue;
    ScenarioPod& entry = out.emplace_back();
    entry.spec = spec_of(cluster, core::PodId{i});
    entry.is_observed = true;
    entry.run_ns = run_ns;
  }
}

}  // namespace

void start_from(const core::Cluster& cluster, Scenario& scenario) {
  std::vector<core::NodeSpec> nodes;
  for (const core::NodeId id : cluster.node_order()) nodes.push_back(spec_of(cluster, id));
  std::ranges::move(scenario.nodes, std::back_inserter(nodes));
  scenario.nodes = std::move(nodes);

  std::vector<ScenarioPod> pods;
  append_pods(cluster, core::PodState::Pending, scenario.waiting_ns, pods);
  append_pods(cluster, core::PodState::Placed, scenario.running_ns, pods);
  std::ranges::move(scenario.pods, std::back_inserter(pods));
  scenario.pods = std::move(pods);

  scenario.objects = cluster.objects();
  scenario.has_cluster = true;
}

}  // namespace jogak::sim
