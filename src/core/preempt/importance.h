// SPDX-License-Identifier: Apache-2.0
// Which pod is worth more than another, and which set of victims is the cheapest.
#pragma once

#include <span>
#include <vector>

#include "core/preempt/preempt.h"

namespace jogak::core {

// Higher priority first, then the one running longer; the name settles what is left, so that equal
// clusters lose equal pods.
void sort_by_importance(const Cluster& cluster, std::span<PodId> pods);

// Indices of the candidates that lose least: fewest violated budgets, then the lowest highest
// priority, the smallest sum of priorities, the fewest victims, and the latest start among the
// oldest of their most important victims. Several: they are equal in all of that.
std::vector<std::size_t> cheapest(const Cluster& cluster,
                                  std::span<const PreemptionCandidate> candidates);

}  // namespace jogak::core
