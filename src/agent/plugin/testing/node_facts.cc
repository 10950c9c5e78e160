// SPDX-License-Identifier: Apache-2.0
// Facts as an A100-40 gives them, without what the plugin does not look at.
#include "agent/plugin/testing/node_facts.h"

#include <fmt/format.h>

#include "base/check.h"

namespace jogak::agent::testing {

std::string gpu_uuid(int gpu) { return fmt::format("GPU-{:08x}-1111-2222-3333-444444444444", gpu); }

std::string mig_uuid(int gpu, int device) {
  return fmt::format("MIG-{:08x}-{:04x}-2222-3333-444444444444", gpu, device);
}

nvml::NodeFacts a100_node(int gpus) {
  nvml::NodeFacts facts;
  facts.driver_version = "550.90.07";
  facts.generation = 1;
  for (int i = 0; i < gpus; ++i) {
    nvml::GpuFacts gpu;
    gpu.index = i;
    gpu.uuid = gpu_uuid(i);
    gpu.name = "NVIDIA A100-SXM4-40GB";
    gpu.pci_bus_id = fmt::format("00000000:{:02X}:00.0", 7 + i);
    gpu.minor = i;
    gpu.numa_node = i < (gpus + 1) / 2 ? 0 : 1;
    gpu.memory_mib = 40960;
    gpu.compute_major = 8;
    gpu.mig_capable = true;
    for (int j = 0; j < gpus; ++j) {
      const bool is_near = (i < (gpus + 1) / 2) == (j < (gpus + 1) / 2);
      nvml::LinkFacts link;
      link.pcie = i == j    ? nvml::LinkKind::Self
                  : is_near ? nvml::LinkKind::Node
                            : nvml::LinkKind::System;
      gpu.links.push_back(link);
    }
    facts.gpus.push_back(std::move(gpu));
  }
  return facts;
}

void link(nvml::NodeFacts& facts, int a, int b, int nvlinks) {
  const auto i = static_cast<std::size_t>(a);
  const auto j = static_cast<std::size_t>(b);
  facts.gpus[i].links[j].nvlinks = nvlinks;
  facts.gpus[j].links[i].nvlinks = nvlinks;
}

void cut(nvml::NodeFacts& facts, int gpu, const std::vector<std::string>& profiles) {
  nvml::GpuFacts& to = facts.gpus[static_cast<std::size_t>(gpu)];
  to.mig_enabled = to.mig_pending = true;
  to.mig_instances.clear();
  int start = 0;
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    const int slices = profiles[i].front() - '0';
    JOGAK_CHECK(slices >= 1 && slices <= 7);
    const int size = slices == 3 ? 4 : slices == 7 ? 8 : slices;
    nvml::MigInstanceFacts instance;
    instance.gi_id = static_cast<int>(i) + 7;
    instance.ci_id = 0;
    instance.index = static_cast<int>(i);
    instance.uuid = mig_uuid(gpu, instance.index);
    instance.profile = instance.gi_profile = profiles[i];
    instance.placement = {.start = start, .size = size};
    instance.memory_mib = 4864 * size;
    instance.multiprocessors = 14 * slices;
    start += size;
    to.mig_instances.push_back(std::move(instance));
  }
}

}  // namespace jogak::agent::testing
