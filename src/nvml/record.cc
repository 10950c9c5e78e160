// SPDX-License-Identifier: Apache-2.0
//
// Facts and readings back into the description that a simulation reads. What NVML does not tell
// (idle clocks, SMs of the whole) is taken from what it does.
#include "nvml/record.h"

#include <algorithm>

#include "nvml/sim/models.h"

namespace jogak::nvml {

namespace {

sim::PathLevel level_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::SameBoard:
      return sim::PathLevel::Psb;
    case LinkKind::SingleSwitch:
      return sim::PathLevel::Pix;
    case LinkKind::MultipleSwitches:
      return sim::PathLevel::Pxb;
    case LinkKind::HostBridge:
      return sim::PathLevel::Phb;
    case LinkKind::Node:
      return sim::PathLevel::Node;
    case LinkKind::System:
      return sim::PathLevel::Sys;
    default:
      return sim::PathLevel::Default;
  }
}

// A function that answered "not supported" goes on doing so.
template <class T>
void keep_unsupported(sim::GpuSpec& gpu, const Reading<T>& reading, std::string_view function) {
  if (!reading && reading.missing() == Missing::NotSupported) {
    gpu.unsupported.emplace_back(function);
  }
}

template <class T>
void keep(sim::GpuSpec& gpu, std::string_view name, const Reading<T>& reading) {
  if (reading) gpu.readings[std::string(name)] = static_cast<std::int64_t>(*reading);
}

void record_board(const GpuFacts& facts, sim::GpuSpec& gpu) {
  gpu.name = facts.name;
  gpu.brand = facts.brand;
  gpu.architecture = facts.architecture;
  gpu.uuid = facts.uuid;
  gpu.bus_id = facts.pci_bus_id;
  gpu.pci_device_id = facts.pci_device_id;
  gpu.pci_subsystem_id = facts.pci_subsystem_id;
  gpu.serial = facts.serial.value_or("");
  gpu.vbios = facts.vbios.value_or("");
  gpu.part_number = facts.board_part_number.value_or("");
  gpu.inforom = facts.inforom_version.value_or("");
  keep_unsupported(gpu, facts.serial, "nvmlDeviceGetSerial");
  gpu.minor = facts.minor.value_or(facts.index);
  gpu.module_id = facts.module_id.value_or(0);
  keep_unsupported(gpu, facts.module_id, "nvmlDeviceGetModuleId");
  keep_unsupported(gpu, facts.minor, "nvmlDeviceGetMinorNumber");
  gpu.numa_node = facts.numa_node.value_or(0);
  keep_unsupported(gpu, facts.numa_node, "nvmlDeviceGetMemoryAffinity");
  gpu.cpus = facts.cpu_affinity;
  if (gpu.cpus.empty()) gpu.unsupported.emplace_back("nvmlDeviceGetCpuAffinity");
  gpu.compute_major = facts.compute_major;
  gpu.compute_minor = facts.compute_minor;
  gpu.memory_mib = std::max<std::int64_t>(1, facts.memory_mib);
  gpu.bar1_mib = facts.bar1_mib;
}

void record_limits(const GpuFacts& facts, sim::GpuSpec& gpu) {
  const auto clocks = [](const ClocksMhz& from) {
    return sim::ClocksSpec{.graphics = from.graphics.value_or(0),
                           .sm = from.sm.value_or(0),
                           .memory = from.memory.value_or(0),
                           .video = from.video.value_or(0)};
  };
  gpu.clocks_max = clocks(facts.clocks_max);
  gpu.clocks_idle = gpu.clocks_max;
  keep_unsupported(gpu, facts.clocks_max.graphics, "nvmlDeviceGetMaxClockInfo");
  gpu.power_limit_mw = facts.power_limit_mw.value_or(0);
  gpu.power_limit_default_mw = facts.power_limit_default_mw.value_or(0);
  gpu.power_limit_min_mw = facts.power_limit_min_mw.value_or(0);
  gpu.power_limit_max_mw = facts.power_limit_max_mw.value_or(0);
  gpu.pcie_generation = facts.pcie_generation_max.value_or(0);
  gpu.pcie_width = facts.pcie_width_max.value_or(0);
  gpu.shutdown_c = facts.temperature_shutdown_c.value_or(0);
  gpu.slowdown_c = facts.temperature_slowdown_c.value_or(0);
  gpu.memory_max_c = facts.temperature_memory_max_c.value_or(0);
  gpu.gpu_max_c = facts.temperature_gpu_max_c.value_or(0);
  gpu.has_ecc = facts.ecc_enabled.has_value();
  gpu.ecc_enabled = facts.ecc_enabled.value_or(false);
  gpu.has_gpm = facts.has_gpm;
  gpu.persistence = facts.persistence_mode.value_or(false);
  gpu.compute_mode = facts.compute_mode.value_or(0);
  gpu.virtualization_mode = facts.virtualization_mode.value_or(0);
  gpu.addressing_mode = facts.addressing_mode.value_or(0);
  keep_unsupported(gpu, facts.persistence_mode, "nvmlDeviceGetPersistenceMode");
  keep_unsupported(gpu, facts.virtualization_mode, "nvmlDeviceGetVirtualizationMode");
  keep_unsupported(gpu, facts.addressing_mode, "nvmlDeviceGetAddressingMode");
}

