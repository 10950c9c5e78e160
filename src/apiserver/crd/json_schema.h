// SPDX-License-Identifier: Apache-2.0
//
// Short ways into a structural schema (openAPIV3Schema of a custom resource definition, as a Doc).
// Schemas come as schema::decode() left them: a member is absent or of the right type, except that
// `items` and `additionalProperties` are raw.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"

namespace jogak::api {

inline bool is_nullable(const Doc& schema) { return schema["nullable"].as_bool(); }
inline bool is_embedded(const Doc& schema) {
  return schema["x-kubernetes-embedded-resource"].as_bool();
}
inline bool is_int_or_string(const Doc& schema) {
  return schema["x-kubernetes-int-or-string"].as_bool();
}
inline bool keeps_unknown(const Doc& schema) {
  return schema["x-kubernetes-preserve-unknown-fields"].as_bool();
}
inline const std::string& list_type_of(const Doc& schema) {
  return schema["x-kubernetes-list-type"].as_string();
}

// The schema of a list's items; null when there is none.
const Doc* items_schema(const Doc& schema);
// The schema of what stands beside the properties; null when there is none or it is a boolean.
const Doc* additional_schema(const Doc& schema);
// Whether the schema says anything of additional properties, be it a boolean.
bool has_additional(const Doc& schema);
// The schema of one member of an object: its property, else the additional one, else null.
const Doc* member_schema(const Doc& schema, std::string_view key);
// {"apiVersion", "kind", "metadata"}: members of every resource that no schema need mention.
bool is_type_member(std::string_view key);
// The key by which an item of a list of type "map" is found: its map keys and their values; keys
// that are absent take the default of their schema.
Doc map_key_of(const Doc& list_schema, const Doc& item);
// The item of `old_list` with the same map key, or null. Lists of other types correlate nothing.
const Doc* correlated_item(const Doc& list_schema, const Doc& item, const Doc* old_list);

}  // namespace jogak::api
