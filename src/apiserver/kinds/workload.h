// SPDX-License-Identifier: Apache-2.0
//
// The families that add_workload_kinds() puts together, and the kinds of the core group among them.
#pragma once

#include <memory>

#include "apiserver/kinds/kinds.h"
#include "apiserver/registry/resource.h"

namespace jogak::api {

std::shared_ptr<const Strategy> replication_controller_strategy(const KindOptions& options);
std::shared_ptr<const Strategy> service_strategy(const KindOptions& options);
std::shared_ptr<const Strategy> endpoints_strategy();
std::shared_ptr<const Strategy> endpoint_slice_strategy();
std::shared_ptr<const Strategy> disruption_budget_strategy();

// Replication controllers, services and endpoints; endpoint slices.
void add_service_kinds(Registry& registry, const KindOptions& options);
void add_policy_kinds(Registry& registry);

}  // namespace jogak::api