// What the catalogue knows of a board with this id; nothing of one that it has not.
sim::NvlinkSpec catalogue_links(std::uint32_t pci_device_id) {
  for (const std::string& name : sim::model_names()) {
    const auto model = sim::find_model(name);
    if (model && model->pci_device_id == pci_device_id) return model->nvlink;
  }
  return {};
}

// With MIG on every link is down, and NVML tells how many there are but not what they end in: a
// board of the same kind in this node shows it, or else the catalogue knows.
sim::NvlinkSpec links_of(const NodeFacts& node, const GpuFacts& facts) {
  const sim::NvlinkSpec known = catalogue_links(facts.pci_device_id);
  const bool are_hidden = facts.mig_enabled && facts.nvlinks == 0;
  const bool has_twin = std::ranges::any_of(node.gpus, [&](const GpuFacts& other) {
    return other.pci_device_id == facts.pci_device_id && other.nvlinks_to_switch > 0;
  });
  return {.count = are_hidden ? facts.nvlinks_max : facts.nvlinks,
          .version = known.version,
          .speed_mbps = known.speed_mbps,
          .to_switch = are_hidden ? facts.nvlinks_max > 0 && (has_twin || known.to_switch)
                                  : facts.nvlinks_to_switch > 0};
}

void record_links(const NodeFacts& node, const GpuFacts& facts, sim::GpuSpec& gpu) {
  gpu.nvlink = links_of(node, facts);
  for (std::size_t other = 0; other < facts.links.size(); ++other) {
    const LinkFacts& link = facts.links[other];
    if (link.pcie == LinkKind::Self) continue;
    gpu.peers.push_back({.gpu = static_cast<int>(other),
                         .level = level_of(link.pcie),
                         .nvlinks = gpu.nvlink.to_switch ? 0 : link.nvlinks});
  }
  if (!facts.fabric) {
    keep_unsupported(gpu, facts.fabric, "nvmlDeviceGetGpuFabricInfoV");
    return;
  }
  gpu.fabric = {.state = static_cast<int>(facts.fabric->state),
                .status = facts.fabric->status,
                .cluster_uuid = facts.fabric->cluster_uuid,
                .clique_id = facts.fabric->clique_id,
                .health_mask = facts.fabric->health_mask};
}

