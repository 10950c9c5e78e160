// SPDX-License-Identifier: Apache-2.0
// Checks a proposal against the cluster with code that shares nothing with filters, ledger or
// search: it recomputes from the node's facts and the pods placed there. For drivers (before a plan
// leaves) and simulations (after every step).
#pragma once

#include <string>

#include "core/engine/scheduler.h"
#include "core/model/cluster.h"

namespace jogak::core {

// Empty if the decision may be carried out; else the rule it would break, for people.
std::string validate(const Cluster& cluster, const Decision& decision);

// Empty if no device, slice, thousandth or MiB of the whole cluster has two owners and no node that
// was not over-committed by observation is over its capacity; else the first violation.
std::string validate_cluster(const Cluster& cluster);

}  // namespace jogak::core
