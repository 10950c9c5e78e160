// SPDX-License-Identifier: Apache-2.0
//
// Processes of an earlier owner on a device that a new container is about to get. A pod deleted
// without grace loses its device at once, while its process may run on for a second or more; the
// kubelet gives the device to the next pod without waiting.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/plugin/inventory.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

struct Leftover {
  std::int64_t pid = 0;
  std::string name = {};    // "" unknown
  std::string device = {};  // UUID of the GPU or MIG device
  bool is_pod = false;      // of a pod that may have had the device; others do not leave for one
  friend bool operator==(const Leftover&, const Leftover&) = default;
};

// Those of a GPU's processes that are on this device. Programs that serve all clients of a GPU (the
// MPS server) and those that draw a screen are not anybody's leftovers.
std::vector<Leftover> leftovers_on(const PluginDevice& device,
                                   const std::vector<nvml::ProcessFacts>& processes);

// Whether /proc/PID/cgroup (either version, any cgroup driver) is that of a process in a pod.
bool is_pod_cgroup(std::string_view cgroup);

}  // namespace jogak::agent
