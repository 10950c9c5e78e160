// SPDX-License-Identifier: Apache-2.0
//
// Lookups in schemas; see the header.
#include "apiserver/crd/json_schema.h"

namespace jogak::api {

const Doc* items_schema(const Doc& schema) {
  const Doc* items = schema.find("items");
  return items != nullptr && items->is_object() ? items : nullptr;
}

const Doc* additional_schema(const Doc& schema) {
  const Doc* additional = schema.find("additionalProperties");
  return additional != nullptr && additional->is_object() ? additional : nullptr;
}

bool has_additional(const Doc& schema) {
  const Doc* additional = schema.find("additionalProperties");
  return additional != nullptr && !additional->is_null();
}

const Doc* member_schema(const Doc& schema, std::string_view key) {
  const Doc* property = schema["properties"].find(key);
  return property != nullptr ? property : additional_schema(schema);
}

bool is_type_member(std::string_view key) {
  return key == "apiVersion" || key == "kind" || key == "metadata";
}

Doc map_key_of(const Doc& list_schema, const Doc& item) {
  Doc key = Doc::object();
  const Doc* items = items_schema(list_schema);
  for (const Doc& name : list_schema["x-kubernetes-list-map-keys"].items()) {
    const std::string& member = name.as_string();
    const Doc* value = item.find(member);
    if (value == nullptr && items != nullptr) {
      value = items->get("properties", member).find("default");
    }
    if (value != nullptr) key.set(member, *value);
  }
  return key;
}

const Doc* correlated_item(const Doc& list_schema, const Doc& item, const Doc* old_list) {
  if (old_list == nullptr || list_type_of(list_schema) != "map" || !item.is_object()) {
    return nullptr;
  }
  const Doc key = map_key_of(list_schema, item);
  for (const Doc& old_item : old_list->items()) {
    if (map_key_of(list_schema, old_item) == key) return &old_item;
  }
  return nullptr;
}

}  // namespace jogak::api
