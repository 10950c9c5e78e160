// SPDX-License-Identifier: Apache-2.0
// Pods that wait with a nomination: room is being made for them, so pods of no higher priority must
// leave it alone.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/cluster.h"

namespace jogak::core {

// True if the pod waits and its nomination counts: a pod held by gates is not about to take a seat.
bool awaits_nominated_seat(const Cluster& cluster, PodId pod);

// Pods nominated to the node that count against a pod of this priority (theirs is no lower),
// without `self`; in id order.
std::vector<PodId> nominated_before(const Cluster& cluster, NodeId node, std::int32_t priority,
                                    PodId self);

// Pods nominated to the node whose priority is lower, by namespace and name.
std::vector<PodId> nominated_below(const Cluster& cluster, NodeId node, std::int32_t priority);

// Books the waiting pod on the node as a guess, inside a transaction: on the devices it would get
// now, or on unknown ones where those in question are still held by its victims.
void place_guess(Cluster& cluster, PodId pod, NodeId node);

}  // namespace jogak::core
