// SPDX-License-Identifier: Apache-2.0
//
// The status that a kubelet writes, for each stage of a pod's life.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/loop.h"

namespace jogak::kubelet {

enum class Stage : std::uint8_t {
  Starting,  // admitted; images are pulled, containers made
  Running,   // containers run; ready when is_ready
  Waiting,   // between two runs of its containers (CrashLoopBackOff)
  Succeeded,
  Failed
};

// A device of a plugin that a container holds.
struct DeviceStatus {
  std::string container, resource, id;
  bool is_healthy = true;
  friend bool operator==(const DeviceStatus&, const DeviceStatus&) = default;
};

struct PodFacts {
  Stage stage = Stage::Starting;
  bool is_ready = false;
  TimeUs admitted = 0, started = 0, finished = 0;  // 0: not yet
  std::int32_t restarts = 0;
  std::int32_t exit_code = 0;  // of the last run
  std::string host_ip, pod_ip;
  bool has_run = false;  // an earlier run ended: lastState is shown
  std::vector<DeviceStatus> devices;
};

// {"status": {...}} for a merge patch. Keeps conditions of others (PodScheduled, DisruptionTarget)
// and what the pod's status had that a kubelet does not own.
Doc status_patch(const Doc& pod, const PodFacts& facts, TimeUs now);

// A pod that the kubelet refuses: phase Failed with reason and message.
Doc rejected_patch(const Doc& pod, std::string_view reason, std::string_view message, TimeUs now);

}  // namespace jogak::kubelet
