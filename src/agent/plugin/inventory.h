// SPDX-License-Identifier: Apache-2.0
//
// What a node offers to the kubelet: resources by name, each with its devices, made from the facts
// about the GPUs, the configuration and the health. Pure: the same input gives the same lists, in
// the same order, so that ids are stable over restarts.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/plugin/config.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

// One id of the kubelet's: a GPU, a MIG device, or one share of either.
struct PluginDevice {
  std::string id;            // "GPU-...", "MIG-...", "GPU-...::3"
  std::string uuid;          // without the share
  std::string gpu_uuid;      // of the GPU it is (a part of)
  int gpu = 0;               // its index in NodeFacts::gpus
  std::string index;         // "0", or "0:1" for a MIG device
  std::optional<int> minor;  // N of /dev/nvidiaN
  int gi_id = -1, ci_id = -1;
  std::optional<int> numa_node;
  bool is_healthy = true;
  std::string reason;  // why it is not healthy

  bool is_mig() const { return gi_id >= 0; }
  friend bool operator==(const PluginDevice&, const PluginDevice&) = default;
};

struct PluginResource {
  std::string name;       // "nvidia.com/gpu"
  std::string base_name;  // before it was renamed for sharing
  std::string profile;    // of MIG devices, else ""
  SharingKind sharing = SharingKind::None;
  int replicas = 1;
  bool fails_above_one = false;
  std::vector<PluginDevice> devices;  // by GPU, MIG index, share

  // nullptr: no such id.
  const PluginDevice* find(std::string_view id) const;
  friend bool operator==(const PluginResource&, const PluginResource&) = default;
};

struct Inventory {
  std::vector<PluginResource> resources;  // by name
  std::vector<std::string> problems;      // what was left out, and why; one line each
  const PluginResource* find(std::string_view name) const;
};

// Why devices are not healthy, by the UUID of a GPU (it and all its MIG devices) or of a MIG
// device.
using UnhealthyReasons = std::map<std::string, std::string, std::less<>>;

Inventory make_inventory(const nvml::NodeFacts& facts, const PluginConfig& config,
                         const UnhealthyReasons& unhealthy);

// "nvidia.com/mig-1g.10gb.me" for "1g.10gb+me".
std::string mig_resource_name(std::string_view profile);

// "GPU-1" of "GPU-1::3", and 3; none where the id has no share.
std::pair<std::string, std::optional<int>> split_share(std::string_view id);

}  // namespace jogak::agent
