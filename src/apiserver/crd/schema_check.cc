// SPDX-License-Identifier: Apache-2.0
//
// What apiextensions-apiserver checks of a schema besides structure (pkg/apis/apiextensions/
// validation): which keywords are supported, and how list and map types fit together.
#include "apiserver/crd/schema_check.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "apiserver/crd/cel.h"
#include "apiserver/crd/json_schema.h"
#include "apiserver/crd/structural_check.h"

namespace jogak::api {
namespace {

constexpr std::array<std::string_view, 6> kTypes = {"array",  "boolean", "integer",
                                                    "number", "object",  "string"};
constexpr std::array<std::string_view, 22> kAllowedAtRoot = {"description",
                                                             "type",
                                                             "format",
                                                             "title",
                                                             "maximum",
                                                             "exclusiveMaximum",
                                                             "minimum",
                                                             "exclusiveMinimum",
                                                             "maxLength",
                                                             "minLength",
                                                             "pattern",
                                                             "maxItems",
                                                             "minItems",
                                                             "uniqueItems",
                                                             "multipleOf",
                                                             "required",
                                                             "items",
                                                             "properties",
                                                             "externalDocs",
                                                             "example",
                                                             "x-kubernetes-preserve-unknown-fields",
                                                             "x-kubernetes-validations"};
constexpr std::string_view kAllowedText =
    "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength "
    "MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties "
    "ExternalDocs Example XPreserveUnknownFields XValidations]";

// Keywords that JSON schema has and structural schemas have not.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kUnsupported = {
    {{"id", "id is not supported"},
     {"additionalItems", "additionalItems is not supported"},
     {"patternProperties", "patternProperties is not supported"},
     {"definitions", "definitions is not supported"},
     {"dependencies", "dependencies is not supported"},
     {"$ref", "$ref is not supported"}}};

template <class List>
bool contains(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

const std::string& type_of(const Doc& schema) { return schema["type"].as_string(); }

bool has_newline(std::string_view text) {
  return text.find_first_of("\r\n") != std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// What the place of a schema forbids.
struct Place {
  std::string no_defaults;      // why defaults may not stand here; "" where they may
  bool is_inside_meta = false;  // below the metadata, kind or apiVersion of a resource
};

class Checker {
 public:
  explicit Checker(FieldErrors& errors) : errors_(errors) {}

  void check(const Doc& schema, const Path& at, const Place& place, bool is_root) {
    check_keywords(schema, at, place);
    if (schema["uniqueItems"].as_bool()) {
      errors_.forbidden(at.child("uniqueItems"),
                        "uniqueItems cannot be set to true since the runtime complexity becomes "
                        "quadratic");
    }
    check_children(schema, at, place, is_root);
    check_types(schema, at);
    check_map_keys(schema, at);
    check_items_of_set_or_map(schema, at);
    check_rules(schema["x-kubernetes-validations"], at.child("x-kubernetes-validations"));
  }

 private:
  void check_keywords(const Doc& schema, const Path& at, const Place& place) {
    const std::string& type = type_of(schema);
    if (!type.empty() && !contains(kTypes, type)) {
      errors_.not_supported(at.child("type"), type, {kTypes.begin(), kTypes.end()});
    }
    if (schema.has("default") && !place.no_defaults.empty()) {
      errors_.forbidden(at.child("default"), "must not be set " + place.no_defaults);
    }
    for (const auto& [keyword, what] : kUnsupported) {
      if (schema.has(keyword)) errors_.forbidden(at.child(keyword), what);
    }
    if (type == "null") {
      errors_.forbidden(at.child("type"),
                        "type cannot be set to null, use nullable as an alternative");
    }
    if (schema["items"].is_array()) {
      errors_.forbidden(at.child("items"), "items must be a schema object and not an array");
    }
    if (place.is_inside_meta && is_embedded(schema)) {
      errors_.forbidden(at.child("x-kubernetes-embedded-resource"),
                        "must not be used inside of resource meta");
    }
  }

  void check_children(const Doc& schema, const Path& at, const Place& place, bool is_root) {
    const Doc& properties = schema["properties"];
    const Doc& additional = schema["additionalProperties"];
    if (!additional.is_null() && !properties.empty() &&
        (additional.is_object() || !additional.as_bool())) {
      errors_.forbidden(at.child("additionalProperties"),
                        "additionalProperties and properties are mutual exclusive");
    }
    if (additional.is_object()) {
      Place inner = place;
      if (place.is_inside_meta) {
        inner.no_defaults = "inside additionalProperties applying to object metadata";
      }
      check(additional, at.child("additionalProperties"), inner, false);
    }
    for (const auto& [key, property] : properties.members()) {
      Place inner = place;
      if ((is_root || is_embedded(schema)) && is_type_member(key)) {
        inner.is_inside_meta = true;
        if (is_root) inner.no_defaults = "in top-level " + key;
      }
      check(property, at.child("properties").key(key), inner, false);
    }
    if (const Doc& negated = schema["not"]; negated.is_object()) {
      check(negated, at.child("not"), place, false);
    }
    for (const std::string_view key : {"allOf", "oneOf", "anyOf"}) {
      const Doc& list = schema[key];
      for (std::size_t i = 0; i < list.size(); ++i) {
        check(list.items()[i], at.child(key).index(i), place, false);
      }
    }
    if (const Doc* items = items_schema(schema)) check(*items, at.child("items"), place, false);
  }

  // `key` may only stand where the type is `wanted`.
  bool needs_type(const Doc& schema, std::string_view key, std::string_view wanted,
                  const Path& at) {
    if (!schema.has(key) || type_of(schema) == wanted) return true;
    const std::string what = fmt::format("must be {} if {} is specified", wanted, key);
    if (type_of(schema).empty()) {
      errors_.required(at.child("type"), what);
    } else {
      errors_.invalid(at.child("type"), type_of(schema), what);
    }
    return false;
  }

  void check_types(const Doc& schema, const Path& at) {
    const Doc* keeps = schema.find("x-kubernetes-preserve-unknown-fields");
    if (keeps != nullptr && keeps->is_bool() && !keeps->as_bool()) {
      errors_.invalid(at.child("x-kubernetes-preserve-unknown-fields"), false,
                      "must be true or undefined");
    }
    needs_type(schema, "x-kubernetes-map-type", "object", at);
    const std::string& map_type = schema["x-kubernetes-map-type"].as_string();
    if (schema.has("x-kubernetes-map-type") && map_type != "atomic" && map_type != "granular") {
      errors_.not_supported(at.child("x-kubernetes-map-type"), map_type, {"atomic", "granular"});
    }
    if (!schema.has("x-kubernetes-list-type")) return;
    const std::string& list_type = list_type_of(schema);
    const bool is_list = needs_type(schema, "x-kubernetes-list-type", "array", at);
    const Doc* items = items_schema(schema);
    if (is_list && list_type == "set" && items != nullptr) check_set_items(*items, at);
    if (list_type != "atomic" && list_type != "set" && list_type != "map") {
      errors_.not_supported(at.child("x-kubernetes-list-type"), list_type,
                            {"atomic", "set", "map"});
    }
  }

  void check_set_items(const Doc& items, const Path& at) {
    constexpr std::string_view kMust =
        "must be atomic as item of a list with x-kubernetes-list-type=set";
    const Path here = at.child("items");
    if (type_of(items) == "array" && items.has("x-kubernetes-list-type") &&
        list_type_of(items) != "atomic") {
      errors_.invalid(here.child("x-kubernetes-list-type"), list_type_of(items), kMust);
    } else if (type_of(items) == "object" &&
               items["x-kubernetes-map-type"].as_string() != "atomic") {
      errors_.invalid(here.child("x-kubernetes-map-type"), items["x-kubernetes-list-type"], kMust);
    }
  }

  void check_map_keys(const Doc& schema, const Path& at) {
    const Doc& keys = schema["x-kubernetes-list-map-keys"];
    const Path type_at = at.child("x-kubernetes-list-type");
    const Path keys_at = at.child("x-kubernetes-list-map-keys");
    if (!keys.empty() && list_type_of(schema) != "map") {
      constexpr std::string_view kMust = "must be map if x-kubernetes-list-map-keys is non-empty";
      if (!schema.has("x-kubernetes-list-type")) {
        errors_.required(type_at, kMust);
      } else {
        errors_.invalid(type_at, list_type_of(schema), kMust);
      }
    }
    if (list_type_of(schema) != "map") return;
    if (keys.empty()) {
      errors_.required(keys_at, "must not be empty if x-kubernetes-list-type is map");
    }
    const Doc* items = items_schema(schema);
    if (items == nullptr) {
      errors_.required(at.child("items"), "must have a schema if x-kubernetes-list-type is map");
      return;
    }
    if (type_of(*items) != "object") {
      errors_.invalid(at.child("items").child("type"), type_of(*items),
                      "must be object if parent array's x-kubernetes-list-type is map");
      return;
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Doc& key = keys.items()[i];
      const Doc* property = (*items)["properties"].find(key.as_string());
      if (property == nullptr) {
        errors_.invalid(keys_at, keys, "entries must all be names of item properties");
      } else if (type_of(*property) == "array" || type_of(*property) == "object") {
        errors_.invalid(at.child("items", "properties").key(key.as_string()).child("type"),
                        type_of(*items),
                        "must be a scalar type if parent array's x-kubernetes-list-type is map");
      }
      const auto begin = keys.items().begin();
      const auto end = begin + static_cast<std::ptrdiff_t>(i);
      if (std::find(begin, end, key) != end) {
        errors_.invalid(keys_at, keys, "must not contain duplicate entries");
      }
    }
  }

  void check_items_of_set_or_map(const Doc& schema, const Path& at) {
    const std::string& list_type = list_type_of(schema);
    const Doc* items = items_schema(schema);
    if (items == nullptr || (list_type != "set" && list_type != "map")) return;
    const Path here = at.child("items");
    if (is_nullable(*items)) {
      errors_.forbidden(here.child("nullable"),
                        "cannot be nullable when x-kubernetes-list-type is " + list_type);
    }
    if (list_type != "map") return;
    const auto& required = (*items)["required"].items();
    for (const Doc& key : schema["x-kubernetes-list-map-keys"].items()) {
      const Doc* property = (*items)["properties"].find(key.as_string());
      if (property == nullptr) continue;
      const Path key_at = here.child("properties").key(key.as_string());
      if (std::find(required.begin(), required.end(), key) == required.end() &&
          !property->has("default")) {
        errors_.required(key_at.child("default"),
                         "this property is in x-kubernetes-list-map-keys, so it must have a "
                         "default or be a required property");
      }
      if (is_nullable(*property)) {
        errors_.forbidden(key_at.child("nullable"),
                          "this property is in x-kubernetes-list-map-keys, so it cannot be "
                          "nullable");
      }
    }
  }

  void check_rules(const Doc& rules, const Path& at) {
    for (std::size_t i = 0; i < rules.size(); ++i) check_rule(rules.items()[i], at.index(i));
  }

  void check_rule(const Doc& rule, const Path& at) {
    const std::string& expression = rule["rule"].as_string();
    const std::string& message = rule["message"].as_string();
    const std::string& reason = rule["reason"].as_string();
    const std::string& field = rule["fieldPath"].as_string();
    const bool has_expression = !trimmed(expression).empty();
    if (!has_expression) {
      errors_.required(at.child("rule"), "rule is not specified");
    } else if (!message.empty() && trimmed(message).empty()) {
      errors_.invalid(at.child("message"), message, "must be non-empty if specified");
    } else if (has_newline(trimmed(message))) {
      errors_.invalid(at.child("message"), message, "must not contain line breaks");
    } else if (has_newline(trimmed(expression)) && trimmed(message).empty()) {
      errors_.required(at.child("message"),
                       "message must be specified if rule contains line breaks");
    }
    const std::string& message_expression = rule["messageExpression"].as_string();
    if (!message_expression.empty() && trimmed(message_expression).empty()) {
      errors_.required(at.child("messageExpression"),
                       "messageExpression must be non-empty if specified");
    }
    constexpr std::array<std::string_view, 4> kReasons = {
        "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"};
    if (rule.has("reason") && !contains(kReasons, reason)) {
      errors_.not_supported(at.child("reason"), reason, {kReasons.begin(), kReasons.end()});
    }
    if (!field.empty() && trimmed(field).empty()) {
      errors_.invalid(at.child("fieldPath"), field, "must be non-empty if specified");
    }
    if (has_newline(field)) {
      errors_.invalid(at.child("fieldPath"), field, "must not contain line breaks");
    }
    if (!has_expression) return;
    if (const std::string what = cel::syntax_error(expression); !what.empty()) {
      errors_.invalid(at.child("rule"), rule, "compilation failed: " + what);
    }
  }

  FieldErrors& errors_;
};

void check_root(const Doc& schema, const Path& at, FieldErrors& errors) {
  for (const auto& [key, value] : schema.members()) {
    if (key == "type" && value.as_string() != "object") {
      errors.invalid(at.child("type"), value,
                     "only \"object\" is allowed as the type at the root of the schema if the "
                     "status subresource is enabled");
      return;
    }
    if (contains(kAllowedAtRoot, key)) continue;
    errors.invalid(at, schema,
                   fmt::format("only {} fields are allowed at the root of the schema if the status "
                               "subresource is enabled",
                               kAllowedText));
    return;
  }
}

}  // namespace

void check_validation(const Doc& validation, bool has_status, const Path& at, FieldErrors& errors) {
  const Doc* schema = validation.find("openAPIV3Schema");
  if (schema == nullptr || !schema->is_object()) return;
  const Path here = at.child("openAPIV3Schema");
  if (has_status) check_root(*schema, here, errors);
  if (is_nullable(*schema)) {
    errors.forbidden(here.child("nullable"), "nullable cannot be true at the root");
  }
  const FieldErrors structural = check_structural(*schema, here);
  for (const FieldError& error : structural.list()) errors.add(error);
  if (structural.empty()) check_defaults(*schema, here, errors);
  Checker(errors).check(*schema, here, {}, true);
}

const Doc* schema_at_path(const Doc& schema, std::string_view path) {
  const Doc* at = &schema;
  while (!path.empty()) {
    if (path.front() != '.') return nullptr;
    path.remove_prefix(1);
    const std::size_t dot = std::min(path.find('.'), path.size());
    at = member_schema(*at, path.substr(0, dot));
    if (at == nullptr) return nullptr;
    path.remove_prefix(dot);
  }
  return at;
}

}  // namespace jogak::api
