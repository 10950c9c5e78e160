// SPDX-License-Identifier: Apache-2.0
// Controllers of volumes and of device claims.
#pragma once

#include <memory>

#include "apiserver/controllers/controllers.h"

namespace jogak::controllers {

// Binds claims to volumes that are there already, and lets volumes go when their claims do.
std::unique_ptr<Controller> volume_binder(const ControllerContext& context);
// Holds claims while pods use them and volumes while they are bound; makes the claims of ephemeral
// volumes.
std::unique_ptr<Controller> volume_protection(const ControllerContext& context);
// Resource claims from templates; reservations of pods that are done.
std::unique_ptr<Controller> resource_claim_controller(const ControllerContext& context);

}  // namespace jogak::controllers
