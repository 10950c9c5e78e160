// SPDX-License-Identifier: Apache-2.0
//
// Which pods were given which device, as far as the kubelet told while we listened. A process of
// such a pod that is still on the device is worth waiting for; one of a pod that merely sees every
// GPU (a monitor with NVIDIA_VISIBLE_DEVICES=all) never leaves.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/model/holders.h"

namespace jogak::agent {

class PastHolders {
 public:
  static constexpr std::size_t kPodsMax = 64;       // of a device, the last ones
  static constexpr std::size_t kDevicesMax = 1024;  // MIG devices get new UUIDs

  void note(const std::vector<Holding>& holdings);
  // `uuid` without a share.
  bool held(std::string_view uuid, const Holder& pod) const;

 private:
  using Pod = std::pair<std::string, std::string>;            // namespace, name
  std::map<std::string, std::deque<Pod>, std::less<>> pods_;  // by UUID, the latest last
};

}  // namespace jogak::agent
