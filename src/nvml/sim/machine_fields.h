// SPDX-License-Identifier: Apache-2.0
//
// The fields of a simulation file, once, for both directions: a visitor that reads takes each field
// from the YAML if it is there, one that writes puts each into a document. Private to
// read_machine.cc and write_machine.cc.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "nvml/sim/machine_spec.h"

namespace jogak::nvml::sim {

inline constexpr std::int64_t kCountMax = std::int64_t{1} << 50;
inline constexpr std::int64_t kMibMax = std::int64_t{1} << 30;

inline constexpr std::string_view kShapeWords[] = {"constant", "square", "sine", "ramp"};
inline constexpr std::string_view kMigSupportWords[] = {"none", "afterReset", "atOnce"};
inline constexpr std::string_view kProcessWords[] = {"compute", "graphics", "mps"};
inline constexpr std::string_view kLevelWords[] = {"default", "PSB",  "PIX", "PXB",
                                                   "PHB",     "NODE", "SYS"};
inline constexpr std::string_view kFaultWords[] = {
    "xid",          "lost",           "ecc",          "thermal",       "powerBrake",
    "rowRemap",     "recoveryAction", "nvlinkErrors", "nvlinkDown",    "reset",
    "driverReload", "slowCall",       "failCall",     "eventWaitError"};

template <class V>
void visit(V& v, Wave& wave) {
  v.choice("shape", wave.shape, kShapeWords);
  v.integer("low", wave.low, 0, 100);
  v.integer("high", wave.high, 0, 100);
  v.span("period", wave.period, kMsInUs);
  v.span("phase", wave.phase, 0);
}

template <class V>
void visit(V& v, PlacementSpec& placement) {
  v.integer("start", placement.start, 0, 64);
  v.integer("size", placement.size, 1, 64);
}

template <class V>
void visit(V& v, MigProfileSpec& profile) {
  v.integer("queryIndex", profile.query_index, 0, 17);
  v.integer("id", profile.id, 0, 1000);
  v.text("name", profile.name);
  v.integer("slices", profile.slices, 1, 16);
  v.integer("memoryMib", profile.memory_mib, 1, kMibMax);
  v.integer("countMax", profile.count_max, 1, 16);
  v.integer("multiprocessors", profile.multiprocessors, 0, 10'000);
  v.integer("copyEngines", profile.copy_engines, 0, 100);
  v.integer("decoders", profile.decoders, 0, 100);
  v.integer("encoders", profile.encoders, 0, 100);
  v.integer("jpegEngines", profile.jpeg_engines, 0, 100);
  v.integer("ofaEngines", profile.ofa_engines, 0, 100);
  v.list("placements", profile.placements);
}

template <class V>
void visit(V& v, MigInstanceSpec& instance) {
  v.text("profile", instance.profile);
  v.integer("start", instance.start, -1, 64);
  v.integers("computeSlices", instance.compute_slices, 1, 16);
  v.text("uuid", instance.uuid);
  v.flag("hasComputeInstances", instance.has_compute_instances);
}

template <class V>
void visit(V& v, ProcessSpec& process) {
  v.integer("pid", process.pid, 1, std::numeric_limits<std::int32_t>::max());
  v.text("name", process.name);
  v.choice("kind", process.kind, kProcessWords);
  v.integer("memoryMib", process.memory_mib, 0, kMibMax);
  v.integer("instance", process.instance, -1, 63);
  v.integer("smPercent", process.sm_percent, 0, 100);
  v.integer("memoryPercent", process.memory_percent, 0, 100);
  v.integer("encoderPercent", process.encoder_percent, 0, 100);
  v.integer("decoderPercent", process.decoder_percent, 0, 100);
  v.span("from", process.from, 0);
  v.span("until", process.until, 0);
}

template <class V>
void visit(V& v, ClocksSpec& clocks) {
  v.integer("graphics", clocks.graphics, 0, 100'000);
  v.integer("sm", clocks.sm, 0, 100'000);
  v.integer("memory", clocks.memory, 0, 100'000);
  v.integer("video", clocks.video, 0, 100'000);
}

template <class V>
void visit(V& v, NvlinkSpec& nvlink) {
  v.integer("count", nvlink.count, 0, 36);
  v.integer("version", nvlink.version, 0, 20);
  v.integer("speedMbps", nvlink.speed_mbps, 0, 10'000'000);
  v.flag("toSwitch", nvlink.to_switch);
}

template <class V>
void visit(V& v, PeerSpec& peer) {
  v.integer("gpu", peer.gpu, 0, kGpusMax - 1);
  v.choice("level", peer.level, kLevelWords);
  v.integer("nvlinks", peer.nvlinks, 0, 36);
}

template <class V>
void visit(V& v, FabricSpec& fabric) {
  v.integer("state", fabric.state, 0, 3);
  v.integer("status", fabric.status, 0, 999);
  v.text("clusterUuid", fabric.cluster_uuid);
  v.integer("cliqueId", fabric.clique_id, 0, 0xFFFFFFFFLL);
  v.hex("healthMask", fabric.health_mask);
}

template <class V>
void visit(V& v, CountersSpec& counters) {
  v.integer("eccCorrectedVolatile", counters.ecc_corrected_volatile, 0, kCountMax);
  v.integer("eccUncorrectedVolatile", counters.ecc_uncorrected_volatile, 0, kCountMax);
  v.integer("eccCorrectedAggregate", counters.ecc_corrected_aggregate, 0, kCountMax);
  v.integer("eccUncorrectedAggregate", counters.ecc_uncorrected_aggregate, 0, kCountMax);
  v.integer("rowsCorrected", counters.rows_corrected, 0, 1'000'000);
  v.integer("rowsUncorrected", counters.rows_uncorrected, 0, 1'000'000);
  v.flag("rowsPending", counters.rows_pending);
  v.flag("rowsFailed", counters.rows_failed);
  v.integer("retiredSingleBit", counters.retired_single_bit, 0, 64);
  v.integer("retiredDoubleBit", counters.retired_double_bit, 0, 64);
  v.flag("retirementPending", counters.retirement_pending);
  v.integer("nvlinkCrcFlit", counters.nvlink_crc_flit, 0, kCountMax);
  v.integer("nvlinkCrcData", counters.nvlink_crc_data, 0, kCountMax);
  v.integer("nvlinkReplay", counters.nvlink_replay, 0, kCountMax);
  v.integer("nvlinkRecovery", counters.nvlink_recovery, 0, kCountMax);
  v.integer("pcieReplays", counters.pcie_replays, 0, 0x7FFFFFFF);
  v.integer("energyMj", counters.energy_mj, 0, kCountMax);
  v.integer("recoveryAction", counters.recovery_action, 0, 5);
}

template <class V>
void visit_board(V& v, GpuSpec& gpu) {
  v.text("name", gpu.name);
  v.text("brand", gpu.brand);
  v.text("architecture", gpu.architecture);
  v.text("vbios", gpu.vbios);
  v.text("partNumber", gpu.part_number);
  v.text("inforom", gpu.inforom);
  v.hex("pciDeviceId", gpu.pci_device_id);
  v.hex("pciSubsystemId", gpu.pci_subsystem_id);
  v.integer("computeMajor", gpu.compute_major, 0, 100);
  v.integer("computeMinor", gpu.compute_minor, 0, 9);
  v.integer("multiprocessors", gpu.multiprocessors, 0, 10'000);
  v.integer("cores", gpu.cores, 0, 1'000'000);
  v.integer("busWidthBits", gpu.bus_width_bits, 0, 100'000);
  v.integer("memoryMib", gpu.memory_mib, 1, kMibMax);
  v.integer("reservedMib", gpu.reserved_mib, 0, kMibMax);
  v.integer("bar1Mib", gpu.bar1_mib, 0, kMibMax);
  v.object("clocksMax", gpu.clocks_max);
  v.object("clocksIdle", gpu.clocks_idle);
  v.integer("powerLimitMw", gpu.power_limit_mw, 0, 100'000'000);
  v.integer("powerLimitDefaultMw", gpu.power_limit_default_mw, 0, 100'000'000);
  v.integer("powerLimitMinMw", gpu.power_limit_min_mw, 0, 100'000'000);
  v.integer("powerLimitMaxMw", gpu.power_limit_max_mw, 0, 100'000'000);
  v.integer("powerIdleMw", gpu.power_idle_mw, 0, 100'000'000);
  v.integer("pcieGeneration", gpu.pcie_generation, 0, 20);
  v.integer("pcieWidth", gpu.pcie_width, 0, 64);
  v.integer("shutdownC", gpu.shutdown_c, 0, 200);
  v.integer("slowdownC", gpu.slowdown_c, 0, 200);
  v.integer("memoryMaxC", gpu.memory_max_c, 0, 200);
  v.integer("gpuMaxC", gpu.gpu_max_c, 0, 200);
  v.integer("idleC", gpu.idle_c, 0, 200);
  v.flag("hasMemoryTemperature", gpu.has_memory_temperature);
  v.integer("fans", gpu.fans, 0, 16);
  v.flag("hasEcc", gpu.has_ecc);
  v.flag("eccEnabled", gpu.ecc_enabled);
  v.flag("hasRowRemap", gpu.has_row_remap);
  v.integer("banks", gpu.banks, 0, 1'000'000);
  v.flag("hasJpegOfa", gpu.has_jpeg_ofa);
  v.flag("hasEncoder", gpu.has_encoder);
  v.flag("hasDecoder", gpu.has_decoder);
  v.flag("hasGpm", gpu.has_gpm);
}

template <class V>
void visit_state(V& v, GpuSpec& gpu) {
  v.flag("persistence", gpu.persistence);
  v.integer("computeMode", gpu.compute_mode, 0, 3);
  v.integer("virtualizationMode", gpu.virtualization_mode, 0, 4);
  v.integer("addressingMode", gpu.addressing_mode, 0, 2);
  v.object("nvlink", gpu.nvlink);
  v.list("peers", gpu.peers);
  v.object("fabric", gpu.fabric);
  v.choice("migSupport", gpu.mig_support, kMigSupportWords);
  v.flag("migEnabled", gpu.mig_enabled);
  v.flag("migPending", gpu.mig_pending);
  v.integer("migSlices", gpu.mig_slices, 0, 16);
  v.list("migProfiles", gpu.mig_profiles);
  v.list("migInstances", gpu.mig_instances);
  v.object("load", gpu.load);
  v.object("encoderLoad", gpu.encoder_load);
  v.object("decoderLoad", gpu.decoder_load);
  v.numbers("readings", gpu.readings);
  v.object("counters", gpu.counters);
  v.list("processes", gpu.processes);
  v.texts("unsupported", gpu.unsupported);
}

// What tells one GPU from another.
template <class V>
void visit_identity(V& v, GpuSpec& gpu) {
  v.text("uuid", gpu.uuid);
  v.text("serial", gpu.serial);
  v.text("busId", gpu.bus_id);
  v.integer("minor", gpu.minor, 0, 1023);
  v.integer("moduleId", gpu.module_id, 0, 1023);
}

template <class V>
void visit_place(V& v, GpuSpec& gpu) {
  v.integer("numaNode", gpu.numa_node, -1, 1023);
  v.text("cpus", gpu.cpus);
  v.integer("board", gpu.board, -1, 1023);
  v.integer("pcieSwitch", gpu.pcie_switch, -1, 1023);
}

template <class V>
void visit(V& v, FaultSpec& fault) {
  v.choice("kind", fault.kind, kFaultWords);
  v.span("at", fault.at, 0);
  v.span("for", fault.lasting, 0);
  v.integer("gpu", fault.gpu, -1, kGpusMax - 1);
  v.integer("instance", fault.instance, -1, 63);
  v.integer("code", fault.code, 0, 100'000);
  v.integer("count", fault.count, 0, kCountMax);
  v.text("call", fault.call);
  v.span("delay", fault.delay, 0);
  v.text("driverVersion", fault.driver_version);
}

template <class V>
void visit_driver(V& v, MachineSpec& machine) {
  v.text("driverVersion", machine.driver_version);
  v.text("nvmlVersion", machine.nvml_version);
  v.text("driverBranch", machine.driver_branch);
  v.integer("cudaMajor", machine.cuda_major, 1, 100);
  v.integer("cudaMinor", machine.cuda_minor, 0, 99);
  v.flag("hasDriver", machine.has_driver);
  v.flag("longProcessRecords", machine.has_long_process_records);
  v.texts("missingSymbols", machine.missing_symbols);
}

}  // namespace jogak::nvml::sim
