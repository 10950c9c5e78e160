// SPDX-License-Identifier: Apache-2.0
//
// The list of the controllers that make pods, straight or through objects in between.
#include "apiserver/controllers/workloads.h"

namespace jogak::controllers {

std::vector<std::unique_ptr<Controller>> workload_controllers(const ControllerContext& context) {
  std::vector<std::unique_ptr<Controller>> all;
  all.push_back(replica_set_controller(context));
  all.push_back(deployment_controller(context));
  all.push_back(job_controller(context));
  all.push_back(daemon_set_controller(context));
  all.push_back(stateful_set_controller(context));
  all.push_back(cron_job_controller(context));
  return all;
}

}  // namespace jogak::controllers