void record_mig(const GpuFacts& facts, sim::GpuSpec& gpu) {
  if (!facts.mig_capable) return;
  // Only the board knows whether a change needs a reset; those since Hopper do not.
  gpu.mig_support =
      facts.compute_major >= 9 ? sim::MigSupport::AtOnce : sim::MigSupport::AfterReset;
  gpu.mig_enabled = facts.mig_enabled;
  gpu.mig_pending = facts.mig_pending;
  gpu.mig_slices = facts.mig_devices_max;
  for (const MigProfileFacts& from : facts.mig_profiles) {
    sim::MigProfileSpec profile{.query_index = from.query_index,
                                .id = from.id,
                                .name = from.name,
                                .slices = from.slices,
                                .memory_mib = from.memory_mib,
                                .count_max = from.count_max,
                                .multiprocessors = from.multiprocessors,
                                .copy_engines = from.copy_engines,
                                .decoders = from.decoders,
                                .encoders = from.encoders,
                                .jpeg_engines = from.jpeg_engines,
                                .ofa_engines = from.ofa_engines,
                                .placements = {}};
    for (const MigPlacement& place : from.placements) {
      profile.placements.push_back({.start = place.start, .size = place.size});
    }
    gpu.multiprocessors = std::max(gpu.multiprocessors, profile.multiprocessors);
    gpu.mig_profiles.push_back(std::move(profile));
  }
  int last_gi = -1;
  for (const MigInstanceFacts& row : facts.mig_instances) {
    if (row.gi_id != last_gi) {
      gpu.mig_instances.push_back({.profile = row.gi_profile,
                                   .start = row.placement.start,
                                   .compute_slices = {},
                                   .uuid = row.uuid,
                                   .has_compute_instances = row.ci_id >= 0});
      last_gi = row.gi_id;
    }
    if (row.ci_id >= 0) gpu.mig_instances.back().compute_slices.push_back(row.ci_slices);
  }
}

// Places of GPU instances in the list, by id.
int instance_index(const GpuFacts& facts, int gi_id) {
  int index = -1;
  int last = -1;
  for (const MigInstanceFacts& row : facts.mig_instances) {
    if (row.gi_id != last) ++index;
    last = row.gi_id;
    if (row.gi_id == gi_id) return index;
  }
  return -1;
}

void record_readings(const GpuSample& sample, sim::GpuSpec& gpu) {
  if (sample.memory.reserved_bytes) gpu.reserved_mib = *sample.memory.reserved_bytes >> 20;
  if (sample.memory.used_bytes) gpu.readings["usedMib"] = *sample.memory.used_bytes >> 20;
  keep_unsupported(gpu, sample.memory.reserved_bytes, "nvmlDeviceGetMemoryInfo_v2");
  keep(gpu, "gpuPercent", sample.gpu_percent);
  keep(gpu, "memoryPercent", sample.memory_percent);
  keep(gpu, "encoderPercent", sample.encoder_percent);
  keep(gpu, "decoderPercent", sample.decoder_percent);
  keep(gpu, "jpegPercent", sample.jpeg_percent);
  keep(gpu, "ofaPercent", sample.ofa_percent);
  gpu.has_encoder = sample.encoder_percent.has_value();
  gpu.has_decoder = gpu.mig_enabled || sample.decoder_percent.has_value();
  gpu.has_jpeg_ofa = sample.jpeg_percent.has_value();
  if (!gpu.mig_enabled) {
    keep_unsupported(gpu, sample.gpu_percent, "nvmlDeviceGetUtilizationRates");
  }
  keep(gpu, "temperatureC", sample.temperature_c);
  keep(gpu, "memoryTemperatureC", sample.memory_temperature_c);
  gpu.has_memory_temperature = sample.memory_temperature_c.has_value();
  gpu.idle_c = std::max(0, sample.temperature_c.value_or(0));
  gpu.fans = sample.fan_percent ? 1 : 0;
  keep(gpu, "fanPercent", sample.fan_percent);
  keep(gpu, "performanceState", sample.performance_state);
  keep(gpu, "powerMw", sample.power_mw);
  keep(gpu, "powerInstantMw", sample.power_instant_mw);
  gpu.power_idle_mw = sample.power_mw.value_or(0);
  keep(gpu, "graphicsMhz", sample.clocks.graphics);
  keep(gpu, "smMhz", sample.clocks.sm);
  keep(gpu, "memoryMhz", sample.clocks.memory);
  keep(gpu, "videoMhz", sample.clocks.video);
  keep(gpu, "throttleReasons", sample.throttle_reasons);
  if (sample.bar1_used_bytes) gpu.readings["bar1UsedMib"] = *sample.bar1_used_bytes >> 20;
  if (sample.pcie_tx_bytes_per_s) gpu.readings["pcieTxKbps"] = *sample.pcie_tx_bytes_per_s / 1000;
  if (sample.pcie_rx_bytes_per_s) gpu.readings["pcieRxKbps"] = *sample.pcie_rx_bytes_per_s / 1000;
  keep_unsupported(gpu, sample.temperature_c, "nvmlDeviceGetTemperature");
  keep_unsupported(gpu, sample.temperature_c, "nvmlDeviceGetTemperatureV");
  keep_unsupported(gpu, sample.power_mw, "nvmlDeviceGetPowerUsage");
  keep_unsupported(gpu, sample.energy_mj, "nvmlDeviceGetTotalEnergyConsumption");
}

