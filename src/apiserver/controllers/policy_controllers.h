// SPDX-License-Identifier: Apache-2.0
//
// Controllers that keep the books of a namespace: how many pods may be disrupted, what of a quota
// is used.
#pragma once

#include <memory>

#include "apiserver/controllers/controllers.h"

namespace jogak::controllers {

// The status of disruption budgets, which evictions are decided by.
std::unique_ptr<Controller> disruption_controller(const ControllerContext& context);
// status.used of resource quotas; admission adds to it, this takes away.
std::unique_ptr<Controller> quota_controller(const ControllerContext& context);

}  // namespace jogak::controllers
