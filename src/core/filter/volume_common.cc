// SPDX-License-Identifier: Apache-2.0
// See volume_common.h. Facts: kube-scheduler 1.36, plugin nodevolumelimits;
// k8s.io/csi-translation-lib for the names of drivers that replaced in-tree plugins.
#include "core/filter/volume_common.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace jogak::core {
namespace {

struct Migration {
  std::string_view plugin;
  std::string_view driver;
};
constexpr Migration kMigrations[] = {
    {"kubernetes.io/aws-ebs", "ebs.csi.aws.com"},
    {"kubernetes.io/gce-pd", "pd.csi.storage.gke.io"},
    {"kubernetes.io/azure-disk", "disk.csi.azure.com"},
    {"kubernetes.io/cinder", "cinder.csi.openstack.org"},
    {"kubernetes.io/portworx-volume", "pxd.portworx.com"},
};
constexpr std::string_view kEbsPlugin = "kubernetes.io/aws-ebs";
constexpr std::string_view kGcePlugin = "kubernetes.io/gce-pd";
// Never a CSI driver's, so that it equals no real handle.
constexpr std::string_view kUnboundHandle = "unbound claim ";

template <class Map>
const typename Map::mapped_type* find_in(const Map& map, std::string_view key) {
  const auto it = map.find(key);
  return it == map.end() ? nullptr : &it->second;
}

std::string_view driver_of_plugin(std::string_view plugin) {
  const auto* const it = std::ranges::find(kMigrations, plugin, &Migration::plugin);
  return it == std::end(kMigrations) ? std::string_view{} : it->driver;
}

// "aws://zone/vol-1" and "vol-1" name the same volume.
std::string_view ebs_handle(std::string_view id) {
  const std::size_t slash = id.rfind('/');
  return slash == std::string_view::npos ? id : id.substr(slash + 1);
}

std::optional<CsiVolume> inline_volume(const VolumeRef& volume) {
  if (volume.kind == VolumeKind::AwsEbs) {
    return CsiVolume{std::string(driver_of_plugin(kEbsPlugin)),
                     std::string(ebs_handle(volume.name)), std::string(kEbsPlugin)};
  }
  if (volume.kind == VolumeKind::GcePd) {
    return CsiVolume{std::string(driver_of_plugin(kGcePlugin)),
                     "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/" + volume.name,
                     std::string(kGcePlugin)};
  }
  return std::nullopt;
}

// By the class of a claim whose volume is yet to come.
std::optional<CsiVolume> volume_to_come(const Cluster& cluster,
                                        const PersistentVolumeClaimSpec& claim) {
  const auto* const storage_class = find_storage_class(cluster, storage_class_of(claim));
  if (storage_class == nullptr) return std::nullopt;
  CsiVolume volume;
  volume.handle = std::string(kUnboundHandle) + claim.ns + "/" + claim.name;
  const std::string_view replaced_by = driver_of_plugin(storage_class->provisioner);
  if (replaced_by.empty()) {
    volume.driver = storage_class->provisioner;
  } else {
    volume.driver = replaced_by;
    volume.migrated_from = storage_class->provisioner;
  }
  return volume;
}

std::optional<CsiVolume> claimed_volume(const Cluster& cluster,
                                        const PersistentVolumeClaimSpec& claim) {
  const PersistentVolumeSpec* const pv =
      claim.volume_name.empty() ? nullptr : find_volume(cluster, claim.volume_name);
  if (pv == nullptr) return volume_to_come(cluster, claim);
  if (!pv->csi) return std::nullopt;
  return CsiVolume{pv->csi->driver, pv->csi->handle, pv->csi->migrated_from};
}

std::string not_found(std::string_view kind, std::string_view name) {
  return std::string(kind) + " \"" + std::string(name) + "\" not found";
}

}  // namespace

bool is_claim(const VolumeRef& volume) {
  return volume.kind == VolumeKind::Claim || volume.kind == VolumeKind::Ephemeral;
}

const PersistentVolumeClaimSpec* find_claim(const Cluster& cluster, std::string_view ns,
                                            std::string_view name) {
  std::string key(ns);
  key += '/';
  key += name;
  return find_in(cluster.objects().pvcs, key);
}

const PersistentVolumeSpec* find_volume(const Cluster& cluster, std::string_view name) {
  return find_in(cluster.objects().pvs, name);
}

const StorageClassSpec* find_storage_class(const Cluster& cluster, std::string_view name) {
  return find_in(cluster.objects().storage_classes, name);
}

const CsiNodeSpec* find_csi_node(const Cluster& cluster, const Node& node) {
  return find_in(cluster.objects().csi_nodes, cluster.text(node.name));
}

std::string_view storage_class_of(const PersistentVolumeClaimSpec& claim) {
  return claim.storage_class ? std::string_view(*claim.storage_class) : std::string_view{};
}

bool claim_belongs_to(const PersistentVolumeClaimSpec& claim, std::string_view pod_uid) {
  return !claim.owner_pod_uid.empty() && claim.owner_pod_uid == pod_uid;
}

std::string_view uid_of(const Cluster& cluster, const PodView& pod) {
  return pod.id.valid() ? std::string_view(cluster.pod(pod.id).uid) : std::string_view{};
}

std::string claim_not_found(std::string_view name) {
  return not_found("persistentvolumeclaim", name);
}

std::string volume_not_found(std::string_view name) { return not_found("persistentvolume", name); }

std::string storage_class_not_found(std::string_view name) {
  return not_found("storageclass.storage.k8s.io", name);
}

PreFilter refuse_pod(Plugin plugin, std::string reason) {
  PreFilter out;
  out.verdict = {plugin, Code::Unresolvable};
  out.reasons.push_back(std::move(reason));
  return out;
}

void csi_volumes(const Cluster& cluster, const PodShape& pod, std::string_view ns,
                 std::string_view pod_uid, std::vector<CsiVolume>& out) {
  for (const VolumeRef& volume : pod.volumes) {
    if (!is_claim(volume)) {
      if (auto found = inline_volume(volume)) out.push_back(*std::move(found));
      continue;
    }
    const auto* const claim = find_claim(cluster, ns, volume.name);
    if (claim == nullptr) continue;
    if (volume.kind == VolumeKind::Ephemeral && !claim_belongs_to(*claim, pod_uid)) continue;
    auto found = claimed_volume(cluster, *claim);
    if (found && !found->driver.empty() && !found->handle.empty()) out.push_back(*std::move(found));
  }
}

bool counts_on(const CsiVolume& volume, const CsiNodeSpec* csi_node) {
  if (volume.migrated_from.empty()) return true;
  if (csi_node == nullptr) return false;
  const auto& migrated = csi_node->migrated_plugins;
  return std::ranges::find(migrated, volume.migrated_from) != migrated.end();
}

}  // namespace jogak::core
