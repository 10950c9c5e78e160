// SPDX-License-Identifier: Apache-2.0
//
// The admission plugins that a real server has on by default and that this one keeps.
#pragma once

#include <memory>
#include <vector>

#include "apiserver/registry/resource.h"

namespace jogak::api {

// In the order they run: NamespaceLifecycle, Priority, DefaultTolerationSeconds,
// TaintNodesByCondition, RuntimeClass, LimitRanger, DefaultStorageClass, PersistentVolumeClaimResize,
// StorageObjectInUseProtection, ResourceQuota.
std::vector<std::unique_ptr<AdmissionPlugin>> default_admission();

}  // namespace jogak::api
