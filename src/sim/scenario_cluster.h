// SPDX-License-Identifier: Apache-2.0
// A scenario that starts from a cluster as it was read: what runs there runs already, what waits
// there arrives at time 0.
#pragma once

#include "core/model/cluster.h"
#include "sim/scenario.h"

namespace jogak::sim {

// Puts the cluster before what the scenario says: nodes in node order, pods that wait in the order
// of their ids (their age, where the cluster was read so) and then those that run, so that among
// equals the former go first when the latter lose their place. Objects are taken over. Pods that
// are being deleted are gone, and those bound to a node that is not there are left out. Runs last
// as Scenario::running_ns and waiting_ns say.
void start_from(const core::Cluster& cluster, Scenario& scenario);

}  // namespace jogak::sim
