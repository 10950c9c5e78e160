// SPDX-License-Identifier: Apache-2.0
//
// Memory, utilisation, temperatures, power, clocks and fans.
#include "nvml/abi_constants.h"
#include "nvml/sim/c_call.h"
#include "nvml/sim/readings.h"

namespace jogak::nvml::abi {

namespace {

using sim::GpuState;
using sim::Machine;
using sim::on_any_device;
using sim::on_gpu;
using sim::put;
using sim::Target;

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
constexpr std::uint32_t kSamplingUs = 167'000;

struct MemoryNow {
  std::uint64_t total = 0, reserved = 0, used = 0;
};

MemoryNow memory_of(const Target& t) {
  MemoryNow now;
  now.used = static_cast<std::uint64_t>(sim::used_bytes(t.machine, t.gpu, t.gi_id));
  if (t.gi_id < 0) {
    now.total = static_cast<std::uint64_t>(t.gpu.spec.memory_mib) * kMib;
    now.reserved = static_cast<std::uint64_t>(t.gpu.spec.reserved_mib) * kMib;
    return now;
  }
  const auto* instance = t.machine.instance(t.gpu.index, t.gi_id);
  const auto& profile = t.gpu.spec.mig_profiles[static_cast<std::size_t>(instance->profile)];
  now.total = static_cast<std::uint64_t>(profile.memory_mib) * kMib;
  return now;
}

// Engines whose use is a percentage and a sampling period.
template <class Percent>
Return engine(const char* function, Device device, std::uint32_t* percent, std::uint32_t* period,
              bool sim::GpuSpec::* has, Percent value) {
  return on_gpu(function, device, [&](Target& t) {
    if (percent == nullptr || period == nullptr) return Return::InvalidArgument;
    if (!(t.gpu.spec.*has) || t.gpu.mig_enabled) return Return::NotSupported;
    *percent = static_cast<std::uint32_t>(value(t));
    *period = kSamplingUs;
    return Return::Success;
  });
}

}  // namespace

Return nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  return on_any_device(__func__, device, [&](Target& t) {
    if (memory == nullptr) return Return::InvalidArgument;
    const MemoryNow now = memory_of(t);
    memory->total = now.total;
    memory->used = now.used + now.reserved;
    memory->free = now.total - memory->used;
    return Return::Success;
  });
}

Return nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* memory) {
  return on_any_device(__func__, device, [&](Target& t) {
    if (memory == nullptr) return Return::InvalidArgument;
    if (memory->version != version_of<MemoryV2>(2)) return Return::ArgumentVersionMismatch;
    const MemoryNow now = memory_of(t);
    memory->total = now.total;
    memory->reserved = now.reserved;
    memory->used = now.used;
    memory->free = now.total - now.reserved - now.used;
    return Return::Success;
  });
}

Return nvmlDeviceGetBAR1MemoryInfo(Device device, Bar1Memory* memory) {
  return on_any_device(__func__, device, [&](Target& t) {
    if (memory == nullptr) return Return::InvalidArgument;
    memory->total = static_cast<std::uint64_t>(t.gpu.spec.bar1_mib) * kMib;
    memory->used = static_cast<std::uint64_t>(sim::bar1_used_bytes(t.gpu));
    memory->free = memory->total - std::min(memory->total, memory->used);
    return Return::Success;
  });
}

Return nvmlDeviceGetUtilizationRates(Device device, Utilization* utilization) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (utilization == nullptr) return Return::InvalidArgument;
    if (t.gpu.mig_enabled) return Return::NotSupported;
    utilization->gpu = static_cast<std::uint32_t>(sim::gpu_percent(t.machine, t.gpu));
    utilization->memory = static_cast<std::uint32_t>(sim::memory_percent(t.machine, t.gpu));
    return Return::Success;
  });
}

Return nvmlDeviceGetEncoderUtilization(Device device, std::uint32_t* percent,
                                       std::uint32_t* period) {
  return engine(__func__, device, percent, period, &sim::GpuSpec::has_encoder,
                [](Target& t) { return sim::encoder_percent(t.machine, t.gpu); });
}
Return nvmlDeviceGetDecoderUtilization(Device device, std::uint32_t* percent,
                                       std::uint32_t* period) {
  return engine(__func__, device, percent, period, &sim::GpuSpec::has_decoder,
                [](Target& t) { return sim::decoder_percent(t.machine, t.gpu); });
}
Return nvmlDeviceGetJpgUtilization(Device device, std::uint32_t* percent, std::uint32_t* period) {
  return engine(__func__, device, percent, period, &sim::GpuSpec::has_jpeg_ofa,
                [](Target& t) { return sim::jpeg_percent(t.gpu); });
}
Return nvmlDeviceGetOfaUtilization(Device device, std::uint32_t* percent, std::uint32_t* period) {
  return engine(__func__, device, percent, period, &sim::GpuSpec::has_jpeg_ofa,
                [](Target& t) { return sim::ofa_percent(t.gpu); });
}

