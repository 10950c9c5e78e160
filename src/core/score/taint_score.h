// SPDX-License-Identifier: Apache-2.0
// Score of TaintToleration: fewer PreferNoSchedule taints that the pod does not tolerate is better.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/filter/pod_view.h"

namespace jogak::core {

// Normalised, 0..100.
std::vector<std::int64_t> taint_scores(const Cluster& cluster, const PodView& pod,
                                       std::span<const NodeId> feasible);

}  // namespace jogak::core
