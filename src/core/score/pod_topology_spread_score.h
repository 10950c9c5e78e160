// SPDX-License-Identifier: Apache-2.0
// PodTopologySpread, the soft part (whenUnsatisfiable: ScheduleAnyway), and the system's default
// constraints for pods that name none: nodes in domains with fewer matching pods score higher.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/filter/pod_view.h"

namespace jogak::core {

// 0..100 per feasible node, not yet weighted; nullopt where the plugin skips itself for this pod.
std::optional<std::vector<std::int64_t>> pod_topology_spread_score(
    const Cluster& cluster, const PodView& pod, std::span<const NodeId> feasible);

// Selector of the default constraints: every Service that selects the pod and the controller that
// owns it, ANDed. nullopt: nothing selects the pod, so nothing is spread.
std::optional<LabelSelector> default_spread_selector(const Cluster& cluster,
                                                     const Identity& identity);

// round(sum of pods[i] * ln(domains[i] + 2) + skew[i] - 1), the raw score of a node. Exact to far
// below the rounding step, in integers: kube-scheduler's float64 sum rounds to the same.
struct SpreadScoreTerm {
  std::int64_t pods = 0;
  std::int64_t domains = 0;
  std::int64_t max_skew = 1;
};
std::int64_t spread_raw_score(std::span<const SpreadScoreTerm> terms);

}  // namespace jogak::core
