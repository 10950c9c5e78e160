// SPDX-License-Identifier: Apache-2.0
//
// A made node for tests and benches: GPUs, each whole or cut into seven, with plausible readings
// that move with time, and pods that hold them. Everything follows from the arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "agent/model/holders.h"
#include "nvml/gpu_source.h"

namespace jogak::agent::testing {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

struct MadeNode {
  int gpus = 1;
  int instances = 0;  // of each GPU, all 1g.10gb
};

inline std::string made_uuid(std::string_view kind, int gpu, int instance = 0) {
  return fmt::format("{}-{:08x}-{:04x}-4c3d-8e5f-0123456789ab", kind, 0xb850f46d + gpu, instance);
}

inline nvml::NodeFacts made_facts(const MadeNode& made) {
  nvml::NodeFacts node;
  node.driver_version = "550.90.07";
  node.nvml_version = "12.550.90.07";
  node.cuda_major = 12;
  node.cuda_minor = 4;
  node.generation = 1;
  for (int i = 0; i < made.gpus; ++i) {
    nvml::GpuFacts gpu;
    gpu.index = i;
    gpu.uuid = made_uuid("GPU", i);
    gpu.name = "NVIDIA H100 80GB HBM3";
    gpu.brand = "NVIDIA";
    gpu.architecture = "Hopper";
    gpu.pci_bus_id = fmt::format("00000000:{:02X}:00.0", 0x10 + 3 * i);
    gpu.pci_device_id = 0x233010DE;
    gpu.serial = fmt::format("165052300{:04}", i);
    gpu.vbios = std::string("96.00.89.00.01");
    gpu.minor = i;
    gpu.memory_mib = 81559;
    gpu.compute_major = 9;
    gpu.temperature_slowdown_c = 92;
    gpu.power_limit_mw = 700'000;
    gpu.has_gpm = true;
    gpu.mig_capable = true;
    gpu.mig_enabled = gpu.mig_pending = made.instances > 0;
    gpu.mig_devices_max = 7;
    gpu.mig_profiles.push_back({.id = 19,
                                .query_index = 0,
                                .name = "1g.10gb",
                                .slices = 1,
                                .memory_mib = 9984,
                                .count_max = 7,
                                .multiprocessors = 16,
                                .copy_engines = 1,
                                .decoders = 1,
                                .jpeg_engines = 1,
                                .placements = {}});
    for (int k = 0; k < made.instances; ++k) {
      nvml::MigInstanceFacts mig;
      mig.gi_id = 7 + k;
      mig.ci_id = 0;
      mig.index = k;
      mig.uuid = made_uuid("MIG", i, k + 1);
      mig.profile_id = 19;
      mig.profile = mig.gi_profile = "1g.10gb";
      mig.placement = {.start = k, .size = 1};
      mig.ci_slices = 1;
      mig.memory_mib = 9984;
      mig.multiprocessors = 16;
      gpu.mig_instances.push_back(mig);
    }
    node.gpus.push_back(std::move(gpu));
  }
  return node;
}

inline nvml::GpmSample made_gpm(double activity, bool is_whole) {
  nvml::GpmSample gpm;
  gpm.graphics_active = activity;
  gpm.sm_active = activity * 0.9;
  gpm.sm_occupancy = activity * 0.4;
  gpm.tensor_active = activity * 0.3;
  gpm.dram_active = activity * 0.5;
  if (is_whole) {
    gpm.pcie_tx_bytes_per_s = activity * 1e9;
    gpm.pcie_rx_bytes_per_s = activity * 2e9;
  }
  return gpm;
}

inline nvml::MemorySample made_memory(std::int64_t total, std::int64_t used) {
  const std::int64_t reserved = total / 100;
  nvml::MemorySample memory;
  memory.total_bytes = total;
  memory.used_bytes = used;
  memory.reserved_bytes = reserved;
  memory.free_bytes = total - used - reserved;
  return memory;
}

// `gpu` of made_facts() at a time.
inline nvml::GpuSample made_sample(const nvml::GpuFacts& gpu, TimeUs time) {
  const std::int64_t second = time / kSecondInUs;
  const auto phase = static_cast<int>((second + gpu.index * 7) % 60);
  nvml::GpuSample sample;
  sample.uuid = gpu.uuid;
  sample.time = time;
  if (!gpu.mig_enabled) {
    sample.gpu_percent = 20 + phase;
    sample.memory_percent = 10 + phase / 2;
    sample.encoder_percent = 0;
    sample.decoder_percent = 0;
  }
  sample.memory = made_memory(80 * kGib, (10 + phase) * kGib);
  sample.clocks.sm = 1980;
  sample.clocks.memory = 2619;
  sample.temperature_c = 40 + phase / 3;
  sample.memory_temperature_c = 50 + phase / 3;
  sample.power_mw = 300'000 + 1000 * phase;
  sample.energy_mj = second * 300'000;
  sample.pcie_replays = 0;
  sample.ecc.corrected_volatile = 0;
  sample.ecc.uncorrected_volatile = 0;
  sample.rows.corrected = 0;
  sample.rows.uncorrected = 0;
  sample.rows.has_failed = false;
  sample.rows.is_pending = false;
  sample.nvlink.tx_bytes = second * 1'000'000;
  sample.nvlink.rx_bytes = second * 2'000'000;
  sample.throttle_reasons = phase % 20 == 0 ? nvml::kThrottleSwPowerCap : 0;
  sample.gpm = made_gpm(phase / 100.0, true);
  for (const nvml::MigInstanceFacts& mig : gpu.mig_instances) {
    nvml::MigInstanceSample instance;
    instance.gi_id = mig.gi_id;
    instance.ci_id = mig.ci_id;
    instance.uuid = mig.uuid;
    instance.memory = made_memory(10 * kGib, phase * kGib / 10);
    instance.gpm = made_gpm(phase / 80.0, false);
    sample.mig.push_back(std::move(instance));
  }
  sample.processes = std::vector<nvml::ProcessFacts>{};
  return sample;
}

// One pod for every device.
inline std::vector<Holding> made_holdings(const nvml::NodeFacts& node, int round = 0) {
  std::vector<Holding> holdings;
  const auto add = [&](std::string resource, std::string id) {
    const std::size_t n = holdings.size();
    holdings.push_back({.resource = std::move(resource),
                        .device_id = std::move(id),
                        .holder = {.pod_namespace = "team-a",
                                   .pod = fmt::format("train-{}-{}", round, n),
                                   .container = "main",
                                   .pod_uid = ""}});
  };
  for (const nvml::GpuFacts& gpu : node.gpus) {
    if (gpu.mig_instances.empty()) add("nvidia.com/gpu", gpu.uuid);
    for (const nvml::MigInstanceFacts& mig : gpu.mig_instances) {
      add("nvidia.com/mig-1g.10gb", mig.uuid);
    }
  }
  return holdings;
}

}  // namespace jogak::agent::testing
