// SPDX-License-Identifier: Apache-2.0
// Whether a pod may be on a node, as far as names, labels and taints go.
#pragma once

#include <string_view>

#include "base/doc.h"

namespace jogak::controllers {

bool tolerates(const Doc& toleration, const Doc& taint);
// Whether every taint of these effects is tolerated.
bool tolerates_all(const Doc& tolerations, const Doc& taints, bool with_no_schedule);

// spec.nodeSelector and the required node affinity. `node` needs its name and labels only.
bool selects_node(const Doc& pod_spec, const Doc& node);

}  // namespace jogak::controllers
