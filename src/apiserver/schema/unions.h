// SPDX-License-Identifier: Apache-2.0
//
// The members of a schema that JSON writes as one of two things and protobuf as a message of both:
// {"items": {...} or [...]}, {"additionalProperties": true or {...}}, {"dependencies": ...}.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "apiserver/schema/schema.h"

namespace jogak::schema {

enum class Union : std::uint8_t { None, SchemaOrArray, SchemaOrBool, SchemaOrStrings };

inline constexpr std::string_view kSchemaProps = "apiextensions.v1.JSONSchemaProps";

inline Union union_of(const Struct& type, const Field& field) {
  struct Entry {
    std::string_view name;
    Union kind;
  };
  static constexpr Entry kUnions[] = {{"items", Union::SchemaOrArray},
                                      {"additionalItems", Union::SchemaOrBool},
                                      {"additionalProperties", Union::SchemaOrBool},
                                      {"dependencies", Union::SchemaOrStrings}};
  if (field.type.base != Base::Raw || type.name != kSchemaProps) return Union::None;
  const auto found = std::ranges::find(kUnions, field.name, &Entry::name);
  return found == std::end(kUnions) ? Union::None : found->kind;
}

}  // namespace jogak::schema
