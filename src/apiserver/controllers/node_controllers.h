// SPDX-License-Identifier: Apache-2.0
//
// What happens to nodes and to the pods on them: health by leases, taints by conditions, evictions
// by taints.
#pragma once

#include <memory>

#include "apiserver/controllers/controllers.h"

namespace jogak::controllers {

// Conditions and spec.unschedulable to taints; a node without signs of life becomes Unknown.
std::unique_ptr<Controller> node_lifecycle_controller(const ControllerContext& context);
// Pods that do not tolerate a NoExecute taint go, at once or when their patience ends.
std::unique_ptr<Controller> taint_eviction_controller(const ControllerContext& context);

}  // namespace jogak::controllers
