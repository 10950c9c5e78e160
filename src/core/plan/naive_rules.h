// SPDX-License-Identifier: Apache-2.0
// The hard rules of Kubernetes written straight from their definitions, slow and without any code
// of the filters: what the checker of decisions asks. Each returns the rule's name and what breaks
// it, or an empty string. Searches (which volume an unbound claim would get) are not repeated.
#pragma once

#include <string>

#include "core/model/cluster.h"

namespace jogak::core::naive {

// Cordon, taints, node name, node selector and affinity, declared features.
std::string node_rules(const Cluster& cluster, PodId pod, NodeId node);
// Pod count, resources (also beside pods of no lower priority nominated there), host ports.
std::string capacity_rules(const Cluster& cluster, PodId pod, NodeId node);
// Required affinity and anti-affinity, both ways, and hard topology spread.
std::string pod_rules(const Cluster& cluster, PodId pod, NodeId node);
// Claims that are missing, going away, out of reach from the node or taken; exclusive inline disks;
// limits of attached volumes.
std::string volume_rules(const Cluster& cluster, PodId pod, NodeId node);

// Amount asked of a resource; 0 where it is not named.
std::int64_t asked(const PodShape& shape, std::string_view resource);
// What the node has of each resource, by name.
std::map<std::string, std::int64_t, std::less<>> capacity(const Cluster& cluster, const Node& node);

}  // namespace jogak::core::naive
