// SPDX-License-Identifier: Apache-2.0
// Who holds what of a node's GPUs, counted from the pods alone, and the rules a device must keep.
#pragma once

#include <span>
#include <string>

#include "core/model/cluster.h"

namespace jogak::core::naive {

// Empty if the pod may take these devices beside the pods that are there; else the rule.
std::string device_rules(const Cluster& cluster, PodId pod, NodeId node,
                         std::span<const GpuHold> holds);

// Empty if no device of the node is given out twice, whoever gave it.
std::string owner_rules(const Cluster& cluster, NodeId node);

}  // namespace jogak::core::naive