Return nvmlDeviceGetSamples(Device device, Enum type, std::uint64_t last_seen, Enum* value_type,
                            std::uint32_t* count, Sample* samples) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (value_type == nullptr || count == nullptr) return Return::InvalidArgument;
    if (t.gpu.mig_enabled) return Return::NotSupported;
    std::int64_t value = 0;
    switch (type) {
      case kSamplePower:
        value = sim::power_mw(t.machine, t.gpu);
        break;
      case kSampleGpu:
        value = sim::gpu_percent(t.machine, t.gpu);
        break;
      case kSampleMemory:
        value = sim::memory_percent(t.machine, t.gpu);
        break;
      case kSampleEncoder:
        if (!t.gpu.spec.has_encoder) return Return::NotSupported;
        value = sim::encoder_percent(t.machine, t.gpu);
        break;
      case kSampleDecoder:
        value = sim::decoder_percent(t.machine, t.gpu);
        break;
      case kSampleProcessorClock:
        value = sim::clock_mhz(t.machine, t.gpu, kClockGraphics);
        break;
      case kSampleMemoryClock:
        value = sim::clock_mhz(t.machine, t.gpu, kClockMemory);
        break;
      default:
        return type <= kSampleOfa ? Return::NotSupported : Return::InvalidArgument;
    }
    *value_type = kValueUint;
    const auto time = static_cast<std::uint64_t>(t.machine.now());
    if (samples == nullptr) return put(count, 1);
    if (time <= last_seen) return Return::NotFound;
    if (*count == 0) return Return::InvalidArgument;
    *count = 1;
    samples[0] = {.timestamp = time, .sample_value = {}};
    samples[0].sample_value.ui = static_cast<std::uint32_t>(value);
    return Return::Success;
  });
}

Return nvmlDeviceGetTemperature(Device device, Enum sensor, std::uint32_t* temperature) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (sensor != kSensorGpu) return Return::InvalidArgument;
    return put(temperature, sim::temperature_c(t.machine, t.gpu));
  });
}

Return nvmlDeviceGetTemperatureV(Device device, TemperatureV1* temperature) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (temperature == nullptr) return Return::InvalidArgument;
    if (temperature->version != version_of<TemperatureV1>(1)) {
      return Return::ArgumentVersionMismatch;
    }
    if (temperature->sensor_type != kSensorGpu) return Return::InvalidArgument;
    return put(&temperature->temperature, sim::temperature_c(t.machine, t.gpu));
  });
}

Return nvmlDeviceGetTemperatureThreshold(Device device, Enum threshold,
                                         std::uint32_t* temperature) {
  return on_gpu(__func__, device, [&](Target& t) {
    int value = 0;
    if (threshold == kThresholdShutdown) value = t.gpu.spec.shutdown_c;
    if (threshold == kThresholdSlowdown) value = t.gpu.spec.slowdown_c;
    if (threshold == kThresholdMemoryMax) value = t.gpu.spec.memory_max_c;
    if (threshold == kThresholdGpuMax) value = t.gpu.spec.gpu_max_c;
    if (threshold > kThresholdGpsCurrent) return Return::InvalidArgument;
    return value == 0 ? Return::NotSupported : put(temperature, value);
  });
}

Return nvmlDeviceGetMarginTemperature(Device device, MarginTemperatureV1* margin) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (margin == nullptr) return Return::InvalidArgument;
    if (margin->version != version_of<MarginTemperatureV1>(1)) {
      return Return::ArgumentVersionMismatch;
    }
    if (t.gpu.spec.slowdown_c == 0) return Return::NotSupported;
    return put(&margin->margin_temperature,
               t.gpu.spec.slowdown_c - sim::temperature_c(t.machine, t.gpu));
  });
}

Return nvmlDeviceGetPowerUsage(Device device, std::uint32_t* power) {
  return on_gpu(__func__, device,
                [&](Target& t) { return put(power, sim::power_mw(t.machine, t.gpu)); });
}

