// SPDX-License-Identifier: Apache-2.0
//
// One row per name. A getter is a reading and a unit.
#include "agent/exporter/fields.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace jogak::agent {

namespace {

using nvml::GpmSample;
using nvml::GpuFacts;
using nvml::GpuSample;
using nvml::MemorySample;
using nvml::NodeFacts;
using nvml::Reading;
using Value = std::optional<FieldValue>;

FieldValue integer(std::int64_t value) { return {.is_integer = true, .integer = value}; }
FieldValue real(double value) { return {.is_integer = false, .real = value}; }

// ---- units -----------------------------------------------------------------------------------

constexpr std::int64_t kMib = std::int64_t{1} << 20;

FieldValue as_is(std::int64_t value) { return integer(value); }
FieldValue mib_of_bytes(std::int64_t bytes) { return integer(bytes / kMib); }
FieldValue hertz_of_mhz(std::int64_t mhz) { return integer(mhz * 1'000'000); }
FieldValue watts_of_mw(std::int64_t mw) { return real(static_cast<double>(mw) / 1000); }
FieldValue joules_of_mj(std::int64_t mj) { return integer(mj / 1000); }
FieldValue ratio_of_percent(std::int64_t percent) {
  return real(static_cast<double>(percent) / 100);
}
FieldValue seconds_of_ns(std::int64_t ns) { return real(static_cast<double>(ns) / 1e9); }
FieldValue kb_of_bytes(std::int64_t bytes) { return integer(bytes / 1000); }

template <class T, class Unit>
Value value_of(const Reading<T>& reading, Unit unit) {
  if (!reading) return std::nullopt;
  return unit(static_cast<std::int64_t>(*reading));
}

Value value_of(const Reading<double>& reading) {
  if (!reading || !std::isfinite(*reading)) return std::nullopt;
  return real(*reading);
}

// ---- readings --------------------------------------------------------------------------------

// A member of the sample, in a unit.
template <auto Member, auto Unit>
Value of_sample(const FieldSource& source) {
  return value_of(source.sample.*Member, Unit);
}
template <auto Part, auto Member, auto Unit>
Value of_part(const FieldSource& source) {
  return value_of(source.sample.*Part.*Member, Unit);
}
template <auto Member, auto Unit>
Value of_facts(const FieldSource& source) {
  return value_of(source.facts.*Member, Unit);
}

const MemorySample& memory(const FieldSource& source) {
  return source.mig != nullptr ? source.mig->memory : source.sample.memory;
}
template <auto Member, auto Unit>
Value of_memory(const FieldSource& source) {
  return value_of(memory(source).*Member, Unit);
}

// used / (total - reserved)
Value memory_ratio(const FieldSource& source) {
  const MemorySample& of = memory(source);
  if (!of.total_bytes || !of.used_bytes) return std::nullopt;
  const std::int64_t usable = *of.total_bytes - of.reserved_bytes.value_or(0);
  if (usable <= 0) return std::nullopt;
  return real(static_cast<double>(*of.used_bytes) / static_cast<double>(usable));
}

template <auto Member>
Value of_gpm(const FieldSource& source) {
  return value_of((source.mig != nullptr ? source.mig->gpm : source.sample.gpm).*Member);
}

// DCGM's own arithmetic: thousands of KiB each second, whole.
Value nvlink_bandwidth(const FieldSource& source) {
  if (!source.sample.nvlink.tx_bytes || !source.sample.nvlink.rx_bytes) return std::nullopt;
  return integer(source.gpu.nvlink_bandwidth);
}
Value nvlink_bytes_per_second(const FieldSource& source) {
  const auto rate = nvlink_bandwidth(source);
  if (!rate) return std::nullopt;
  return integer(rate->integer * 1000 * 1024);
}

// Not virtual: there is no licence to have.
Value vgpu_license(const FieldSource& source) {
  if (source.facts.virtualization_mode.value_or(0) == 2) return std::nullopt;
  return integer(0);
}

Value temperature_margin(const FieldSource& source) {
  if (!source.facts.temperature_slowdown_c || !source.sample.temperature_c) return std::nullopt;
  return integer(*source.facts.temperature_slowdown_c - *source.sample.temperature_c);
}

Value flag_of(const Reading<bool>& reading) {
  if (!reading) return std::nullopt;
  return integer(*reading ? 1 : 0);
}
Value remap_failed(const FieldSource& source) { return flag_of(source.sample.rows.has_failed); }
Value remap_pending(const FieldSource& source) { return flag_of(source.sample.rows.is_pending); }
Value retired_pending(const FieldSource& source) {
  return flag_of(source.sample.rows.retirement_pending);
}
Value persistence(const FieldSource& source) { return flag_of(source.facts.persistence_mode); }
Value ecc_current(const FieldSource& source) { return flag_of(source.facts.ecc_enabled); }
Value ecc_pending(const FieldSource& source) { return flag_of(source.facts.ecc_pending); }
Value mig_mode(const FieldSource& source) { return integer(source.facts.mig_enabled ? 1 : 0); }
Value mig_max(const FieldSource& source) { return integer(source.facts.mig_devices_max); }

// ---- texts -----------------------------------------------------------------------------------

using Text = std::optional<std::string>;

Text driver_version(const NodeFacts& node, const GpuFacts& /*gpu*/) { return node.driver_version; }
Text nvml_version(const NodeFacts& node, const GpuFacts& /*gpu*/) { return node.nvml_version; }
Text cuda_version(const NodeFacts& node, const GpuFacts& /*gpu*/) {
  return fmt::format("{}", node.cuda_major * 1000 + node.cuda_minor * 10);
}
Text name(const NodeFacts& /*node*/, const GpuFacts& gpu) { return gpu.name; }
Text brand(const NodeFacts& /*node*/, const GpuFacts& gpu) { return gpu.brand; }
Text uuid(const NodeFacts& /*node*/, const GpuFacts& gpu) { return gpu.uuid; }
Text bus_id(const NodeFacts& /*node*/, const GpuFacts& gpu) { return gpu.pci_bus_id; }
template <auto Member>
Text of_text(const NodeFacts& /*node*/, const GpuFacts& gpu) {
  return (gpu.*Member).optional();
}

// ---- the table -------------------------------------------------------------------------------

using enum FieldScope;
using enum FieldKind;
using Share = Field::Share;
using G = GpuSample;
using F = GpuFacts;
using M = MemorySample;
using P = GpmSample;
using E = nvml::EccSample;
using R = nvml::RowsSample;
using N = nvml::NvlinkSample;

constexpr Field gpu(int id, std::string_view name, Value (*get)(const FieldSource&)) {
  return {.id = id, .name = name, .number = get};
}
constexpr Field both(int id, std::string_view name, Value (*get)(const FieldSource&)) {
  return {.id = id, .name = name, .scope = Instance, .number = get};
}
constexpr Field shared(Field field, Share share, FieldValue (*unit)(std::int64_t)) {
  field.share = share;
  field.from_share = unit;
  return field;
}
constexpr Field label(int id, std::string_view name, Text (*get)(const NodeFacts&, const F&)) {
  return {.id = id, .name = name, .kind = Label, .text = get};
}
constexpr Field special(int id, std::string_view name, FieldKind kind) {
  return {.id = id, .name = name, .kind = kind};
}

constexpr auto kTable = std::to_array<Field>({
    // labels
    label(1, "DCGM_FI_DRIVER_VERSION", driver_version),
    label(1, "DCGM_FI_SYSTEM_DRIVER_VERSION", driver_version),
    label(2, "DCGM_FI_NVML_VERSION", nvml_version),
    label(4, "DCGM_FI_CUDA_DRIVER_VERSION", cuda_version),
    label(50, "DCGM_FI_DEV_NAME", name),
    label(51, "DCGM_FI_DEV_BRAND", brand),
    label(53, "DCGM_FI_DEV_SERIAL", of_text<&F::serial>),
    label(54, "DCGM_FI_DEV_UUID", uuid),
    label(57, "DCGM_FI_DEV_PCI_BUSID", bus_id),
    label(83, "DCGM_FI_DEV_INFOROM_IMAGE_VER", of_text<&F::inforom_version>),
    label(85, "DCGM_FI_DEV_VBIOS_VERSION", of_text<&F::vbios>),
    // modes
    gpu(66, "DCGM_FI_DEV_PERSISTENCE_MODE", persistence),
    gpu(67, "DCGM_FI_DEV_MIG_MODE", mig_mode),
    gpu(69, "DCGM_FI_DEV_MIG_MAX_SLICES", mig_max),
    gpu(300, "DCGM_FI_DEV_ECC_CURRENT", ecc_current),
    gpu(301, "DCGM_FI_DEV_ECC_PENDING", ecc_pending),
    // memory mapped by the CPU
    gpu(92, "DCGM_FI_DEV_BAR1_USED", of_sample<&G::bar1_used_bytes, mib_of_bytes>),
    gpu(93, "DCGM_FI_DEV_BAR1_FREE", of_sample<&G::bar1_free_bytes, mib_of_bytes>),
    gpu(1601, "DCGM_FI_DEV_BAR1_USED_BYTES", of_sample<&G::bar1_used_bytes, as_is>),
    gpu(1602, "DCGM_FI_DEV_BAR1_FREE_BYTES", of_sample<&G::bar1_free_bytes, as_is>),
    // clocks
    gpu(100, "DCGM_FI_DEV_SM_CLOCK", of_part<&G::clocks, &nvml::ClocksMhz::sm, as_is>),
    gpu(101, "DCGM_FI_DEV_MEM_CLOCK", of_part<&G::clocks, &nvml::ClocksMhz::memory, as_is>),
    gpu(102, "DCGM_FI_DEV_VIDEO_CLOCK", of_part<&G::clocks, &nvml::ClocksMhz::video, as_is>),
    gpu(1603, "DCGM_FI_DEV_SM_CLOCK_HERTZ",
        of_part<&G::clocks, &nvml::ClocksMhz::sm, hertz_of_mhz>),
    gpu(1604, "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ",
        of_part<&G::clocks, &nvml::ClocksMhz::memory, hertz_of_mhz>),
    gpu(1605, "DCGM_FI_DEV_VIDEO_CLOCK_HERTZ",
        of_part<&G::clocks, &nvml::ClocksMhz::video, hertz_of_mhz>),
    gpu(112, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", of_sample<&G::throttle_reasons, as_is>),
    gpu(112, "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", of_sample<&G::throttle_reasons, as_is>),
    gpu(190, "DCGM_FI_DEV_PSTATE", of_sample<&G::performance_state, as_is>),
    // heat
    gpu(140, "DCGM_FI_DEV_MEMORY_TEMP", of_sample<&G::memory_temperature_c, as_is>),
    gpu(140, "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", of_sample<&G::memory_temperature_c, as_is>),
    gpu(150, "DCGM_FI_DEV_GPU_TEMP", of_sample<&G::temperature_c, as_is>),
    gpu(150, "DCGM_FI_DEV_GPU_TEMP_CELSIUS", of_sample<&G::temperature_c, as_is>),
    gpu(153, "DCGM_FI_DEV_GPU_TEMP_LIMIT", temperature_margin),
    gpu(158, "DCGM_FI_DEV_SLOWDOWN_TEMP", of_facts<&F::temperature_slowdown_c, as_is>),
    gpu(159, "DCGM_FI_DEV_SHUTDOWN_TEMP", of_facts<&F::temperature_shutdown_c, as_is>),
    gpu(191, "DCGM_FI_DEV_FAN_SPEED", of_sample<&G::fan_percent, as_is>),
    gpu(1612, "DCGM_FI_DEV_FAN_SPEED_RATIO", of_sample<&G::fan_percent, ratio_of_percent>),
    // power
    gpu(155, "DCGM_FI_DEV_POWER_USAGE", of_sample<&G::power_mw, watts_of_mw>),
    gpu(155, "DCGM_FI_DEV_BOARD_POWER_WATTS", of_sample<&G::power_mw, watts_of_mw>),
    gpu(157, "DCGM_FI_DEV_POWER_USAGE_INSTANT", of_sample<&G::power_instant_mw, watts_of_mw>),
    gpu(156, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", of_sample<&G::energy_mj, as_is>),
    gpu(1611, "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", of_sample<&G::energy_mj, joules_of_mj>),
    gpu(160, "DCGM_FI_DEV_POWER_MGMT_LIMIT", of_facts<&F::power_limit_mw, watts_of_mw>),
    gpu(161, "DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN", of_facts<&F::power_limit_min_mw, watts_of_mw>),
    gpu(162, "DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", of_facts<&F::power_limit_max_mw, watts_of_mw>),
    gpu(163, "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", of_facts<&F::power_limit_default_mw, watts_of_mw>),
    // PCIe
    gpu(200, "DCGM_FI_DEV_PCIE_TX_THROUGHPUT", of_sample<&G::pcie_tx_bytes_per_s, kb_of_bytes>),
    gpu(201, "DCGM_FI_DEV_PCIE_RX_THROUGHPUT", of_sample<&G::pcie_rx_bytes_per_s, kb_of_bytes>),
    gpu(202, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", of_sample<&G::pcie_replays, as_is>),
    gpu(202, "DCGM_FI_DEV_PCIE_REPLAY_TOTAL", of_sample<&G::pcie_replays, as_is>),
    gpu(235, "DCGM_FI_DEV_PCIE_MAX_LINK_GEN", of_facts<&F::pcie_generation_max, as_is>),
    gpu(236, "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", of_facts<&F::pcie_width_max, as_is>),
    gpu(237, "DCGM_FI_DEV_PCIE_LINK_GEN", of_sample<&G::pcie_generation, as_is>),
    gpu(238, "DCGM_FI_DEV_PCIE_LINK_WIDTH", of_sample<&G::pcie_width, as_is>),
    // utilisation
    shared(gpu(203, "DCGM_FI_DEV_GPU_UTIL", of_sample<&G::gpu_percent, as_is>), Share::Sm, as_is),
    shared(gpu(1613, "DCGM_FI_DEV_GPU_UTIL_RATIO", of_sample<&G::gpu_percent, ratio_of_percent>),
           Share::Sm, ratio_of_percent),
    shared(gpu(204, "DCGM_FI_DEV_MEM_COPY_UTIL", of_sample<&G::memory_percent, as_is>),
           Share::MemoryCopy, as_is),
    shared(
        gpu(1614, "DCGM_FI_DEV_MEMORY_UTIL_RATIO", of_sample<&G::memory_percent, ratio_of_percent>),
        Share::MemoryCopy, ratio_of_percent),
    shared(gpu(206, "DCGM_FI_DEV_ENC_UTIL", of_sample<&G::encoder_percent, as_is>), Share::Encoder,
           as_is),
    shared(
        gpu(1615, "DCGM_FI_DEV_ENC_UTIL_RATIO", of_sample<&G::encoder_percent, ratio_of_percent>),
        Share::Encoder, ratio_of_percent),
    shared(gpu(207, "DCGM_FI_DEV_DEC_UTIL", of_sample<&G::decoder_percent, as_is>), Share::Decoder,
           as_is),
    shared(
        gpu(1616, "DCGM_FI_DEV_DEC_UTIL_RATIO", of_sample<&G::decoder_percent, ratio_of_percent>),
        Share::Decoder, ratio_of_percent),
    // errors
    special(230, "DCGM_FI_DEV_XID_ERRORS", XidLast),
    special(230, "DCGM_FI_DEV_XID_ERROR", XidLast),
    gpu(1523, "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", of_sample<&G::recovery_action, as_is>),
    gpu(310, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", of_part<&G::ecc, &E::corrected_volatile, as_is>),
    gpu(311, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", of_part<&G::ecc, &E::uncorrected_volatile, as_is>),
    gpu(312, "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", of_part<&G::ecc, &E::corrected_aggregate, as_is>),
    gpu(313, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", of_part<&G::ecc, &E::uncorrected_aggregate, as_is>),
    gpu(390, "DCGM_FI_DEV_RETIRED_SBE", of_part<&G::rows, &R::retired_single_bit, as_is>),
    gpu(390, "DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL",
        of_part<&G::rows, &R::retired_single_bit, as_is>),
    gpu(391, "DCGM_FI_DEV_RETIRED_DBE", of_part<&G::rows, &R::retired_double_bit, as_is>),
    gpu(391, "DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL",
        of_part<&G::rows, &R::retired_double_bit, as_is>),
    gpu(392, "DCGM_FI_DEV_RETIRED_PENDING", retired_pending),
    gpu(392, "DCGM_FI_DEV_PAGE_RETIRED_PENDING", retired_pending),
    gpu(393, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", of_part<&G::rows, &R::uncorrected, as_is>),
    gpu(393, "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL",
        of_part<&G::rows, &R::uncorrected, as_is>),
    gpu(394, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", of_part<&G::rows, &R::corrected, as_is>),
    gpu(394, "DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL", of_part<&G::rows, &R::corrected, as_is>),
    gpu(395, "DCGM_FI_DEV_ROW_REMAP_FAILURE", remap_failed),
    gpu(395, "DCGM_FI_DEV_ROW_REMAP_FAILED", remap_failed),
    gpu(396, "DCGM_FI_DEV_ROW_REMAP_PENDING", remap_pending),
    // time held back
    gpu(240, "DCGM_FI_DEV_POWER_VIOLATION", of_sample<&G::violation_power_ns, as_is>),
    gpu(241, "DCGM_FI_DEV_THERMAL_VIOLATION", of_sample<&G::violation_thermal_ns, as_is>),
    gpu(242, "DCGM_FI_DEV_SYNC_BOOST_VIOLATION", of_sample<&G::violation_sync_boost_ns, as_is>),
    gpu(243, "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", of_sample<&G::violation_board_limit_ns, as_is>),
    gpu(244, "DCGM_FI_DEV_LOW_UTIL_VIOLATION", of_sample<&G::violation_low_utilisation_ns, as_is>),
    gpu(245, "DCGM_FI_DEV_RELIABILITY_VIOLATION", of_sample<&G::violation_reliability_ns, as_is>),
    gpu(1617, "DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL",
        of_sample<&G::violation_power_ns, seconds_of_ns>),
    gpu(1618, "DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL",
        of_sample<&G::violation_thermal_ns, seconds_of_ns>),
    // memory
    both(250, "DCGM_FI_DEV_FB_TOTAL", of_memory<&M::total_bytes, mib_of_bytes>),
    both(251, "DCGM_FI_DEV_FB_FREE", of_memory<&M::free_bytes, mib_of_bytes>),
    shared(both(252, "DCGM_FI_DEV_FB_USED", of_memory<&M::used_bytes, mib_of_bytes>), Share::Memory,
           mib_of_bytes),
    both(253, "DCGM_FI_DEV_FB_RESERVED", of_memory<&M::reserved_bytes, mib_of_bytes>),
    both(254, "DCGM_FI_DEV_FB_USED_PERCENT", memory_ratio),
    both(254, "DCGM_FI_DEV_FB_USED_RATIO", memory_ratio),
    both(1625, "DCGM_FI_DEV_FB_CAPACITY_BYTES", of_memory<&M::total_bytes, as_is>),
    both(1626, "DCGM_FI_DEV_FB_FREE_BYTES", of_memory<&M::free_bytes, as_is>),
    shared(both(1627, "DCGM_FI_DEV_FB_USED_BYTES", of_memory<&M::used_bytes, as_is>), Share::Memory,
           as_is),
    both(1628, "DCGM_FI_DEV_FB_RESERVED_BYTES", of_memory<&M::reserved_bytes, as_is>),
    // NVLink
    gpu(409, "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
        of_part<&G::nvlink, &N::crc_flit_errors, as_is>),
    gpu(419, "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
        of_part<&G::nvlink, &N::crc_data_errors, as_is>),
    gpu(429, "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
        of_part<&G::nvlink, &N::replay_errors, as_is>),
    gpu(439, "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
        of_part<&G::nvlink, &N::recovery_errors, as_is>),
    gpu(449, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", nvlink_bandwidth),
    gpu(449, "DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", nvlink_bandwidth),
    gpu(1648, "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", nvlink_bytes_per_second),
    gpu(526, "DCGM_FI_DEV_VGPU_LICENSE_STATUS", vgpu_license),
    // profiling
    both(1001, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", of_gpm<&P::graphics_active>),
    both(1001, "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", of_gpm<&P::graphics_active>),
    both(1002, "DCGM_FI_PROF_SM_ACTIVE", of_gpm<&P::sm_active>),
    both(1002, "DCGM_FI_PROF_SM_UTIL_RATIO", of_gpm<&P::sm_active>),
    both(1003, "DCGM_FI_PROF_SM_OCCUPANCY", of_gpm<&P::sm_occupancy>),
    both(1003, "DCGM_FI_PROF_SM_OCCUPANCY_RATIO", of_gpm<&P::sm_occupancy>),
    both(1004, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", of_gpm<&P::tensor_active>),
    both(1004, "DCGM_FI_PROF_TENSOR_UTIL_RATIO", of_gpm<&P::tensor_active>),
    both(1005, "DCGM_FI_PROF_DRAM_ACTIVE", of_gpm<&P::dram_active>),
    both(1005, "DCGM_FI_PROF_DRAM_UTIL_RATIO", of_gpm<&P::dram_active>),
    both(1006, "DCGM_FI_PROF_PIPE_FP64_ACTIVE", of_gpm<&P::fp64_active>),
    both(1006, "DCGM_FI_PROF_FP64_UTIL_RATIO", of_gpm<&P::fp64_active>),
    both(1007, "DCGM_FI_PROF_PIPE_FP32_ACTIVE", of_gpm<&P::fp32_active>),
    both(1007, "DCGM_FI_PROF_FP32_UTIL_RATIO", of_gpm<&P::fp32_active>),
    both(1008, "DCGM_FI_PROF_PIPE_FP16_ACTIVE", of_gpm<&P::fp16_active>),
    both(1008, "DCGM_FI_PROF_FP16_UTIL_RATIO", of_gpm<&P::fp16_active>),
    both(1009, "DCGM_FI_PROF_PCIE_TX_BYTES", of_gpm<&P::pcie_tx_bytes_per_s>),
    both(1010, "DCGM_FI_PROF_PCIE_RX_BYTES", of_gpm<&P::pcie_rx_bytes_per_s>),
    both(1011, "DCGM_FI_PROF_NVLINK_TX_BYTES", of_gpm<&P::nvlink_tx_bytes_per_s>),
    both(1012, "DCGM_FI_PROF_NVLINK_RX_BYTES", of_gpm<&P::nvlink_rx_bytes_per_s>),
    both(1013, "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", of_gpm<&P::tensor_imma_active>),
    both(1013, "DCGM_FI_PROF_IMMA_UTIL_RATIO", of_gpm<&P::tensor_imma_active>),
    both(1014, "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", of_gpm<&P::tensor_hmma_active>),
    both(1014, "DCGM_FI_PROF_HMMA_UTIL_RATIO", of_gpm<&P::tensor_hmma_active>),
    both(1015, "DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", of_gpm<&P::tensor_dfma_active>),
    both(1015, "DCGM_FI_PROF_DFMA_UTIL_RATIO", of_gpm<&P::tensor_dfma_active>),
    both(1016, "DCGM_FI_PROF_PIPE_INT_ACTIVE", of_gpm<&P::integer_active>),
    both(1016, "DCGM_FI_PROF_INT_UTIL_RATIO", of_gpm<&P::integer_active>),
    // what dcgm-exporter makes itself
    special(9001, "DCGM_EXP_CLOCK_EVENTS_COUNT", ClockEventsCount),
    special(9002, "DCGM_EXP_CLOCK_EVENTS_TOTAL", ClockEventsTotal),
    special(9003, "DCGM_EXP_XID_ERRORS_COUNT", XidCount),
    special(9004, "DCGM_EXP_XID_ERRORS_TOTAL", XidTotal),
    special(9005, "DCGM_EXP_GPU_HEALTH_STATUS", HealthStatus),
    // names of version 1, in a few old dashboards
    gpu(100, "dcgm_sm_clock", of_part<&G::clocks, &nvml::ClocksMhz::sm, as_is>),
    gpu(101, "dcgm_memory_clock", of_part<&G::clocks, &nvml::ClocksMhz::memory, as_is>),
    gpu(140, "dcgm_memory_temp", of_sample<&G::memory_temperature_c, as_is>),
    gpu(150, "dcgm_gpu_temp", of_sample<&G::temperature_c, as_is>),
    gpu(155, "dcgm_power_usage", of_sample<&G::power_mw, watts_of_mw>),
    gpu(156, "dcgm_total_energy_consumption", of_sample<&G::energy_mj, as_is>),
    gpu(202, "dcgm_pcie_replay_counter", of_sample<&G::pcie_replays, as_is>),
    shared(gpu(203, "dcgm_gpu_utilization", of_sample<&G::gpu_percent, as_is>), Share::Sm, as_is),
    gpu(204, "dcgm_mem_copy_utilization", of_sample<&G::memory_percent, as_is>),
    gpu(206, "dcgm_enc_utilization", of_sample<&G::encoder_percent, as_is>),
    gpu(207, "dcgm_dec_utilization", of_sample<&G::decoder_percent, as_is>),
    special(230, "dcgm_xid_errors", XidLast),
    both(251, "dcgm_fb_free", of_memory<&M::free_bytes, mib_of_bytes>),
    shared(both(252, "dcgm_fb_used", of_memory<&M::used_bytes, mib_of_bytes>), Share::Memory,
           mib_of_bytes),
    gpu(449, "dcgm_nvlink_bandwidth_total", nvlink_bandwidth),
});

constexpr auto kFields = [] {
  auto sorted = kTable;
  std::ranges::sort(sorted, {}, &Field::name);
  return sorted;
}();
static_assert(std::ranges::adjacent_find(kFields, {}, &Field::name) == kFields.end());

// Families of DCGM that belong to other hardware, to single links, or to its profiling module.
constexpr std::string_view kElsewhere[] = {
    "DCGM_EXP_P2P_STATUS",
    "DCGM_FI_BIND_UNBIND_EVENT",
    "DCGM_FI_CUDA_VISIBLE",
    "DCGM_FI_DEV_APP_",
    "DCGM_FI_DEV_BAR1_CAPACITY",
    "DCGM_FI_DEV_BAR1_TOTAL",
    "DCGM_FI_DEV_C2C_",
    "DCGM_FI_DEV_CONNECTX_",
    "DCGM_FI_DEV_CPU_",
    "DCGM_FI_DEV_CUDA_",
    "DCGM_FI_DEV_DIAG_",
    "DCGM_FI_DEV_ECC_DBE_",
    "DCGM_FI_DEV_ECC_INFOROM_VER",
    "DCGM_FI_DEV_ECC_SBE_",
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT",
    "DCGM_FI_DEV_FABRIC_",
    "DCGM_FI_DEV_GPU_NVLINK_",
    "DCGM_FI_DEV_INFOROM_CONFIG",
    "DCGM_FI_DEV_MAX_",
    "DCGM_FI_DEV_MEM_AFFINITY_",
    "DCGM_FI_DEV_MODULE_POWER_",
    "DCGM_FI_DEV_NVLINK_",
    "DCGM_FI_DEV_NVSWITCH_",
    "DCGM_FI_DEV_OEM_INFOROM_VER",
    "DCGM_FI_DEV_P2P_",
    "DCGM_FI_DEV_POWER_INFOROM_VER",
    "DCGM_FI_DEV_PWR_SMOOTHING_",
    "DCGM_FI_DEV_SYSIO_",
    "DCGM_FI_DEV_VGPU_",
    "DCGM_FI_DEV_VIRTUAL_",
    "DCGM_FI_IMEX_",
    "DCGM_FI_PROCESS_NAME",
    "DCGM_FI_PROF_C2C_",
    "DCGM_FI_PROF_HOSTMEM_",
    "DCGM_FI_PROF_NVDEC",
    "DCGM_FI_PROF_NVJPG",
    "DCGM_FI_PROF_NVLINK_L",
    "DCGM_FI_PROF_NVOFA",
    "DCGM_FI_PROF_PEERMEM_",
    "DCGM_FI_SYNC_BOOST",
};

}  // namespace

std::span<const Field> fields() { return kFields; }

const Field* find_field(std::string_view name) {
  const auto* const at = std::ranges::lower_bound(kFields, name, {}, &Field::name);
  return at != kFields.end() && at->name == name ? &*at : nullptr;
}

bool is_known_elsewhere(std::string_view name) {
  return std::ranges::any_of(kElsewhere,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string_view clock_event_text(std::uint64_t bit) {
  static constexpr std::string_view kTexts[] = {"gpu_idle",    "clocks_setting", "power_cap",
                                                "hw_slowdown", "sync_boost",     "sw_thermal",
                                                "hw_thermal",  "hw_power_brake", "display_clocks"};
  return bit < std::size(kTexts) ? kTexts[bit] : "other";
}

}  // namespace jogak::agent
