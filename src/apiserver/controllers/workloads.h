// SPDX-License-Identifier: Apache-2.0
// The controllers of workloads, one maker each.
#pragma once

#include <memory>

#include "apiserver/controllers/controllers.h"

namespace jogak::controllers {

std::unique_ptr<Controller> replica_set_controller(const ControllerContext& context);
std::unique_ptr<Controller> deployment_controller(const ControllerContext& context);
std::unique_ptr<Controller> job_controller(const ControllerContext& context);
std::unique_ptr<Controller> daemon_set_controller(const ControllerContext& context);
std::unique_ptr<Controller> stateful_set_controller(const ControllerContext& context);
std::unique_ptr<Controller> cron_job_controller(const ControllerContext& context);

}  // namespace jogak::controllers
