// SPDX-License-Identifier: Apache-2.0
// What the volume filters share: finding the storage objects a pod names, and which CSI volumes it
// brings to a node.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/filter/cycle.h"

namespace jogak::core {

// The pod uses a PersistentVolumeClaim, by name or as a generic ephemeral volume.
bool is_claim(const VolumeRef& volume);

// nullptr where there is none. Pointers last until the cluster's objects change.
const PersistentVolumeClaimSpec* find_claim(const Cluster& cluster, std::string_view ns,
                                            std::string_view name);
const PersistentVolumeSpec* find_volume(const Cluster& cluster, std::string_view name);
const StorageClassSpec* find_storage_class(const Cluster& cluster, std::string_view name);
const CsiNodeSpec* find_csi_node(const Cluster& cluster, const Node& node);

// Class the claim asks for; empty: none.
std::string_view storage_class_of(const PersistentVolumeClaimSpec& claim);

// The claim was made for this pod by the ephemeral volume controller.
bool claim_belongs_to(const PersistentVolumeClaimSpec& claim, std::string_view pod_uid);
std::string_view uid_of(const Cluster& cluster, const PodView& pod);

// The texts of the API server for objects that do not exist.
std::string claim_not_found(std::string_view name);
std::string volume_not_found(std::string_view name);
std::string storage_class_not_found(std::string_view name);

PreFilter refuse_pod(Plugin plugin, std::string reason);

// A volume that takes up one of a CSI driver's slots on a node. Claims without a volume yet have a
// handle made of their name.
struct CsiVolume {
  std::string driver;
  std::string handle;
  std::string migrated_from;  // in-tree plugin; counts only on nodes that migrated it
  friend auto operator<=>(const CsiVolume&, const CsiVolume&) = default;
};

// Appends those of the pod's volumes. Claims that do not exist, or are not the pod's, bring none.
void csi_volumes(const Cluster& cluster, const PodShape& pod, std::string_view ns,
                 std::string_view pod_uid, std::vector<CsiVolume>& out);

bool counts_on(const CsiVolume& volume, const CsiNodeSpec* csi_node);

}  // namespace jogak::core
