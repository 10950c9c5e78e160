// SPDX-License-Identifier: Apache-2.0
// The values of Jogak's own annotations that are JSON: the devices of a node (jogak.io/gpus) and
// the devices that a bound pod holds (jogak.io/gpu-holds). Format: docs/cluster-file.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace jogak::kube {

inline constexpr std::size_t kGpusPerNodeMax = 32;

struct MigInstance {
  std::string profile;
  std::int32_t start = 0;
};

struct GpuDevice {
  enum class Health : std::uint8_t { Healthy, Unhealthy, Unknown };
  std::string uuid;
  std::int32_t memory_mib = 0;       // 0: not given
  std::int32_t numa = -1;            // -1: not given
  std::vector<std::int32_t> nvlink;  // indices of other devices of the node
  Health health = Health::Healthy;
  bool mig_enabled = false;
  bool mig_dynamic = false;
  std::vector<MigInstance> mig_instances;
};

struct GpuHolding {
  enum class Kind : std::uint8_t { Whole, Milli, Mib, Mig };
  Kind kind = Kind::Whole;
  std::int32_t gpu = 0;
  std::int32_t amount = 0;  // Milli, Mib: how much; Mig: the first memory slice
};

// Unknown fields are refused, so that a misspelt one is noticed. Errors begin with the path within
// the annotation.
Result<std::vector<GpuDevice>> parse_gpu_devices(std::string_view json);
Result<std::vector<GpuHolding>> parse_gpu_holdings(std::string_view json);

}  // namespace jogak::kube
