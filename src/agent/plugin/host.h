// SPDX-License-Identifier: Apache-2.0
//
// What of the driver lies in the file system of the node: device nodes, the access files of MIG
// devices, libraries and programs. Read by find_host_files(); everything else takes the value.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace jogak::agent {

// A character device as the kernel's tables say it is (device_nodes.h).
struct DeviceNode {
  int major = 0, minor = 0;
  int uid = 0, gid = 0, mode = 0666;
  bool may_make = true;  // the driver leaves the making to others
  friend bool operator==(const DeviceNode&, const DeviceNode&) = default;
};
using DeviceNodes = std::map<std::string, DeviceNode, std::less<>>;

struct HostFiles {
  // Paths as the host has them, below its device root: "/dev/nvidia0".
  std::set<std::string, std::less<>> device_nodes;
  // What the numbers of such nodes are, also of those that are not there; empty: not known.
  DeviceNodes numbers;
  // "gpu0/gi1/access" and "gpu0/gi1/ci0/access" -> N of /dev/nvidia-caps/nvidia-capN.
  std::map<std::string, int, std::less<>> mig_caps;
  // Below the driver root, each "/usr/lib/x86_64-linux-gnu/libcuda.so.550.90.07".
  std::vector<std::string> libraries;  // those of this driver version
  std::vector<std::string> programs;
  std::vector<std::string> data;      // firmware and configuration, mounted read-only
  std::vector<std::string> sockets;   // of the driver's daemons
  bool has_hook = false;              // the CDI hook program can be run on the host
  std::vector<std::string> problems;  // with device nodes, one line each
  // "0000:07:00.0" -> "/dev/dri/card1", "/dev/dri/renderD128".
  std::map<std::string, std::vector<std::string>, std::less<>> drm_nodes;

  // -1: not known.
  int mig_cap(int minor, int gi_id, int ci_id) const;  // ci_id -1: of the GPU instance
  // A device node that is there, or can be made.
  bool has_node(std::string_view path) const;
  // What containers can be given besides GPUs, by its CDI class: "gds", "mofed", "gdrcopy". Empty:
  // this node has none of it.
  std::vector<std::string> extra_nodes(std::string_view kind) const;
  friend bool operator==(const HostFiles&, const HostFiles&) = default;
};

std::string imex_node(int channel);  // its path

struct HostRoots {
  std::string driver = "/";   // where we see the driver's files
  std::string devices = "/";  // where we see /dev
  std::string system = "/";   // where we see /proc and /sys
  std::string host = "/";     // where we see the host's root, for the hook program
  std::string hook_path = "/usr/bin/nvidia-ctk";  // as the host has it
};

// What cannot be read is not there: a machine without a driver gives an empty value.
HostFiles find_host_files(const HostRoots& roots, std::string_view driver_version);

// The lines of /proc/driver/nvidia-caps/mig-minors; lines of another form are skipped.
std::map<std::string, int, std::less<>> parse_mig_minors(std::string_view text);

}  // namespace jogak::agent
