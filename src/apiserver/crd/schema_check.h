// SPDX-License-Identifier: Apache-2.0
//
// The rules for the schema of one version of a custom resource definition.
#pragma once

#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

// `validation` is {openAPIV3Schema}, at `at` ("spec.validation" or "spec.versions[0].schema").
void check_validation(const Doc& validation, bool has_status, const Path& at, FieldErrors& errors);

// Calls visit(schema) for the schema and every schema inside of it.
template <class Visit>
void each_schema(const Doc& schema, const Visit& visit) {
  if (!schema.is_object()) return;
  visit(schema);
  for (const char* key : {"items", "additionalProperties", "not"}) each_schema(schema[key], visit);
  for (const char* key : {"allOf", "anyOf", "oneOf"}) {
    for (const Doc& inner : schema[key].items()) each_schema(inner, visit);
  }
  for (const auto& member : schema["properties"].members()) each_schema(member.value, visit);
}

// The schema that ".spec.color" leads to, or null.
const Doc* schema_at_path(const Doc& schema, std::string_view path);

}  // namespace jogak::api
