// SPDX-License-Identifier: Apache-2.0
//
// Container Device Interface files: what a runtime (containerd, CRI-O) adds to a container for each
// device. make_cdi_spec() is pure; CdiFolder puts files in place whole and takes stale ones away.
// The files are rewritten whenever the agent starts and whenever GPUs, MIG devices or the driver
// change, for containers that restart look their devices up again.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/plugin/allocate.h"
#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

struct CdiFile {
  std::string name;  // "k8s.device-plugin.nvidia.com-gpu.json"
  std::string json;
  friend bool operator==(const CdiFile&, const CdiFile&) = default;
};

// All GPUs and MIG devices by UUID and by index, and files for what else the configuration turns
// on (gds, mofed, gdrcopy, IMEX channels). Empty where the node has no devices.
std::vector<CdiFile> make_cdi_files(const nvml::NodeFacts& facts, const PluginConfig& config,
                                    const HostFiles& host);

// Lower-level: whether a name may stand in a CDI file or a qualified name.
bool is_cdi_device_name(std::string_view name);

class CdiFolder {
 public:
  // `on_step` is told what is about to happen ("write NAME", "rename NAME", "remove NAME"): tests
  // end the process there.
  explicit CdiFolder(std::string path, std::function<void(std::string_view step)> on_step = nullptr)
      : path_(std::move(path)), on_step_(std::move(on_step)) {}

  // Makes the folder hold exactly these of our files, touching only what differs. Others' files
  // stay. Each file is whole at every moment, also after a power loss.
  Result<void> put(const std::vector<CdiFile>& files) const;
  // Whether a file of ours is there.
  bool has_files() const;

 private:
  Result<void> write(const CdiFile& file) const;
  std::vector<std::string> our_files() const;  // names, sorted
  void step(std::string_view verb, std::string_view name) const;

  std::string path_;
  std::function<void(std::string_view step)> on_step_;
};

}  // namespace jogak::agent
