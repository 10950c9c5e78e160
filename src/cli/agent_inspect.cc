// SPDX-License-Identifier: Apache-2.0
//
// The document of agent_inspect.h. Names are those of the facts, units at their ends.
#include "cli/agent_inspect.h"

#include <algorithm>

#include <fmt/format.h>

namespace jogak::cli {

namespace {

using nvml::Missing;
using nvml::Reading;

// Sets values by name and collects why some are missing.
class Part {
 public:
  explicit Part(Doc& missing) : missing_(missing) {}

  template <class T>
  Part& set(std::string_view name, const Reading<T>& reading) {
    if (!reading) {
      doc_.set(name, Doc());
      if (reading.missing() != Missing::NotRead) {
        missing_.set(name, nvml::missing_text(reading.missing()));
      }
    } else if constexpr (std::is_same_v<T, double>) {
      doc_.set(name, Doc::decimal(*reading, 4));
    } else {
      doc_.set(name, *reading);
    }
    return *this;
  }
  template <class T>
  Part& value(std::string_view name, const T& plain) {
    doc_.set(name, plain);
    return *this;
  }
  Doc take() { return std::move(doc_); }

 private:
  Doc& missing_;
  Doc doc_ = Doc::object();
};

std::string hex(std::uint32_t value) { return fmt::format("0x{:08X}", value); }

Doc facts_doc(const nvml::GpuFacts& gpu, Doc& missing) {
  Part part(missing);
  part.value("index", gpu.index)
      .value("uuid", gpu.uuid)
      .value("isLost", gpu.is_lost)
      .value("name", gpu.name)
      .value("brand", gpu.brand)
      .value("architecture", gpu.architecture)
      .value("pciBusId", gpu.pci_bus_id)
      .value("pciDeviceId", hex(gpu.pci_device_id))
      .value("pciSubsystemId", hex(gpu.pci_subsystem_id))
      .set("serial", gpu.serial)
      .set("vbios", gpu.vbios)
      .set("boardPartNumber", gpu.board_part_number)
      .set("inforomVersion", gpu.inforom_version)
      .set("inforomOem", gpu.inforom_oem)
      .set("inforomEcc", gpu.inforom_ecc)
      .set("inforomPower", gpu.inforom_power)
      .set("minor", gpu.minor)
      .set("moduleId", gpu.module_id)
      .set("numaNode", gpu.numa_node)
      .value("cpuAffinity", gpu.cpu_affinity)
      .value("memoryMib", gpu.memory_mib)
      .value("bar1Mib", gpu.bar1_mib)
      .value("computeCapability", fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor))
      .set("graphicsMaxMhz", gpu.clocks_max.graphics)
      .set("smMaxMhz", gpu.clocks_max.sm)
      .set("memoryMaxMhz", gpu.clocks_max.memory)
      .set("videoMaxMhz", gpu.clocks_max.video)
      .set("powerLimitMw", gpu.power_limit_mw)
      .set("powerLimitRequestedMw", gpu.power_limit_requested_mw)
      .set("powerLimitMinMw", gpu.power_limit_min_mw)
      .set("powerLimitMaxMw", gpu.power_limit_max_mw)
      .set("powerLimitDefaultMw", gpu.power_limit_default_mw)
      .set("persistenceMode", gpu.persistence_mode)
      .set("eccEnabled", gpu.ecc_enabled)
      .set("eccPending", gpu.ecc_pending)
      .set("computeMode", gpu.compute_mode)
      .set("virtualizationMode", gpu.virtualization_mode)
      .set("addressingMode", gpu.addressing_mode)
      .set("pcieGenerationMax", gpu.pcie_generation_max)
      .set("pcieWidthMax", gpu.pcie_width_max)
      .set("temperatureShutdownC", gpu.temperature_shutdown_c)
      .set("temperatureSlowdownC", gpu.temperature_slowdown_c)
      .set("temperatureMemoryMaxC", gpu.temperature_memory_max_c)
      .set("temperatureGpuMaxC", gpu.temperature_gpu_max_c)
      .value("hasGpm", gpu.has_gpm)
      .value("nvlinks", gpu.nvlinks)
      .value("nvlinksToSwitch", gpu.nvlinks_to_switch);
  if (gpu.is_lost) part.value("lostReason", gpu.lost_reason);
  return part.take();
}

template <class T>
Doc doc_of(const Reading<T>& reading) {
  return reading ? Doc(*reading) : Doc();
}

Doc mig_doc(const nvml::GpuFacts& gpu, const nvml::GpuSample& sample) {
  Doc mig = Doc::object();
  mig.set("capable", gpu.mig_capable).set("enabled", gpu.mig_enabled);
  mig.set("pending", gpu.mig_pending).set("devicesMax", gpu.mig_devices_max);
  Doc profiles = Doc::array();
  for (const nvml::MigProfileFacts& from : gpu.mig_profiles) {
    Doc starts = Doc::array();
    for (const nvml::MigPlacement& place : from.placements) starts.push(place.start);
    Doc profile = Doc::object();
    profile.set("id", from.id).set("name", from.name).set("slices", from.slices);
    profile.set("memoryMib", from.memory_mib).set("countMax", from.count_max);
    profile.set("multiprocessors", from.multiprocessors);
    profile.set("size", from.placements.empty() ? 0 : from.placements.front().size);
    profiles.push(std::move(profile.set("starts", std::move(starts))));
  }
  Doc instances = Doc::array();
  for (const nvml::MigInstanceFacts& from : gpu.mig_instances) {
    Doc row = Doc::object();
    row.set("profile", from.profile).set("uuid", from.uuid);
    row.set("gpuInstance", from.gi_id).set("computeInstance", from.ci_id);
    row.set("index", from.index).set("start", from.placement.start);
    row.set("size", from.placement.size).set("memoryMib", from.memory_mib);
    row.set("multiprocessors", from.multiprocessors);
    const nvml::MigInstanceSample* const now = sample_of(from, sample);
    const nvml::MemorySample memory = now == nullptr ? nvml::MemorySample() : now->memory;
    row.set("memoryUsedBytes", doc_of(memory.used_bytes));
    instances.push(std::move(row.set("memoryFreeBytes", doc_of(memory.free_bytes))));
  }
  mig.set("profiles", std::move(profiles)).set("instances", std::move(instances));
  return mig;
}

Doc reading_doc(const nvml::GpuSample& sample, Doc& missing) {
  Part part(missing);
  part.set("gpuPercent", sample.gpu_percent)
      .set("memoryPercent", sample.memory_percent)
      .set("encoderPercent", sample.encoder_percent)
      .set("decoderPercent", sample.decoder_percent)
      .set("jpegPercent", sample.jpeg_percent)
      .set("ofaPercent", sample.ofa_percent)
      .set("memoryTotalBytes", sample.memory.total_bytes)
      .set("memoryUsedBytes", sample.memory.used_bytes)
      .set("memoryFreeBytes", sample.memory.free_bytes)
      .set("memoryReservedBytes", sample.memory.reserved_bytes)
      .set("bar1UsedBytes", sample.bar1_used_bytes)
      .set("bar1FreeBytes", sample.bar1_free_bytes)
      .set("graphicsMhz", sample.clocks.graphics)
      .set("smMhz", sample.clocks.sm)
      .set("memoryMhz", sample.clocks.memory)
      .set("videoMhz", sample.clocks.video)
      .set("temperatureC", sample.temperature_c)
      .set("memoryTemperatureC", sample.memory_temperature_c)
      .set("fanPercent", sample.fan_percent)
      .set("performanceState", sample.performance_state)
      .set("powerMw", sample.power_mw)
      .set("powerInstantMw", sample.power_instant_mw)
      .set("energyMj", sample.energy_mj)
      .set("pcieTxBytesPerSecond", sample.pcie_tx_bytes_per_s)
      .set("pcieRxBytesPerSecond", sample.pcie_rx_bytes_per_s)
      .set("pcieReplays", sample.pcie_replays)
      .set("pcieGeneration", sample.pcie_generation)
      .set("pcieWidth", sample.pcie_width);
  return part.take();
}

Doc health_doc(const nvml::GpuSample& sample, Doc& missing) {
  Part part(missing);
  part.set("eccCorrectedVolatile", sample.ecc.corrected_volatile)
      .set("eccUncorrectedVolatile", sample.ecc.uncorrected_volatile)
      .set("eccCorrectedAggregate", sample.ecc.corrected_aggregate)
      .set("eccUncorrectedAggregate", sample.ecc.uncorrected_aggregate)
      .set("rowsRemappedCorrected", sample.rows.corrected)
      .set("rowsRemappedUncorrected", sample.rows.uncorrected)
      .set("rowsRemapPending", sample.rows.is_pending)
      .set("rowsRemapFailed", sample.rows.has_failed)
      .set("pagesRetiredSingleBit", sample.rows.retired_single_bit)
      .set("pagesRetiredDoubleBit", sample.rows.retired_double_bit)
      .set("pagesRetirementPending", sample.rows.retirement_pending)
      .set("nvlinkCrcFlitErrors", sample.nvlink.crc_flit_errors)
      .set("nvlinkCrcDataErrors", sample.nvlink.crc_data_errors)
      .set("nvlinkReplayErrors", sample.nvlink.replay_errors)
      .set("nvlinkRecoveryErrors", sample.nvlink.recovery_errors)
      .set("throttleReasons", sample.throttle_reasons)
      .set("recoveryAction", sample.recovery_action);
  return part.take();
}

Doc process_docs(const nvml::GpuSample& sample) {
  constexpr std::string_view kKinds[] = {"compute", "graphics", "mps"};
  Doc list = Doc::array();
  if (!sample.processes) return list;
  for (const nvml::ProcessFacts& from : *sample.processes) {
    Doc process = Doc::object();
    process.set("pid", from.pid).set("name", from.name);
    process.set("kind", kKinds[static_cast<std::size_t>(from.kind)]);
    process.set("memoryBytes", doc_of(from.memory_bytes));
    process.set("smPercent", doc_of(from.sm_percent));
    if (from.gi_id >= 0) process.set("gpuInstance", from.gi_id).set("computeInstance", from.ci_id);
    list.push(std::move(process));
  }
  return list;
}

std::string link_text(const nvml::LinkFacts& link) {
  if (link.nvlinks > 0) return fmt::format("NV{}", link.nvlinks);
  return std::string(nvml::link_kind_text(link.pcie));
}

}  // namespace

