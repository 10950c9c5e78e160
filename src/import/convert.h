// SPDX-License-Identifier: Apache-2.0
// Kubernetes objects to the values the decision core works with. Strings are moved out of the
// source.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "core/model/spec.h"
#include "kube/objects.h"

namespace jogak::importer {

// Errors say which field of the object and what would be right, without naming the object.
Result<core::NodeSpec> to_node(kube::Node&& node);
// Priority is left at 0 where the object has none: what its class says is for the caller to add.
Result<core::PodSpec> to_pod(kube::Pod&& pod);

core::LabelSelector to_selector(kube::LabelSelector&& selector);
std::optional<core::LabelSelector> to_selector(std::optional<kube::LabelSelector>&& selector);

core::NamespaceSpec to_namespace(kube::Namespace&& from);
core::PdbSpec to_pdb(kube::PodDisruptionBudget&& from);
core::WorkloadSpec to_workload(kube::Workload&& from);
core::PersistentVolumeSpec to_pv(kube::PersistentVolume&& from);
core::PersistentVolumeClaimSpec to_pvc(kube::PersistentVolumeClaim&& from);
core::StorageClassSpec to_storage_class(kube::StorageClass&& from);
core::CsiNodeSpec to_csi_node(kube::CsiNode&& from);
core::CsiDriverSpec to_csi_driver(kube::CsiDriver&& from);
core::CsiStorageCapacitySpec to_csi_storage_capacity(kube::CsiStorageCapacity&& from);
core::VolumeAttachmentSpec to_attachment(kube::VolumeAttachment&& from);

}  // namespace jogak::importer
