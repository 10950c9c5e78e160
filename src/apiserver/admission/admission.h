// SPDX-License-Identifier: Apache-2.0
//
// The admission plugins that a real server has on by default and that this one keeps.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "apiserver/registry/resource.h"

namespace jogak::api {

// Changes the status of a stored object. Quotas count what they admit in theirs.
using StatusChange = std::function<ApiResult<Doc>(const Doc& current)>;
using StatusWriter = std::function<ApiResult<void>(std::string_view resource, std::string_view ns,
                                                   std::string_view name, const StatusChange&)>;

// In the order they run: NamespaceLifecycle, LimitRanger, TaintNodesByCondition, Priority,
// DefaultTolerationSeconds, DefaultStorageClass, StorageObjectInUseProtection,
// PersistentVolumeClaimResize, RuntimeClass, PodTopologyLabels, ResourceQuota. Without a writer
// quotas are enforced by the usage that their controller counted last.
std::vector<std::unique_ptr<AdmissionPlugin>> default_admission(StatusWriter write_status = {});

}  // namespace jogak::api
