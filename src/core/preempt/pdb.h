// SPDX-License-Identifier: Apache-2.0
// PodDisruptionBudgets as preemption reads them: a budget that allows n more disruptions is
// violated from the n+1st of its pods on, counted in order of importance.
#pragma once

#include <span>
#include <vector>

#include "core/model/cluster.h"

namespace jogak::core {

// In the order in which they were given. A pod is violating if it exceeds any of its budgets.
struct SplitByBudget {
  std::vector<PodId> violating;
  std::vector<PodId> others;
};
SplitByBudget split_by_budget(const Cluster& cluster, std::span<const PodId> pods);

}  // namespace jogak::core