Return nvmlDeviceGetTotalEnergyConsumption(Device device, std::uint64_t* energy) {
  return on_gpu(__func__, device,
                [&](Target& t) { return put(energy, sim::energy_mj(t.machine, t.gpu)); });
}

Return nvmlDeviceGetPowerManagementMode(Device device, Enum* mode) {
  return on_gpu(__func__, device,
                [&](Target& t) { return put(mode, t.gpu.spec.power_limit_mw > 0 ? 1 : 0); });
}

Return nvmlDeviceGetPowerManagementLimit(Device device, std::uint32_t* limit) {
  return on_gpu(__func__, device, [&](Target& t) {
    return t.gpu.spec.power_limit_mw == 0 ? Return::NotSupported
                                          : put(limit, t.gpu.spec.power_limit_mw);
  });
}

Return nvmlDeviceGetEnforcedPowerLimit(Device device, std::uint32_t* limit) {
  return on_gpu(__func__, device, [&](Target& t) {
    return t.gpu.spec.power_limit_mw == 0 ? Return::NotSupported
                                          : put(limit, t.gpu.spec.power_limit_mw);
  });
}

Return nvmlDeviceGetPowerManagementLimitConstraints(Device device, std::uint32_t* least,
                                                    std::uint32_t* most) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (least == nullptr || most == nullptr) return Return::InvalidArgument;
    if (t.gpu.spec.power_limit_max_mw == 0) return Return::NotSupported;
    *least = static_cast<std::uint32_t>(t.gpu.spec.power_limit_min_mw);
    *most = static_cast<std::uint32_t>(t.gpu.spec.power_limit_max_mw);
    return Return::Success;
  });
}

Return nvmlDeviceGetPowerManagementDefaultLimit(Device device, std::uint32_t* limit) {
  return on_gpu(__func__, device, [&](Target& t) {
    return t.gpu.spec.power_limit_default_mw == 0 ? Return::NotSupported
                                                  : put(limit, t.gpu.spec.power_limit_default_mw);
  });
}

Return nvmlDeviceSetPowerManagementLimit(Device device, std::uint32_t limit) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (limit < t.gpu.spec.power_limit_min_mw || limit > t.gpu.spec.power_limit_max_mw) {
      return Return::InvalidArgument;
    }
    t.gpu.spec.power_limit_mw = limit;
    return Return::Success;
  });
}

Return nvmlDeviceGetPowerState(Device device, Enum* state) {
  return nvmlDeviceGetPerformanceState(device, state);
}

Return nvmlDeviceGetPowerSource(Device device, Enum* source) {
  return on_gpu(__func__, device, [&](Target&) { return put(source, 0); });
}

Return nvmlDeviceGetClockInfo(Device device, Enum type, std::uint32_t* clock) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (type > kClockVideo) return Return::InvalidArgument;
    return put(clock, sim::clock_mhz(t.machine, t.gpu, type));
  });
}

Return nvmlDeviceGetMaxClockInfo(Device device, Enum type, std::uint32_t* clock) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (type > kClockVideo) return Return::InvalidArgument;
    return put(clock, sim::clock_max_mhz(t.gpu, type));
  });
}

Return nvmlDeviceGetClock(Device device, Enum type, Enum id, std::uint32_t* clock) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (type > kClockVideo || id > kClockBoostMax) return Return::InvalidArgument;
    return put(clock, id == kClockCurrent ? sim::clock_mhz(t.machine, t.gpu, type)
                                          : sim::clock_max_mhz(t.gpu, type));
  });
}

Return nvmlDeviceGetMaxCustomerBoostClock(Device device, Enum type, std::uint32_t* clock) {
  return nvmlDeviceGetMaxClockInfo(device, type, clock);
}
Return nvmlDeviceGetApplicationsClock(Device device, Enum type, std::uint32_t* clock) {
  return nvmlDeviceGetMaxClockInfo(device, type, clock);
}
Return nvmlDeviceGetDefaultApplicationsClock(Device device, Enum type, std::uint32_t* clock) {
  return nvmlDeviceGetMaxClockInfo(device, type, clock);
}

Return nvmlDeviceGetSupportedMemoryClocks(Device device, std::uint32_t* count,
                                          std::uint32_t* clocks) {
  return on_gpu(__func__, device, [&](Target& t) {
    return sim::put_list(count, clocks, 1, [&](std::size_t) {
      return static_cast<std::uint32_t>(t.gpu.spec.clocks_max.memory);
    });
  });
}

