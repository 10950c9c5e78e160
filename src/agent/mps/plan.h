// SPDX-License-Identifier: Apache-2.0
//
// Which MPS control daemons a node needs: one for each resource that is shared by MPS, with the
// limits that divide its GPUs evenly. Pure; the words are those of nvidia-cuda-mps-control.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/plugin/inventory.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

// Values of GpuFacts::compute_mode.
inline constexpr int kComputeModeDefault = 0;
inline constexpr int kComputeModeExclusive = 3;  // one process: the MPS server

struct MpsGpu {
  std::string uuid;
  int index = 0;                         // as the daemon counts GPUs
  std::int64_t limit_mib = 0;            // of each client's memory; 0: the memory is not known
  std::optional<int> compute_mode = {};  // as it is now, where it is known
  friend bool operator==(const MpsGpu&, const MpsGpu&) = default;
};

struct MpsDaemon {
  std::string resource;      // "nvidia.com/gpu"
  std::vector<MpsGpu> gpus;  // by index
  int thread_percent = 100;  // of each client
  friend bool operator==(const MpsDaemon&, const MpsDaemon&) = default;
};

// By resource. Empty where nothing is shared by MPS.
std::vector<MpsDaemon> mps_daemons(const Inventory& inventory, const nvml::NodeFacts& facts);

// What is said to a daemon so that the limits are in force for servers that it starts from then on.
// Saying it twice changes nothing. The percentage, which can be asked for, comes first: a daemon
// that was started anew in the middle shows by it that the rest is lost, too.
std::vector<std::string> mps_setup(const MpsDaemon& daemon);
inline constexpr std::string_view kMpsProbe = "get_default_active_thread_percentage";
inline constexpr std::string_view kMpsQuit = "quit";

// The number in the answer to kMpsProbe ("25.0"), rounded down; none where there is none.
std::optional<int> mps_percent(std::string_view answer);

}  // namespace jogak::agent
