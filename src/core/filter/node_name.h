// SPDX-License-Identifier: Apache-2.0
// NodeName: a pod that names its node goes there or nowhere.
#pragma once

#include "core/filter/pod_view.h"
#include "core/filter/verdict.h"

namespace jogak::core {

Verdict node_name_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                         Reasons* reasons);

}  // namespace jogak::core
