// SPDX-License-Identifier: Apache-2.0
// NodeAffinity: spec.nodeSelector and the required node affinity. Terms that all name their nodes
// limit the whole cycle to those nodes (PreFilter).
#pragma once

#include "core/filter/cycle.h"
#include "core/filter/pod_view.h"
#include "core/filter/verdict.h"

namespace jogak::core {

PreFilter node_affinity_prefilter(const Cluster& cluster, const PodView& pod);
Verdict node_affinity_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                             Reasons* reasons);

}  // namespace jogak::core
