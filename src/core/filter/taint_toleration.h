// SPDX-License-Identifier: Apache-2.0
// TaintToleration: every NoSchedule and NoExecute taint of the node must be tolerated.
#pragma once

#include "core/filter/pod_view.h"
#include "core/filter/verdict.h"

namespace jogak::core {

Verdict taint_toleration_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                                Reasons* reasons);

}  // namespace jogak::core
