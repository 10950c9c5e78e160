// SPDX-License-Identifier: Apache-2.0
//
// What is to be told of GPUs that fall ill and get well, from one view of their health after the
// other. Facts have their hysteresis already (gpu_health.h), so each that appears is worth a line.
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/health/node_health.h"
#include "agent/health/node_note.h"

namespace jogak::agent {

class FaultNotes {
 public:
  // XIDs of any kind, and whatever is more than a remark, when it appears: reasons "GpuLost",
  // "GpuXid" and so on. "GpuRecovered" once nothing keeps new pods away from a GPU any more, and
  // "GpuDriverLost" and "GpuDriverRecovered" for all of them at once.
  std::vector<NodeNote> update(const NodeHealthView& view);

 private:
  struct Known {
    std::string gpu = {};  // as people are told of it
    bool stops_use = false;
  };
  std::map<std::string, Known> facts_;  // by GPU, kind, code and instance
  bool has_driver_problem_ = false;
};

}  // namespace jogak::agent
