// SPDX-License-Identifier: Apache-2.0
// NodeResourcesFit: cpu, memory, ephemeral storage, scalar resources and the number of pods. Every
// resource that is short is reported; the verdict is Unresolvable if the node could not hold one of
// them even when empty.
#pragma once

#include "core/filter/pod_view.h"
#include "core/filter/verdict.h"

namespace jogak::core {

Verdict resources_fit_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                             Reasons* reasons);

}  // namespace jogak::core
