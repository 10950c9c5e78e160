// SPDX-License-Identifier: Apache-2.0
//
// What the scheduler reads of a node's devices: the annotation jogak.io/gpus on the node and
// jogak.io/gpu-holds on the pods (docs/cluster-file.md has the formats). Pure; whoever patches the
// objects compares with what is there and writes only what changed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/model/holders.h"
#include "agent/plugin/inventory.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

inline constexpr std::string_view kGpusAnnotation = "jogak.io/gpus";
inline constexpr std::string_view kHoldsAnnotation = "jogak.io/gpu-holds";

// The devices of the node as JSON: memory, NUMA node, NVLink peers, health and MIG state, by index.
// `is_mig_dynamic`: a MIG manager cuts instances on demand. "" where there are more devices than
// the scheduler can take (32), or none.
std::string gpus_annotation(const nvml::NodeFacts& facts, const UnhealthyReasons& unhealthy,
                            bool is_mig_dynamic);

struct PodName {
  std::string ns, name;
  friend auto operator<=>(const PodName&, const PodName&) = default;
};

// Which whole GPUs each pod holds by the kubelet's account, as JSON. Only pods that the scheduler
// counts device by device: those that hold whole GPUs and nothing else of NVIDIA's. A device that
// the facts do not have is left out, and its pod with it: half a list would be refused.
std::map<PodName, std::string> holds_annotations(const nvml::NodeFacts& facts,
                                                 const std::vector<Holding>& holdings);

}  // namespace jogak::agent
