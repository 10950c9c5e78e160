// SPDX-License-Identifier: Apache-2.0
// Volumes, claims, classes and CSI objects.
#include <limits>

#include "kube/decode_parts.h"

namespace jogak::kube {

namespace {

std::string text_or(const Json& json, std::string_view by_default) {
  const std::string_view text = json.view();
  return std::string(text.empty() ? by_default : text);
}

std::optional<std::int64_t> read_optional_quantity(const Json& json) {
  if (!json) return std::nullopt;
  return read_quantity(json);
}

// In-tree volumes that Kubernetes moved to CSI drivers, and what they became (csi-translation-lib).
struct MovedToCsi {
  std::string_view field;
  std::string_view id;  // field that names the volume
  std::string_view plugin;
  std::string_view driver;
};
constexpr MovedToCsi kMovedToCsi[] = {
    {"awsElasticBlockStore", "volumeID", "kubernetes.io/aws-ebs", "ebs.csi.aws.com"},
    {"gcePersistentDisk", "pdName", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io"},
    {"azureDisk", "diskURI", "kubernetes.io/azure-disk", "disk.csi.azure.com"},
    {"cinder", "volumeID", "kubernetes.io/cinder", "cinder.csi.openstack.org"},
    {"vsphereVolume", "volumePath", "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"},
};

void read_source(const Json& spec, PersistentVolume& volume) {
  const Json csi = spec["csi"];
  volume.csi_driver = csi["driver"].text();
  volume.csi_handle = csi["volumeHandle"].text();
  for (const MovedToCsi& moved : kMovedToCsi) {
    const Json source = spec[moved.field];
    if (!source) continue;
    volume.csi_driver = moved.driver;
    volume.migrated_from = moved.plugin;
    const std::string_view id = source[moved.id].view();
    // "aws://zone/vol-1" is vol-1.
    volume.csi_handle = id.starts_with("aws://") ? id.substr(id.rfind('/') + 1) : id;
  }
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    if (comma != 0) result.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return result;
}

}  // namespace

PersistentVolume read_persistent_volume(const Json& json) {
  PersistentVolume result;
  result.meta = read_meta(json, false);
  const Json spec = json["spec"];
  result.capacity_bytes = read_quantity(spec["capacity"]["storage"]);
  result.storage_class = spec["storageClassName"].text();
  result.access_modes = spec["accessModes"].texts();
  result.volume_mode = text_or(spec["volumeMode"], "Filesystem");
  if (const Json required = spec["nodeAffinity"]["required"]) {
    result.node_affinity = read_node_selector_terms(required["nodeSelectorTerms"]);
  }
  const Json claim = spec["claimRef"];
  result.claim_ns = claim["namespace"].text();
  result.claim_name = claim["name"].text();
  result.claim_uid = claim["uid"].text();
  result.phase = json["status"]["phase"].text();
  read_source(spec, result);
  result.attributes_class = spec["volumeAttributesClassName"].text();
  return result;
}

PersistentVolumeClaim read_persistent_volume_claim(const Json& json) {
  PersistentVolumeClaim result;
  result.meta = read_meta(json, true);
  const Json spec = json["spec"];
  result.phase = json["status"]["phase"].text();
  result.volume_name = spec["volumeName"].text();
  if (const Json name = spec["storageClassName"]) result.storage_class = name.text();
  // The annotation is older than the field and goes before it.
  for (const auto& [key, value] : result.meta.annotations) {
    if (key == "volume.beta.kubernetes.io/storage-class") result.storage_class = value;
  }
  result.access_modes = spec["accessModes"].texts();
  result.volume_mode = text_or(spec["volumeMode"], "Filesystem");
  result.request_bytes = read_quantity(spec["resources"]["requests"]["storage"]);
  result.selector = read_label_selector(spec["selector"]);
  result.attributes_class = spec["volumeAttributesClassName"].text();
  return result;
}

StorageClass read_storage_class(const Json& json) {
  StorageClass result;
  result.meta = read_meta(json, false);
  result.provisioner = json["provisioner"].text();
  result.wait_for_first_consumer = json["volumeBindingMode"].view() == "WaitForFirstConsumer";
  json["allowedTopologies"].each_item([&result](const Json& item) {
    NodeSelectorTerm& term = result.allowed_topologies.emplace_back();
    item["matchLabelExpressions"].each_item([&term](const Json& expression) {
      term.match_expressions.push_back({.key = expression["key"].text(),
                                        .op = Operator::In,
                                        .values = expression["values"].texts()});
    });
  });
  return result;
}

CsiNode read_csi_node(const Json& json) {
  CsiNode result;
  result.meta = read_meta(json, false);
  for (const auto& [key, value] : result.meta.annotations) {
    if (key == "storage.alpha.kubernetes.io/migrated-plugins") {
      result.migrated_plugins = split_at_commas(value);
    }
  }
  json["spec"]["drivers"].each_item([&result](const Json& item) {
    CsiNode::Driver& driver = result.drivers.emplace_back();
    driver.name = item["name"].text();
    if (const Json count = item["allocatable"]["count"]) {
      driver.count = count.integer(0, std::numeric_limits<std::int32_t>::max());
    }
  });
  return result;
}

CsiDriver read_csi_driver(const Json& json) {
  return {.meta = read_meta(json, false),
          .storage_capacity = json["spec"]["storageCapacity"].flag()};
}

CsiStorageCapacity read_csi_storage_capacity(const Json& json) {
  return {.meta = read_meta(json, true),
          .storage_class = json["storageClassName"].text(),
          .node_topology = read_label_selector(json["nodeTopology"]),
          .capacity_bytes = read_optional_quantity(json["capacity"]),
          .maximum_volume_bytes = read_optional_quantity(json["maximumVolumeSize"])};
}

VolumeAttachment read_volume_attachment(const Json& json) {
  const Json spec = json["spec"];
  return {.meta = read_meta(json, false),
          .attacher = spec["attacher"].text(),
          .node_name = spec["nodeName"].text(),
          .pv_name = spec["source"]["persistentVolumeName"].text()};
}

}  // namespace jogak::kube
