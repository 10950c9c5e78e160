// SPDX-License-Identifier: Apache-2.0
//
// The part of a sample that costs a call for each link or each engine, read only where somebody
// wants it, and the profiling metrics (GPM).
#include <cmath>
#include <vector>

#include "nvml/abi_constants.h"
#include "nvml/nvml_source.h"

namespace jogak::nvml {

namespace {

using abi::Return;

constexpr std::int64_t kKib = 1024;
constexpr double kMibBytes = 1024.0 * 1024.0;
constexpr double kShare = 0.01;

constexpr int kDecoders = 8;
constexpr int kJpegEngines = 8;
constexpr int kOfaEngines = 2;
constexpr int kFirstRangeLinks = 18;

// Fields of one GPU, asked for in one call.
class FieldBatch {
 public:
  void add(abi::Enum id, std::uint32_t scope) {
    abi::FieldValue field{};
    field.field_id = id;
    field.scope_id = scope;
    fields_.push_back(field);
  }
  template <class Function>
  void ask(Function function, abi::Device device) {
    whole_ = call(function, device, static_cast<std::int32_t>(fields_.size()), fields_.data());
  }
  Reading<std::int64_t> at(std::size_t i) const {
    const Return result = whole_ == Return::Success ? fields_[i].result : whole_;
    if (result != Return::Success) return missing_of(result);
    return field_number(fields_[i]);
  }

 private:
  std::vector<abi::FieldValue> fields_;
  Return whole_ = Return::Unknown;
};

Reading<std::int64_t> bytes_of(const Reading<std::int64_t>& kib) {
  if (!kib) return kib.missing();
  return *kib * kKib;
}

struct WantedMetric {
  abi::Enum id;
  Reading<double>* to;
  double scale;
};

std::vector<WantedMetric> basic_metrics(GpmSample& sample) {
  return {
      {abi::kGpmGraphics, &sample.graphics_active, kShare},
      {abi::kGpmSm, &sample.sm_active, kShare},
      {abi::kGpmOccupancy, &sample.sm_occupancy, kShare},
      {abi::kGpmTensor, &sample.tensor_active, kShare},
      {abi::kGpmDram, &sample.dram_active, kShare},
      {abi::kGpmFp64, &sample.fp64_active, kShare},
      {abi::kGpmFp32, &sample.fp32_active, kShare},
      {abi::kGpmFp16, &sample.fp16_active, kShare},
      {abi::kGpmHmma, &sample.tensor_hmma_active, kShare},
      {abi::kGpmImma, &sample.tensor_imma_active, kShare},
      {abi::kGpmDfma, &sample.tensor_dfma_active, kShare},
      {abi::kGpmInteger, &sample.integer_active, kShare},
      {abi::kGpmPcieTx, &sample.pcie_tx_bytes_per_s, kMibBytes},
      {abi::kGpmPcieRx, &sample.pcie_rx_bytes_per_s, kMibBytes},
      {abi::kGpmNvlinkTx, &sample.nvlink_tx_bytes_per_s, kMibBytes},
      {abi::kGpmNvlinkRx, &sample.nvlink_rx_bytes_per_s, kMibBytes},
  };
}

void add_engines(std::vector<WantedMetric>& wanted, abi::Enum first, int count,
                 std::vector<Reading<double>>& to) {
  to.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    wanted.push_back({first + static_cast<abi::Enum>(i), &to[static_cast<std::size_t>(i)], kShare});
  }
}

void add_links(std::vector<WantedMetric>& wanted, int count, GpmSample& sample) {
  sample.link_tx_bytes_per_s.resize(static_cast<std::size_t>(count));
  sample.link_rx_bytes_per_s.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const int received = i < kFirstRangeLinks ? abi::kGpmNvlinkRx0 + 2 * i
                                              : abi::kGpmNvlinkRx18 + 2 * (i - kFirstRangeLinks);
    const auto at = static_cast<std::size_t>(i);
    const auto id = static_cast<abi::Enum>(received);
    wanted.push_back({id, &sample.link_rx_bytes_per_s[at], kMibBytes});
    wanted.push_back({id + 1, &sample.link_tx_bytes_per_s[at], kMibBytes});
  }
}

}  // namespace

// Each link by itself: data by fields with the link as their scope, errors by their own call.
void NvmlSource::sample_links(Gpu& gpu, NvlinkSample& sample) {
  FieldBatch data;
  for (int link = 0; link < gpu.link_slots; ++link) {
    data.add(abi::kFieldNvlinkTxData, static_cast<std::uint32_t>(link));
    data.add(abi::kFieldNvlinkRxData, static_cast<std::uint32_t>(link));
  }
  data.ask(f_.fields, gpu.handle);
  sample.links.resize(static_cast<std::size_t>(gpu.link_slots));
  for (int link = 0; link < gpu.link_slots; ++link) {
    const auto at = static_cast<std::size_t>(link);
    const auto number = static_cast<std::uint32_t>(link);
    const auto errors = [&](abi::Enum counter) {
      return read<std::int64_t, std::uint64_t>(gpu, f_.nvlink_errors, number, counter);
    };
    LinkCounters& counters = sample.links[at];
    counters.crc_flit_errors = errors(abi::kNvlinkCrcFlit);
    counters.crc_data_errors = errors(abi::kNvlinkCrcData);
    counters.replay_errors = errors(abi::kNvlinkReplay);
    counters.recovery_errors = errors(abi::kNvlinkRecovery);
    counters.tx_bytes = bytes_of(data.at(2 * at));
    counters.rx_bytes = bytes_of(data.at(2 * at + 1));
  }
}

