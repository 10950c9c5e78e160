// SPDX-License-Identifier: Apache-2.0
//
// Which devices a container had best get, when the kubelet asks (GetPreferredAllocation). Whole
// GPUs: those with the best links among themselves, then those that leave the best links among the
// rest, then the fewest NUMA nodes. MIG devices fill one GPU before the next is begun; shares are
// spread or packed as configured. A hint only: an odd question gets a plain answer, never an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/plugin/config.h"
#include "agent/plugin/inventory.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

// How well two GPUs reach each other: 10 (across CPUs) to 60 (one board), and 100 for each NVLink.
std::int64_t link_score(const nvml::LinkFacts& link);

struct PreferredQuestion {
  std::vector<std::string> available = {};
  std::vector<std::string> must_include = {};
  int size = 0;
};

// `size` ids of `available`, those of must_include among them, in the order of the resource. Fewer
// where fewer are available. Ids that the resource does not have are used last.
std::vector<std::string> prefer(const PluginResource& resource,
                                const std::vector<nvml::GpuFacts>& gpus,
                                std::optional<SharedPolicy> policy,
                                const PreferredQuestion& question);

}  // namespace jogak::agent
