// SPDX-License-Identifier: Apache-2.0
//
// The registry as discovery shows it: groups in the order of the real server, their versions from
// the preferred one on, and the two forms of the documents (plain, and aggregated v2).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/registry/resource.h"
#include "base/doc.h"

namespace jogak::api {

struct GroupVersion {
  std::string version;
  std::vector<const Resource*> resources;  // by name
};

struct Group {
  std::string name;                    // "" for the core group
  std::vector<GroupVersion> versions;  // the preferred one first

  const GroupVersion* find(std::string_view version) const;
};

// The core group is among them, first.
std::vector<Group> discovery_groups(const Registry& registry);

// Whether version `a` of an API comes before `b`: stable before beta before alpha, newer first.
bool is_better_version(std::string_view a, std::string_view b);

// "v1", "apps/v1"
std::string group_version_name(const Group& group, std::string_view version);

// APIVersions of /api.
Doc api_versions(const Group& core, std::string_view server_address);
// APIGroupList of /apis, APIGroup of /apis/GROUP.
Doc api_group_list(const std::vector<Group>& groups);
Doc api_group(const Group& group);
// APIResourceList of /api/v1 and /apis/GROUP/VERSION.
Doc api_resource_list(const Registry& registry, const Group& group, const GroupVersion& version);
// APIGroupDiscoveryList of /api (the core group alone) or /apis (all others).
Doc aggregated_list(const std::vector<Group>& groups, bool is_core);

}  // namespace jogak::api
