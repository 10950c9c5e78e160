// SPDX-License-Identifier: Apache-2.0
// What is told again and again is found among the last few.
#include "agent/run/past_holders.h"

#include <algorithm>

#include "agent/plugin/inventory.h"

namespace jogak::agent {

void PastHolders::note(const std::vector<Holding>& holdings) {
  for (const Holding& holding : holdings) {
    const std::string uuid = split_share(holding.device_id).first;
    // Rather all forgotten than ever more kept; those that hold now are told again.
    if (pods_.size() >= kDevicesMax && !pods_.contains(uuid)) pods_.clear();
    std::deque<Pod>& pods = pods_[uuid];
    Pod pod{holding.holder.pod_namespace, holding.holder.pod};
    if (std::ranges::find(pods, pod) != pods.end()) continue;
    pods.push_back(std::move(pod));
    if (pods.size() > kPodsMax) pods.pop_front();
  }
}

bool PastHolders::held(std::string_view uuid, const Holder& pod) const {
  const auto at = pods_.find(uuid);
  return at != pods_.end() &&
         std::ranges::find(at->second, Pod{pod.pod_namespace, pod.pod}) != at->second.end();
}

}  // namespace jogak::agent
