// SPDX-License-Identifier: Apache-2.0
//
// The core kinds: names, scopes, short names and subresources, as the real server's discovery shows
// them.
#include <string>
#include <utility>
#include <vector>

#include "apiserver/kinds/core_strategies.h"
#include "apiserver/kinds/kinds.h"
#include "apiserver/ops/ops.h"
#include "apiserver/schema/schema.h"

namespace jogak::api {

namespace {

enum class Scope : std::uint8_t { Namespaced, Cluster };
enum class Status : std::uint8_t { None, Has };
using enum Scope;

// `types` is where the schema keeps the types of the group.
struct Group {
  std::string_view name, version, types;
};
constexpr Group kCore{"", "v1", "core.v1"};
constexpr Group kEvents{"events.k8s.io", "v1", "events.v1"};
constexpr Group kCoordination{"coordination.k8s.io", "v1", "coordination.v1"};
constexpr Group kNode{"node.k8s.io", "v1", "node.v1"};
constexpr Group kRbac{"rbac.authorization.k8s.io", "v1", "rbac.v1"};
constexpr Group kResource{"resource.k8s.io", "v1", "resource.v1"};
constexpr Group kScheduling{"scheduling.k8s.io", "v1", "scheduling.v1"};
constexpr Group kSchedulingAlpha{"scheduling.k8s.io", "v1alpha2", "scheduling.v1alpha2"};
constexpr Group kStorage{"storage.k8s.io", "v1", "storage.v1"};

struct Kind {
  Group group;
  std::string_view plural, kind, short_name;
  Scope scope;
  Status status;
  StrategyPtr strategy;
};

constexpr auto kNone = Status::None;
constexpr auto kHas = Status::Has;

std::vector<Kind> kinds() {
  return {
      {kCore, "configmaps", "ConfigMap", "cm", Namespaced, kNone, config_map_strategy()},
      {kCore, "events", "Event", "ev", Namespaced, kNone, core_event_strategy()},
      {kCore, "limitranges", "LimitRange", "limits", Namespaced, kNone, limit_range_strategy()},
      {kCore, "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", Namespaced, kHas,
       claim_strategy()},
      {kCore, "persistentvolumes", "PersistentVolume", "pv", Cluster, kHas, volume_strategy()},
      {kCore, "resourcequotas", "ResourceQuota", "quota", Namespaced, kHas, quota_strategy()},
      {kCore, "secrets", "Secret", "", Namespaced, kNone, secret_strategy()},
      {kRbac, "clusterrolebindings", "ClusterRoleBinding", "", Cluster, kNone,
       role_binding_strategy(false)},
      {kRbac, "clusterroles", "ClusterRole", "", Cluster, kNone, role_strategy(false)},
      {kRbac, "rolebindings", "RoleBinding", "", Namespaced, kNone, role_binding_strategy(true)},
      {kRbac, "roles", "Role", "", Namespaced, kNone, role_strategy(true)},
      {kStorage, "csidrivers", "CSIDriver", "", Cluster, kNone, csi_driver_strategy()},
      {kStorage, "csinodes", "CSINode", "", Cluster, kNone, csi_node_strategy()},
      {kStorage, "csistoragecapacities", "CSIStorageCapacity", "", Namespaced, kNone,
       csi_capacity_strategy()},
      {kStorage, "storageclasses", "StorageClass", "sc", Cluster, kNone, storage_class_strategy()},
      {kStorage, "volumeattachments", "VolumeAttachment", "", Cluster, kHas, attachment_strategy()},
      {kScheduling, "priorityclasses", "PriorityClass", "pc", Cluster, kNone,
       priority_class_strategy()},
      {kCoordination, "leases", "Lease", "", Namespaced, kNone, lease_strategy()},
      {kNode, "runtimeclasses", "RuntimeClass", "", Cluster, kNone, runtime_class_strategy()},
      {kResource, "deviceclasses", "DeviceClass", "", Cluster, kNone, device_class_strategy()},
      {kResource, "resourceclaims", "ResourceClaim", "", Namespaced, kHas,
       resource_claim_strategy()},
      {kResource, "resourceclaimtemplates", "ResourceClaimTemplate", "", Namespaced, kNone,
       resource_claim_template_strategy()},
      {kResource, "resourceslices", "ResourceSlice", "", Cluster, kNone, resource_slice_strategy()},
  };
}

std::vector<Kind> pod_group_kinds() {
  return {
      {kSchedulingAlpha, "podgroups", "PodGroup", "", Namespaced, kHas, pod_group_strategy()},
      {kSchedulingAlpha, "workloads", "Workload", "", Namespaced, kNone, workload_strategy()},
  };
}

Resource make_resource(const Kind& kind) {
  const auto& [group, version, types] = kind.group;
  Resource resource;
  resource.group = group;
  resource.version = version;
  resource.plural = kind.plural;
  for (const char c : kind.kind) {
    resource.singular += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  resource.kind = kind.kind;
  resource.list_kind = std::string(kind.kind) + "List";
  resource.is_namespaced = kind.scope == Namespaced;
  if (!kind.short_name.empty()) resource.short_names.emplace_back(kind.short_name);
  resource.type = &schema::get(std::string(types) + "." + std::string(kind.kind));
  resource.strategy = kind.strategy;
  resource.table = resource.name().qualified();
  if (kind.status == kHas) {
    resource.subresources.push_back(whole_subresource("status", resource));
  }
  return resource;
}

// A kubelet answers there on a real node; a simulated one has no API of its own.
ApiResult<Answer> refuse_node_proxy(Ops& ops, Call& call) {
  if (!ops.get("nodes", "", call.name).has_value()) return not_found({"nodes", ""}, call.name);
  ApiError error;
  error.code = 503;
  error.reason = "ServiceUnavailable";
  error.message = "error trying to reach the kubelet: simulated nodes listen on no address";
  return std::unexpected(std::move(error));
}

Resource nodes() {
  Resource resource = make_resource({kCore, "nodes", "Node", "no", Cluster, kHas, node_strategy()});
  Subresource proxy = whole_subresource(
      "proxy", resource,
      verbs_of({Verb::Create, Verb::Delete, Verb::Get, Verb::Patch, Verb::Update}));
  proxy.kind = "NodeProxyOptions";
  proxy.type = nullptr;
  proxy.handler = refuse_node_proxy;
  resource.subresources.insert(resource.subresources.begin(), std::move(proxy));
  return resource;
}

Resource namespaces() {
  Resource resource =
      make_resource({kCore, "namespaces", "Namespace", "ns", Cluster, kHas, namespace_strategy()});
  resource.verbs &= static_cast<std::uint16_t>(~verbs_of({Verb::DeleteCollection}));
  resource.subresources.insert(resource.subresources.begin(),
                               whole_subresource("finalize", resource, verbs_of({Verb::Update})));
  return resource;
}

Resource service_accounts() {
  Resource resource = make_resource({kCore, "serviceaccounts", "ServiceAccount", "sa", Namespaced,
                                     kNone, service_account_strategy()});
  Subresource token = whole_subresource("token", resource, verbs_of({Verb::Create}));
  token.group = "authentication.k8s.io";
  token.kind = "TokenRequest";
  token.type = &schema::get("authentication.v1.TokenRequest");
  token.handler = token_handler();
  resource.subresources.push_back(std::move(token));
  return resource;
}

// Kept for clients that ask; nothing is ever stored there.
Resource component_statuses() {
  Resource resource = make_resource({kCore, "componentstatuses", "ComponentStatus", "cs", Cluster,
                                     kNone, std::make_shared<Strategy>()});
  resource.verbs = verbs_of({Verb::Get, Verb::List});
  resource.deprecation = "v1 ComponentStatus is deprecated in v1.19+";
  return resource;
}

// events.k8s.io shares the table of v1, which is what is stored.
Resource new_events() {
  Resource resource =
      make_resource({kEvents, "events", "Event", "ev", Namespaced, kNone, new_event_strategy()});
  resource.table = "events";
  resource.is_storage_version = false;
  return resource;
}

}  // namespace

void add_core_kinds(Registry& registry, const KindOptions& options) {
  registry.add(component_statuses());
  registry.add(namespaces());
  registry.add(nodes());
  registry.add(service_accounts());
  registry.add(new_events());
  for (const Kind& kind : kinds()) registry.add(make_resource(kind));
  if (!options.has_pod_groups) return;
  for (const Kind& kind : pod_group_kinds()) registry.add(make_resource(kind));
}

}  // namespace jogak::api
