// SPDX-License-Identifier: Apache-2.0
//
// The formulas behind readings.h. They are plausible, not physics: a busy GPU is hot, hungry and
// fast; a hot one is slow. A reading that the file fixes is what the file says.
#include "nvml/sim/readings.h"

#include <algorithm>
#include <cmath>

#include "nvml/abi_constants.h"

namespace jogak::nvml::sim {

namespace {

constexpr double kPowerShare = 0.85;  // of the way from idle to the limit, at full load
constexpr std::int64_t kPcieTxPerPercent = 20'000, kPcieRxPerPercent = 12'000;  // KB/s
constexpr std::int64_t kNvlinkBytesPerPercent = 120'000'000;                    // a second, a link

std::optional<std::int64_t> fixed(const GpuState& gpu, std::string_view name) {
  const auto at = gpu.spec.readings.find(name);
  if (at == gpu.spec.readings.end()) return std::nullopt;
  return at->second;
}

int percent(double value) { return static_cast<int>(std::lround(std::clamp(value, 0.0, 100.0))); }

int fixed_percent(const GpuState& gpu, std::string_view name, double otherwise) {
  const auto value = fixed(gpu, name);
  return value ? percent(static_cast<double>(*value)) : percent(otherwise);
}

double seconds_counted(const Machine& machine, const GpuState& gpu) {
  return static_cast<double>(std::max<TimeUs>(0, machine.now() - gpu.counting_since)) /
         static_cast<double>(kSecondInUs);
}

double load_seconds(const Machine& machine, const GpuState& gpu) {
  const TimeUs time = std::max(machine.now(), gpu.counting_since);
  double load =
      wave_integral(gpu.spec.load, time) - wave_integral(gpu.spec.load, gpu.counting_since);
  for (const ProcessState& process : gpu.processes) {
    load += sm_seconds(process.spec, gpu.counting_since, time);
  }
  return load + gpu.ended_load;
}

template <class Member>
int process_sum(const Machine& machine, const GpuState& gpu, Member member) {
  int sum = 0;
  for (const ProcessState* process : machine.processes(gpu.index)) sum += process->spec.*member;
  return sum;
}

}  // namespace

int gpu_percent(const Machine& machine, const GpuState& gpu) {
  double load = wave_at(gpu.spec.load, machine.now());
  for (const ProcessState* process : machine.processes(gpu.index)) {
    load += sm_percent_at(process->spec, machine.now());
  }
  return fixed_percent(gpu, "gpuPercent", load);
}

int memory_percent(const Machine& machine, const GpuState& gpu) {
  return fixed_percent(gpu, "memoryPercent",
                       wave_at(gpu.spec.load, machine.now()) * 0.6 +
                           process_sum(machine, gpu, &ProcessSpec::memory_percent));
}

int encoder_percent(const Machine& machine, const GpuState& gpu) {
  return fixed_percent(gpu, "encoderPercent",
                       wave_at(gpu.spec.encoder_load, machine.now()) +
                           process_sum(machine, gpu, &ProcessSpec::encoder_percent));
}

int decoder_percent(const Machine& machine, const GpuState& gpu) {
  return fixed_percent(gpu, "decoderPercent",
                       wave_at(gpu.spec.decoder_load, machine.now()) +
                           process_sum(machine, gpu, &ProcessSpec::decoder_percent));
}

int jpeg_percent(const GpuState& gpu) { return fixed_percent(gpu, "jpegPercent", 0); }
int ofa_percent(const GpuState& gpu) { return fixed_percent(gpu, "ofaPercent", 0); }

int fan_percent(const Machine& machine, const GpuState& gpu) {
  return fixed_percent(gpu, "fanPercent", 30 + 0.5 * gpu_percent(machine, gpu));
}

int temperature_c(const Machine& machine, const GpuState& gpu) {
  if (const FaultSpec* hot = machine.active(FaultKind::Thermal, gpu.index)) {
    return hot->code > 0 ? static_cast<int>(hot->code) : gpu.spec.slowdown_c + 1;
  }
  if (const auto value = fixed(gpu, "temperatureC")) return static_cast<int>(*value);
  const int busy_c = std::max(gpu.spec.idle_c, gpu.spec.slowdown_c - 22);
  return gpu.spec.idle_c + (busy_c - gpu.spec.idle_c) * gpu_percent(machine, gpu) / 100;
}

int memory_temperature_c(const Machine& machine, const GpuState& gpu) {
  if (const auto value = fixed(gpu, "memoryTemperatureC")) return static_cast<int>(*value);
  return temperature_c(machine, gpu) + 4;
}

std::int64_t power_mw(const Machine& machine, const GpuState& gpu) {
  if (const auto value = fixed(gpu, "powerMw")) return *value;
  const double span = static_cast<double>(gpu.spec.power_limit_default_mw - gpu.spec.power_idle_mw);
  const double busy = kPowerShare * span * gpu_percent(machine, gpu) / 100;
  const std::int64_t power = gpu.spec.power_idle_mw + std::llround(std::max(0.0, busy));
  return std::min(power, std::max(gpu.spec.power_limit_mw, gpu.spec.power_idle_mw));
}

std::int64_t power_instant_mw(const Machine& machine, const GpuState& gpu) {
  if (const auto value = fixed(gpu, "powerInstantMw")) return *value;
  return power_mw(machine, gpu);
}

std::int64_t energy_mj(const Machine& machine, const GpuState& gpu) {
  const double seconds = seconds_counted(machine, gpu);
  const std::int64_t before = gpu.counting_since == 0 ? gpu.spec.counters.energy_mj : 0;
  if (const auto value = fixed(gpu, "powerMw")) {
    return before + std::llround(static_cast<double>(*value) * seconds);
  }
  const double span = static_cast<double>(gpu.spec.power_limit_default_mw - gpu.spec.power_idle_mw);
  return before +
         std::llround(static_cast<double>(gpu.spec.power_idle_mw) * seconds +
                      kPowerShare * std::max(0.0, span) * load_seconds(machine, gpu) / 100);
}

std::int64_t clock_max_mhz(const GpuState& gpu, abi::Enum type) {
  const ClocksSpec& clocks = gpu.spec.clocks_max;
  if (type == abi::kClockGraphics) return clocks.graphics;
  if (type == abi::kClockSm) return clocks.sm;
  return type == abi::kClockMemory ? clocks.memory : clocks.video;
}

std::int64_t clock_mhz(const Machine& machine, const GpuState& gpu, abi::Enum type) {
  constexpr std::string_view kNames[] = {"graphicsMhz", "smMhz", "memoryMhz", "videoMhz"};
  if (type < 4) {
    if (const auto value = fixed(gpu, kNames[type])) return *value;
  }
  const ClocksSpec& idle = gpu.spec.clocks_idle;
  if (gpu_percent(machine, gpu) == 0) {
    if (type == abi::kClockGraphics) return idle.graphics;
    if (type == abi::kClockSm) return idle.sm;
    return type == abi::kClockMemory ? idle.memory : idle.video;
  }
  const bool is_slow = machine.active(FaultKind::Thermal, gpu.index) != nullptr ||
                       machine.active(FaultKind::PowerBrake, gpu.index) != nullptr;
  const std::int64_t full = clock_max_mhz(gpu, type);
  return is_slow && type != abi::kClockMemory ? full / 2 : full;
}

int performance_state(const Machine& machine, const GpuState& gpu) {
  if (const auto value = fixed(gpu, "performanceState")) return static_cast<int>(*value);
  const bool rests = gpu.spec.clocks_idle.memory < gpu.spec.clocks_max.memory;
  return rests && gpu_percent(machine, gpu) == 0 ? 8 : 0;
}

std::uint64_t throttle_reasons(const Machine& machine, const GpuState& gpu) {
  if (const auto value = fixed(gpu, "throttleReasons")) return static_cast<std::uint64_t>(*value);
  std::uint64_t reasons = 0;
  if (gpu_percent(machine, gpu) == 0) reasons |= 0x1;
  if (machine.active(FaultKind::Thermal, gpu.index) != nullptr) reasons |= 0x8 | 0x40;
  if (machine.active(FaultKind::PowerBrake, gpu.index) != nullptr) reasons |= 0x8 | 0x80;
  if (gpu.spec.power_limit_mw < gpu.spec.power_limit_default_mw &&
      power_mw(machine, gpu) >= gpu.spec.power_limit_mw) {
    reasons |= 0x4;
  }
  return reasons;
}

std::int64_t used_bytes(const Machine& machine, const GpuState& gpu, int gi_id) {
  if (gi_id < 0) {
    if (const auto value = fixed(gpu, "usedMib")) return *value << 20;
  }
  std::int64_t mib = 0;
  for (const ProcessState* process : machine.processes(gpu.index)) {
    if (gi_id < 0 || process->gi_id == gi_id) mib += process->spec.memory_mib;
  }
  std::int64_t most = gpu.spec.memory_mib - gpu.spec.reserved_mib;
  for (const GpuInstanceState& instance : gpu.instances) {
    if (instance.id == gi_id) {
      most = gpu.spec.mig_profiles[static_cast<std::size_t>(instance.profile)].memory_mib;
    }
  }
  return std::min(mib, most) << 20;
}

std::int64_t bar1_used_bytes(const GpuState& gpu) {
  return fixed(gpu, "bar1UsedMib").value_or(std::min<std::int64_t>(1, gpu.spec.bar1_mib)) << 20;
}

std::int64_t pcie_kbps(const Machine& machine, const GpuState& gpu, bool is_rx) {
  if (const auto value = fixed(gpu, is_rx ? "pcieRxKbps" : "pcieTxKbps")) return *value;
  return gpu_percent(machine, gpu) * (is_rx ? kPcieRxPerPercent : kPcieTxPerPercent);
}

std::int64_t pcie_bytes(const Machine& machine, const GpuState& gpu, bool is_rx) {
  const auto rate = static_cast<double>(is_rx ? kPcieRxPerPercent : kPcieTxPerPercent);
  return std::llround(load_seconds(machine, gpu) * rate * 1000);
}

std::int64_t nvlink_bytes(const Machine& machine, const GpuState& gpu, int link) {
  if (gpu.mig_enabled || machine.is_link_down(gpu.index, link)) return 0;
  return std::llround(load_seconds(machine, gpu) * static_cast<double>(kNvlinkBytesPerPercent));
}

std::int64_t ecc_errors(const Machine& machine, const GpuState& gpu, bool is_uncorrected,
                        bool is_aggregate) {
  const CountersSpec& before = gpu.spec.counters;
  const std::int64_t code = is_uncorrected ? 1 : 0;
  if (is_aggregate) {
    return (is_uncorrected ? before.ecc_uncorrected_aggregate : before.ecc_corrected_aggregate) +
           machine.counted(FaultKind::Ecc, gpu.index, code, 0);
  }
  const std::int64_t base = gpu.counting_since > 0 ? 0
                            : is_uncorrected       ? before.ecc_uncorrected_volatile
                                                   : before.ecc_corrected_volatile;
  return base + machine.counted(FaultKind::Ecc, gpu.index, code, gpu.counting_since);
}

double mean_load(const GpuState& gpu, TimeUs from, TimeUs to) {
  if (to <= from) return wave_at(gpu.spec.load, to);
  const double seconds = static_cast<double>(to - from) / static_cast<double>(kSecondInUs);
  return (wave_integral(gpu.spec.load, to) - wave_integral(gpu.spec.load, from)) / seconds;
}

}  // namespace jogak::nvml::sim
