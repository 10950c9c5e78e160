// SPDX-License-Identifier: Apache-2.0
// One table of kinds: which map an object lives in, and under which key.
#include "import/observe.h"

#include <string>
#include <utility>
#include <variant>

#include <fmt/core.h>

#include "import/convert.h"

namespace jogak::importer {

namespace {

std::string full_name(const kube::ObjectMeta& meta) {
  return fmt::format("{}/{}", meta.ns, meta.name);
}

template <class T>
using Map = std::map<std::string, T, std::less<>>;

template <class T>
bool put(Map<T>& map, std::string key, T value) {
  const auto it = map.find(key);
  if (it == map.end()) {
    map.emplace(std::move(key), std::move(value));
    return true;
  }
  if (it->second == value) return false;
  it->second = std::move(value);
  return true;
}

template <class T>
bool erase(Map<T>& map, std::string_view key) {
  const auto it = map.find(key);
  if (it == map.end()) return false;
  map.erase(it);
  return true;
}

struct Put {
  core::Objects& objects;

  bool operator()(kube::OtherKind&) const { return false; }
  bool operator()(kube::Node&) const { return false; }
  bool operator()(kube::Pod&) const { return false; }
  bool operator()(kube::PriorityClass&) const { return false; }
  bool operator()(kube::Namespace& x) const {
    std::string key = x.meta.name;
    return put(objects.namespaces, std::move(key), to_namespace(std::move(x)));
  }
  bool operator()(kube::PodDisruptionBudget& x) const {
    std::string key = full_name(x.meta);
    return put(objects.pdbs, std::move(key), to_pdb(std::move(x)));
  }
  bool operator()(kube::Workload& x) const {
    std::string key = x.kind + "/" + full_name(x.meta);
    return put(objects.workloads, std::move(key), to_workload(std::move(x)));
  }
  bool operator()(kube::PersistentVolume& x) const {
    std::string key = x.meta.name;
    return put(objects.pvs, std::move(key), to_pv(std::move(x)));
  }
  bool operator()(kube::PersistentVolumeClaim& x) const {
    std::string key = full_name(x.meta);
    return put(objects.pvcs, std::move(key), to_pvc(std::move(x)));
  }
  bool operator()(kube::StorageClass& x) const {
    std::string key = x.meta.name;
    return put(objects.storage_classes, std::move(key), to_storage_class(std::move(x)));
  }
  bool operator()(kube::CsiNode& x) const {
    std::string key = x.meta.name;
    return put(objects.csi_nodes, std::move(key), to_csi_node(std::move(x)));
  }
  bool operator()(kube::CsiDriver& x) const {
    std::string key = x.meta.name;
    return put(objects.csi_drivers, std::move(key), to_csi_driver(std::move(x)));
  }
  bool operator()(kube::CsiStorageCapacity& x) const {
    std::string key = full_name(x.meta);
    return put(objects.csi_capacities, std::move(key), to_csi_storage_capacity(std::move(x)));
  }
  bool operator()(kube::VolumeAttachment& x) const {
    std::string key = x.meta.name;
    return put(objects.attachments, std::move(key), to_attachment(std::move(x)));
  }
};

bool erase_object(core::Objects& objects, std::string_view kind, std::string_view ns,
                  std::string_view name) {
  const std::string full = fmt::format("{}/{}", ns, name);
  if (kind == "Namespace") return erase(objects.namespaces, name);
  if (kind == "PodDisruptionBudget") return erase(objects.pdbs, full);
  if (kind == "PersistentVolume") return erase(objects.pvs, name);
  if (kind == "PersistentVolumeClaim") return erase(objects.pvcs, full);
  if (kind == "StorageClass") return erase(objects.storage_classes, name);
  if (kind == "CSINode") return erase(objects.csi_nodes, name);
  if (kind == "CSIDriver") return erase(objects.csi_drivers, name);
  if (kind == "CSIStorageCapacity") return erase(objects.csi_capacities, full);
  if (kind == "VolumeAttachment") return erase(objects.attachments, name);
  return erase(objects.workloads, fmt::format("{}/{}", kind, full));
}

}  // namespace

bool put_object(core::Objects& objects, kube::Object&& object) {
  return std::visit(Put{objects}, object);
}

Result<core::NodeId> observe_node(core::Cluster& cluster, kube::Node&& node) {
  JOGAK_TRY(const core::NodeSpec spec, to_node(std::move(node)));
  return cluster.upsert_node(spec);
}

Result<core::PodId> observe_pod(core::Cluster& cluster, kube::Pod&& pod) {
  JOGAK_TRY(const core::PodSpec spec, to_pod(std::move(pod)));
  return cluster.upsert_pod(spec);
}

bool observe_object(core::Cluster& cluster, kube::Object&& object) {
  return cluster.change_objects(
      [&object](core::Objects& objects) { return put_object(objects, std::move(object)); });
}

bool forget_object(core::Cluster& cluster, std::string_view kind, std::string_view ns,
                   std::string_view name) {
  return cluster.change_objects(
      [kind, ns, name](core::Objects& objects) { return erase_object(objects, kind, ns, name); });
}

}  // namespace jogak::importer
