// SPDX-License-Identifier: Apache-2.0
// ImageLocality: nodes that already hold the pod's large images are better. An image counts less
// the fewer nodes have it, so that one node with a rare image does not draw every pod.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/filter/pod_view.h"

namespace jogak::core {

// 0..100 per node, not normalised over nodes.
std::vector<std::int64_t> image_locality_scores(const Cluster& cluster, const PodView& pod,
                                                std::span<const NodeId> feasible);

}  // namespace jogak::core