// Newer boards have no totals of errors, only those of each link.
void NvmlSource::sum_link_errors(Gpu& gpu, NvlinkSample& sample) {
  constexpr abi::Enum kIds[] = {abi::kFieldNvlinkCrcErrors, abi::kFieldNvlinkReplayErrors,
                                abi::kFieldNvlinkRecoveryErrors};
  FieldBatch batch;
  for (const abi::Enum id : kIds) {
    for (int link = 0; link < gpu.link_slots; ++link) {
      batch.add(id, static_cast<std::uint32_t>(link));
    }
  }
  batch.ask(f_.fields, gpu.handle);
  const auto slots = static_cast<std::size_t>(gpu.link_slots);
  const auto sum = [&](std::size_t row, Reading<std::int64_t>& to) {
    Reading<std::int64_t> total;
    for (std::size_t link = 0; link < slots; ++link) {
      const auto value = batch.at(row * slots + link);
      if (value) total = total.value_or(0) + *value;
    }
    if (total) to = total;
  };
  sum(0, sample.crc_flit_errors);
  sum(1, sample.replay_errors);
  sum(2, sample.recovery_errors);
}

void NvmlSource::sample_held(Gpu& gpu, HeldSample& sample) {
  FieldBatch batch;
  batch.add(abi::kFieldPerfPolicyPower, 0);
  batch.add(abi::kFieldPerfPolicySyncBoost, 0);
  batch.add(abi::kFieldSwThermalNs, 0);
  batch.add(abi::kFieldHwThermalNs, 0);
  batch.add(abi::kFieldHwBrakeNs, 0);
  batch.add(abi::kFieldPerfPolicyAppClocks, 0);
  batch.add(abi::kFieldPerfPolicyBaseClocks, 0);
  batch.ask(f_.fields, gpu.handle);
  sample = {.power_cap_ns = batch.at(0),
            .sync_boost_ns = batch.at(1),
            .sw_thermal_ns = batch.at(2),
            .hw_thermal_ns = batch.at(3),
            .power_brake_ns = batch.at(4),
            .app_clocks_ns = batch.at(5),
            .base_clocks_ns = batch.at(6)};
}

void NvmlSource::sample_gpm(Gpu& gpu, int gi_id, const SampleWants& wants, GpmSample& sample) {
  abi::GpmSample taken = nullptr;
  if (call(f_.gpm_alloc, &taken) != Return::Success) return;
  const Return got =
      gi_id < 0 ? call(f_.gpm_get, gpu.handle, taken)
                : call(f_.gpm_get_mig, gpu.handle, static_cast<std::uint32_t>(gi_id), taken);
  if (got != Return::Success) {
    call(f_.gpm_free, taken);
    missed(got, &gpu);
    return;
  }
  const auto before = gpu.gpm.find(gi_id);
  const abi::GpmSample first = before == gpu.gpm.end() ? nullptr : before->second;
  gpu.gpm[gi_id] = taken;
  if (first == nullptr) return;
  read_gpm(first, taken, gpu, gi_id >= 0, wants, sample);
  call(f_.gpm_free, first);
}

void NvmlSource::read_gpm(abi::GpmSample first, abi::GpmSample second, Gpu& gpu, bool is_instance,
                          const SampleWants& wants, GpmSample& sample) {
  std::vector<WantedMetric> wanted = basic_metrics(sample);
  if (wants.gpm_engines) {
    add_engines(wanted, abi::kGpmNvdec0, kDecoders, sample.decoders);
    add_engines(wanted, abi::kGpmNvjpg0, kJpegEngines, sample.jpeg_engines);
    add_engines(wanted, abi::kGpmNvofa0, kOfaEngines, sample.ofa_engines);
  }
  if (wants.gpm_links && !is_instance) add_links(wanted, gpu.link_slots, sample);
  if (!gpm_buffer_) gpm_buffer_ = std::make_unique<abi::GpmMetricsGet>();
  abi::GpmMetricsGet& get = *gpm_buffer_;
  get.version = 1;
  get.num_metrics = static_cast<std::uint32_t>(wanted.size());
  get.sample1 = first;
  get.sample2 = second;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    get.metrics[i] = {};
    get.metrics[i].metric_id = wanted[i].id;
  }
  const Return result = call(f_.gpm_metrics, &get);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const abi::GpmMetric& metric = get.metrics[i];
    Reading<double>& to = *wanted[i].to;
    if (result != Return::Success) {
      to = missing_of(result);
    } else if (metric.result != Return::Success) {
      to = missing_of(metric.result);
    } else if (!std::isfinite(metric.value)) {
      to = Missing::NoData;
    } else {
      to = metric.value * wanted[i].scale;
    }
  }
}

}  // namespace jogak::nvml
