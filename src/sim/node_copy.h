// SPDX-License-Identifier: Apache-2.0
// A node or pod of a cluster as the value it could have been made from, and a fresh node of the
// same shape: what a node group would add.
#pragma once

#include <string>
#include <string_view>

#include "core/model/cluster.h"

namespace jogak::sim {

// upsert_node() of it changes nothing that a decision reads. Serial numbers of devices are not
// known to the cluster and stay empty.
core::NodeSpec spec_of(const core::Cluster& cluster, core::NodeId node);

// The same for a pod: upsert_pod() of it changes nothing that a decision reads. An orphan keeps the
// name of the node that is not there.
core::PodSpec spec_of(const core::Cluster& cluster, core::PodId pod);

// Pods of DaemonSets and static ones: they end with their node and come with it.
bool belongs_to_node(const core::Identity& identity);

// A new node of that shape: labels that carry the old name carry the new one; it is not cordoned,
// its devices are healthy, and taints that tell of the old one's condition are gone.
core::NodeSpec copy_of(const core::Cluster& cluster, core::NodeId node, std::string_view name);

}  // namespace jogak::sim
