// SPDX-License-Identifier: Apache-2.0
//
// What a GPU does now: NvmlSource::sample(). Newer calls first, older ones where they are missing.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "nvml/abi_constants.h"
#include "nvml/nvml_source.h"
#include "nvml/sim/c_api.h"

namespace jogak::nvml {

std::int64_t field_number(const abi::FieldValue& field) {
  switch (field.value_type) {
    case abi::kValueDouble:
      return std::llround(field.value.real);
    case abi::kValueUint:
      return field.value.ui;
    case abi::kValueInt:
      return field.value.si;
    case abi::kValueUshort:
      return field.value.us;
    default:
      return field.value.sll;
  }
}

namespace {

using abi::Return;

constexpr std::int64_t kKib = 1024;

bool is_instance(std::uint32_t id) { return id != abi::kNoInstance; }

// A process that computes and draws is in both lists, one under MPS in two: told once, with its
// memory counted once.
void add_or_merge(std::vector<ProcessFacts>& processes, ProcessFacts process) {
  const auto same = std::ranges::find_if(processes, [&](const ProcessFacts& other) {
    return other.pid == process.pid && other.gi_id == process.gi_id && other.ci_id == process.ci_id;
  });
  if (same == processes.end()) {
    processes.push_back(std::move(process));
    return;
  }
  if (process.kind == ProcessFacts::Kind::Mps) same->kind = process.kind;
  if (process.memory_bytes && *process.memory_bytes > same->memory_bytes.value_or(-1)) {
    same->memory_bytes = process.memory_bytes;
  }
}

}  // namespace

void NvmlSource::sample_engines(Gpu& gpu, GpuSample& sample) {
  abi::Utilization use{};
  const Return got = call(f_.utilization, gpu.handle, &use);
  if (got == Return::Success) {
    sample.gpu_percent = static_cast<int>(use.gpu);
    sample.memory_percent = static_cast<int>(use.memory);
  } else {
    sample.gpu_percent = sample.memory_percent = missed(got, &gpu);
  }
  const auto engine =
      [&](Return (*function)(abi::Device, std::uint32_t*, std::uint32_t*)) -> Reading<int> {
    std::uint32_t percent = 0;
    std::uint32_t period_us = 0;
    const Return result = call(function, gpu.handle, &percent, &period_us);
    if (result != Return::Success) return missed(result, &gpu);
    return static_cast<int>(percent);
  };
  sample.encoder_percent = engine(f_.encoder);
  sample.decoder_percent = engine(f_.decoder);
  sample.jpeg_percent = engine(f_.jpeg);
  sample.ofa_percent = engine(f_.ofa);
}

void NvmlSource::sample_memory(Gpu& gpu, abi::Device device, MemorySample& memory) {
  abi::MemoryV2 split{};
  split.version = abi::version_of<abi::MemoryV2>(2);
  Return result = call(f_.memory_v2, device, &split);
  if (result == Return::Success) {
    memory.total_bytes = static_cast<std::int64_t>(split.total);
    memory.used_bytes = static_cast<std::int64_t>(split.used);
    memory.free_bytes = static_cast<std::int64_t>(split.free);
    memory.reserved_bytes = static_cast<std::int64_t>(split.reserved);
    return;
  }
  memory.reserved_bytes = missing_of(result);
  abi::Memory whole{};
  result = call(f_.memory, device, &whole);
  if (result == Return::Success) {
    memory.total_bytes = static_cast<std::int64_t>(whole.total);
    memory.used_bytes = static_cast<std::int64_t>(whole.used);
    memory.free_bytes = static_cast<std::int64_t>(whole.free);
    return;
  }
  memory.total_bytes = memory.used_bytes = memory.free_bytes = missed(result, &gpu);
}

void NvmlSource::sample_power(Gpu& gpu, GpuSample& sample) {
  const auto clock = [&](abi::Enum type) {
    return read<std::int64_t, std::uint32_t>(gpu, f_.clock, type);
  };
  sample.clocks = {.graphics = clock(abi::kClockGraphics),
                   .sm = clock(abi::kClockSm),
                   .memory = clock(abi::kClockMemory),
                   .video = clock(abi::kClockVideo)};
  abi::TemperatureV1 temperature{};
  temperature.version = abi::version_of<abi::TemperatureV1>(1);
  temperature.sensor_type = abi::kSensorGpu;
  const Return got = call(f_.temperature_v, gpu.handle, &temperature);
  sample.temperature_c = got == Return::Success
                             ? Reading<int>(temperature.temperature)
                             : read<int, std::uint32_t>(gpu, f_.temperature, abi::kSensorGpu);
  sample.power_mw = read<std::int64_t, std::uint32_t>(gpu, f_.power);
  sample.energy_mj = read<std::int64_t, std::uint64_t>(gpu, f_.energy);
  sample.fan_percent = read<int, std::uint32_t>(gpu, f_.fan);
  sample.performance_state = read<int, abi::Enum>(gpu, f_.performance_state);
  sample.throttle_reasons = read<std::uint64_t, std::uint64_t>(gpu, f_.throttle_reasons);
}

void NvmlSource::sample_health(Gpu& gpu, GpuSample& sample) {
  const auto ecc = [&](abi::Enum error, abi::Enum counter) {
    return read<std::int64_t, std::uint64_t>(gpu, f_.ecc_total, error, counter);
  };
  sample.ecc = {
      .corrected_volatile = ecc(abi::kErrorCorrected, abi::kEccVolatile),
      .uncorrected_volatile = ecc(abi::kErrorUncorrected, abi::kEccVolatile),
      .corrected_aggregate = ecc(abi::kErrorCorrected, abi::kEccAggregate),
      .uncorrected_aggregate = ecc(abi::kErrorUncorrected, abi::kEccAggregate),
  };
  RowsSample& rows = sample.rows;
  std::uint32_t corrected = 0;
  std::uint32_t uncorrected = 0;
  std::uint32_t is_pending = 0;
  std::uint32_t has_failed = 0;
  const Return got =
      call(f_.remapped_rows, gpu.handle, &corrected, &uncorrected, &is_pending, &has_failed);
  if (got == Return::Success) {
    rows.corrected = std::int64_t{corrected};
    rows.uncorrected = std::int64_t{uncorrected};
    rows.is_pending = is_pending != 0;
    rows.has_failed = has_failed != 0;
  } else {
    rows.corrected = rows.uncorrected = missed(got, &gpu);
    rows.is_pending = rows.has_failed = missing_of(got);
  }
  abi::RowRemapperHistogramValues banks{};
  const Return histogram = call(f_.row_histogram, gpu.handle, &banks);
  if (histogram == Return::Success) {
    rows.banks_max = std::int64_t{banks.max};
    rows.banks_high = std::int64_t{banks.high};
    rows.banks_partial = std::int64_t{banks.partial};
    rows.banks_low = std::int64_t{banks.low};
    rows.banks_none = std::int64_t{banks.none};
  } else {
    rows.banks_max = rows.banks_high = rows.banks_partial = rows.banks_low = rows.banks_none =
        missed(histogram, &gpu);
  }
}

Reading<std::int64_t> NvmlSource::old_violation(Gpu& gpu, abi::Enum policy) {
  abi::ViolationTime time{};
  const Return result = call(f_.violation, gpu.handle, policy, &time);
  if (result != Return::Success) return missed(result, &gpu);
  return static_cast<std::int64_t>(time.violation_time);
}

void NvmlSource::sample_fields(Gpu& gpu, GpuSample& sample) {
  constexpr std::array<abi::Enum, 18> kIds = {
      abi::kFieldMemoryTemperature,   abi::kFieldPowerInstant,
      abi::kFieldRetiredSbe,          abi::kFieldRetiredDbe,
      abi::kFieldRetiredPending,      abi::kFieldNvlinkCrcFlitTotal,
      abi::kFieldNvlinkCrcDataTotal,  abi::kFieldNvlinkReplayTotal,
      abi::kFieldNvlinkRecoveryTotal, abi::kFieldNvlinkTxData,
      abi::kFieldNvlinkRxData,        abi::kFieldRecoveryAction,
      abi::kFieldPerfPolicyPower,     abi::kFieldPerfPolicyThermal,
      abi::kFieldPerfPolicySyncBoost, abi::kFieldPerfPolicyBoardLimit,
      abi::kFieldPerfPolicyLowUtil,   abi::kFieldPerfPolicyReliability};
  std::array<abi::FieldValue, kIds.size()> fields{};
  for (std::size_t i = 0; i < kIds.size(); ++i) {
    fields[i].field_id = kIds[i];
    const bool is_of_links =
        kIds[i] == abi::kFieldNvlinkTxData || kIds[i] == abi::kFieldNvlinkRxData;
    fields[i].scope_id = is_of_links ? abi::kAllLinks : 0;
  }
  const Return got =
      call(f_.fields, gpu.handle, static_cast<std::int32_t>(fields.size()), fields.data());
  if (got != Return::Success) missed(got, &gpu);
  const auto at = [&](std::size_t i) -> Reading<std::int64_t> {
    const Return result = got == Return::Success ? fields[i].result : got;
    if (result != Return::Success) return missing_of(result);
    return field_number(fields[i]);
  };
  const auto as_int = [](const Reading<std::int64_t>& from) -> Reading<int> {
    if (!from) return from.missing();
    return static_cast<int>(*from);
  };
  const auto bytes = [](const Reading<std::int64_t>& kib) -> Reading<std::int64_t> {
    if (!kib) return kib.missing();
    return *kib * kKib;
  };
  sample.memory_temperature_c = as_int(at(0));
  sample.power_instant_mw = at(1);
  sample.rows.retired_single_bit = at(2);
  sample.rows.retired_double_bit = at(3);
  const auto pending = at(4);
  sample.rows.retirement_pending =
      pending ? Reading<bool>(*pending != 0) : Reading<bool>(pending.missing());
  NvlinkSample& nvlink = sample.nvlink;
  nvlink.crc_flit_errors = at(5);
  nvlink.crc_data_errors = at(6);
  nvlink.replay_errors = at(7);
  nvlink.recovery_errors = at(8);
  nvlink.tx_bytes = bytes(at(9));
  nvlink.rx_bytes = bytes(at(10));
  if (!nvlink.crc_flit_errors && gpu.link_slots > 0) sum_link_errors(gpu, nvlink);
  sample.recovery_action = as_int(at(11));
  // The call for these is on its way out; drivers without the fields still have it.
  const auto violation = [&](std::size_t i, abi::Enum policy) -> Reading<std::int64_t> {
    const auto field = at(i);
    return field || field.missing() != Missing::NotSupported ? field : old_violation(gpu, policy);
  };
  sample.violation_power_ns = violation(12, abi::kPolicyPower);
  sample.violation_thermal_ns = violation(13, abi::kPolicyThermal);
  sample.violation_sync_boost_ns = violation(14, abi::kPolicySyncBoost);
  sample.violation_board_limit_ns = violation(15, abi::kPolicyBoardLimit);
  sample.violation_low_utilisation_ns = violation(16, abi::kPolicyLowUtilization);
  sample.violation_reliability_ns = violation(17, abi::kPolicyReliability);
}

void NvmlSource::sample_pcie(Gpu& gpu, const SampleWants& wants, GpuSample& sample) {
  sample.pcie_replays = read<std::int64_t, std::uint32_t>(gpu, f_.pcie_replays);
  sample.pcie_generation = read<int, std::uint32_t>(gpu, f_.pcie_generation);
  sample.pcie_width = read<int, std::uint32_t>(gpu, f_.pcie_width);
  abi::Bar1Memory bar1{};
  const Return got = call(f_.bar1, gpu.handle, &bar1);
  if (got == Return::Success) {
    sample.bar1_used_bytes = static_cast<std::int64_t>(bar1.used);
    sample.bar1_free_bytes = static_cast<std::int64_t>(bar1.free);
  } else {
    sample.bar1_used_bytes = sample.bar1_free_bytes = missed(got, &gpu);
  }
  if (!wants.pcie_throughput) return;
  const auto rate = [&](abi::Enum counter) -> Reading<std::int64_t> {
    const auto kbps = read<std::int64_t, std::uint32_t>(gpu, f_.pcie_throughput, counter);
    if (!kbps) return kbps.missing();
    return *kbps * 1000;
  };
  sample.pcie_tx_bytes_per_s = rate(abi::kPcieTx);
  sample.pcie_rx_bytes_per_s = rate(abi::kPcieRx);
}

void NvmlSource::sample_mig(Gpu& gpu, const SampleWants& wants, GpuSample& sample) {
  std::map<int, GpmSample> by_instance;
  for (const MigInstanceFacts& instance : gpu.facts.mig_instances) {
    if (instance.ci_id < 0) continue;
    MigInstanceSample row{.gi_id = instance.gi_id,
                          .ci_id = instance.ci_id,
                          .uuid = instance.uuid,
                          .memory = {},
                          .gpm = {}};
    abi::Device mig = nullptr;
    const Return got =
        call(f_.mig_handle, gpu.handle, static_cast<std::uint32_t>(instance.index), &mig);
    if (got == Return::Success) sample_memory(gpu, mig, row.memory);
    if (wants.gpm && gpu.facts.has_gpm) {
      const auto [at, is_new] = by_instance.try_emplace(instance.gi_id);
      if (is_new) sample_gpm(gpu, instance.gi_id, wants, at->second);
      row.gpm = at->second;
    }
    sample.mig.push_back(std::move(row));
  }
}

void NvmlSource::add_processes(Gpu& gpu, ProcessFacts::Kind kind,
                               std::vector<ProcessFacts>& processes, Missing& missing) {
  const auto function = kind == ProcessFacts::Kind::Compute    ? f_.compute_processes
                        : kind == ProcessFacts::Kind::Graphics ? f_.graphics_processes
                                                               : f_.mps_processes;
  // Room for the longest records that any driver wrote, and a pattern that none does: where the
  // second record begins tells how long they are.
  constexpr std::size_t kLong = sizeof(abi::ProcessInfoLong);
  constexpr std::size_t kShort = sizeof(abi::ProcessInfoV2);
  constexpr auto kPattern = std::byte{0xA5};
  constexpr int kTries = 8;
  std::vector<std::byte> buffer;
  std::uint32_t count = 0;
  Return result = Return::InsufficientSize;
  // The list may grow between the calls.
  for (int i = 0; i < kTries && result == Return::InsufficientSize; ++i) {
    count += count / 4 + 8;
    buffer.assign(kLong * count, kPattern);
    result = call(function, gpu.handle, &count, static_cast<void*>(buffer.data()));
  }
  if (result != Return::Success) {
    missing = missed(result, &gpu);
    return;
  }
  const bool is_long =
      count > 0 && std::ranges::any_of(buffer.begin() + static_cast<std::ptrdiff_t>(kShort * count),
                                       buffer.begin() + static_cast<std::ptrdiff_t>(kLong * count),
                                       [&](std::byte byte) { return byte != kPattern; });
  for (std::uint32_t i = 0; i < count; ++i) {
    abi::ProcessInfoV2 info{};
    std::memcpy(&info, buffer.data() + i * (is_long ? kLong : kShort), kShort);
    ProcessFacts process;
    process.pid = info.pid;
    process.kind = kind;
    process.memory_bytes = Missing::NoData;
    if (info.used_gpu_memory != abi::kNoValue64) {
      process.memory_bytes = static_cast<std::int64_t>(info.used_gpu_memory);
    }
    if (is_instance(info.gpu_instance_id)) {
      process.gi_id = static_cast<int>(info.gpu_instance_id);
      if (is_instance(info.compute_instance_id)) {
        process.ci_id = static_cast<int>(info.compute_instance_id);
      }
    }
    std::string name(256, '\0');
    if (call(f_.process_name, info.pid, name.data(), static_cast<std::uint32_t>(name.size())) ==
        Return::Success) {
      process.name = name.c_str();
    }
    add_or_merge(processes, std::move(process));
  }
}

Reading<std::vector<ProcessFacts>> NvmlSource::sample_processes(Gpu& gpu) {
  std::vector<ProcessFacts> processes;
  Missing missing = Missing::NotRead;
  add_processes(gpu, ProcessFacts::Kind::Compute, processes, missing);
  if (missing != Missing::NotRead) return missing;
  Missing ignored = Missing::NotRead;
  add_processes(gpu, ProcessFacts::Kind::Graphics, processes, ignored);
  add_processes(gpu, ProcessFacts::Kind::Mps, processes, ignored);
  std::uint32_t count = 0;
  abi::ProcessUtilizationSample* const only_count = nullptr;
  const std::uint64_t ever = 0;
  if (call(f_.process_utilization, gpu.handle, only_count, &count, ever) !=
          Return::InsufficientSize ||
      count == 0) {
    return processes;
  }
  std::vector<abi::ProcessUtilizationSample> samples(count);
  if (call(f_.process_utilization, gpu.handle, samples.data(), &count, ever) != Return::Success) {
    return processes;
  }
  samples.resize(std::min<std::size_t>(count, samples.size()));
  // Several samples of one process: the latest counts.
  std::ranges::stable_sort(samples, {}, &abi::ProcessUtilizationSample::timestamp);
  for (const auto& use : samples) {
    for (ProcessFacts& process : processes) {
      if (process.pid != use.pid) continue;
      process.sm_percent = static_cast<int>(use.sm_util);
      process.memory_percent = static_cast<int>(use.mem_util);
      process.encoder_percent = static_cast<int>(use.enc_util);
      process.decoder_percent = static_cast<int>(use.dec_util);
    }
  }
  return processes;
}

Result<GpuSample> NvmlSource::sample(const std::string& uuid, const SampleWants& wants) {
  const sim::UseMachine use(options_.machine.get());
  JOGAK_TRY(Gpu* const gpu, find(uuid));
  GpuSample sample;
  sample.uuid = uuid;
  sample.time = now();
  if (gpu->handle != nullptr) {
    gpu->is_lost = false;
    sample_memory(*gpu, gpu->handle, sample.memory);
  }
  if (gpu->handle == nullptr || gpu->is_lost) {
    gpu->is_lost = true;
    GpuSample lost;
    lost.uuid = uuid;
    lost.time = sample.time;
    lost.is_lost = true;
    lost.gpu_percent = lost.memory_percent = Missing::Lost;
    lost.memory.total_bytes = lost.memory.used_bytes = lost.memory.free_bytes = Missing::Lost;
    lost.temperature_c = Missing::Lost;
    lost.power_mw = Missing::Lost;
    lost.processes = Missing::Lost;
    return lost;
  }
  sample_engines(*gpu, sample);
  sample_power(*gpu, sample);
  sample_health(*gpu, sample);
  sample_fields(*gpu, sample);
  sample_pcie(*gpu, wants, sample);
  if (wants.links && gpu->link_slots > 0) sample_links(*gpu, sample.nvlink);
  if (wants.held) sample_held(*gpu, sample.held);
  if (wants.gpm && gpu->facts.has_gpm) sample_gpm(*gpu, -1, wants, sample.gpm);
  sample_mig(*gpu, wants, sample);
  if (wants.processes) sample.processes = sample_processes(*gpu);
  if (is_ended_) return fail(Errc::Unavailable, "the driver went away while it was asked");
  sample.is_lost = gpu->is_lost;
  return sample;
}

Result<std::vector<ProcessFacts>> NvmlSource::processes(const std::string& uuid) {
  const sim::UseMachine use(options_.machine.get());
  JOGAK_TRY(Gpu* const gpu, find(uuid));
  if (gpu->handle == nullptr) return fail(Errc::Gone, "GPU {} is lost", uuid);
  const auto processes = sample_processes(*gpu);
  if (processes) return *processes;
  return fail(processes.missing() == Missing::Lost ? Errc::Gone : Errc::Invalid,
              "processes of {}: {}", uuid, missing_text(processes.missing()));
}

}  // namespace jogak::nvml
