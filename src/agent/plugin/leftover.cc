// SPDX-License-Identifier: Apache-2.0
// Which of a GPU's processes are on a device.
#include "agent/plugin/leftover.h"

#include <algorithm>

namespace jogak::agent {

std::vector<Leftover> leftovers_on(const PluginDevice& device,
                                   const std::vector<nvml::ProcessFacts>& processes) {
  std::vector<Leftover> result;
  for (const nvml::ProcessFacts& process : processes) {
    if (process.kind != nvml::ProcessFacts::Kind::Compute) continue;
    if (device.is_mig() && process.gi_id >= 0 &&
        (process.gi_id != device.gi_id || (process.ci_id >= 0 && process.ci_id != device.ci_id))) {
      continue;
    }
    result.push_back({.pid = process.pid, .name = process.name, .device = device.uuid});
  }
  std::ranges::sort(result, {}, &Leftover::pid);
  return result;
}

bool is_pod_cgroup(std::string_view cgroup) {
  // kubepods/burstable/pod<uid>/..., kubepods-burstable-pod<uid>.slice: every driver says this.
  return cgroup.find("kubepods") != std::string_view::npos;
}

}  // namespace jogak::agent
