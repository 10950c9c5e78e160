// SPDX-License-Identifier: Apache-2.0
//
// What each holder of a shared device uses of it, by its processes. NVML tells memory and shares of
// time by process; whose process it is comes from the owners. A value of the device as a whole is
// never split by guess, and never told twice.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "agent/exporter/fields.h"
#include "agent/model/holders.h"
#include "agent/model/node_model.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

struct PodUse {
  Holder holder;
  // Nothing: this GPU tells no such value by process. A holder without processes uses 0.
  std::optional<std::int64_t> memory_bytes, sm_percent, memory_percent, encoder_percent,
      decoder_percent;
  std::optional<std::int64_t> of(Field::Share share) const;
};

struct DeviceUse {
  std::vector<PodUse> pods;  // in the order of the holders
  // Of processes whose owner is none of the holders, or not known.
  std::int64_t unattributed_memory_bytes = 0;
};

// `gi_id` -1: the whole GPU. Nothing when the processes could not be read.
std::optional<DeviceUse> device_use(const nvml::GpuSample& sample, int gi_id,
                                    const ProcessOwners& owners,
                                    const std::vector<Holder>& holders);

}  // namespace jogak::agent
