// SPDX-License-Identifier: Apache-2.0
// The list, nodes with their devices, and the objects around pods.
#include "import/export.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/model/mig.h"

namespace jogak::importer {

namespace {

using core::Cluster;
using core::Gpu;
using core::Node;

std::string_view op_text(core::SelectorOp op) {
  switch (op) {
    case core::SelectorOp::In:
      return "In";
    case core::SelectorOp::NotIn:
      return "NotIn";
    case core::SelectorOp::Exists:
      return "Exists";
    case core::SelectorOp::DoesNotExist:
      return "DoesNotExist";
    case core::SelectorOp::Gt:
      return "Gt";
    case core::SelectorOp::Lt:
      return "Lt";
  }
  std::unreachable();
}

void write_requirements(JsonWriter& json, std::string_view key,
                        const std::vector<core::Requirement>& list) {
  json.key(key).begin_array();
  for (const core::Requirement& r : list) {
    json.begin_object().field("key", r.key).field("operator", op_text(r.op));
    write_texts(json, "values", r.values);
    json.end_object();
  }
  json.end_array();
}

void begin_kind(JsonWriter& json, std::string_view api, std::string_view kind) {
  json.begin_object().field("apiVersion", api).field("kind", kind);
}

void open_meta(JsonWriter& json, std::string_view ns, std::string_view name,
               bool deleting = false) {
  json.key("metadata").begin_object().field("name", name);
  if (!ns.empty()) json.field("namespace", ns);
  if (deleting) json.field("deletionTimestamp", "1970-01-01T00:00:00Z");
}

// ---- nodes ----------------------------------------------------------------------------------

void write_mig(JsonWriter& json, const Node& node, std::size_t index) {
  const Gpu& gpu = node.gpus[index];
  json.key("mig").begin_object().field("enabled", true).field("dynamic", gpu.mig_dynamic);
  json.key("instances").begin_array();
  for (const core::MigSlot& slot : node.mig_slots) {
    if (static_cast<std::size_t>(slot.gpu) != index) continue;
    const core::MigModel& model = core::mig_models()[gpu.mig_model];
    json.begin_object()
        .field("profile", model.profiles[static_cast<std::size_t>(slot.profile)].name)
        .field("start", slot.start)
        .end_object();
  }
  json.end_array().end_object();
}

std::string devices_text(const Node& node) {
  JsonWriter json;
  json.begin_array();
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const Gpu& gpu = node.gpus[i];
    json.begin_object();
    if (gpu.memory_mib > 0) json.field("memoryMiB", gpu.memory_mib);
    if (gpu.numa_node >= 0) json.field("numa", gpu.numa_node);
    if (gpu.nvlink_mask != 0) {
      json.key("nvlink").begin_array();
      for (std::size_t j = 0; j < node.gpus.size(); ++j) {
        if ((gpu.nvlink_mask >> j & 1U) == 1) json.value(j);
      }
      json.end_array();
    }
    if (gpu.health == core::GpuHealth::Unhealthy) json.field("health", "Unhealthy");
    if (gpu.health == core::GpuHealth::Unknown) json.field("health", "Unknown");
    if (gpu.mig_enabled) write_mig(json, node, i);
    json.end_object();
  }
  json.end_array();
  return json.take();
}

void write_node_status(JsonWriter& json, const Cluster& cluster, const Node& node) {
  json.key("status").begin_object().key("allocatable").begin_object();
  json.field("cpu", quantity_text("cpu", node.cpu_allocatable));
  json.field("memory", std::to_string(node.memory_allocatable));
  json.field("ephemeral-storage", std::to_string(node.storage_allocatable));
  json.field("pods", std::to_string(node.pods_allocatable));
  std::vector<std::pair<std::string_view, std::int64_t>> scalars;
  for (const core::ScalarAmount& s : node.scalars) {
    if (s.allocatable > 0) scalars.emplace_back(cluster.scalar_name(s.id), s.allocatable);
  }
  std::ranges::sort(scalars);
  for (const auto& [name, amount] : scalars) json.field(name, std::to_string(amount));
  json.end_object();
  std::vector<std::pair<std::string_view, std::int64_t>> images;
  for (const core::ImageId id : node.images) {
    const core::ImageInfo& image = cluster.images()[id.value];
    images.emplace_back(cluster.text(image.name), image.size_bytes);
  }
  std::ranges::sort(images);
  json.key("images").begin_array();
  for (const auto& [name, size] : images) {
    json.begin_object().key("names").begin_array().value(name).end_array();
    json.field("sizeBytes", size).end_object();
  }
  json.end_array().key("declaredFeatures").begin_array();
  for (const core::Symbol feature : node.features) json.value(cluster.text(feature));
  json.end_array().end_object();
}

Result<void> write_node(JsonWriter& json, const Cluster& cluster, const Node& node) {
  const std::string_view name = cluster.text(node.name);
  core::Labels labels;
  for (const core::NodeLabel& l : node.labels) {
    labels.emplace_back(cluster.text(l.key), cluster.text(l.value));
  }
  std::ranges::sort(labels);
  const std::pair<std::string, std::string> product{"nvidia.com/gpu.product",
                                                    cluster.text(node.gpu_model)};
  if (!product.second.empty() && !std::ranges::binary_search(labels, product)) {
    return invalid("node {}: GPU model {} is not in its label {}", name, product.second,
                   product.first);
  }
  if (node.order != 0) return invalid("node {}: a rank of its own ({})", name, node.order);
  begin_kind(json, "v1", "Node");
  open_meta(json, "", name);
  write_labels(json, "labels", labels);
  if (!node.gpus.empty()) {
    json.key("annotations").begin_object().field("jogak.io/gpus", devices_text(node)).end_object();
  }
  json.end_object().key("spec").begin_object();
  if (node.unschedulable) json.field("unschedulable", true);
  json.key("taints").begin_array();
  for (const core::Taint& t : node.taints) {
    json.begin_object().field("key", t.key).field("value", t.value);
    json.field("effect", effect_text(t.effect)).end_object();
  }
  json.end_array().end_object();
  write_node_status(json, cluster, node);
  json.end_object();
  return {};
}

// ---- objects --------------------------------------------------------------------------------

void write_workload(JsonWriter& json, const core::WorkloadSpec& w) {
  const bool is_core = w.kind == "Service" || w.kind == "ReplicationController";
  begin_kind(json, is_core ? "v1" : "apps/v1", w.kind);
  open_meta(json, w.ns, w.name);
  json.end_object().key("spec").begin_object();
  if (is_core && w.selector) {
    // A plain map: the only form these two have.
    json.key("selector").begin_object();
    for (const core::Requirement& r : w.selector->requirements) {
      json.field(r.key, r.values.empty() ? std::string() : r.values.front());
    }
    json.end_object();
  } else {
    write_selector(json, "selector", w.selector);
  }
  json.end_object().end_object();
}

void write_pdb(JsonWriter& json, const core::PdbSpec& p) {
  begin_kind(json, "policy/v1", "PodDisruptionBudget");
  open_meta(json, p.ns, p.name);
  json.end_object().key("spec").begin_object();
  write_selector(json, "selector", p.selector);
  json.end_object().key("status").begin_object();
  json.field("disruptionsAllowed", p.disruptions_allowed).key("disruptedPods").begin_object();
  for (const std::string& pod : p.disrupted_pods) json.field(pod, "1970-01-01T00:00:00Z");
  json.end_object().end_object().end_object();
}

// Volumes of plugins that moved to CSI drivers are written as what they were.
void write_source(JsonWriter& json, const core::CsiSource& source) {
  struct Moved {
    std::string_view plugin, field, id;
  };
  constexpr Moved kMoved[] = {{"kubernetes.io/aws-ebs", "awsElasticBlockStore", "volumeID"},
                              {"kubernetes.io/gce-pd", "gcePersistentDisk", "pdName"},
                              {"kubernetes.io/azure-disk", "azureDisk", "diskURI"},
                              {"kubernetes.io/cinder", "cinder", "volumeID"},
                              {"kubernetes.io/vsphere-volume", "vsphereVolume", "volumePath"}};
  for (const Moved& moved : kMoved) {
    if (moved.plugin != source.migrated_from) continue;
    json.key(moved.field).begin_object().field(moved.id, source.handle).end_object();
    return;
  }
  json.key("csi").begin_object().field("driver", source.driver);
  json.field("volumeHandle", source.handle).end_object();
}

void write_pv(JsonWriter& json, const core::PersistentVolumeSpec& v) {
  begin_kind(json, "v1", "PersistentVolume");
  open_meta(json, "", v.name, v.deleting);
  write_labels(json, "labels", v.labels);
  json.end_object().key("spec").begin_object();
  json.key("capacity").begin_object().field("storage", std::to_string(v.capacity_bytes));
  json.end_object().field("storageClassName", v.storage_class);
  write_texts(json, "accessModes", v.access_modes);
  json.field("volumeMode", v.volume_mode);
  if (!v.attributes_class.empty()) json.field("volumeAttributesClassName", v.attributes_class);
  if (v.node_affinity) {
    json.key("nodeAffinity").begin_object().key("required").begin_object();
    write_node_terms(json, *v.node_affinity);
    json.end_object().end_object();
  }
  if (!v.claim_name.empty()) {
    json.key("claimRef").begin_object().field("namespace", v.claim_ns).field("name", v.claim_name);
    if (!v.claim_uid.empty()) json.field("uid", v.claim_uid);
    json.end_object();
  }
  if (v.csi) write_source(json, *v.csi);
  json.end_object().key("status").begin_object().field("phase", v.phase).end_object().end_object();
}

void write_pvc(JsonWriter& json, const core::PersistentVolumeClaimSpec& c) {
  begin_kind(json, "v1", "PersistentVolumeClaim");
  open_meta(json, c.ns, c.name, c.deleting);
  if (!c.uid.empty()) json.field("uid", c.uid);
  json.key("annotations").begin_object();
  if (!c.selected_node.empty()) json.field("volume.kubernetes.io/selected-node", c.selected_node);
  if (c.bind_completed) json.field("pv.kubernetes.io/bind-completed", "yes");
  json.end_object();
  if (!c.owner_pod_uid.empty()) {
    json.key("ownerReferences").begin_array().begin_object().field("kind", "Pod");
    json.field("name", "owner").field("uid", c.owner_pod_uid).field("controller", true);
    json.end_object().end_array();
  }
  json.end_object().key("spec").begin_object();
  if (!c.volume_name.empty()) json.field("volumeName", c.volume_name);
  if (c.storage_class) json.field("storageClassName", *c.storage_class);
  write_texts(json, "accessModes", c.access_modes);
  json.field("volumeMode", c.volume_mode);
  json.key("resources").begin_object().key("requests").begin_object();
  json.field("storage", std::to_string(c.request_bytes)).end_object().end_object();
  write_selector(json, "selector", c.selector);
  if (!c.attributes_class.empty()) json.field("volumeAttributesClassName", c.attributes_class);
  json.end_object().key("status").begin_object().field("phase", c.phase).end_object().end_object();
}

void write_storage_class(JsonWriter& json, const core::StorageClassSpec& s) {
  begin_kind(json, "storage.k8s.io/v1", "StorageClass");
  open_meta(json, "", s.name);
  json.end_object().field("provisioner", s.provisioner);
  json.field("volumeBindingMode", s.wait_for_first_consumer ? "WaitForFirstConsumer" : "Immediate");
  json.key("allowedTopologies").begin_array();
  for (const core::NodeSelectorTerm& term : s.allowed_topologies) {
    json.begin_object().key("matchLabelExpressions").begin_array();
    for (const core::Requirement& r : term.labels) {
      json.begin_object().field("key", r.key);
      write_texts(json, "values", r.values);
      json.end_object();
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

void write_csi_node(JsonWriter& json, const core::CsiNodeSpec& n) {
  begin_kind(json, "storage.k8s.io/v1", "CSINode");
  open_meta(json, "", n.name);
  if (!n.migrated_plugins.empty()) {
    std::string list;
    for (const std::string& plugin : n.migrated_plugins) {
      list += (list.empty() ? "" : ",") + plugin;
    }
    json.key("annotations").begin_object();
    json.field("storage.alpha.kubernetes.io/migrated-plugins", list).end_object();
  }
  json.end_object().key("spec").begin_object().key("drivers").begin_array();
  for (const core::CsiNodeSpec::Driver& d : n.drivers) {
    json.begin_object().field("name", d.name);
    if (d.limit) json.key("allocatable").begin_object().field("count", *d.limit).end_object();
    json.end_object();
  }
  json.end_array().end_object().end_object();
}

void write_csi_capacity(JsonWriter& json, const core::CsiStorageCapacitySpec& c) {
  begin_kind(json, "storage.k8s.io/v1", "CSIStorageCapacity");
  open_meta(json, c.ns, c.name);
  json.end_object().field("storageClassName", c.storage_class);
  write_selector(json, "nodeTopology", c.node_topology);
  if (c.capacity_bytes) json.field("capacity", std::to_string(*c.capacity_bytes));
  if (c.maximum_volume_bytes) {
    json.field("maximumVolumeSize", std::to_string(*c.maximum_volume_bytes));
  }
  json.end_object();
}

void write_objects(JsonWriter& json, const core::Objects& objects) {
  for (const auto& [key, n] : objects.namespaces) {
    begin_kind(json, "v1", "Namespace");
    open_meta(json, "", n.name);
    write_labels(json, "labels", n.labels);
    json.end_object().end_object();
  }
  for (const auto& [key, p] : objects.pdbs) write_pdb(json, p);
  for (const auto& [key, w] : objects.workloads) write_workload(json, w);
  for (const auto& [key, v] : objects.pvs) write_pv(json, v);
  for (const auto& [key, c] : objects.pvcs) write_pvc(json, c);
  for (const auto& [key, s] : objects.storage_classes) write_storage_class(json, s);
  for (const auto& [key, n] : objects.csi_nodes) write_csi_node(json, n);
  for (const auto& [key, d] : objects.csi_drivers) {
    begin_kind(json, "storage.k8s.io/v1", "CSIDriver");
    open_meta(json, "", d.name);
    json.end_object().key("spec").begin_object();
    json.field("storageCapacity", d.storage_capacity).end_object().end_object();
  }
  for (const auto& [key, c] : objects.csi_capacities) write_csi_capacity(json, c);
  for (const auto& [key, a] : objects.attachments) {
    begin_kind(json, "storage.k8s.io/v1", "VolumeAttachment");
    open_meta(json, "", a.name);
    json.end_object().key("spec").begin_object().field("attacher", a.attacher);
    json.field("nodeName", a.node).key("source").begin_object();
    json.field("persistentVolumeName", a.pv_name).end_object().end_object().end_object();
  }
}

}  // namespace

// ---- parts ----------------------------------------------------------------------------------

void write_labels(JsonWriter& json, std::string_view key, const core::Labels& labels) {
  json.key(key).begin_object();
  for (const auto& [name, value] : labels) json.field(name, value);
  json.end_object();
}

void write_texts(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts) {
  json.key(key).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_selector(JsonWriter& json, std::string_view key,
                    const std::optional<core::LabelSelector>& selector) {
  if (!selector) return;
  json.key(key).begin_object();
  if (!selector->requirements.empty()) {
    write_requirements(json, "matchExpressions", selector->requirements);
  }
  json.end_object();
}

void write_node_term(JsonWriter& json, const core::NodeSelectorTerm& term) {
  json.begin_object();
  write_requirements(json, "matchExpressions", term.labels);
  write_requirements(json, "matchFields", term.fields);
  json.end_object();
}

void write_node_terms(JsonWriter& json, const std::vector<core::NodeSelectorTerm>& terms) {
  json.key("nodeSelectorTerms").begin_array();
  for (const core::NodeSelectorTerm& term : terms) write_node_term(json, term);
  json.end_array();
}

std::string_view effect_text(core::TaintEffect effect) {
  switch (effect) {
    case core::TaintEffect::NoSchedule:
      return "NoSchedule";
    case core::TaintEffect::PreferNoSchedule:
      return "PreferNoSchedule";
    case core::TaintEffect::NoExecute:
      return "NoExecute";
  }
  std::unreachable();
}

std::string quantity_text(std::string_view resource, std::int64_t amount) {
  return std::to_string(amount) + (resource == "cpu" ? "m" : "");
}

Result<std::string> export_list(const Cluster& cluster, const ExportOptions& options) {
  JsonWriter json(options.style);
  begin_kind(json, "v1", "List");
  json.key("items").begin_array();
  write_objects(json, cluster.objects());
  for (const core::NodeId id : cluster.node_order()) {
    JOGAK_TRY_VOID(write_node(json, cluster, cluster.node(id)));
  }
  std::vector<std::pair<std::string, core::PodId>> pods;
  for (std::uint32_t i = 0; i < cluster.pods().size(); ++i) {
    if (cluster.pods()[i].state == core::PodState::Gone) continue;
    pods.emplace_back(cluster.pod_full_name(core::PodId{i}), core::PodId{i});
  }
  std::ranges::sort(pods);
  for (const auto& [name, pod] : pods) {
    const std::string_view scheduler = options.scheduler_name ? options.scheduler_name(pod) : "";
    JOGAK_TRY_VOID(write_pod(json, cluster, pod, scheduler));
  }
  json.end_array().end_object();
  return json.take();
}

}  // namespace jogak::importer
