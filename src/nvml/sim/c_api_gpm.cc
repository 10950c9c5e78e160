// SPDX-License-Identifier: Apache-2.0
//
// GPM, the profiling metrics of Hopper and newer: means between two samples.
#include <optional>

#include "nvml/abi_constants.h"
#include "nvml/sim/c_call.h"
#include "nvml/sim/readings.h"

namespace jogak::nvml::abi {

namespace {

using sim::GpmSampleState;
using sim::GpuState;
using sim::Machine;
using sim::on_driver;
using sim::on_gpu;
using sim::put;
using sim::Target;

constexpr double kMibPerSecondPerPercent = 100;

Return take_sample(Target& t, int gi_id, GpmSample sample) {
  GpmSampleState* const state = t.machine.gpm_sample(sample);
  if (state == nullptr) return Return::InvalidArgument;
  if (!t.gpu.spec.has_gpm) return Return::NotSupported;
  *state = {.is_taken = true, .gpu = t.gpu.index, .gi_id = gi_id, .time = t.machine.now()};
  return Return::Success;
}

// Share of the load that shows in a metric, 0 to 1; nothing for metrics that are not simulated.
std::optional<double> share_of(Enum metric) {
  switch (metric) {
    case kGpmGraphics:
      return 1.0;
    case kGpmSm:
      return 0.9;
    case kGpmOccupancy:
      return 0.5;
    case kGpmInteger:
      return 0.1;
    case kGpmTensor:
    case kGpmHmma:
      return 0.4;
    case kGpmDram:
      return 0.6;
    case kGpmFp32:
      return 0.2;
    case kGpmFp16:
      return 0.15;
    case kGpmFp64:
    case kGpmDfma:
    case kGpmDmma:
    case kGpmImma:
      return 0.0;
    default:
      break;
  }
  // The first decoder and JPEG engine do what the video engines of a GPU do; the others wait.
  const auto is_engine = [&](Enum first, Enum count) {
    return metric >= first && metric < first + count;
  };
  if (is_engine(kGpmNvdec0, 8) || is_engine(kGpmNvjpg0, 8)) {
    return metric == kGpmNvdec0 || metric == kGpmNvjpg0 ? 0.05 : 0.0;
  }
  if (is_engine(kGpmNvofa0, 2)) return 0.0;
  return std::nullopt;
}

double load_of(Machine& machine, const GpmSampleState& from, const GpmSampleState& to) {
  const GpuState& gpu = machine.gpus()[static_cast<std::size_t>(to.gpu)];
  double load = to.gi_id < 0 ? sim::mean_load(gpu, from.time, to.time) : 0;
  for (const sim::ProcessState* process : machine.processes(to.gpu)) {
    if (to.gi_id < 0 || process->gi_id == to.gi_id)
      load += sim::sm_percent_at(process->spec, to.time);
  }
  return std::clamp(load, 0.0, 100.0);
}

// The number of the NVLink that a metric is of; -1: none.
int link_of(Enum metric) {
  if (metric >= kGpmNvlinkRx0 && metric < kGpmNvlinkRx0 + 36) {
    return static_cast<int>(metric - kGpmNvlinkRx0) / 2;
  }
  if (metric >= kGpmNvlinkRx18 && metric < kGpmNvlinkRx18 + 36) {
    return 18 + static_cast<int>(metric - kGpmNvlinkRx18) / 2;
  }
  return -1;
}

// `links` are those that can carry data.
void fill_metric(GpmMetric& metric, double load, int links, bool is_instance) {
  metric.short_name = metric.long_name = metric.unit = nullptr;
  metric.result = Return::Success;
  const bool is_pcie = metric.metric_id >= kGpmPcieTx && metric.metric_id <= kGpmPcieRx;
  const bool is_nvlink = metric.metric_id >= kGpmNvlinkRx && metric.metric_id <= kGpmNvlinkTx;
  const bool is_rate = is_pcie || is_nvlink;
  if (!is_instance && (is_pcie || (is_nvlink && links > 0))) {
    metric.value = load * kMibPerSecondPerPercent;
  } else if (const int link = link_of(metric.metric_id);
             link >= 0 && link < links && !is_instance) {
    metric.value = load * kMibPerSecondPerPercent / links;
  } else if (const auto share = share_of(metric.metric_id); share && !is_rate) {
    metric.value = load * *share;
  } else {
    metric.value = 0;
    metric.result = metric.metric_id == 0 || metric.metric_id >= kGpmMetricCount
                        ? Return::InvalidArgument
                        : Return::NotSupported;
  }
}

}  // namespace

Return nvmlGpmQueryDeviceSupport(Device device, GpmSupport* support) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (support == nullptr) return Return::InvalidArgument;
    if (support->version != 1) return Return::ArgumentVersionMismatch;
    return put(&support->is_supported_device, t.gpu.spec.has_gpm ? 1 : 0);
  });
}

