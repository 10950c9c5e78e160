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

constexpr std::string_view kGpuResource = "nvidia.com/gpu";

// Unless the list says something of it already.
void set_amount(core::ResourceList& list, std::string_view name, std::int64_t amount) {
  const auto at = std::ranges::lower_bound(
      list, name, {}, [](const auto& entry) { return std::string_view(entry.first); });
  if (amount == 0 || (at != list.end() && at->first == name)) return;
  list.emplace(at, std::string(name), amount);
}

// In a real cluster whole devices are an extended resource too, and on nodes that do not say which
// devices they have that is all there is to count by. So it is for what a scenario adds.
void count_devices(Scenario& scenario) {
  for (core::NodeSpec& node : scenario.nodes) {
    const auto whole = std::ranges::count(node.gpus, false, &core::GpuSpec::mig_enabled);
    set_amount(node.allocatable, kGpuResource, whole);
  }
  for (ScenarioPod& pod : scenario.pods) {
    const core::GpuRequest& gpu = pod.spec.shape.gpu;
    if (gpu.kind != core::GpuAsk::Whole) continue;
    set_amount(pod.spec.shape.requests, kGpuResource, gpu.count);
  }
}

}  // namespace

void start_from(const core::Cluster& cluster, Scenario& scenario) {
  count_devices(scenario);
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
