// SPDX-License-Identifier: Apache-2.0
//
// The built-in kinds: names, subresources and rules of each. One function a family of kinds.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/registry/resource.h"

namespace jogak::api {

// What differs between servers.
struct KindOptions {
  std::string service_range = "10.0.0.0/24";  // cluster IPs
  // scheduling.k8s.io/v1alpha2 (pod groups, workloads) and the pod's schedulingGroup.
  bool has_pod_groups = false;
  // Whom a bearer token stands for; what token reviews answer. None: no token is known.
  std::function<std::optional<User>(std::string_view token)> authenticate;
};

void add_pod_kinds(Registry& registry, const KindOptions& options);  // pods, bindings
// apps, batch, policy, autoscaling, services, endpoints, replication controllers
void add_workload_kinds(Registry& registry, const KindOptions& options);
// nodes, namespaces, config maps, secrets, accounts, events, storage, leases, rbac, DRA, scheduling
void add_core_kinds(Registry& registry, const KindOptions& options);
// Kinds that are kept and shown, but that nothing here acts on: webhooks, network policies, ...
void add_stored_kinds(Registry& registry, const KindOptions& options);
// access reviews and token reviews: create only, nothing stored
void add_review_kinds(Registry& registry, const KindOptions& options);

void add_builtin_kinds(Registry& registry, const KindOptions& options);

}  // namespace jogak::api
