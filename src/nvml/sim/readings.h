// SPDX-License-Identifier: Apache-2.0
//
// What the sensors and counters of a simulated GPU show now: functions of its load, its processes,
// its faults and the time. Nothing here has state, so that two readings at one time agree.
#pragma once

#include <cstdint>

#include "nvml/sim/machine.h"

namespace jogak::nvml::sim {

// 0 to 100.
int gpu_percent(const Machine& machine, const GpuState& gpu);
int memory_percent(const Machine& machine, const GpuState& gpu);
int encoder_percent(const Machine& machine, const GpuState& gpu);
int decoder_percent(const Machine& machine, const GpuState& gpu);
int jpeg_percent(const GpuState& gpu);
int ofa_percent(const GpuState& gpu);
int fan_percent(const Machine& machine, const GpuState& gpu);

int temperature_c(const Machine& machine, const GpuState& gpu);
int memory_temperature_c(const Machine& machine, const GpuState& gpu);
std::int64_t power_mw(const Machine& machine, const GpuState& gpu);
std::int64_t power_instant_mw(const Machine& machine, const GpuState& gpu);
std::int64_t energy_mj(const Machine& machine, const GpuState& gpu);
std::int64_t clock_mhz(const Machine& machine, const GpuState& gpu, abi::Enum type);
std::int64_t clock_max_mhz(const GpuState& gpu, abi::Enum type);
int performance_state(const Machine& machine, const GpuState& gpu);
std::uint64_t throttle_reasons(const Machine& machine, const GpuState& gpu);

// Bytes. gi_id -1: the whole board.
std::int64_t used_bytes(const Machine& machine, const GpuState& gpu, int gi_id);
std::int64_t bar1_used_bytes(const GpuState& gpu);
std::int64_t pcie_kbps(const Machine& machine, const GpuState& gpu, bool is_rx);
// Since the driver was loaded.
std::int64_t pcie_bytes(const Machine& machine, const GpuState& gpu, bool is_rx);
std::int64_t nvlink_bytes(const Machine& machine, const GpuState& gpu, int link);

std::int64_t ecc_errors(const Machine& machine, const GpuState& gpu, bool is_uncorrected,
                        bool is_aggregate);
// The mean load between two moments, 0 to 100.
double mean_load(const GpuState& gpu, TimeUs from, TimeUs to);

}  // namespace jogak::nvml::sim
