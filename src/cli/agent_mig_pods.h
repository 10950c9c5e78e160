// SPDX-License-Identifier: Apache-2.0
//
// Asks the kubelet of this machine which pods hold which MIG devices, for `jogak agent mig`: a pod
// may hold an instance long before its first process runs there.
#pragma once

#include <string>
#include <string_view>

#include "agent/mig/present.h"
#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::cli {

// Where the kubelet serves PodResources.
inline constexpr std::string_view kPodResourcesSocket =
    "/var/lib/kubelet/pod-resources/kubelet.sock";

// None where nothing is at the path: a machine without a kubelet. Blocks until the kubelet has
// answered or its deadline has passed. Errors: Unavailable.
Result<agent::MigHolders> holders_from_kubelet(const std::string& socket,
                                               const nvml::NodeFacts& node);

}  // namespace jogak::cli
