// SPDX-License-Identifier: Apache-2.0
// NodeDeclaredFeatures: what the pod needs of the kubelet must be among the features it declares.
#pragma once

#include "core/filter/pod_view.h"
#include "core/filter/verdict.h"

namespace jogak::core {

Verdict declared_features_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                                 Reasons* reasons);

}  // namespace jogak::core