void record_counters(const GpuSample& sample, sim::GpuSpec& gpu) {
  sim::CountersSpec& counters = gpu.counters;
  counters.ecc_corrected_volatile = sample.ecc.corrected_volatile.value_or(0);
  counters.ecc_uncorrected_volatile = sample.ecc.uncorrected_volatile.value_or(0);
  counters.ecc_corrected_aggregate = sample.ecc.corrected_aggregate.value_or(0);
  counters.ecc_uncorrected_aggregate = sample.ecc.uncorrected_aggregate.value_or(0);
  const RowsSample& rows = sample.rows;
  gpu.has_row_remap = rows.corrected.has_value();
  counters.rows_corrected = rows.corrected.value_or(0);
  counters.rows_uncorrected = rows.uncorrected.value_or(0);
  counters.rows_pending = rows.is_pending.value_or(false);
  counters.rows_failed = rows.has_failed.value_or(false);
  counters.retired_single_bit = std::min<std::int64_t>(64, rows.retired_single_bit.value_or(0));
  counters.retired_double_bit = std::min<std::int64_t>(64, rows.retired_double_bit.value_or(0));
  counters.retirement_pending = rows.retirement_pending.value_or(false);
  gpu.banks = static_cast<int>(rows.banks_max.value_or(0) + rows.banks_high.value_or(0) +
                               rows.banks_partial.value_or(0) + rows.banks_low.value_or(0) +
                               rows.banks_none.value_or(0));
  counters.nvlink_crc_flit = sample.nvlink.crc_flit_errors.value_or(0);
  counters.nvlink_crc_data = sample.nvlink.crc_data_errors.value_or(0);
  counters.nvlink_replay = sample.nvlink.replay_errors.value_or(0);
  counters.nvlink_recovery = sample.nvlink.recovery_errors.value_or(0);
  counters.pcie_replays = sample.pcie_replays.value_or(0);
  counters.energy_mj = sample.energy_mj.value_or(0);
  counters.recovery_action = sample.recovery_action.value_or(0);
}

void record_processes(const GpuFacts& facts, const GpuSample& sample, sim::GpuSpec& gpu) {
  if (!sample.processes) return;
  for (const ProcessFacts& from : *sample.processes) {
    sim::ProcessSpec process;
    process.pid = from.pid;
    process.name = from.name.substr(0, 128);
    process.kind = static_cast<sim::ProcessKind>(from.kind);
    process.memory_mib = from.memory_bytes.value_or(0) >> 20;
    process.instance = instance_index(facts, from.gi_id);
    process.sm_percent = from.sm_percent.value_or(0);
    process.memory_percent = from.memory_percent.value_or(0);
    process.encoder_percent = from.encoder_percent.value_or(0);
    process.decoder_percent = from.decoder_percent.value_or(0);
    gpu.processes.push_back(std::move(process));
  }
}

}  // namespace

sim::MachineSpec record_machine(const NodeFacts& node, const std::vector<GpuSample>& samples) {
  sim::MachineSpec machine;
  machine.driver_version = node.driver_version;
  machine.nvml_version = node.nvml_version;
  machine.cuda_major = std::max(1, node.cuda_major);
  machine.cuda_minor = node.cuda_minor;
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const GpuFacts& facts = node.gpus[i];
    sim::GpuSpec gpu;
    record_board(facts, gpu);
    record_limits(facts, gpu);
    record_links(node, facts, gpu);
    record_mig(facts, gpu);
    if (i < samples.size()) {
      record_readings(samples[i], gpu);
      record_counters(samples[i], gpu);
      record_processes(facts, samples[i], gpu);
    }
    std::ranges::sort(gpu.unsupported);
    machine.gpus.push_back(std::move(gpu));
    // A GPU that was gone is gone in the simulation, too.
    if (facts.is_lost) {
      machine.faults.push_back(
          {.kind = sim::FaultKind::Lost, .gpu = facts.index, .call = {}, .driver_version = {}});
    }
  }
  return machine;
}

}  // namespace jogak::nvml
