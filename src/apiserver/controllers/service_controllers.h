// SPDX-License-Identifier: Apache-2.0
// Controllers of services and autoscalers.
#pragma once

#include <memory>

#include "apiserver/controllers/controllers.h"

namespace jogak::controllers {

// The addresses behind each service that selects pods: Endpoints and EndpointSlices.
std::unique_ptr<Controller> endpoints_controller(const ControllerContext& context);
// Autoscalers of a cluster without metrics: they keep the bounds and say why they do no more.
std::unique_ptr<Controller> autoscaler_controller(const ControllerContext& context);

}  // namespace jogak::controllers
