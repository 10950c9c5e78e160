// SPDX-License-Identifier: Apache-2.0
// Every answer names the rule that is broken before the colon.
#include "core/plan/validate.h"

#include <fmt/format.h>

#include "core/plan/naive_devices.h"
#include "core/plan/naive_rules.h"

namespace jogak::core {
namespace {

std::string pod_state_rule(const Cluster& cluster, const Decision& decision) {
  if (decision.pod.value >= cluster.pods().size()) return "stale: there is no such pod";
  const Pod& pod = cluster.pod(decision.pod);
  if (pod.state != PodState::Pending) return "stale: the pod is gone or placed already";
  if (pod.terminating) return "terminating: the pod is being deleted";
  if (!cluster.shape_of(decision.pod).spec.gates.empty()) return "gates: the pod is not released";
  return {};
}

std::string capacity_of_node(const Cluster& cluster, const Node& node) {
  if (node.observed_over) return {};
  if (node.pod_count() > node.pods_allocatable) {
    return fmt::format("capacity: node {} has {} pods of {}", cluster.text(node.name),
                       node.pod_count(), node.pods_allocatable);
  }
  for (const auto& [resource, limit] : naive::capacity(cluster, node)) {
    std::int64_t sum = 0;
    for (const PodId pod : node.pods) sum += naive::asked(cluster.shape_of(pod).spec, resource);
    if (sum > limit) {
      return fmt::format("capacity: {} of node {} is {} of {}", resource, cluster.text(node.name),
                         sum, limit);
    }
  }
  return {};
}

// Every placed pod is on a living node that lists it once, and nobody else is listed.
std::string residence(const Cluster& cluster) {
  std::size_t placed = 0;
  std::int64_t with_affinity = 0;
  for (std::uint32_t i = 0; i < cluster.pods().size(); ++i) {
    const Pod& pod = cluster.pods()[i];
    if (pod.state != PodState::Placed) continue;
    ++placed;
    const PodShape& shape = cluster.shape_of(PodId{i}).spec;
    with_affinity += !shape.required_affinity.empty() || !shape.required_anti_affinity.empty() ||
                             !shape.preferred_affinity.empty() ||
                             !shape.preferred_anti_affinity.empty()
                         ? 1
                         : 0;
    const Node& node = cluster.node(pod.node);
    if (!node.alive || pod.slot_in_node >= node.pods.size() ||
        node.pods[pod.slot_in_node] != PodId{i}) {
      return fmt::format("residence: the node of pod {} does not list it",
                         cluster.pod_full_name(PodId{i}));
    }
  }
  std::size_t listed = 0;
  for (const Node& node : cluster.nodes()) listed += node.pods.size();
  if (listed != placed) return fmt::format("residence: {} pods placed, {} listed", placed, listed);
  if (with_affinity != cluster.placed_with_affinity()) {
    return fmt::format("residence: {} placed pods have affinity terms, {} counted", with_affinity,
                       cluster.placed_with_affinity());
  }
  return {};
}

}  // namespace

std::string validate(const Cluster& cluster, const Decision& decision) {
  std::string broken = pod_state_rule(cluster, decision);
  if (!broken.empty()) return broken;
  if (!decision.node.valid()) {
    return decision.holds.empty() ? "" : "holds: devices of a node that was not chosen";
  }
  if (decision.node.value >= cluster.nodes().size() || !cluster.node(decision.node).alive) {
    return "stale: the node is gone";
  }
  broken = naive::node_rules(cluster, decision.pod, decision.node);
  if (broken.empty()) broken = naive::capacity_rules(cluster, decision.pod, decision.node);
  if (broken.empty()) {
    broken = naive::device_rules(cluster, decision.pod, decision.node, decision.holds);
  }
  if (broken.empty()) broken = naive::volume_rules(cluster, decision.pod, decision.node);
  if (broken.empty()) broken = naive::pod_rules(cluster, decision.pod, decision.node);
  return broken;
}

std::string validate_cluster(const Cluster& cluster) {
  std::string broken = residence(cluster);
  for (const NodeId node : cluster.node_order()) {
    if (broken.empty()) broken = naive::owner_rules(cluster, node);
    if (broken.empty()) broken = capacity_of_node(cluster, cluster.node(node));
  }
  return broken;
}

}  // namespace jogak::core
