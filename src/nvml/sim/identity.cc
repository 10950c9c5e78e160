// SPDX-License-Identifier: Apache-2.0
//
// Eight GPUs lie on the buses of the usual board; others follow each other.
#include "nvml/sim/identity.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "nvml/sim/models.h"
#include "nvml/sim/names.h"

namespace jogak::nvml::sim {

namespace {

constexpr std::array kBuses = {0x07, 0x0F, 0x47, 0x4E, 0x87, 0x90, 0xB7, 0xBD};

// Half of the CPUs of a NUMA node are the first threads of its cores, half the second ones.
std::string cpus_of(const Host& host, int node) {
  const int half = host.cpus / 2;
  const int each = half / host.numa_nodes;
  if (each < 1) return "";
  const int first = node * each;
  const auto range = [&](int from) {
    return each == 1 ? std::to_string(from) : fmt::format("{}-{}", from, from + each - 1);
  };
  return range(first) + "," + range(half + first);
}

}  // namespace

std::string gpu_uuid(const std::string& identity, int index) {
  return "GPU-" + uuid_of(fmt::format("{}/gpu/{}", identity, index));
}

void fill_identity(GpuSpec& gpu, int index, int count, const Host& host) {
  const std::string key = fmt::format("{}/gpu/{}", host.identity, index);
  if (gpu.uuid.empty()) gpu.uuid = gpu_uuid(host.identity, index);
  if (gpu.serial.empty()) gpu.serial = serial_of(key);
  if (gpu.bus_id.empty()) {
    const auto at = static_cast<std::size_t>(index);
    const int bus = at < kBuses.size() && count <= 8 ? kBuses[at] : 0x10 + 2 * index;
    gpu.bus_id = fmt::format("{:08X}:{:02X}:00.0", 0, bus);
  }
  if (gpu.minor < 0) gpu.minor = index;
  if (gpu.module_id < 0) gpu.module_id = index;
  if (gpu.numa_node < 0 && host.numa_nodes > 0) gpu.numa_node = index * host.numa_nodes / count;
  if (gpu.cpus.empty() && gpu.numa_node >= 0) gpu.cpus = cpus_of(host, gpu.numa_node);
  if (gpu.pcie_switch < 0) gpu.pcie_switch = index / 2;
}

void set_usual_driver(MachineSpec& machine) {
  machine.driver_version = "550.90.07";
  machine.driver_branch = "r550_00";
  machine.cuda_major = 12;
  machine.cuda_minor = 4;
}

void fill_versions(MachineSpec& machine) {
  if (machine.nvml_version.empty()) {
    machine.nvml_version = fmt::format("{}.{}", machine.cuda_major, machine.driver_version);
  }
}

// Each GPU has four neighbours, two of them by two links.
void join_directly(MachineSpec& machine) {
  constexpr std::array<std::string_view, 8> kLinks = {"01122000", "10210200", "12020010",
                                                      "21200001", "20000112", "02001021",
                                                      "00101202", "00012120"};
  const bool is_mesh = machine.gpus.size() <= kLinks.size() &&
                       std::ranges::all_of(machine.gpus, [](const GpuSpec& gpu) {
                         return gpu.nvlink.count > 0 && !gpu.nvlink.to_switch && gpu.peers.empty();
                       });
  if (!is_mesh) return;
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    for (std::size_t j = 0; j < machine.gpus.size(); ++j) {
      const int links = kLinks[i][j] - '0';
      if (links == 0) continue;
      machine.gpus[i].peers.push_back(
          {.gpu = static_cast<int>(j), .level = PathLevel::Default, .nvlinks = links});
    }
  }
}

std::optional<MachineSpec> machine_of(std::string_view model, int count, const Host& host) {
  const auto known = find_model(model);
  if (!known || count < 1 || count > kGpusMax) return std::nullopt;
  MachineSpec machine;
  set_usual_driver(machine);
  fill_versions(machine);
  machine.gpus.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    GpuSpec& gpu = machine.gpus.emplace_back(*known);
    gpu.model = model;
    gpu.mig_pending = gpu.mig_enabled;
    fill_identity(gpu, i, count, host);
  }
  join_directly(machine);
  return machine;
}

}  // namespace jogak::nvml::sim
