// SPDX-License-Identifier: Apache-2.0
//
// Small nodes for the tests of the device plugin.
#pragma once

#include <string>
#include <vector>

#include "nvml/gpu_source.h"

namespace jogak::agent::testing {

// "GPU-00000003-..." of the GPU with index 3, "MIG-0003-01-..." of its MIG device 1.
std::string gpu_uuid(int gpu);
std::string mig_uuid(int gpu, int device);

// So many A100-40; GPUs 0 to n/2-1 on NUMA node 0, the others on 1. No NVLinks.
nvml::NodeFacts a100_node(int gpus);

// Joins two GPUs by so many NVLinks.
void link(nvml::NodeFacts& facts, int a, int b, int nvlinks);

// Turns MIG on and cuts the GPU into these profiles, in memory-slice order: "1g.5gb" and the like
// of A100-40.
void cut(nvml::NodeFacts& facts, int gpu, const std::vector<std::string>& profiles);

}  // namespace jogak::agent::testing