Result<NodeView> read_node(nvml::GpuSource& source, const nvml::SampleWants& wants) {
  NodeView view;
  JOGAK_TRY(view.node, source.facts());
  for (const nvml::GpuFacts& gpu : view.node.gpus) {
    nvml::GpuSample lost;
    lost.uuid = gpu.uuid;
    lost.is_lost = true;
    auto sample = gpu.is_lost ? Result<nvml::GpuSample>(lost) : source.sample(gpu.uuid, wants);
    if (!sample && sample.error().code != Errc::Gone) {
      return in_context(gpu.uuid, std::move(sample).error());
    }
    view.samples.push_back(sample ? *std::move(sample) : std::move(lost));
  }
  return view;
}

const nvml::MigInstanceSample* sample_of(const nvml::MigInstanceFacts& instance,
                                         const nvml::GpuSample& sample) {
  const auto at = std::ranges::find_if(sample.mig, [&](const nvml::MigInstanceSample& row) {
    return row.gi_id == instance.gi_id && row.ci_id == instance.ci_id;
  });
  return at == sample.mig.end() ? nullptr : &*at;
}

Doc node_doc(const NodeView& view) {
  const nvml::NodeFacts& node = view.node;
  Doc doc = Doc::object();
  doc.set("driverVersion", node.driver_version).set("nvmlVersion", node.nvml_version);
  doc.set("cudaVersion", fmt::format("{}.{}", node.cuda_major, node.cuda_minor));
  Doc gpus = Doc::array();
  Doc matrix = Doc::array();
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    const nvml::GpuFacts& facts = node.gpus[i];
    Doc missing = Doc::object();
    Doc gpu = facts_doc(facts, missing);
    gpu.set("mig", mig_doc(facts, view.samples[i]));
    gpu.set("readings", reading_doc(view.samples[i], missing));
    gpu.set("health", health_doc(view.samples[i], missing));
    gpu.set("processes", process_docs(view.samples[i]));
    gpus.push(std::move(gpu.set("missing", std::move(missing))));
    Doc row = Doc::array();
    for (const nvml::LinkFacts& link : facts.links) row.push(link_text(link));
    matrix.push(std::move(row));
  }
  doc.set("gpus", std::move(gpus)).set("topology", std::move(matrix));
  return doc;
}

}  // namespace jogak::cli
