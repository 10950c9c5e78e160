// SPDX-License-Identifier: Apache-2.0
// See node_copy.h.
#include "sim/node_copy.h"

#include <algorithm>

#include "core/model/mig.h"

namespace jogak::sim {

namespace {

core::ResourceList allocatable_of(const core::Cluster& cluster, const core::Node& node) {
  core::ResourceList list = {{"cpu", node.cpu_allocatable},
                             {"ephemeral-storage", node.storage_allocatable},
                             {"memory", node.memory_allocatable},
                             {"pods", node.pods_allocatable}};
  for (const core::ScalarAmount& amount : node.scalars) {
    // An entry of nothing is there because some pod asks for it.
    if (amount.allocatable == 0) continue;
    list.emplace_back(cluster.scalar_name(amount.id), amount.allocatable);
  }
  std::ranges::sort(list);
  return list;
}

core::GpuSpec gpu_of(const core::Node& node, std::size_t index) {
  const core::Gpu& gpu = node.gpus[index];
  core::GpuSpec spec{.uuid = {},
                     .memory_mib = gpu.memory_mib,
                     .numa_node = gpu.numa_node,
                     .nvlink_mask = gpu.nvlink_mask,
                     .health = gpu.health,
                     .mig_enabled = gpu.mig_enabled,
                     .mig_dynamic = gpu.mig_dynamic,
                     .mig_instances = {}};
  for (const core::MigSlot& slot : node.mig_slots) {
    if (static_cast<std::size_t>(slot.gpu) != index) continue;
    const core::MigModel& model = core::mig_models()[gpu.mig_model];
    spec.mig_instances.push_back(
        {.profile = std::string(model.profiles[static_cast<std::size_t>(slot.profile)].name),
         .start = slot.start});
  }
  return spec;
}

// Of a node that is cordoned, not ready, short of something, or that nobody has looked at yet.
bool tells_of_condition(const core::Taint& taint) {
  return taint.key.starts_with("node.kubernetes.io/") ||
         taint.key == "node.cloudprovider.kubernetes.io/uninitialized" ||
         taint.key == "ToBeDeletedByClusterAutoscaler" ||
         taint.key == "DeletionCandidateOfClusterAutoscaler";
}

}  // namespace

core::NodeSpec spec_of(const core::Cluster& cluster, core::NodeId id) {
  const core::Node& node = cluster.node(id);
  core::NodeSpec spec;
  spec.name = cluster.text(node.name);
  for (const core::NodeLabel& label : node.labels) {
    spec.labels.emplace_back(cluster.text(label.key), cluster.text(label.value));
  }
  std::ranges::sort(spec.labels);
  spec.taints = node.taints;
  spec.unschedulable = node.unschedulable;
  spec.allocatable = allocatable_of(cluster, node);
  for (const core::ImageId image : node.images) {
    const core::ImageInfo& info = cluster.images()[image.value];
    spec.images.push_back(
        {.names = {std::string(cluster.text(info.name))}, .size_bytes = info.size_bytes});
  }
  for (const core::Symbol feature : node.features) {
    spec.declared_features.emplace_back(cluster.text(feature));
  }
  std::ranges::sort(spec.declared_features);
  spec.gpu_model = cluster.text(node.gpu_model);
  for (std::size_t i = 0; i < node.gpus.size(); ++i) spec.gpus.push_back(gpu_of(node, i));
  spec.order = node.order;
  return spec;
}

core::PodSpec spec_of(const core::Cluster& cluster, core::PodId id) {
  const core::Pod& pod = cluster.pod(id);
  const core::Identity& identity = cluster.identity_of(id);
  core::PodSpec spec;
  spec.ns = identity.ns;
  spec.name = pod.name;
  spec.uid = pod.uid;
  spec.labels = identity.labels;
  spec.owner_kind = identity.owner_kind;
  spec.owner_name = identity.owner_name;
  spec.shape = cluster.shape_of(id).spec;
  if (pod.state == core::PodState::Placed) {
    spec.bound_node = cluster.text(cluster.node(pod.node).name);
  } else if (pod.state == core::PodState::Orphan) {
    spec.bound_node = cluster.text(pod.orphan_node);
  }
  if (!spec.bound_node.empty() && pod.holds_known) spec.holds = pod.holds;
  if (pod.nominated.valid()) spec.nominated_node = cluster.text(cluster.node(pod.nominated).name);
  spec.terminating = pod.terminating;
  spec.preemption_victim = pod.preemption_victim;
  spec.start_time = pod.start_time;
  return spec;
}

bool belongs_to_node(const core::Identity& identity) {
  return identity.owner_kind == "DaemonSet" || identity.owner_kind == "Node";
}

core::NodeSpec copy_of(const core::Cluster& cluster, core::NodeId id, std::string_view name) {
  core::NodeSpec spec = spec_of(cluster, id);
  for (auto& [key, value] : spec.labels) {
    if (value == spec.name) value = name;
  }
  spec.name = name;
  spec.unschedulable = false;
  std::erase_if(spec.taints, tells_of_condition);
  for (core::GpuSpec& gpu : spec.gpus) gpu.health = core::GpuHealth::Healthy;
  spec.images.clear();
  return spec;
}

}  // namespace jogak::sim
