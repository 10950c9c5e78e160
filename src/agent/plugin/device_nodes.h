// SPDX-License-Identifier: Apache-2.0
//
// The device nodes of the driver, as the kernel's tables say they are: majors of /proc/devices,
// minors and modes of /proc/driver/nvidia. On a node with plain containerd or CRI-O nobody else
// makes those of nvidia-uvm or of MIG instances. What should be there is pure; put_device_nodes()
// makes what is missing and takes away what belongs to no instance any more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/plugin/config.h"
#include "agent/plugin/host.h"
#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

// ---- the kernel's tables ---------------------------------------------------------------------

// Of character devices, by name: "nvidia-uvm" -> 510. The first of a name counts; lines of another
// form are skipped.
using DeviceMajors = std::map<std::string, int, std::less<>>;
DeviceMajors parse_proc_devices(std::string_view text);

// How the driver wants nodes to be made: /proc/driver/nvidia/params, "ModifyDeviceFiles: 1" and so
// on. What is missing or wrong stays at the driver's own default.
struct DeviceFileRule {
  bool may_make = true;
  int uid = 0, gid = 0, mode = 0666;
  friend bool operator==(const DeviceFileRule&, const DeviceFileRule&) = default;
};
DeviceFileRule parse_device_params(std::string_view text);

// A file capabilities/.../access: "DeviceFileMinor: 66", "DeviceFileMode: 292",
// "DeviceFileModify: 1". Nothing without a minor.
struct CapabilityFile {
  int minor = -1;
  int mode = 0444;
  bool may_make = true;
  friend bool operator==(const CapabilityFile&, const CapabilityFile&) = default;
};
std::optional<CapabilityFile> parse_capability(std::string_view text);

// Those of MIG instances that are there now, by "gpu0/gi7/access" and "gpu0/gi7/ci0/access".
using Capabilities = std::map<std::string, CapabilityFile, std::less<>>;
Capabilities read_capabilities(const std::string& system_root);

struct KernelTables {
  DeviceMajors majors;
  DeviceFileRule rule;
  Capabilities capabilities;
  bool has_modeset = false;  // its module is there
};
// `system_root`: where /proc and /sys are seen.
KernelTables read_kernel_tables(const std::string& system_root);

// ---- what should be there --------------------------------------------------------------------

// By path as the host has it ("/dev/nvidia0"): of these GPUs, of their MIG instances, and what all
// of them need. Empty where the driver is not loaded.
DeviceNodes wanted_device_nodes(const KernelTables& tables, const nvml::NodeFacts& facts,
                                const PluginConfig& config, const HostFiles& host);

// Nodes of MIG instances that are there no more. Only of GPUs that answered, and only where the
// driver, too, says that the instance is gone.
std::vector<std::string> stale_device_nodes(const KernelTables& tables,
                                            const nvml::NodeFacts& facts, const HostFiles& host);

// ---- making it so ----------------------------------------------------------------------------

// What differs between a host and a made tree, where nobody may make a device.
struct NodeTools {
  struct Seen {
    bool is_device = false;  // a character device
    int major = 0, minor = 0;
  };
  // Nothing: no such file. Links are not followed.
  std::function<std::optional<Seen>(const std::string& path)> look;
  // At a path where nothing is; with owner and mode.
  std::function<Result<void>(const std::string& path, const DeviceNode& node)> make;
};
// mknod; wants root.
NodeTools real_node_tools();

struct NodeChanges {
  std::vector<std::string> made, removed;  // paths as the host has them
  std::vector<std::string> problems;       // one line each; the rest was done all the same
};

// Below `device_root`, where /dev is seen. A node that is right is not touched, one with another
// number (of before a reload of the driver) is replaced in one step, and whatever is no device is
// let be. `on_step` is told what is about to happen ("make PATH", "rename PATH", "remove PATH"):
// tests end the process there.
NodeChanges put_device_nodes(const std::string& device_root, const DeviceNodes& wanted,
                             const std::vector<std::string>& stale, const NodeTools& tools,
                             const std::function<void(std::string_view step)>& on_step = nullptr);

}  // namespace jogak::agent
