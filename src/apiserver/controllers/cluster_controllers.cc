// SPDX-License-Identifier: Apache-2.0
//
// The list of the controllers of nodes, of namespaces and of what objects leave behind.
#include "apiserver/controllers/node_controllers.h"
#include "apiserver/controllers/object_controllers.h"
#include "apiserver/controllers/policy_controllers.h"
#include "apiserver/controllers/service_controllers.h"
#include "apiserver/controllers/storage_controllers.h"

namespace jogak::controllers {

std::vector<std::unique_ptr<Controller>> cluster_controllers(const ControllerContext& context) {
  std::vector<std::unique_ptr<Controller>> all;
  all.push_back(node_lifecycle_controller(context));
  all.push_back(taint_eviction_controller(context));
  all.push_back(garbage_collector(context));
  all.push_back(namespace_controller(context));
  all.push_back(namespace_contents_controller(context));
  all.push_back(pod_gc_controller(context));
  all.push_back(disruption_controller(context));
  all.push_back(quota_controller(context));
  all.push_back(endpoints_controller(context));
  all.push_back(autoscaler_controller(context));
  all.push_back(event_ttl_controller(context));
  all.push_back(volume_binder(context));
  all.push_back(volume_protection(context));
  all.push_back(resource_claim_controller(context));
  return all;
}

}  // namespace jogak::controllers
