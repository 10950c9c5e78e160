// SPDX-License-Identifier: Apache-2.0
//
// The rules of each core kind, one maker a kind. core_kinds.cc puts them beside names and verbs.
#pragma once

#include <memory>

#include "apiserver/registry/resource.h"

namespace jogak::api {

using StrategyPtr = std::shared_ptr<const Strategy>;

StrategyPtr node_strategy();
StrategyPtr runtime_class_strategy();
StrategyPtr namespace_strategy();
StrategyPtr config_map_strategy();
StrategyPtr secret_strategy();
StrategyPtr service_account_strategy();
StrategyPtr core_event_strategy();  // v1
StrategyPtr new_event_strategy();   // events.k8s.io/v1
StrategyPtr volume_strategy();
StrategyPtr claim_strategy();
StrategyPtr storage_class_strategy();
StrategyPtr csi_node_strategy();
StrategyPtr csi_driver_strategy();
StrategyPtr csi_capacity_strategy();
StrategyPtr attachment_strategy();
StrategyPtr limit_range_strategy();
StrategyPtr quota_strategy();
StrategyPtr lease_strategy();
StrategyPtr role_strategy(bool is_namespaced);
StrategyPtr role_binding_strategy(bool is_namespaced);
StrategyPtr priority_class_strategy();
StrategyPtr pod_group_strategy();
StrategyPtr workload_strategy();
StrategyPtr device_class_strategy();
StrategyPtr resource_slice_strategy();
StrategyPtr resource_claim_strategy();
StrategyPtr resource_claim_template_strategy();

// POST serviceaccounts/NAME/token.
CallHandler token_handler();

}  // namespace jogak::api
