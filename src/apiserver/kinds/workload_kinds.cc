// SPDX-License-Identifier: Apache-2.0
//
// All kinds that run pods, and those that serve or guard what runs.
#include "apiserver/kinds/apps.h"
#include "apiserver/kinds/autoscaling.h"
#include "apiserver/kinds/batch.h"
#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/workload.h"

namespace jogak::api {

void add_workload_kinds(Registry& registry, const KindOptions& options) {
  add_service_kinds(registry, options);
  add_apps_kinds(registry, options);
  add_batch_kinds(registry, options);
  add_policy_kinds(registry);
  add_autoscaling_kinds(registry);
}

}  // namespace jogak::api
