// SPDX-License-Identifier: Apache-2.0
//
// The operations of an OpenAPI v3 document.
#pragma once

#include <string_view>

#include "apiserver/rest/discovery_groups.h"
#include "apiserver/rest/openapi_schemas.h"
#include "base/doc.h"

namespace jogak::api {

// Every path of a group version, with its components added.
Doc version_paths(const Group& group, const GroupVersion& version, Components& components);
// One GET that answers with the component of that short name: "/apis/", "APIGroupList".
Doc document_path(std::string_view path, std::string_view tag, std::string_view operation_id,
                  std::string_view component, Components& components);
// "RbacAuthorization" for "rbac.authorization.k8s.io", "Core" for "".
std::string group_title(std::string_view group);

}  // namespace jogak::api
