// SPDX-License-Identifier: Apache-2.0
//
// Components of OpenAPI that are no structs of the schema: wrappers of scalars, and the documents
// of discovery itself.
#pragma once

#include <span>
#include <string_view>

namespace jogak::api {

struct FixedComponent {
  std::string_view short_name, name;
  std::string_view json;     // "@Name" in a "$ref" stands for the component of that short name
  bool is_of_group = false;  // its kind is part of every group: the extension names both
};

// CHECKs that it exists.
const FixedComponent& fixed_component(std::string_view short_name);

}  // namespace jogak::api
