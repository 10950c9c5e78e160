// SPDX-License-Identifier: Apache-2.0
// Memory and threads are divided as NVIDIA's daemon divides them: rounded down.
#include "agent/mps/plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/parse_number.h"

namespace jogak::agent {

namespace {

MpsGpu mps_gpu(const PluginDevice& device, int replicas, const nvml::NodeFacts& facts) {
  MpsGpu gpu{.uuid = device.gpu_uuid, .index = device.gpu};
  const auto at = std::ranges::find(facts.gpus, device.gpu_uuid, &nvml::GpuFacts::uuid);
  if (at == facts.gpus.end()) return gpu;
  gpu.limit_mib = at->memory_mib / replicas;
  if (at->compute_mode) gpu.compute_mode = *at->compute_mode;
  return gpu;
}

}  // namespace

std::vector<MpsDaemon> mps_daemons(const Inventory& inventory, const nvml::NodeFacts& facts) {
  std::vector<MpsDaemon> daemons;
  for (const PluginResource& resource : inventory.resources) {
    if (resource.sharing != SharingKind::Mps || resource.replicas < 2) continue;
    MpsDaemon daemon{.resource = resource.name, .gpus = {}};
    daemon.thread_percent = 100 / resource.replicas;
    for (const PluginDevice& device : resource.devices) {
      // Shares of one GPU follow each other.
      if (!daemon.gpus.empty() && daemon.gpus.back().uuid == device.gpu_uuid) continue;
      daemon.gpus.push_back(mps_gpu(device, resource.replicas, facts));
    }
    if (!daemon.gpus.empty()) daemons.push_back(std::move(daemon));
  }
  return daemons;
}

std::vector<std::string> mps_setup(const MpsDaemon& daemon) {
  std::vector<std::string> commands;
  commands.push_back(fmt::format("set_default_active_thread_percentage {}", daemon.thread_percent));
  for (const MpsGpu& gpu : daemon.gpus) {
    if (gpu.limit_mib == 0) continue;
    commands.push_back(
        fmt::format("set_default_device_pinned_mem_limit {} {}M", gpu.index, gpu.limit_mib));
  }
  return commands;
}

std::optional<int> mps_percent(std::string_view answer) {
  const std::size_t begin = answer.find_first_of("0123456789");
  if (begin == std::string_view::npos || begin > answer.find_first_not_of(" \t\r\n")) return {};
  const std::string_view rest = answer.substr(begin);
  const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (end < rest.size() &&
      std::string_view(". \t\r\n%").find(rest[end]) == std::string_view::npos) {
    return {};
  }
  const auto number = parse_int(rest.substr(0, end), 0, 100);
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

}  // namespace jogak::agent
