// SPDX-License-Identifier: Apache-2.0
//
// How the GPUs of a simulated machine lie to each other: PCIe levels, NVLinks, what a link ends in.
#pragma once

#include <string>

#include "nvml/abi.h"
#include "nvml/sim/machine.h"

namespace jogak::nvml::sim {

// A value of abi::TopologyLevel.
abi::Enum topology_level(Machine& machine, int first, int second);
// NVLinks that join the two; on a board with NVSwitches all links of the lesser.
int links_between(Machine& machine, int first, int second);
// The GPU that a direct link leads to, -1: none. Links are given to peers in the order of the file.
int link_peer(const GpuState& gpu, int link);
// Bus id of the GPU or switch at the other end.
std::string link_remote_bus(Machine& machine, const GpuState& gpu, int link);
// counter: abi::NvlinkErrorCounter.
std::int64_t nvlink_errors(Machine& machine, const GpuState& gpu, abi::Enum counter);
// The GPU at this address, removed or not; null when there is none.
GpuState* gpu_at(Machine& machine, const abi::PciInfo& pci);

}  // namespace jogak::nvml::sim
