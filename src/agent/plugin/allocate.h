// SPDX-License-Identifier: Apache-2.0
//
// What a container is given with its devices, as the kubelet passes it to the runtime. Pure, and
// from an immutable snapshot: the same ids always get the same answer, however often asked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/plugin/config.h"
#include "agent/plugin/host.h"
#include "agent/plugin/inventory.h"
#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

// Everything an answer is made of. Made by the owner of the state, then only read.
struct PluginSnapshot {
  PluginConfig config;
  HostFiles host;
  std::vector<nvml::GpuFacts> gpus;
  Inventory inventory;
};
using PluginSnapshotPtr = std::shared_ptr<const PluginSnapshot>;

// An IMEX channel that is required and not there makes every device unhealthy.
PluginSnapshotPtr make_snapshot(const nvml::NodeFacts& facts, const PluginConfig& config,
                                const HostFiles& host, const UnhealthyReasons& unhealthy);

struct ContainerMount {
  std::string host_path = {}, container_path = {};
  bool is_read_only = true;
  friend bool operator==(const ContainerMount&, const ContainerMount&) = default;
};

struct ContainerDevice {
  std::string host_path = {}, container_path = {};
  std::string permissions = "rw";
  friend bool operator==(const ContainerDevice&, const ContainerDevice&) = default;
};

struct ContainerAnswer {
  std::map<std::string, std::string> env;
  std::vector<ContainerMount> mounts;
  std::vector<ContainerDevice> devices;
  std::map<std::string, std::string> annotations;
  std::vector<std::string> cdi_devices;  // qualified names
  friend bool operator==(const ContainerAnswer&, const ContainerAnswer&) = default;
};

// Errors fail the pod for good, so only what can never become right is one. NotFound: an id that
// the resource does not have. Invalid: more than one share, where the configuration forbids it.
Result<ContainerAnswer> allocate(const PluginSnapshot& snapshot, std::string_view resource,
                                 const std::vector<std::string>& ids);

inline constexpr std::string_view kCdiVendor = "k8s.device-plugin.nvidia.com";

}  // namespace jogak::agent
