// SPDX-License-Identifier: Apache-2.0
//
// The table.
#include "ops/permissions.h"

#include <vector>

namespace jogak::ops {

namespace {

constexpr std::string_view kStorage = "storage.k8s.io";

struct Watched {
  std::string_view group, resource;
};
constexpr Watched kWatched[] = {
    {"", "nodes"},
    {"", "pods"},
    {"", "namespaces"},
    {"", "services"},
    {"", "replicationcontrollers"},
    {"apps", "replicasets"},
    {"apps", "statefulsets"},
    {"policy", "poddisruptionbudgets"},
    {"", "persistentvolumes"},
    {"", "persistentvolumeclaims"},
    {kStorage, "storageclasses"},
    {kStorage, "csinodes"},
    {kStorage, "csidrivers"},
    {kStorage, "csistoragecapacities"},
    {kStorage, "volumeattachments"},
};

constexpr Permission kOthers[] = {
    {"get", "", "pods"},                // after a binding without an answer
    {"create", "", "pods", "binding"},  // bindings
    {"patch", "", "pods", "status"},    // conditions and nominations
    {"delete", "", "pods"},             // victims
    {"create", "events.k8s.io", "events"},
    {"patch", "events.k8s.io", "events"},  // counts of repeated ones
    {"patch", "", "persistentvolumeclaims"},
    {"get", "", "persistentvolumes"},
    {"patch", "", "persistentvolumes"},
    {"get", "coordination.k8s.io", "leases", {}, true},
    {"create", "coordination.k8s.io", "leases", {}, true},
    {"update", "coordination.k8s.io", "leases", {}, true},
};

std::vector<Permission> make_all() {
  std::vector<Permission> all;
  for (const Watched& watched : kWatched) {
    all.push_back({"list", watched.group, watched.resource});
    all.push_back({"watch", watched.group, watched.resource});
  }
  all.insert(all.end(), std::begin(kOthers), std::end(kOthers));
  return all;
}

}  // namespace

std::span<const Permission> permissions() {
  static const std::vector<Permission> all = make_all();
  return all;
}

std::string permission_text(const Permission& permission) {
  std::string text(permission.verb);
  text.append(" ").append(permission.resource);
  if (!permission.group.empty()) text.append(".").append(permission.group);
  if (!permission.subresource.empty()) text.append("/").append(permission.subresource);
  return text;
}

}  // namespace jogak::ops
