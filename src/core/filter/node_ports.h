// SPDX-License-Identifier: Apache-2.0
// NodePorts: the host ports asked for must be free on the node, address by address.
#pragma once

#include "core/filter/pod_view.h"
#include "core/filter/verdict.h"

namespace jogak::core {

Verdict node_ports_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                          Reasons* reasons);

}  // namespace jogak::core
