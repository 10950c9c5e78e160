// SPDX-License-Identifier: Apache-2.0
// What the disruption controller does to budgets when pods go and come.
#pragma once

#include <cstdint>

#include "core/model/cluster.h"

namespace jogak::sim {

// Adds `by` to what every budget that covers such a pod allows: -1 when the pod lost its place, +1
// when it runs again. A budget that is overdrawn goes below zero and has to come back.
void change_budgets(core::Cluster& cluster, const core::Identity& identity, std::int32_t by);

}  // namespace jogak::sim
