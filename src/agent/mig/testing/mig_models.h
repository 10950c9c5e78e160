// SPDX-License-Identifier: Apache-2.0
//
// What drivers say of the profiles of well-known GPUs, for tests: ids, places, counts and engines
// as nvidia-smi prints them. The agent itself never uses these.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nvml/gpu_source.h"

namespace jogak::agent::testing {

struct MigModel {
  std::string key;   // "A100-40"
  std::string name;  // as NVML calls the GPU
  std::uint32_t pci_device_id = 0;
  std::int64_t memory_mib = 0;
  bool needs_reset = false;  // a change of the MIG mode waits for a reset (Ampere)
  std::vector<nvml::MigProfileFacts> profiles;
};

// A100-40, A100-80, A30, H100-80, H100-96, H200, B200, RTX-PRO-6000.
std::span<const MigModel> mig_models();

// CHECKs that there is one.
const MigModel& mig_model(std::string_view key);

}  // namespace jogak::agent::testing
