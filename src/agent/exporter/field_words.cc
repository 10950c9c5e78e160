// SPDX-License-Identifier: Apache-2.0
//
// Names that a counters file may hold and that have no series here, and the words of label values.
#include <algorithm>
#include <iterator>

#include "agent/exporter/fields.h"
#include "agent/health/xid.h"

namespace jogak::agent {

namespace {

// Families of DCGM that are not told here: of other hardware, of DCGM's own jobs and statistics, or
// read in ways that NVML has no place for (docs/migrate-from-nvidia.md says why of each).
constexpr std::string_view kElsewhere[] = {
    "DCGM_FI_BIND_UNBIND_EVENT",
    "DCGM_FI_CUDA_",
    "DCGM_FI_DEV_ACCOUNTING_",
    "DCGM_FI_DEV_APP_",
    "DCGM_FI_DEV_AUTOBOOST",
    "DCGM_FI_DEV_BOARD_POWER_PROFILE_",
    "DCGM_FI_DEV_C2C_",
    "DCGM_FI_DEV_CLOCKS_AUTOBOOST",
    "DCGM_FI_DEV_CLOCKS_SUPPORTED",
    "DCGM_FI_DEV_CONNECTX_",
    "DCGM_FI_DEV_COUNT",
    "DCGM_FI_DEV_CPU_",
    "DCGM_FI_DEV_CUDA_VISIBLE_",
    "DCGM_FI_DEV_DIAG_",
    "DCGM_FI_DEV_ECC_DBE_",
    "DCGM_FI_DEV_ECC_SBE_",
    "DCGM_FI_DEV_ENC_STATS",
    "DCGM_FI_DEV_ENFORCED_POWER_PROFILE_",
    "DCGM_FI_DEV_FBC_",
    "DCGM_FI_DEV_GPU_NVLINK_",
    "DCGM_FI_DEV_INFOROM_CHECKSUM",
    "DCGM_FI_DEV_INFOROM_CONFIG",
    "DCGM_FI_DEV_INFOROM_VALID",
    "DCGM_FI_DEV_MEMORY_AFFINITY_",
    "DCGM_FI_DEV_MEMORY_UNREPAIRABLE",
    "DCGM_FI_DEV_MEM_AFFINITY_",
    "DCGM_FI_DEV_MODULE_POWER_",
    "DCGM_FI_DEV_NVLINK_",
    "DCGM_FI_DEV_NVSWITCH_",
    "DCGM_FI_DEV_P2P_",
    "DCGM_FI_DEV_PCIE_CORRECTABLE_",
    "DCGM_FI_DEV_PLATFORM_",
    "DCGM_FI_DEV_PROCESS_",
    "DCGM_FI_DEV_PWR_SMOOTHING_",
    "DCGM_FI_DEV_REQUESTED_POWER_PROFILE_",
    "DCGM_FI_DEV_SRAM_",
    "DCGM_FI_DEV_SUPPORTED_CLOCKS",
    "DCGM_FI_DEV_SXID_",
    "DCGM_FI_DEV_SYSIO_",
    "DCGM_FI_DEV_THRESHOLD_SRM",
    "DCGM_FI_DEV_VALID_POWER_PROFILE_",
    "DCGM_FI_DEV_VGPU_",
    "DCGM_FI_GPU_TOPOLOGY_",
    "DCGM_FI_IMEX_",
    "DCGM_FI_PROCESS_",
    "DCGM_FI_PROF_C2C_",
    "DCGM_FI_PROF_DFMA_CYCLES_",
    "DCGM_FI_PROF_DMMA_CYCLES_",
    "DCGM_FI_PROF_FP16_CYCLES_",
    "DCGM_FI_PROF_FP32_CYCLES_",
    "DCGM_FI_PROF_FP64_CYCLES_",
    "DCGM_FI_PROF_HMMA_CYCLES_",
    "DCGM_FI_PROF_HOSTMEM_",
    "DCGM_FI_PROF_IMMA_CYCLES_",
    "DCGM_FI_PROF_INT_CYCLES_",
    "DCGM_FI_PROF_MMA_CYCLES_",
    "DCGM_FI_PROF_NVLINK_RX_BYTES_PER_LINK",
    "DCGM_FI_PROF_NVLINK_TX_BYTES_PER_LINK",
    "DCGM_FI_PROF_PCIE_RX_BYTES_TOTAL",
    "DCGM_FI_PROF_PCIE_TX_BYTES_TOTAL",
    "DCGM_FI_PROF_PEERMEM_",
    "DCGM_FI_PROF_SM_CYCLES_",
    "DCGM_FI_SYNC_BOOST",
    "DCGM_FI_SYSTEM_",
};

HealthWords xid_words(std::uint64_t xid) {
  if (xid == 79) return {"ALL", "DCGM_FR_FALLEN_OFF_BUS"};
  if (xid == 95) return {"ALL", "DCGM_FR_UNCONTAINED_ERROR"};
  if (xid == 48) return {"MEM", "DCGM_FR_VOLATILE_DBE_DETECTED"};
  if (xid == 64) return {"MEM", "DCGM_FR_ROW_REMAP_FAILURE"};
  if (xid == 92) return {"MEM", "DCGM_FR_VOLATILE_SBE_DETECTED"};
  if (xid_info(xid).kind == XidClass::Nvlink) return {"NVLINK", "DCGM_FR_NVLINK_ERROR_CRITICAL"};
  return {"ALL", "DCGM_FR_XID_ERROR"};
}

HealthWords recovery_words(std::uint64_t action) {
  if (action == 2) return {"ALL", "DCGM_FR_GPU_RECOVERY_REBOOT"};
  if (action == 3) return {"ALL", "DCGM_FR_GPU_RECOVERY_DRAIN_P2P"};
  if (action == 4) return {"ALL", "DCGM_FR_GPU_RECOVERY_DRAIN_RESET"};
  if (action == 5) return {"ALL", "DCGM_FR_IMEX_UNHEALTHY"};
  return {"ALL", "DCGM_FR_GPU_RECOVERY_RESET"};
}

}  // namespace

bool is_known_elsewhere(std::string_view name) {
  return std::ranges::any_of(kElsewhere,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::string_view p2p_status_text(int status) {
  static constexpr std::string_view kTexts[] = {"OK",
                                                "ChipsetNotSupported",
                                                "GPUNotSupported",
                                                "TopologyNotSupported",
                                                "DisabledByRegKey",
                                                "NotSupported"};
  const auto at = static_cast<std::size_t>(status);
  return at < std::size(kTexts) ? kTexts[at] : "Unknown";
}

std::span<const std::string_view> health_watches() {
  static constexpr std::string_view kWatches[] = {
      "PCIE", "NVLINK", "PMU", "MCU", "MEM", "SM", "INFOROM", "THERMAL", "POWER", "DRIVER", "ALL"};
  return kWatches;
}

std::optional<HealthWords> health_words(const HealthFact& fact) {
  switch (fact.kind) {
    case HealthKind::Lost:
      return HealthWords{"ALL", "DCGM_FR_FALLEN_OFF_BUS"};
    case HealthKind::Unresponsive:
      return HealthWords{"DRIVER", "DCGM_FR_NVML_API"};
    case HealthKind::Xid:
      return xid_words(fact.code);
    case HealthKind::XidNoted:
      // What programs do to themselves is no incident of the GPU.
      return fact.severity == Severity::Info ? std::nullopt : std::optional(xid_words(fact.code));
    case HealthKind::RecoveryAction:
      return recovery_words(fact.code);
    case HealthKind::RowRemapFailed:
      return HealthWords{"MEM", "DCGM_FR_ROW_REMAP_FAILURE"};
    case HealthKind::EccUncorrected:
      return HealthWords{"MEM", "DCGM_FR_VOLATILE_DBE_DETECTED"};
    case HealthKind::RowRemapPending:
      return HealthWords{"MEM", "DCGM_FR_PENDING_ROW_REMAP"};
    case HealthKind::EccRate:
      return HealthWords{"MEM", "DCGM_FR_VOLATILE_SBE_DETECTED"};
    case HealthKind::ThermalHardware:
    case HealthKind::ThermalSoftware:
      return HealthWords{"THERMAL", "DCGM_FR_CLOCK_THROTTLE_THERMAL"};
    case HealthKind::Temperature:
      return HealthWords{"THERMAL", "DCGM_FR_TEMP_VIOLATION"};
    case HealthKind::PowerBrake:
      return HealthWords{"POWER", "DCGM_FR_CLOCK_THROTTLE_POWER"};
    case HealthKind::NvlinkErrors:
      return HealthWords{"NVLINK", "DCGM_FR_NVLINK_ERROR_THRESHOLD"};
    case HealthKind::PcieReplays:
      return HealthWords{"PCIE", "DCGM_FR_PCI_REPLAY_RATE"};
  }
  return std::nullopt;
}

std::string_view clock_event_text(std::uint64_t bit) {
  static constexpr std::string_view kTexts[] = {"gpu_idle",    "clocks_setting", "power_cap",
                                                "hw_slowdown", "sync_boost",     "sw_thermal",
                                                "hw_thermal",  "hw_power_brake", "display_clocks"};
  return bit < std::size(kTexts) ? kTexts[bit] : "other";
}

}  // namespace jogak::agent
