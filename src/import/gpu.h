// SPDX-License-Identifier: Apache-2.0
// Device detail of nodes and device requests of pods, from Jogak's annotations and NVIDIA's node
// labels. Format for users: docs/cluster-file.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/model/spec.h"
#include "kube/objects.h"

namespace jogak::importer {

inline constexpr std::string_view kGpuResource = "nvidia.com/gpu";

// gpu_model and gpus of the node. Without the annotation jogak.io/gpus there is no device detail.
Result<void> add_devices(const kube::ObjectMeta& meta, core::NodeSpec& node);

// The request by annotation (a share or MIG instances), or whole devices by the extended resource.
Result<core::GpuRequest> gpu_request(const kube::ObjectMeta& meta,
                                     const core::ResourceList& requests);

// What the annotation of a bound pod says it holds; nullopt without the annotation, and where it
// names fewer devices than the pod asks for: not all of them are known.
Result<std::optional<std::vector<core::GpuHold>>> gpu_holds(const kube::ObjectMeta& meta,
                                                            const core::GpuRequest& request);

}  // namespace jogak::importer