Return nvmlDeviceGetSupportedGraphicsClocks(Device device, std::uint32_t memory_clock,
                                            std::uint32_t* count, std::uint32_t* clocks) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (memory_clock != t.gpu.spec.clocks_max.memory) return Return::NotFound;
    constexpr std::int64_t kStep = 15;
    const std::int64_t most = t.gpu.spec.clocks_max.graphics;
    const std::int64_t span = most - std::min(most, t.gpu.spec.clocks_idle.graphics);
    return sim::put_list(
        count, clocks, static_cast<std::size_t>(span / kStep + 1), [&](std::size_t i) {
          return static_cast<std::uint32_t>(most - kStep * static_cast<std::int64_t>(i));
        });
  });
}

Return nvmlDeviceGetPerformanceState(Device device, Enum* state) {
  return on_gpu(__func__, device,
                [&](Target& t) { return put(state, sim::performance_state(t.machine, t.gpu)); });
}

Return nvmlDeviceGetCurrentClocksEventReasons(Device device, std::uint64_t* reasons) {
  return on_gpu(__func__, device,
                [&](Target& t) { return put(reasons, sim::throttle_reasons(t.machine, t.gpu)); });
}
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device, std::uint64_t* reasons) {
  return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

Return nvmlDeviceGetSupportedClocksEventReasons(Device device, std::uint64_t* reasons) {
  return on_gpu(__func__, device, [&](Target&) { return put(reasons, 0x1FF); });
}
Return nvmlDeviceGetSupportedClocksThrottleReasons(Device device, std::uint64_t* reasons) {
  return nvmlDeviceGetSupportedClocksEventReasons(device, reasons);
}

Return nvmlDeviceGetViolationStatus(Device device, Enum policy, ViolationTime* violation) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (violation == nullptr || (policy > kPolicyReliability && policy != kPolicyAppClocks &&
                                 policy != kPolicyBaseClocks)) {
      return Return::InvalidArgument;
    }
    const TimeUs held =
        policy == kPolicyThermal ? t.machine.acted(sim::FaultKind::Thermal, t.gpu.index)
        : policy == kPolicyPower ? t.machine.acted(sim::FaultKind::PowerBrake, t.gpu.index)
                                 : 0;
    violation->reference_time = static_cast<std::uint64_t>(t.machine.now());
    violation->violation_time = static_cast<std::uint64_t>(held) * 1000;
    return Return::Success;
  });
}

Return nvmlDeviceGetFanSpeed(Device device, std::uint32_t* speed) {
  return on_gpu(__func__, device, [&](Target& t) {
    return t.gpu.spec.fans == 0 ? Return::NotSupported
                                : put(speed, sim::fan_percent(t.machine, t.gpu));
  });
}

Return nvmlDeviceGetFanSpeed_v2(Device device, std::uint32_t fan, std::uint32_t* speed) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (t.gpu.spec.fans == 0) return Return::NotSupported;
    if (fan >= static_cast<std::uint32_t>(t.gpu.spec.fans)) return Return::InvalidArgument;
    return put(speed, sim::fan_percent(t.machine, t.gpu));
  });
}

Return nvmlDeviceGetNumFans(Device device, std::uint32_t* fans) {
  return on_gpu(__func__, device, [&](Target& t) { return put(fans, t.gpu.spec.fans); });
}

Return nvmlDeviceGetMinMaxFanSpeed(Device device, std::uint32_t* least, std::uint32_t* most) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (least == nullptr || most == nullptr) return Return::InvalidArgument;
    if (t.gpu.spec.fans == 0) return Return::NotSupported;
    *least = 30;
    *most = 100;
    return Return::Success;
  });
}

Return nvmlDeviceGetEncoderCapacity(Device device, Enum type, std::uint32_t* capacity) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (!t.gpu.spec.has_encoder) return Return::NotSupported;
    if (type > 2) return Return::InvalidArgument;
    return put(capacity, 100 - sim::encoder_percent(t.machine, t.gpu));
  });
}

Return nvmlDeviceGetEncoderStats(Device device, std::uint32_t* sessions, std::uint32_t* fps,
                                 std::uint32_t* latency) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (sessions == nullptr || fps == nullptr || latency == nullptr) {
      return Return::InvalidArgument;
    }
    if (!t.gpu.spec.has_encoder) return Return::NotSupported;
    *sessions = *fps = *latency = 0;
    return Return::Success;
  });
}

Return nvmlDeviceGetGpuOperationMode(Device device, Enum*, Enum*) {
  return on_gpu(__func__, device, [](Target&) { return Return::NotSupported; });
}

}  // namespace jogak::nvml::abi
