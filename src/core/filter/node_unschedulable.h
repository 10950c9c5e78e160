// SPDX-License-Identifier: Apache-2.0
// NodeUnschedulable: a cordoned node takes only pods that tolerate the unschedulable taint. The
// taint itself is put on the node by a controller, perhaps later; this filter does not wait for it.
#pragma once

#include "core/filter/pod_view.h"
#include "core/filter/verdict.h"

namespace jogak::core {

Verdict node_unschedulable_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                                  Reasons* reasons);

}  // namespace jogak::core
