// SPDX-License-Identifier: Apache-2.0
//
// The words that inspect, logs and events use for the enumerations of gpu_source.h.
#include "nvml/gpu_source.h"

namespace jogak::nvml {

std::string_view missing_text(Missing missing) {
  switch (missing) {
    case Missing::NotRead:
      return "not read";
    case Missing::NotSupported:
      return "not supported";
    case Missing::NoPermission:
      return "no permission";
    case Missing::NoData:
      return "no data";
    case Missing::Lost:
      return "gpu lost";
    case Missing::Failed:
      return "failed";
  }
  return "failed";
}

std::string_view link_kind_text(LinkKind kind) {
  switch (kind) {
    case LinkKind::Self:
      return "X";
    case LinkKind::SameBoard:
      return "PSB";
    case LinkKind::SingleSwitch:
      return "PIX";
    case LinkKind::MultipleSwitches:
      return "PXB";
    case LinkKind::HostBridge:
      return "PHB";
    case LinkKind::Node:
      return "NODE";
    case LinkKind::System:
      return "SYS";
    case LinkKind::Unknown:
      return "N/A";
  }
  return "N/A";
}

std::string_view event_kind_text(GpuEventKind kind) {
  switch (kind) {
    case GpuEventKind::Xid:
      return "xid";
    case GpuEventKind::EccSingleBit:
      return "ecc single bit";
    case GpuEventKind::EccDoubleBit:
      return "ecc double bit";
    case GpuEventKind::MigChange:
      return "mig change";
    case GpuEventKind::GpuLost:
      return "gpu lost";
    case GpuEventKind::GpuRecovered:
      return "gpu recovered";
    case GpuEventKind::RecoveryAction:
      return "recovery action";
    case GpuEventKind::DriverReload:
      return "driver reload";
    case GpuEventKind::Other:
      return "other";
  }
  return "other";
}

}  // namespace jogak::nvml
