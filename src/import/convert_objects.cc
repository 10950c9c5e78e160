// SPDX-License-Identifier: Apache-2.0
// Selectors and the small objects: namespaces, budgets, workloads, storage.
#include <utility>

#include "import/convert.h"
#include "import/convert_parts.h"

namespace jogak::importer {

namespace {

core::SelectorOp to_op(kube::Operator op) {
  switch (op) {
    case kube::Operator::In:
      return core::SelectorOp::In;
    case kube::Operator::NotIn:
      return core::SelectorOp::NotIn;
    case kube::Operator::Exists:
      return core::SelectorOp::Exists;
    case kube::Operator::DoesNotExist:
      return core::SelectorOp::DoesNotExist;
    case kube::Operator::Gt:
      return core::SelectorOp::Gt;
    case kube::Operator::Lt:
      return core::SelectorOp::Lt;
  }
  std::unreachable();
}

const std::string* annotation(const kube::ObjectMeta& meta, std::string_view key) {
  for (const auto& [name, value] : meta.annotations) {
    if (name == key) return &value;
  }
  return nullptr;
}

}  // namespace

std::vector<core::Requirement> to_requirements(std::vector<kube::SelectorRequirement>&& from) {
  std::vector<core::Requirement> result;
  result.reserve(from.size());
  for (kube::SelectorRequirement& item : from) {
    result.push_back({std::move(item.key), to_op(item.op), std::move(item.values)});
  }
  return result;
}

core::NodeSelectorTerm to_term(kube::NodeSelectorTerm&& from) {
  return {.labels = to_requirements(std::move(from.match_expressions)),
          .fields = to_requirements(std::move(from.match_fields))};
}

std::vector<core::NodeSelectorTerm> to_terms(std::vector<kube::NodeSelectorTerm>&& from) {
  std::vector<core::NodeSelectorTerm> result;
  result.reserve(from.size());
  for (kube::NodeSelectorTerm& term : from) result.push_back(to_term(std::move(term)));
  return result;
}

core::TaintEffect to_effect(kube::TaintEffect from) {
  switch (from) {
    case kube::TaintEffect::NoSchedule:
      return core::TaintEffect::NoSchedule;
    case kube::TaintEffect::PreferNoSchedule:
      return core::TaintEffect::PreferNoSchedule;
    case kube::TaintEffect::NoExecute:
      return core::TaintEffect::NoExecute;
  }
  std::unreachable();
}

core::LabelSelector to_selector(kube::LabelSelector&& selector) {
  core::LabelSelector result;
  for (auto& [key, value] : selector.match_labels) {
    result.requirements.push_back({std::move(key), core::SelectorOp::In, {std::move(value)}});
  }
  for (core::Requirement& item : to_requirements(std::move(selector.match_expressions))) {
    result.requirements.push_back(std::move(item));
  }
  return result;
}

std::optional<core::LabelSelector> to_selector(std::optional<kube::LabelSelector>&& selector) {
  if (!selector) return std::nullopt;
  return to_selector(std::move(*selector));
}

core::NamespaceSpec to_namespace(kube::Namespace&& from) {
  return {.name = std::move(from.meta.name), .labels = std::move(from.meta.labels)};
}

core::PdbSpec to_pdb(kube::PodDisruptionBudget&& from) {
  return {.ns = std::move(from.meta.ns),
          .name = std::move(from.meta.name),
          .selector = to_selector(std::move(from.selector)),
          .disruptions_allowed = from.disruptions_allowed,
          .disrupted_pods = std::move(from.disrupted_pods)};
}

core::WorkloadSpec to_workload(kube::Workload&& from) {
  return {.kind = std::move(from.kind),
          .ns = std::move(from.meta.ns),
          .name = std::move(from.meta.name),
          .selector = to_selector(std::move(from.selector))};
}

core::PersistentVolumeSpec to_pv(kube::PersistentVolume&& from) {
  core::PersistentVolumeSpec result;
  result.name = std::move(from.meta.name);
  result.labels = std::move(from.meta.labels);
  result.capacity_bytes = from.capacity_bytes;
  result.storage_class = std::move(from.storage_class);
  result.access_modes = std::move(from.access_modes);
  result.volume_mode = std::move(from.volume_mode);
  if (from.node_affinity) result.node_affinity = to_terms(std::move(*from.node_affinity));
  result.claim_ns = std::move(from.claim_ns);
  result.claim_name = std::move(from.claim_name);
  result.claim_uid = std::move(from.claim_uid);
  result.phase = std::move(from.phase);
  result.deleting = from.meta.deleting;
  result.attributes_class = std::move(from.attributes_class);
  if (!from.csi_driver.empty()) {
    result.csi = core::CsiSource{.driver = std::move(from.csi_driver),
                                 .handle = std::move(from.csi_handle),
                                 .migrated_from = std::move(from.migrated_from)};
  }
  return result;
}

core::PersistentVolumeClaimSpec to_pvc(kube::PersistentVolumeClaim&& from) {
  core::PersistentVolumeClaimSpec result;
  if (const auto* node = annotation(from.meta, "volume.kubernetes.io/selected-node")) {
    result.selected_node = *node;
  }
  result.bind_completed = annotation(from.meta, "pv.kubernetes.io/bind-completed") != nullptr;
  if (from.meta.owner_kind == "Pod") result.owner_pod_uid = std::move(from.meta.owner_uid);
  result.ns = std::move(from.meta.ns);
  result.name = std::move(from.meta.name);
  result.uid = std::move(from.meta.uid);
  result.phase = std::move(from.phase);
  result.volume_name = std::move(from.volume_name);
  result.storage_class = std::move(from.storage_class);
  result.access_modes = std::move(from.access_modes);
  result.volume_mode = std::move(from.volume_mode);
  result.request_bytes = from.request_bytes;
  result.selector = to_selector(std::move(from.selector));
  result.deleting = from.meta.deleting;
  result.attributes_class = std::move(from.attributes_class);
  return result;
}

core::StorageClassSpec to_storage_class(kube::StorageClass&& from) {
  return {.name = std::move(from.meta.name),
          .provisioner = std::move(from.provisioner),
          .wait_for_first_consumer = from.wait_for_first_consumer,
          .allowed_topologies = to_terms(std::move(from.allowed_topologies))};
}

core::CsiNodeSpec to_csi_node(kube::CsiNode&& from) {
  core::CsiNodeSpec result{.name = std::move(from.meta.name),
                           .drivers = {},
                           .migrated_plugins = std::move(from.migrated_plugins)};
  for (kube::CsiNode::Driver& driver : from.drivers) {
    result.drivers.push_back({.name = std::move(driver.name), .limit = driver.count});
  }
  return result;
}

core::CsiDriverSpec to_csi_driver(kube::CsiDriver&& from) {
  return {.name = std::move(from.meta.name), .storage_capacity = from.storage_capacity};
}

core::CsiStorageCapacitySpec to_csi_storage_capacity(kube::CsiStorageCapacity&& from) {
  return {.ns = std::move(from.meta.ns),
          .name = std::move(from.meta.name),
          .storage_class = std::move(from.storage_class),
          .node_topology = to_selector(std::move(from.node_topology)),
          .capacity_bytes = from.capacity_bytes,
          .maximum_volume_bytes = from.maximum_volume_bytes};
}

core::VolumeAttachmentSpec to_attachment(kube::VolumeAttachment&& from) {
  return {.name = std::move(from.meta.name),
          .attacher = std::move(from.attacher),
          .node = std::move(from.node_name),
          .pv_name = std::move(from.pv_name)};
}

}  // namespace jogak::importer
