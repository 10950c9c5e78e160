// SPDX-License-Identifier: Apache-2.0
//
// The core kinds: names, scopes, short names and subresources, as the real server's discovery shows
// them.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/kinds/core_strategies.h"
#include "apiserver/kinds/kinds.h"
#include "apiserver/schema/schema.h"

namespace jogak::api {

namespace {

enum class Where : std::uint8_t { Namespaced, Cluster };
enum class Status : std::uint8_t { None, Has };

struct Kind {
  std::string_view group, version, plural, singular, kind;
  std::string_view type;  // of the schema
  Where where = Where::Namespaced;
  StrategyPtr strategy;
  Status status = Status::None;
  std::vector<std::string> short_names;
};

constexpr std::uint16_t kSubresourceVerbs = static_cast<std::uint16_t>(Verb::Get) |
                                            static_cast<std::uint16_t>(Verb::Update) |
                                            static_cast<std::uint16_t>(Verb::Patch);

Resource make_resource(const Kind& kind) {
  Resource resource;
  resource.group = kind.group;
  resource.version = kind.version;
  resource.plural = kind.plural;
  resource.singular = kind.singular;
  resource.kind = kind.kind;
  resource.list_kind = std::string(kind.kind) + "List";
  resource.is_namespaced = kind.where == Where::Namespaced;
  resource.short_names = kind.short_names;
  resource.type = &schema::get(kind.type);
  resource.strategy = kind.strategy;
  resource.table = std::string(kind.plural);
  if (!kind.group.empty()) resource.table += "." + std::string(kind.group);
  if (kind.status == Status::Has) {
    resource.subresources.push_back({.name = "status",
                                     .group = resource.group,
                                     .version = resource.version,
                                     .kind = resource.kind,
                                     .verbs = kSubresourceVerbs,
                                     .type = resource.type,
                                     .handler = {},
                                     .projection = nullptr});
  }
  return resource;
}

std::uint16_t without(Verb verb) {
  return static_cast<std::uint16_t>(kAllVerbs & ~static_cast<std::uint16_t>(verb));
}

Resource namespaces() {
  Resource resource = make_resource({"", "v1", "namespaces", "namespace", "Namespace",
                                     "core.v1.Namespace", Where::Cluster, namespace_strategy(),
                                     Status::Has, {"ns"}});
  resource.verbs = without(Verb::DeleteCollection);
  resource.subresources.insert(resource.subresources.begin(),
                               {.name = "finalize",
                                .group = "",
                                .version = "v1",
                                .kind = "Namespace",
                                .verbs = static_cast<std::uint16_t>(Verb::Update),
                                .type = resource.type,
                                .handler = {},
                                .projection = nullptr});
  return resource;
}

Resource service_accounts() {
  Resource resource = make_resource({"", "v1", "serviceaccounts", "serviceaccount",
                                     "ServiceAccount", "core.v1.ServiceAccount",
                                     Where::Namespaced, service_account_strategy(), Status::None,
                                     {"sa"}});
  resource.subresources.push_back({.name = "token",
                                   .group = "authentication.k8s.io",
                                   .version = "v1",
                                   .kind = "TokenRequest",
                                   .verbs = static_cast<std::uint16_t>(Verb::Create),
                                   .type = &schema::get("authentication.v1.TokenRequest"),
                                   .handler = token_handler(),
                                   .projection = nullptr});
  return resource;
}

// Kept for clients that ask; nothing is ever stored there.
Resource component_statuses() {
  Resource resource = make_resource({"", "v1", "componentstatuses", "componentstatus",
                                     "ComponentStatus", "core.v1.ComponentStatus", Where::Cluster,
                                     std::make_shared<Strategy>(), Status::None, {"cs"}});
  resource.verbs = static_cast<std::uint16_t>(static_cast<std::uint16_t>(Verb::Get) |
                                              static_cast<std::uint16_t>(Verb::List));
  return resource;
}

// events.k8s.io shares the table of v1, which is what is stored.
Resource new_events() {
  Resource resource =
      make_resource({"events.k8s.io", "v1", "events", "event", "Event", "events.v1.Event",
                     Where::Namespaced, new_event_strategy(), Status::None, {"ev"}});
  resource.table = "events";
  resource.is_storage_version = false;
  return resource;
}

using enum Where;

std::vector<Kind> core_group() {
  return {
      {"", "v1", "configmaps", "configmap", "ConfigMap", "core.v1.ConfigMap", Namespaced,
       config_map_strategy(), Status::None, {"cm"}},
      {"", "v1", "events", "event", "Event", "core.v1.Event", Namespaced, core_event_strategy(),
       Status::None, {"ev"}},
      {"", "v1", "limitranges", "limitrange", "LimitRange", "core.v1.LimitRange", Namespaced,
       limit_range_strategy(), Status::None, {"limits"}},
      {"", "v1", "nodes", "node", "Node", "core.v1.Node", Cluster, node_strategy(), Status::Has,
       {"no"}},
      {"", "v1", "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim",
       "core.v1.PersistentVolumeClaim", Namespaced, claim_strategy(), Status::Has, {"pvc"}},
      {"", "v1", "persistentvolumes", "persistentvolume", "PersistentVolume",
       "core.v1.PersistentVolume", Cluster, volume_strategy(), Status::Has, {"pv"}},
      {"", "v1", "resourcequotas", "resourcequota", "ResourceQuota", "core.v1.ResourceQuota",
       Namespaced, quota_strategy(), Status::Has, {"quota"}},
      {"", "v1", "secrets", "secret", "Secret", "core.v1.Secret", Namespaced, secret_strategy(),
       Status::None, {}},
  };
}

std::vector<Kind> rbac_group() {
  constexpr std::string_view kGroup = "rbac.authorization.k8s.io";
  return {
      {kGroup, "v1", "clusterrolebindings", "clusterrolebinding", "ClusterRoleBinding",
       "rbac.v1.ClusterRoleBinding", Cluster, role_binding_strategy(false), Status::None, {}},
      {kGroup, "v1", "clusterroles", "clusterrole", "ClusterRole", "rbac.v1.ClusterRole", Cluster,
       role_strategy(false), Status::None, {}},
      {kGroup, "v1", "rolebindings", "rolebinding", "RoleBinding", "rbac.v1.RoleBinding",
       Namespaced, role_binding_strategy(true), Status::None, {}},
      {kGroup, "v1", "roles", "role", "Role", "rbac.v1.Role", Namespaced, role_strategy(true),
       Status::None, {}},
  };
}

std::vector<Kind> storage_group() {
  constexpr std::string_view kGroup = "storage.k8s.io";
  return {
      {kGroup, "v1", "csidrivers", "csidriver", "CSIDriver", "storage.v1.CSIDriver", Cluster,
       csi_driver_strategy(), Status::None, {}},
      {kGroup, "v1", "csinodes", "csinode", "CSINode", "storage.v1.CSINode", Cluster,
       csi_node_strategy(), Status::None, {}},
      {kGroup, "v1", "csistoragecapacities", "csistoragecapacity", "CSIStorageCapacity",
       "storage.v1.CSIStorageCapacity", Namespaced, csi_capacity_strategy(), Status::None, {}},
      {kGroup, "v1", "storageclasses", "storageclass", "StorageClass", "storage.v1.StorageClass",
       Cluster, storage_class_strategy(), Status::None, {"sc"}},
      {kGroup, "v1", "volumeattachments", "volumeattachment", "VolumeAttachment",
       "storage.v1.VolumeAttachment", Cluster, attachment_strategy(), Status::Has, {}},
  };
}

std::vector<Kind> resource_group() {
  constexpr std::string_view kGroup = "resource.k8s.io";
  return {
      {kGroup, "v1", "deviceclasses", "deviceclass", "DeviceClass", "resource.v1.DeviceClass",
       Cluster, device_class_strategy(), Status::None, {}},
      {kGroup, "v1", "resourceclaims", "resourceclaim", "ResourceClaim",
       "resource.v1.ResourceClaim", Namespaced, resource_claim_strategy(), Status::Has, {}},
      {kGroup, "v1", "resourceclaimtemplates", "resourceclaimtemplate", "ResourceClaimTemplate",
       "resource.v1.ResourceClaimTemplate", Namespaced, resource_claim_template_strategy(),
       Status::None, {}},
      {kGroup, "v1", "resourceslices", "resourceslice", "ResourceSlice",
       "resource.v1.ResourceSlice", Cluster, resource_slice_strategy(), Status::None, {}},
  };
}

std::vector<Kind> small_groups() {
  return {
      {"scheduling.k8s.io", "v1", "priorityclasses", "priorityclass", "PriorityClass",
       "scheduling.v1.PriorityClass", Cluster, priority_class_strategy(), Status::None, {"pc"}},
      {"coordination.k8s.io", "v1", "leases", "lease", "Lease", "coordination.v1.Lease",
       Namespaced, lease_strategy(), Status::None, {}},
      {"node.k8s.io", "v1", "runtimeclasses", "runtimeclass", "RuntimeClass",
       "node.v1.RuntimeClass", Cluster, runtime_class_strategy(), Status::None, {}},
  };
}

std::vector<Kind> pod_group_kinds() {
  constexpr std::string_view kGroup = "scheduling.k8s.io";
  return {
      {kGroup, "v1alpha2", "podgroups", "podgroup", "PodGroup", "scheduling.v1alpha2.PodGroup",
       Namespaced, pod_group_strategy(), Status::Has, {}},
      {kGroup, "v1alpha2", "workloads", "workload", "Workload", "scheduling.v1alpha2.Workload",
       Namespaced, workload_strategy(), Status::None, {}},
  };
}

}  // namespace

void add_core_kinds(Registry& registry, const KindOptions& options) {
  registry.add(component_statuses());
  for (const Kind& kind : core_group()) registry.add(make_resource(kind));
  registry.add(namespaces());
  registry.add(service_accounts());
  registry.add(new_events());
  for (const auto& group : {rbac_group(), storage_group(), small_groups(), resource_group()}) {
    for (const Kind& kind : group) registry.add(make_resource(kind));
  }
  if (!options.has_pod_groups) return;
  for (const Kind& kind : pod_group_kinds()) registry.add(make_resource(kind));
}

}  // namespace jogak::api