Return nvmlGpmSampleAlloc(GpmSample* sample) {
  return on_driver(__func__, [&](Machine& machine) {
    if (sample == nullptr) return Return::InvalidArgument;
    const void* const made = machine.create_gpm_sample();
    if (made == nullptr) return Return::Memory;
    *sample = sim::as_handle<GpmSample>(reinterpret_cast<std::uint64_t>(made));
    return Return::Success;
  });
}

Return nvmlGpmSampleFree(GpmSample sample) {
  return on_driver(__func__, [&](Machine& machine) {
    if (machine.gpm_sample(sample) == nullptr) return Return::InvalidArgument;
    machine.free_gpm_sample(sample);
    return Return::Success;
  });
}

Return nvmlGpmSampleGet(Device device, GpmSample sample) {
  return on_gpu(__func__, device, [&](Target& t) { return take_sample(t, -1, sample); });
}

Return nvmlGpmMigSampleGet(Device device, std::uint32_t gi_id, GpmSample sample) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (t.machine.instance(t.gpu.index, static_cast<int>(gi_id)) == nullptr) {
      return Return::NotFound;
    }
    return take_sample(t, static_cast<int>(gi_id), sample);
  });
}

Return nvmlGpmMetricsGet(GpmMetricsGet* get) {
  return on_driver(__func__, [&](Machine& machine) {
    if (get == nullptr) return Return::InvalidArgument;
    if (get->version != 1) return Return::ArgumentVersionMismatch;
    const GpmSampleState* const from = machine.gpm_sample(get->sample1);
    const GpmSampleState* const to = machine.gpm_sample(get->sample2);
    const bool is_pair = from != nullptr && to != nullptr && from->is_taken && to->is_taken &&
                         from->gpu == to->gpu && from->gi_id == to->gi_id;
    if (!is_pair || get->num_metrics > kGpmMetricCount) return Return::InvalidArgument;
    if (machine.is_lost(to->gpu)) return Return::GpuIsLost;
    const double load = load_of(machine, *from, *to);
    const sim::GpuState& gpu = machine.gpus()[static_cast<std::size_t>(to->gpu)];
    const int links = gpu.mig_enabled ? 0 : gpu.spec.nvlink.count;
    // Callers with an older header have a shorter array: never look behind num_metrics.
    for (std::uint32_t i = 0; i < get->num_metrics; ++i) {
      fill_metric(get->metrics[i], load, links, to->gi_id >= 0);
    }
    return Return::Success;
  });
}

Return nvmlGpmQueryIfStreamingEnabled(Device device, std::uint32_t* state) {
  return on_gpu(__func__, device, [&](Target& t) {
    return t.gpu.spec.has_gpm ? put(state, 0) : Return::NotSupported;
  });
}

Return nvmlGpmSetStreamingEnabled(Device device, std::uint32_t) {
  return on_gpu(__func__, device, [](Target&) { return Return::NoPermission; });
}

}  // namespace jogak::nvml::abi
