// SPDX-License-Identifier: Apache-2.0
//
// nvmlDeviceGetFieldValues: one call for many counters, each with its own return code.
#include <chrono>

#include "nvml/abi_constants.h"
#include "nvml/sim/c_call.h"
#include "nvml/sim/readings.h"
#include "nvml/sim/topology.h"

namespace jogak::nvml::abi {

namespace {

using sim::FaultKind;
using sim::put;
using sim::Target;

constexpr std::int64_t kKib = 1024;

struct Field {
  Return result = Return::NotSupported;
  ValueType type = kValueUlonglong;
  std::int64_t value = 0;
};

Field number(std::int64_t value) {
  return {.result = Return::Success, .type = kValueUlonglong, .value = value};
}
Field small(std::int64_t value) {
  return {.result = Return::Success, .type = kValueUint, .value = value};
}

Field ecc_field(const Target& t, bool is_uncorrected, bool is_aggregate) {
  if (!t.gpu.spec.has_ecc || !t.gpu.spec.ecc_enabled) return {};
  return number(sim::ecc_errors(t.machine, t.gpu, is_uncorrected, is_aggregate));
}

Field row_field(const Target& t, Enum id) {
  if (!t.gpu.spec.has_row_remap) return {};
  const sim::CountersSpec& before = t.gpu.spec.counters;
  const int gpu = t.gpu.index;
  switch (id) {
    case kFieldRemappedCorrected:
      return small(before.rows_corrected + t.machine.counted(FaultKind::RowRemap, gpu, 0, 0));
    case kFieldRemappedUncorrected:
      return small(before.rows_uncorrected + t.machine.counted(FaultKind::RowRemap, gpu, 1, 0));
    case kFieldRemappedPending:
      return small(before.rows_pending || t.machine.row_bit(gpu, 2, t.gpu.counting_since) ? 1 : 0);
    default:
      return small(before.rows_failed || t.machine.row_bit(gpu, 4, 0) ? 1 : 0);
  }
}

Field retired_field(const Target& t, Enum id) {
  if (t.gpu.spec.has_row_remap) return {};
  const sim::CountersSpec& counters = t.gpu.spec.counters;
  if (id == kFieldRetiredSbe) return number(counters.retired_single_bit);
  if (id == kFieldRetiredDbe) return number(counters.retired_double_bit);
  return small(counters.retirement_pending ? 1 : 0);
}

Field nvlink_field(const Target& t, Enum id, std::uint32_t scope) {
  const sim::NvlinkSpec& links = t.gpu.spec.nvlink;
  if (links.count == 0) return {};
  const auto error = [&](Enum counter) {
    return number(sim::nvlink_errors(t.machine, t.gpu, counter));
  };
  switch (id) {
    case kFieldNvlinkCrcFlitTotal:
    case kFieldNvlinkCrcErrors:
      return error(kNvlinkCrcFlit);
    case kFieldNvlinkCrcDataTotal:
      return error(kNvlinkCrcData);
    case kFieldNvlinkReplayTotal:
    case kFieldNvlinkReplayErrors:
      return error(kNvlinkReplay);
    case kFieldNvlinkRecoveryTotal:
    case kFieldNvlinkRecoveryErrors:
      return error(kNvlinkRecovery);
    case kFieldNvlinkCount:
      return small(links.count);
    case kFieldSwitchConnectedLinks:
      return small(links.to_switch ? links.count : 0);
    case kFieldNvlinkSpeedCommon:
    case kFieldNvlinkSpeed:
      return small(links.speed_mbps);
    default:
      break;
  }
  // Data counters: of one link, or of all.
  std::int64_t bytes = 0;
  if (scope != kAllLinks && scope >= static_cast<std::uint32_t>(links.count)) {
    return {.result = Return::InvalidArgument};
  }
  for (int link = 0; link < links.count; ++link) {
    if (scope == kAllLinks || scope == static_cast<std::uint32_t>(link)) {
      bytes += sim::nvlink_bytes(t.machine, t.gpu, link);
    }
  }
  const bool is_v5 = id == kFieldNvlink5TxBytes || id == kFieldNvlink5RxBytes;
  if (is_v5 && links.version < 5) return {};
  return number(is_v5 ? bytes : bytes / kKib);
}

Field violation_field(const Target& t, Enum id) {
  const auto held_ns = [&](FaultKind kind) {
    return number(t.machine.acted(kind, t.gpu.index) * 1000);
  };
  if (id == kFieldPerfPolicyPower || id == kFieldHwBrakeNs) return held_ns(FaultKind::PowerBrake);
  if (id == kFieldPerfPolicyThermal || id == kFieldHwThermalNs) return held_ns(FaultKind::Thermal);
  return number(0);
}

Field field_of(const Target& t, Enum id, std::uint32_t scope) {
  switch (id) {
    case kFieldEccSbeVolatile:
      return ecc_field(t, false, false);
    case kFieldEccDbeVolatile:
      return ecc_field(t, true, false);
    case kFieldEccSbeAggregate:
      return ecc_field(t, false, true);
    case kFieldEccDbeAggregate:
      return ecc_field(t, true, true);
    case kFieldRetiredSbe:
    case kFieldRetiredDbe:
    case kFieldRetiredPending:
      return retired_field(t, id);
    case kFieldRemappedCorrected:
    case kFieldRemappedUncorrected:
    case kFieldRemappedPending:
    case kFieldRemappedFailure:
      return row_field(t, id);
    case kFieldMemoryTemperature:
      if (!t.gpu.spec.has_memory_temperature) return {};
      return small(sim::memory_temperature_c(t.machine, t.gpu));
    case kFieldTotalEnergy:
      return number(sim::energy_mj(t.machine, t.gpu));
    case kFieldPcieReplay:
      return small(t.gpu.spec.counters.pcie_replays);
    case kFieldPcieReplayRollover:
      return small(0);
    case kFieldMigModeWithoutReset:
      if (t.gpu.spec.mig_support == sim::MigSupport::None) return {};
      return small(t.gpu.spec.mig_support == sim::MigSupport::AtOnce ? 1 : 0);
    case kFieldPowerAverage:
      return small(sim::power_mw(t.machine, t.gpu));
    case kFieldPowerInstant:
      return small(sim::power_instant_mw(t.machine, t.gpu));
    case kFieldPcieTxBytes:
    case kFieldPcieRxBytes:
      if (t.gpu.spec.compute_major < 9) return {};
      return number(sim::pcie_bytes(t.machine, t.gpu, id == kFieldPcieRxBytes));
    case kFieldRecoveryAction:
      if (t.gpu.spec.compute_major < 9) return {};
      return small(t.machine.recovery_action(t.gpu.index));
    case kFieldSwThermalNs:
    case kFieldHwThermalNs:
    case kFieldHwBrakeNs:
      return violation_field(t, id);
    case kFieldNvlink5TxBytes:
    case kFieldNvlink5RxBytes:
    case kFieldNvlinkCrcFlitTotal:
    case kFieldNvlinkCrcDataTotal:
    case kFieldNvlinkReplayTotal:
    case kFieldNvlinkRecoveryTotal:
    case kFieldNvlinkSpeedCommon:
    case kFieldNvlinkCount:
    case kFieldSwitchConnectedLinks:
      return nvlink_field(t, id, scope);
    default:
      break;
  }
  if (id >= kFieldPerfPolicyPower && id <= kFieldPerfPolicyBaseClocks) {
    return violation_field(t, id);
  }
  const bool is_data = id >= kFieldNvlinkTxData && id <= kFieldNvlinkRxRaw;
  const bool is_error = id >= kFieldNvlinkReplayErrors && id <= kFieldNvlinkSpeed;
  if (is_data || is_error) return nvlink_field(t, id, scope);
  return {};
}

}  // namespace

Return nvmlDeviceGetFieldValues(Device device, std::int32_t count, FieldValue* values) {
  return sim::on_gpu(__func__, device, [&](Target& t) {
    if (values == nullptr || count <= 0) return Return::InvalidArgument;
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    for (std::int32_t i = 0; i < count; ++i) {
      FieldValue& value = values[i];
      const Field field = field_of(t, value.field_id, value.scope_id);
      value.timestamp = std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count();
      value.latency_usec = 0;
      value.value_type = field.type;
      value.result = field.result;
      value.value.ull = 0;
      if (field.type == kValueUint) {
        value.value.ui = static_cast<std::uint32_t>(field.value);
      } else {
        value.value.ull = static_cast<std::uint64_t>(field.value);
      }
    }
    return Return::Success;
  });
}

Return nvmlDeviceClearFieldValues(Device device, std::int32_t count, FieldValue* values) {
  return sim::on_gpu(__func__, device, [&](Target&) {
    if (values == nullptr || count <= 0) return Return::InvalidArgument;
    for (std::int32_t i = 0; i < count; ++i) values[i].result = Return::NoPermission;
    return Return::Success;
  });
}

}  // namespace jogak::nvml::abi
