// SPDX-License-Identifier: Apache-2.0
//
// One row per name. A getter is a reading and a unit.
#include "agent/exporter/fields.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"

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
template <auto Member>
Value clock_max(const FieldSource& source) {
  return value_of(source.facts.clocks_max.*Member, as_is);
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
  return integer(source.gpu.nvlink_rate.both);
}
template <auto Member>
Value nvlink_rate(const FieldSource& source) {
  if (!nvlink_bandwidth(source)) return std::nullopt;
  return integer(source.gpu.nvlink_rate.*Member);
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
Value gpm_support(const FieldSource& source) { return integer(source.facts.has_gpm ? 1 : 0); }
Value mig_max(const FieldSource& source) { return integer(source.facts.mig_devices_max); }

// DCGM packs the two numbers into one.
Value compute_capability(const FieldSource& source) {
  if (source.facts.compute_major == 0) return std::nullopt;
  return integer(source.facts.compute_major * 65536 + source.facts.compute_minor);
}
Value bar1_total(const FieldSource& source) {
  return source.facts.bar1_mib > 0 ? Value(integer(source.facts.bar1_mib)) : std::nullopt;
}
Value bar1_total_bytes(const FieldSource& source) {
  return source.facts.bar1_mib > 0 ? Value(integer(source.facts.bar1_mib * kMib)) : std::nullopt;
}

// ---- the fabric ------------------------------------------------------------------------------

// Nothing where this board has no fabric.
const nvml::FabricFacts* fabric_of(const GpuFacts& facts) {
  const bool is_there = facts.fabric && facts.fabric->state != nvml::FabricState::NotSupported;
  return is_there ? &*facts.fabric : nullptr;
}

// DCGM's numbers: 0 not supported, 1 not started, 2 in progress, 3 success, 4 failure.
Value fabric_manager_status(const FieldSource& source) {
  if (!source.facts.fabric) return std::nullopt;
  const nvml::FabricFacts& fabric = *source.facts.fabric;
  switch (fabric.state) {
    case nvml::FabricState::NotSupported:
      return integer(0);
    case nvml::FabricState::NotStarted:
      return integer(1);
    case nvml::FabricState::InProgress:
      return integer(2);
    case nvml::FabricState::Completed:
      break;
  }
  return integer(fabric.status == 0 ? 3 : 4);
}
Value fabric_manager_error(const FieldSource& source) {
  const nvml::FabricFacts* const fabric = fabric_of(source.facts);
  if (fabric == nullptr || fabric->state != nvml::FabricState::Completed) return std::nullopt;
  return integer(fabric->status);
}
Value fabric_clique(const FieldSource& source) {
  const nvml::FabricFacts* const fabric = fabric_of(source.facts);
  if (fabric == nullptr || fabric->cluster_uuid.empty()) return std::nullopt;
  return integer(fabric->clique_id);
}
Value fabric_health_mask(const FieldSource& source) {
  const nvml::FabricFacts* const fabric = fabric_of(source.facts);
  return fabric == nullptr ? std::nullopt : Value(integer(fabric->health_mask));
}
Value fabric_health_summary(const FieldSource& source) {
  const nvml::FabricFacts* const fabric = fabric_of(source.facts);
  return fabric == nullptr ? std::nullopt : Value(integer(fabric->health_summary));
}

// ---- single engines and links ----------------------------------------------------------------

template <auto Member>
Value of_engine(const FieldSource& source) {
  const GpmSample& gpm = source.mig != nullptr ? source.mig->gpm : source.sample.gpm;
  const auto at = static_cast<std::size_t>(source.part);
  return at < (gpm.*Member).size() ? value_of((gpm.*Member)[at]) : std::nullopt;
}
template <auto Member>
Value of_link(const FieldSource& source) {
  const auto& links = source.sample.nvlink.links;
  const auto at = static_cast<std::size_t>(source.part);
  return at < links.size() ? value_of(links[at].*Member, as_is) : std::nullopt;
}
template <auto Member>
Value of_link_rate(const FieldSource& source) {
  const auto& links = source.sample.nvlink.links;
  const auto at = static_cast<std::size_t>(source.part);
  if (source.gpu.link_rates == nullptr || at >= source.gpu.link_rates->size()) return std::nullopt;
  if (at >= links.size() || !links[at].tx_bytes || !links[at].rx_bytes) return std::nullopt;
  return integer((*source.gpu.link_rates)[at].*Member);
}

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
Text fabric_cluster(const NodeFacts& /*node*/, const GpuFacts& gpu) {
  const nvml::FabricFacts* const fabric = fabric_of(gpu);
  return fabric == nullptr ? Text() : Text(fabric->cluster_uuid);
}
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
using H = nvml::HeldSample;

using Getter = Value (*)(const FieldSource&);

Field gpu(int id, std::string name, Getter get) {
  return {.id = id, .name = std::move(name), .number = get};
}
Field both(int id, std::string name, Getter get) {
  return {.id = id, .name = std::move(name), .scope = Instance, .number = get};
}
// Of what does not change while the GPU stays as it is.
Field fact(int id, std::string name, Getter get) {
  Field field = gpu(id, std::move(name), get);
  field.is_fact = true;
  return field;
}
Field shared(Field field, Share share, FieldValue (*unit)(std::int64_t)) {
  field.share = share;
  field.from_share = unit;
  return field;
}
Field costs(FieldCost cost, Field field) {
  field.cost = cost;
  return field;
}
Field gpm(int id, std::string name, Getter get) {
  return costs(FieldCost::Gpm, both(id, std::move(name), get));
}
// Of what goes in and out of the board: nobody measures which instance it was for.
Field gpm_of_board(int id, std::string name, Getter get) {
  Field field = gpm(id, std::move(name), get);
  field.scope = Board;
  return field;
}
Field held(int id, std::string name, Getter get) {
  return costs(FieldCost::Held, gpu(id, std::move(name), get));
}
Field label(int id, std::string name, Text (*get)(const NodeFacts&, const F&)) {
  return {.id = id, .name = std::move(name), .kind = Label, .text = get};
}
Field special(int id, std::string name, FieldKind kind) {
  return {.id = id, .name = std::move(name), .kind = kind};
}

std::vector<Field> label_fields() {
  return {
      // labels
      label(1, "DCGM_FI_DRIVER_VERSION", driver_version),
      label(1, "DCGM_FI_SYSTEM_DRIVER_VERSION", driver_version),
      label(2, "DCGM_FI_NVML_VERSION", nvml_version),
      label(2, "DCGM_FI_SYSTEM_NVML_VERSION", nvml_version),
      label(5, "DCGM_FI_CUDA_DRIVER_VERSION", cuda_version),
      label(50, "DCGM_FI_DEV_NAME", name),
      label(50, "DCGM_FI_DEV_GPU_NAME", name),
      label(51, "DCGM_FI_DEV_BRAND", brand),
      label(51, "DCGM_FI_DEV_GPU_BRAND", brand),
      label(53, "DCGM_FI_DEV_SERIAL", of_text<&F::serial>),
      label(53, "DCGM_FI_DEV_BOARD_SERIAL", of_text<&F::serial>),
      label(54, "DCGM_FI_DEV_UUID", uuid),
      label(54, "DCGM_FI_DEV_GPU_UUID", uuid),
      label(56, "DCGM_FI_DEV_OEM_INFOROM_VER", of_text<&F::inforom_oem>),
      label(56, "DCGM_FI_DEV_INFOROM_OEM_VERSION", of_text<&F::inforom_oem>),
      label(57, "DCGM_FI_DEV_PCI_BUSID", bus_id),
      label(57, "DCGM_FI_DEV_PCI_BUS_ID", bus_id),
      label(80, "DCGM_FI_DEV_ECC_INFOROM_VER", of_text<&F::inforom_ecc>),
      label(80, "DCGM_FI_DEV_INFOROM_ECC_VERSION", of_text<&F::inforom_ecc>),
      label(81, "DCGM_FI_DEV_POWER_INFOROM_VER", of_text<&F::inforom_power>),
      label(81, "DCGM_FI_DEV_INFOROM_POWER_VERSION", of_text<&F::inforom_power>),
      label(82, "DCGM_FI_DEV_INFOROM_IMAGE_VER", of_text<&F::inforom_version>),
      label(82, "DCGM_FI_DEV_INFOROM_IMAGE_VERSION", of_text<&F::inforom_version>),
      label(85, "DCGM_FI_DEV_VBIOS_VERSION", of_text<&F::vbios>),
      label(172, "DCGM_FI_DEV_FABRIC_CLUSTER_UUID", fabric_cluster),
  };
}

std::vector<Field> mode_fields() {
  return {
      // modes
      fact(55, "DCGM_FI_DEV_MINOR_NUMBER", of_facts<&F::minor, as_is>),
      fact(55, "DCGM_FI_DEV_GPU_MINOR_NUMBER", of_facts<&F::minor, as_is>),
      fact(63, "DCGM_FI_DEV_CUDA_COMPUTE_CAPABILITY", compute_capability),
      fact(63, "DCGM_FI_CUDA_GPU_COMPUTE_CAPABILITY", compute_capability),
      fact(65, "DCGM_FI_DEV_COMPUTE_MODE", of_facts<&F::compute_mode, as_is>),
      fact(65, "DCGM_FI_DEV_GPU_COMPUTE_MODE", of_facts<&F::compute_mode, as_is>),
      fact(66, "DCGM_FI_DEV_PERSISTENCE_MODE", persistence),
      fact(66, "DCGM_FI_DEV_GPU_PERSISTENCE_MODE", persistence),
      fact(67, "DCGM_FI_DEV_MIG_MODE", mig_mode),
      fact(69, "DCGM_FI_DEV_MIG_MAX_SLICES", mig_max),
      fact(94, "DCGM_FI_DEV_GPM_SUPPORT", gpm_support),
      fact(300, "DCGM_FI_DEV_ECC_CURRENT", ecc_current),
      fact(300, "DCGM_FI_DEV_ECC_MODE", ecc_current),
      fact(301, "DCGM_FI_DEV_ECC_PENDING", ecc_pending),
      fact(500, "DCGM_FI_DEV_VIRTUAL_MODE", of_facts<&F::virtualization_mode, as_is>),
      fact(500, "DCGM_FI_DEV_GPU_VIRTUAL_MODE", of_facts<&F::virtualization_mode, as_is>),
      // the fabric
      fact(170, "DCGM_FI_DEV_FABRIC_MANAGER_STATUS", fabric_manager_status),
      fact(171, "DCGM_FI_DEV_FABRIC_MANAGER_ERROR_CODE", fabric_manager_error),
      fact(171, "DCGM_FI_DEV_FABRIC_MANAGER_ERROR", fabric_manager_error),
      fact(173, "DCGM_FI_DEV_FABRIC_CLIQUE_ID", fabric_clique),
      fact(174, "DCGM_FI_DEV_FABRIC_HEALTH_MASK", fabric_health_mask),
      fact(175, "DCGM_FI_DEV_FABRIC_HEALTH_SUMMARY", fabric_health_summary),
      // memory mapped by the CPU
      fact(90, "DCGM_FI_DEV_BAR1_TOTAL", bar1_total),
      fact(1600, "DCGM_FI_DEV_BAR1_CAPACITY_BYTES", bar1_total_bytes),
      gpu(92, "DCGM_FI_DEV_BAR1_USED", of_sample<&G::bar1_used_bytes, mib_of_bytes>),
      gpu(93, "DCGM_FI_DEV_BAR1_FREE", of_sample<&G::bar1_free_bytes, mib_of_bytes>),
      gpu(1601, "DCGM_FI_DEV_BAR1_USED_BYTES", of_sample<&G::bar1_used_bytes, as_is>),
      gpu(1602, "DCGM_FI_DEV_BAR1_FREE_BYTES", of_sample<&G::bar1_free_bytes, as_is>),
  };
}

std::vector<Field> board_fields() {
  return {
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
      fact(113, "DCGM_FI_DEV_MAX_SM_CLOCK", clock_max<&nvml::ClocksMhz::sm>),
      fact(114, "DCGM_FI_DEV_MAX_MEM_CLOCK", clock_max<&nvml::ClocksMhz::memory>),
      fact(115, "DCGM_FI_DEV_MAX_VIDEO_CLOCK", clock_max<&nvml::ClocksMhz::video>),
      gpu(190, "DCGM_FI_DEV_GPU_PSTATE", of_sample<&G::performance_state, as_is>),
      gpu(190, "DCGM_FI_DEV_PSTATE", of_sample<&G::performance_state, as_is>),
      // heat
      gpu(140, "DCGM_FI_DEV_MEMORY_TEMP", of_sample<&G::memory_temperature_c, as_is>),
      gpu(140, "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", of_sample<&G::memory_temperature_c, as_is>),
      gpu(150, "DCGM_FI_DEV_GPU_TEMP", of_sample<&G::temperature_c, as_is>),
      gpu(150, "DCGM_FI_DEV_GPU_TEMP_CELSIUS", of_sample<&G::temperature_c, as_is>),
      fact(151, "DCGM_FI_DEV_MEM_MAX_OP_TEMP", of_facts<&F::temperature_memory_max_c, as_is>),
      fact(151, "DCGM_FI_DEV_MEMORY_MAX_OP_TEMP_CELSIUS",
           of_facts<&F::temperature_memory_max_c, as_is>),
      fact(152, "DCGM_FI_DEV_GPU_MAX_OP_TEMP", of_facts<&F::temperature_gpu_max_c, as_is>),
      fact(152, "DCGM_FI_DEV_GPU_MAX_OP_TEMP_CELSIUS", of_facts<&F::temperature_gpu_max_c, as_is>),
      gpu(153, "DCGM_FI_DEV_GPU_TEMP_LIMIT", temperature_margin),
      gpu(153, "DCGM_FI_DEV_GPU_TEMP_MARGIN_CELSIUS", temperature_margin),
      fact(158, "DCGM_FI_DEV_GPU_TEMP_SLOWDOWN_CELSIUS",
           of_facts<&F::temperature_slowdown_c, as_is>),
      fact(159, "DCGM_FI_DEV_GPU_TEMP_SHUTDOWN_CELSIUS",
           of_facts<&F::temperature_shutdown_c, as_is>),
      fact(158, "DCGM_FI_DEV_SLOWDOWN_TEMP", of_facts<&F::temperature_slowdown_c, as_is>),
      fact(159, "DCGM_FI_DEV_SHUTDOWN_TEMP", of_facts<&F::temperature_shutdown_c, as_is>),
      gpu(191, "DCGM_FI_DEV_FAN_SPEED", of_sample<&G::fan_percent, as_is>),
      gpu(1612, "DCGM_FI_DEV_FAN_SPEED_RATIO", of_sample<&G::fan_percent, ratio_of_percent>),
      // power
      gpu(155, "DCGM_FI_DEV_POWER_USAGE", of_sample<&G::power_mw, watts_of_mw>),
      gpu(155, "DCGM_FI_DEV_BOARD_POWER_WATTS", of_sample<&G::power_mw, watts_of_mw>),
      gpu(157, "DCGM_FI_DEV_POWER_USAGE_INSTANT", of_sample<&G::power_instant_mw, watts_of_mw>),
      gpu(156, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", of_sample<&G::energy_mj, as_is>),
      gpu(1611, "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", of_sample<&G::energy_mj, joules_of_mj>),
      gpu(157, "DCGM_FI_DEV_BOARD_POWER_RAW_WATTS", of_sample<&G::power_instant_mw, watts_of_mw>),
      fact(160, "DCGM_FI_DEV_POWER_MGMT_LIMIT",
           of_facts<&F::power_limit_requested_mw, watts_of_mw>),
      fact(160, "DCGM_FI_DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS",
           of_facts<&F::power_limit_requested_mw, watts_of_mw>),
      fact(161, "DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN", of_facts<&F::power_limit_min_mw, watts_of_mw>),
      fact(161, "DCGM_FI_DEV_BOARD_POWER_LIMIT_MIN_WATTS",
           of_facts<&F::power_limit_min_mw, watts_of_mw>),
      fact(162, "DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", of_facts<&F::power_limit_max_mw, watts_of_mw>),
      fact(162, "DCGM_FI_DEV_BOARD_POWER_LIMIT_MAX_WATTS",
           of_facts<&F::power_limit_max_mw, watts_of_mw>),
      fact(163, "DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF",
           of_facts<&F::power_limit_default_mw, watts_of_mw>),
      fact(163, "DCGM_FI_DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS",
           of_facts<&F::power_limit_default_mw, watts_of_mw>),
      fact(164, "DCGM_FI_DEV_ENFORCED_POWER_LIMIT", of_facts<&F::power_limit_mw, watts_of_mw>),
      fact(164, "DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS",
           of_facts<&F::power_limit_mw, watts_of_mw>),
      // PCIe
      costs(FieldCost::Pcie, gpu(200, "DCGM_FI_DEV_PCIE_TX_THROUGHPUT",
                                 of_sample<&G::pcie_tx_bytes_per_s, kb_of_bytes>)),
      costs(FieldCost::Pcie, gpu(201, "DCGM_FI_DEV_PCIE_RX_THROUGHPUT",
                                 of_sample<&G::pcie_rx_bytes_per_s, kb_of_bytes>)),
      gpu(202, "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", of_sample<&G::pcie_replays, as_is>),
      gpu(202, "DCGM_FI_DEV_PCIE_REPLAY_TOTAL", of_sample<&G::pcie_replays, as_is>),
      fact(235, "DCGM_FI_DEV_PCIE_MAX_LINK_GEN", of_facts<&F::pcie_generation_max, as_is>),
      fact(236, "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", of_facts<&F::pcie_width_max, as_is>),
      gpu(237, "DCGM_FI_DEV_PCIE_LINK_GEN", of_sample<&G::pcie_generation, as_is>),
      gpu(238, "DCGM_FI_DEV_PCIE_LINK_WIDTH", of_sample<&G::pcie_width, as_is>),
  };
}

std::vector<Field> use_fields() {
  return {
      // utilisation
      shared(gpu(203, "DCGM_FI_DEV_GPU_UTIL", of_sample<&G::gpu_percent, as_is>), Share::Sm, as_is),
      shared(gpu(1613, "DCGM_FI_DEV_GPU_UTIL_RATIO", of_sample<&G::gpu_percent, ratio_of_percent>),
             Share::Sm, ratio_of_percent),
      shared(gpu(204, "DCGM_FI_DEV_MEM_COPY_UTIL", of_sample<&G::memory_percent, as_is>),
             Share::MemoryCopy, as_is),
      shared(gpu(1614, "DCGM_FI_DEV_MEMORY_UTIL_RATIO",
                 of_sample<&G::memory_percent, ratio_of_percent>),
             Share::MemoryCopy, ratio_of_percent),
      shared(gpu(206, "DCGM_FI_DEV_ENC_UTIL", of_sample<&G::encoder_percent, as_is>),
             Share::Encoder, as_is),
      shared(
          gpu(1615, "DCGM_FI_DEV_ENC_UTIL_RATIO", of_sample<&G::encoder_percent, ratio_of_percent>),
          Share::Encoder, ratio_of_percent),
      shared(gpu(207, "DCGM_FI_DEV_DEC_UTIL", of_sample<&G::decoder_percent, as_is>),
             Share::Decoder, as_is),
      shared(
          gpu(1616, "DCGM_FI_DEV_DEC_UTIL_RATIO", of_sample<&G::decoder_percent, ratio_of_percent>),
          Share::Decoder, ratio_of_percent),
      // memory
      both(250, "DCGM_FI_DEV_FB_TOTAL", of_memory<&M::total_bytes, mib_of_bytes>),
      both(251, "DCGM_FI_DEV_FB_FREE", of_memory<&M::free_bytes, mib_of_bytes>),
      shared(both(252, "DCGM_FI_DEV_FB_USED", of_memory<&M::used_bytes, mib_of_bytes>),
             Share::Memory, mib_of_bytes),
      both(253, "DCGM_FI_DEV_FB_RESERVED", of_memory<&M::reserved_bytes, mib_of_bytes>),
      both(254, "DCGM_FI_DEV_FB_USED_PERCENT", memory_ratio),
      both(254, "DCGM_FI_DEV_FB_USED_RATIO", memory_ratio),
      both(1625, "DCGM_FI_DEV_FB_CAPACITY_BYTES", of_memory<&M::total_bytes, as_is>),
      both(1626, "DCGM_FI_DEV_FB_FREE_BYTES", of_memory<&M::free_bytes, as_is>),
      shared(both(1627, "DCGM_FI_DEV_FB_USED_BYTES", of_memory<&M::used_bytes, as_is>),
             Share::Memory, as_is),
      both(1628, "DCGM_FI_DEV_FB_RESERVED_BYTES", of_memory<&M::reserved_bytes, as_is>),
  };
}

std::vector<Field> error_fields() {
  return {
      // errors
      special(230, "DCGM_FI_DEV_XID_ERRORS", XidLast),
      special(230, "DCGM_FI_DEV_XID_ERROR", XidLast),
      gpu(1523, "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", of_sample<&G::recovery_action, as_is>),
      gpu(1523, "DCGM_FI_DEV_GPU_RECOVERY_ACTION", of_sample<&G::recovery_action, as_is>),
      gpu(310, "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", of_part<&G::ecc, &E::corrected_volatile, as_is>),
      gpu(311, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", of_part<&G::ecc, &E::uncorrected_volatile, as_is>),
      gpu(312, "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", of_part<&G::ecc, &E::corrected_aggregate, as_is>),
      gpu(313, "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", of_part<&G::ecc, &E::uncorrected_aggregate, as_is>),
      gpu(385, "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_MAX", of_part<&G::rows, &R::banks_max, as_is>),
      gpu(385, "DCGM_FI_DEV_BANK_REMAP_AVAIL_MAX", of_part<&G::rows, &R::banks_max, as_is>),
      gpu(386, "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_HIGH", of_part<&G::rows, &R::banks_high, as_is>),
      gpu(386, "DCGM_FI_DEV_BANK_REMAP_AVAIL_HIGH", of_part<&G::rows, &R::banks_high, as_is>),
      gpu(387, "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_PARTIAL",
          of_part<&G::rows, &R::banks_partial, as_is>),
      gpu(387, "DCGM_FI_DEV_BANK_REMAP_AVAIL_PARTIAL", of_part<&G::rows, &R::banks_partial, as_is>),
      gpu(388, "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_LOW", of_part<&G::rows, &R::banks_low, as_is>),
      gpu(388, "DCGM_FI_DEV_BANK_REMAP_AVAIL_LOW", of_part<&G::rows, &R::banks_low, as_is>),
      gpu(389, "DCGM_FI_DEV_BANKS_REMAP_ROWS_AVAIL_NONE", of_part<&G::rows, &R::banks_none, as_is>),
      gpu(389, "DCGM_FI_DEV_BANK_REMAP_AVAIL_NONE", of_part<&G::rows, &R::banks_none, as_is>),
      gpu(390, "DCGM_FI_DEV_RETIRED_SBE", of_part<&G::rows, &R::retired_single_bit, as_is>),
      gpu(390, "DCGM_FI_DEV_PAGE_RETIRED_SBE_TOTAL",
          of_part<&G::rows, &R::retired_single_bit, as_is>),
      gpu(391, "DCGM_FI_DEV_RETIRED_DBE", of_part<&G::rows, &R::retired_double_bit, as_is>),
      gpu(391, "DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL",
          of_part<&G::rows, &R::retired_double_bit, as_is>),
      gpu(392, "DCGM_FI_DEV_RETIRED_PENDING", retired_pending),
      gpu(392, "DCGM_FI_DEV_PAGE_RETIRED_PENDING", retired_pending),
      gpu(393, "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
          of_part<&G::rows, &R::uncorrected, as_is>),
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
      gpu(244, "DCGM_FI_DEV_LOW_UTIL_VIOLATION",
          of_sample<&G::violation_low_utilisation_ns, as_is>),
      gpu(245, "DCGM_FI_DEV_RELIABILITY_VIOLATION", of_sample<&G::violation_reliability_ns, as_is>),
      gpu(1617, "DCGM_FI_DEV_GPU_POWER_THROTTLE_SECONDS_TOTAL",
          of_sample<&G::violation_power_ns, seconds_of_ns>),
      gpu(1618, "DCGM_FI_DEV_GPU_THERMAL_THROTTLE_SECONDS_TOTAL",
          of_sample<&G::violation_thermal_ns, seconds_of_ns>),
      held(246, "DCGM_FI_DEV_TOTAL_APP_CLOCKS_VIOLATION",
           of_part<&G::held, &H::app_clocks_ns, as_is>),
      held(247, "DCGM_FI_DEV_TOTAL_BASE_CLOCKS_VIOLATION",
           of_part<&G::held, &H::base_clocks_ns, as_is>),
      held(1420, "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS",
           of_part<&G::held, &H::power_cap_ns, as_is>),
      held(1421, "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_COUNT_NS",
           of_part<&G::held, &H::sync_boost_ns, as_is>),
      held(1422, "DCGM_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS",
           of_part<&G::held, &H::sw_thermal_ns, as_is>),
      held(1423, "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS",
           of_part<&G::held, &H::hw_thermal_ns, as_is>),
      held(1424, "DCGM_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS",
           of_part<&G::held, &H::power_brake_ns, as_is>),
  };
}

std::vector<Field> link_fields() {
  return {
      // NVLink
      gpu(409, "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
          of_part<&G::nvlink, &N::crc_flit_errors, as_is>),
      gpu(409, "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL",
          of_part<&G::nvlink, &N::crc_flit_errors, as_is>),
      gpu(419, "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
          of_part<&G::nvlink, &N::crc_data_errors, as_is>),
      gpu(419, "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_TOTAL",
          of_part<&G::nvlink, &N::crc_data_errors, as_is>),
      gpu(429, "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
          of_part<&G::nvlink, &N::replay_errors, as_is>),
      gpu(429, "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_TOTAL",
          of_part<&G::nvlink, &N::replay_errors, as_is>),
      gpu(439, "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
          of_part<&G::nvlink, &N::recovery_errors, as_is>),
      gpu(439, "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_TOTAL",
          of_part<&G::nvlink, &N::recovery_errors, as_is>),
      gpu(843, "DCGM_FI_DEV_NVLINK_TX_BANDWIDTH_TOTAL", nvlink_rate<&LinkRate::tx>),
      gpu(843, "DCGM_FI_DEV_NVLINK_TX_THROUGHPUT_TOTAL", nvlink_rate<&LinkRate::tx>),
      gpu(897, "DCGM_FI_DEV_NVLINK_RX_BANDWIDTH_TOTAL", nvlink_rate<&LinkRate::rx>),
      gpu(897, "DCGM_FI_DEV_NVLINK_RX_THROUGHPUT_TOTAL", nvlink_rate<&LinkRate::rx>),
      gpu(449, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", nvlink_bandwidth),
      gpu(449, "DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL", nvlink_bandwidth),
      gpu(1648, "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", nvlink_bytes_per_second),
      gpu(526, "DCGM_FI_DEV_VGPU_LICENSE_STATUS", vgpu_license),
  };
}

std::vector<Field> profiling_fields() {
  return {
      // profiling
      gpm(1001, "DCGM_FI_PROF_GR_ENGINE_ACTIVE", of_gpm<&P::graphics_active>),
      gpm(1001, "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", of_gpm<&P::graphics_active>),
      gpm(1002, "DCGM_FI_PROF_SM_ACTIVE", of_gpm<&P::sm_active>),
      gpm(1002, "DCGM_FI_PROF_SM_UTIL_RATIO", of_gpm<&P::sm_active>),
      gpm(1003, "DCGM_FI_PROF_SM_OCCUPANCY", of_gpm<&P::sm_occupancy>),
      gpm(1003, "DCGM_FI_PROF_SM_OCCUPANCY_RATIO", of_gpm<&P::sm_occupancy>),
      gpm(1004, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", of_gpm<&P::tensor_active>),
      gpm(1004, "DCGM_FI_PROF_TENSOR_UTIL_RATIO", of_gpm<&P::tensor_active>),
      gpm(1005, "DCGM_FI_PROF_DRAM_ACTIVE", of_gpm<&P::dram_active>),
      gpm(1005, "DCGM_FI_PROF_DRAM_UTIL_RATIO", of_gpm<&P::dram_active>),
      gpm(1006, "DCGM_FI_PROF_PIPE_FP64_ACTIVE", of_gpm<&P::fp64_active>),
      gpm(1006, "DCGM_FI_PROF_FP64_UTIL_RATIO", of_gpm<&P::fp64_active>),
      gpm(1007, "DCGM_FI_PROF_PIPE_FP32_ACTIVE", of_gpm<&P::fp32_active>),
      gpm(1007, "DCGM_FI_PROF_FP32_UTIL_RATIO", of_gpm<&P::fp32_active>),
      gpm(1008, "DCGM_FI_PROF_PIPE_FP16_ACTIVE", of_gpm<&P::fp16_active>),
      gpm(1008, "DCGM_FI_PROF_FP16_UTIL_RATIO", of_gpm<&P::fp16_active>),
      gpm_of_board(1009, "DCGM_FI_PROF_PCIE_TX_BYTES", of_gpm<&P::pcie_tx_bytes_per_s>),
      gpm_of_board(1010, "DCGM_FI_PROF_PCIE_RX_BYTES", of_gpm<&P::pcie_rx_bytes_per_s>),
      gpm_of_board(1011, "DCGM_FI_PROF_NVLINK_TX_BYTES", of_gpm<&P::nvlink_tx_bytes_per_s>),
      gpm_of_board(1012, "DCGM_FI_PROF_NVLINK_RX_BYTES", of_gpm<&P::nvlink_rx_bytes_per_s>),
      gpm(1013, "DCGM_FI_PROF_PIPE_TENSOR_IMMA_ACTIVE", of_gpm<&P::tensor_imma_active>),
      gpm(1013, "DCGM_FI_PROF_IMMA_UTIL_RATIO", of_gpm<&P::tensor_imma_active>),
      gpm(1014, "DCGM_FI_PROF_PIPE_TENSOR_HMMA_ACTIVE", of_gpm<&P::tensor_hmma_active>),
      gpm(1014, "DCGM_FI_PROF_HMMA_UTIL_RATIO", of_gpm<&P::tensor_hmma_active>),
      gpm(1015, "DCGM_FI_PROF_PIPE_TENSOR_DFMA_ACTIVE", of_gpm<&P::tensor_dfma_active>),
      gpm(1015, "DCGM_FI_PROF_DFMA_UTIL_RATIO", of_gpm<&P::tensor_dfma_active>),
      gpm(1016, "DCGM_FI_PROF_PIPE_INT_ACTIVE", of_gpm<&P::integer_active>),
      gpm(1016, "DCGM_FI_PROF_INT_UTIL_RATIO", of_gpm<&P::integer_active>),
  };
}

std::vector<Field> other_fields() {
  return {
      // what dcgm-exporter makes itself
      special(9001, "DCGM_EXP_CLOCK_EVENTS_COUNT", ClockEventsCount),
      special(9002, "DCGM_EXP_CLOCK_EVENTS_TOTAL", ClockEventsTotal),
      special(9003, "DCGM_EXP_XID_ERRORS_COUNT", XidCount),
      special(9004, "DCGM_EXP_XID_ERRORS_TOTAL", XidTotal),
      special(9005, "DCGM_EXP_GPU_HEALTH_STATUS", HealthStatus),
      special(9006, "DCGM_EXP_P2P_STATUS", P2pStatus),
  };
}

// The ids of DCGM are not in one row: the first links have their own, and so on.
constexpr int kLinks = 18;
constexpr int kCrcFlitIds[kLinks] = {400, 401, 402, 403, 404, 405, 451, 452, 453,
                                     454, 455, 456, 406, 407, 408, 481, 482, 483};
constexpr int kCrcDataIds[kLinks] = {410, 411, 412, 413, 414, 415, 457, 458, 459,
                                     460, 461, 462, 416, 417, 418, 484, 485, 486};
constexpr int kReplayIds[kLinks] = {420, 421, 422, 423, 424, 425, 463, 464, 465,
                                    466, 467, 468, 426, 427, 428, 487, 488, 489};
constexpr int kRecoveryIds[kLinks] = {430, 431, 432, 433, 434, 435, 469, 470, 471,
                                      472, 473, 474, 436, 437, 438, 491, 492, 493};
constexpr int kBandwidthIds[kLinks] = {440, 441, 442, 443, 444, 445, 475, 476, 477,
                                       478, 479, 480, 446, 447, 448, 494, 495, 496};

std::vector<Field> single_link_fields() {
  using L = nvml::LinkCounters;
  std::vector<Field> all;
  const auto add = [&](int link, int id, std::string name, Getter get, FieldCost cost) {
    Field field = costs(cost, gpu(id, std::move(name), get));
    if (cost == FieldCost::GpmLinks) field.scope = Board;
    field.part = link;
    all.push_back(std::move(field));
  };
  for (int link = 0; link < kLinks; ++link) {
    const auto errors = [&](std::string_view kind, const int(&ids)[kLinks], Getter get) {
      add(link, ids[link], fmt::format("DCGM_FI_DEV_NVLINK_{}_ERROR_COUNT_L{}", kind, link), get,
          FieldCost::Links);
      add(link, ids[link], fmt::format("DCGM_FI_DEV_NVLINK_{}_ERROR_L{}_TOTAL", kind, link), get,
          FieldCost::Links);
    };
    errors("CRC_FLIT", kCrcFlitIds, of_link<&L::crc_flit_errors>);
    errors("CRC_DATA", kCrcDataIds, of_link<&L::crc_data_errors>);
    errors("REPLAY", kReplayIds, of_link<&L::replay_errors>);
    errors("RECOVERY", kRecoveryIds, of_link<&L::recovery_errors>);
    for (const std::string_view word : {"BANDWIDTH", "THROUGHPUT"}) {
      const auto rate = [&](std::string_view way, int id, Getter get) {
        add(link, id, fmt::format("DCGM_FI_DEV_NVLINK_{}{}_L{}", way, word, link), get,
            FieldCost::Links);
      };
      rate("", kBandwidthIds[link], of_link_rate<&LinkRate::both>);
      rate("TX_", 825 + link, of_link_rate<&LinkRate::tx>);
      rate("RX_", 879 + link, of_link_rate<&LinkRate::rx>);
    }
    add(link, 1040 + 2 * link, fmt::format("DCGM_FI_PROF_NVLINK_L{}_TX_BYTES", link),
        of_engine<&P::link_tx_bytes_per_s>, FieldCost::GpmLinks);
    add(link, 1041 + 2 * link, fmt::format("DCGM_FI_PROF_NVLINK_L{}_RX_BYTES", link),
        of_engine<&P::link_rx_bytes_per_s>, FieldCost::GpmLinks);
  }
  return all;
}

std::vector<Field> engine_fields() {
  std::vector<Field> all;
  const auto add = [&](std::string_view engine, int first_id, int count, Getter get) {
    for (int i = 0; i < count; ++i) {
      for (const std::string& name : {fmt::format("DCGM_FI_PROF_{}{}_ACTIVE", engine, i),
                                      fmt::format("DCGM_FI_PROF_{}_UTIL_{}_RATIO", engine, i)}) {
        Field field = costs(FieldCost::GpmEngines, both(first_id + i, name, get));
        field.part = i;
        all.push_back(std::move(field));
      }
    }
  };
  add("NVDEC", 1017, 8, of_engine<&P::decoders>);
  add("NVJPG", 1025, 8, of_engine<&P::jpeg_engines>);
  add("NVOFA", 1033, 2, of_engine<&P::ofa_engines>);
  return all;
}

// Names of version 1 of dcgm-exporter, in old counters files and a few dashboards, and what they
// are called since.
constexpr std::pair<std::string_view, std::string_view> kOldNames[] = {
    {"dcgm_sm_clock", "DCGM_FI_DEV_SM_CLOCK"},
    {"dcgm_memory_clock", "DCGM_FI_DEV_MEM_CLOCK"},
    {"dcgm_memory_temp", "DCGM_FI_DEV_MEMORY_TEMP"},
    {"dcgm_gpu_temp", "DCGM_FI_DEV_GPU_TEMP"},
    {"dcgm_power_usage", "DCGM_FI_DEV_POWER_USAGE"},
    {"dcgm_total_energy_consumption", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"},
    {"dcgm_pcie_tx_throughput", "DCGM_FI_DEV_PCIE_TX_THROUGHPUT"},
    {"dcgm_pcie_rx_throughput", "DCGM_FI_DEV_PCIE_RX_THROUGHPUT"},
    {"dcgm_pcie_replay_counter", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"},
    {"dcgm_gpu_utilization", "DCGM_FI_DEV_GPU_UTIL"},
    {"dcgm_mem_copy_utilization", "DCGM_FI_DEV_MEM_COPY_UTIL"},
    {"dcgm_enc_utilization", "DCGM_FI_DEV_ENC_UTIL"},
    {"dcgm_dec_utilization", "DCGM_FI_DEV_DEC_UTIL"},
    {"dcgm_xid_errors", "DCGM_FI_DEV_XID_ERRORS"},
    {"dcgm_power_violation", "DCGM_FI_DEV_POWER_VIOLATION"},
    {"dcgm_thermal_violation", "DCGM_FI_DEV_THERMAL_VIOLATION"},
    {"dcgm_sync_boost_violation", "DCGM_FI_DEV_SYNC_BOOST_VIOLATION"},
    {"dcgm_board_limit_violation", "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION"},
    {"dcgm_low_util_violation", "DCGM_FI_DEV_LOW_UTIL_VIOLATION"},
    {"dcgm_reliability_violation", "DCGM_FI_DEV_RELIABILITY_VIOLATION"},
    {"dcgm_fb_free", "DCGM_FI_DEV_FB_FREE"},
    {"dcgm_fb_used", "DCGM_FI_DEV_FB_USED"},
    {"dcgm_ecc_sbe_volatile_total", "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"},
    {"dcgm_ecc_dbe_volatile_total", "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"},
    {"dcgm_ecc_sbe_aggregate_total", "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL"},
    {"dcgm_ecc_dbe_aggregate_total", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"},
    {"dcgm_retired_pages_sbe", "DCGM_FI_DEV_RETIRED_SBE"},
    {"dcgm_retired_pages_dbe", "DCGM_FI_DEV_RETIRED_DBE"},
    {"dcgm_retired_pages_pending", "DCGM_FI_DEV_RETIRED_PENDING"},
    {"dcgm_nvlink_flit_crc_error_count_total", "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"},
    {"dcgm_nvlink_data_crc_error_count_total", "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"},
    {"dcgm_nvlink_replay_error_count_total", "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL"},
    {"dcgm_nvlink_recovery_error_count_total", "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"},
    {"dcgm_nvlink_bandwidth_total", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"},
};

// The old names of what is in `all`; profiling fields had theirs in small letters.
std::vector<Field> old_fields(std::span<const Field> all) {
  std::vector<Field> old;
  for (const auto& [name, since] : kOldNames) {
    const auto at = std::ranges::find(all, since, &Field::name);
    JOGAK_CHECK(at != all.end(), "{}", since);
    old.push_back(*at);
    old.back().name = name;
  }
  for (Field field : profiling_fields()) {
    if (field.name.ends_with("_RATIO")) continue;
    for (char& c : field.name) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    old.push_back(std::move(field));
  }
  return old;
}

std::vector<Field> all_fields() {
  std::vector<Field> all;
  for (std::vector<Field> (*const group)() :
       {label_fields, mode_fields, board_fields, use_fields, error_fields, link_fields,
        profiling_fields, single_link_fields, engine_fields, other_fields}) {
    std::ranges::move(group(), std::back_inserter(all));
  }
  std::ranges::move(old_fields(all), std::back_inserter(all));
  std::ranges::sort(all, {}, &Field::name);
  return all;
}

}  // namespace

std::span<const Field> fields() {
  static const std::vector<Field> all = all_fields();
  return all;
}

const Field* find_field(std::string_view name) {
  const std::span<const Field> all = fields();
  const auto at = std::ranges::lower_bound(all, name, {}, &Field::name);
  return at != all.end() && at->name == name ? &*at : nullptr;
}

}  // namespace jogak::agent
