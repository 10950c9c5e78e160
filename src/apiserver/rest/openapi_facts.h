// SPDX-License-Identifier: Apache-2.0
//
// What OpenAPI says of the built-in types beyond the facts in schema/: the values of enumerations
// (`+enum` in k8s.io/api 1.36), members that are required although Go leaves them out when empty,
// and unions.
#pragma once

#include <string_view>
#include <vector>

#include "base/doc.h"

namespace jogak::api {

// Sorted; none for a member that is no enumeration. Of lists and maps: of their elements.
std::vector<std::string_view> enum_values(std::string_view type, std::string_view member);

bool is_required_anyway(std::string_view type, std::string_view member);

// Whether x-kubernetes-map-type says "granular", which silence means too.
bool is_granular(std::string_view type, std::string_view member);

// The default of a string where it is a Go constant, else "".
std::string_view named_default(std::string_view type, std::string_view member);

// x-kubernetes-unions of a type, or null.
Doc unions_of(std::string_view type);

// The group that the types of a package belong to: "scheduling" is "scheduling.k8s.io".
std::string_view group_of_package(std::string_view package);

}  // namespace jogak::api
