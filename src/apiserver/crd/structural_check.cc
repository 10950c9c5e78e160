// SPDX-License-Identifier: Apache-2.0
//
// The invariants of apiextensions-apiserver (pkg/apiserver/schema validation.go and complete.go).
#include "apiserver/crd/structural_check.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "apiserver/crd/json_schema.h"
#include "apiserver/crd/list_check.h"
#include "apiserver/crd/pattern.h"
#include "apiserver/crd/prune.h"
#include "apiserver/crd/value_check.h"

namespace jogak::api {
namespace {

enum class Level : std::uint8_t { Root, Item, Field };

const std::string& type_of(const Doc& schema) { return schema["type"].as_string(); }

bool is_set(const Doc& schema, std::string_view key) {
  const Doc* value = schema.find(key);
  if (value == nullptr || value->is_null()) return false;
  if (value->is_bool()) return value->as_bool();
  if (value->is_string()) return !value->as_string().empty();
  return !value->is_array() || !value->empty();
}

// anyOf: [{type: integer}, {type: string}], the one place where types may be alternatives.
bool is_int_or_string_pattern(const Doc& any_of) {
  if (any_of.size() != 2) return false;
  const auto is_only = [](const Doc& schema, std::string_view type) {
    return schema.size() == 1 && type_of(schema) == type;
  };
  return is_only(any_of.items()[0], "integer") && is_only(any_of.items()[1], "string");
}

// What may not stand inside of a combination: {member, what it must be}.
struct Ban {
  std::string_view member, must;
};
constexpr Ban kBansFirst[] = {
    {"type", "must be empty to be structural"},
    {"additionalProperties", "must be undefined to be structural"},
    {"default", "must be undefined to be structural"},
    {"title", "must be empty to be structural"},
    {"description", "must be empty to be structural"},
    {"nullable", "must be false to be structural"},
    {"x-kubernetes-preserve-unknown-fields", "must be false to be structural"},
    {"x-kubernetes-embedded-resource", "must be false to be structural"},
    {"x-kubernetes-int-or-string", "must be false to be structural"},
    {"x-kubernetes-list-map-keys", "must be empty to be structural"},
    {"x-kubernetes-list-type", "must be undefined to be structural"},
    {"x-kubernetes-map-type", "must be undefined to be structural"},
    {"x-kubernetes-validations", "must be empty to be structural"}};

class Checker {
 public:
  explicit Checker(FieldErrors& errors) : errors_(errors) {}

  void check(const Doc& schema, Level level, const Path& at) {
    const std::string& type = type_of(schema);
    const Doc* items = items_schema(schema);
    if (type == "array" && items == nullptr) {
      errors_.required(at.child("items"), "must be specified");
    }
    if (items != nullptr) check(*items, Level::Item, at.child("items"));
    for (const auto& [key, property] : schema["properties"].members()) {
      check(property, Level::Field, at.child("properties").key(key));
    }
    if (has_additional(schema) && level == Level::Root) {
      errors_.forbidden(at.child("additionalProperties"), "must not be used at the root");
    }
    if (const Doc* additional = additional_schema(schema)) {
      check(*additional, Level::Field, at.child("additionalProperties"));
    }
    check_extensions(schema, at);
    check_combinations(schema, at, true);
    check_type(schema, level, at);
    check_type_members(schema, level, at);
  }

  // Every member that a combination speaks of must be specified outside of it.
  void check_complete(const Doc& limits, const Doc* schema, const Path& at, const Path& from) {
    each_combination(limits, from, [&](const Doc& inner, const Path& inner_from) {
      check_complete_nested(inner, schema, at, inner_from);
    });
  }

 private:
  template <class Visit>
  static void each_combination(const Doc& schema, const Path& at, const Visit& visit) {
    if (const Doc* inner = schema.find("not"); inner != nullptr && inner->is_object()) {
      visit(*inner, at.child("not"));
    }
    for (const std::string_view key : {"allOf", "anyOf", "oneOf"}) {
      const Doc& list = schema[key];
      for (std::size_t i = 0; i < list.size(); ++i) visit(list.items()[i], at.child(key).index(i));
    }
  }

  void check_complete_nested(const Doc& limits, const Doc* schema, const Path& at,
                             const Path& from) {
    if (schema == nullptr) {
      errors_.required(at, fmt::format("because it is defined in {}", from.text()));
      return;
    }
    check_complete(limits, schema, at, from);
    if (const Doc* items = items_schema(limits)) {
      check_complete_nested(*items, items_schema(*schema), at.child("items"), from.child("items"));
    }
    for (const auto& [key, property] : limits["properties"].members()) {
      check_complete_nested(property, (*schema)["properties"].find(key),
                            at.child("properties").key(key), from.child("properties").key(key));
    }
  }

  void check_extensions(const Doc& schema, const Path& at) {
    if (!is_int_or_string(schema)) return;
    for (const std::string_view key :
         {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"}) {
      if (schema[key].as_bool()) {
        errors_.invalid(at.child(key), true, "must be false if x-kubernetes-int-or-string is true");
      }
    }
  }

  void check_combinations(const Doc& schema, const Path& at, bool may_be_int_or_string) {
    const bool skip_any = may_be_int_or_string && is_int_or_string_pattern(schema["anyOf"]);
    const Doc& all = schema["allOf"];
    const bool skip_first =
        may_be_int_or_string && !all.empty() && is_int_or_string_pattern(all.items()[0]["anyOf"]);
    const Path first_all = at.child("allOf").index(0);
    each_combination(schema, at, [&](const Doc& inner, const Path& inner_at) {
      const bool is_any = inner_at.text().starts_with(at.child("anyOf").text() + "[");
      if (skip_any && is_any) return;
      check_nested(inner, inner_at, skip_first && inner_at.text() == first_all.text());
    });
    const std::string& pattern = schema["pattern"].as_string();
    if (pattern.empty()) return;
    if (const std::string what = pattern_error(pattern); !what.empty()) {
      errors_.invalid(at.child("pattern"), pattern,
                      "must be a valid regular expression, but isn't: " + what);
    }
  }

  void check_nested(const Doc& schema, const Path& at, bool skip_any) {
    Doc rest = schema;
    if (skip_any) rest.erase("anyOf");
    check_combinations(rest, at, false);
    if (const Doc* items = items_schema(schema)) check_nested(*items, at.child("items"), false);
    for (const auto& [key, property] : schema["properties"].members()) {
      check_nested(property, at.child("properties").key(key), false);
    }
    for (const Ban& ban : kBansFirst) {
      const bool is_there = ban.member == "additionalProperties" ? has_additional(schema)
                                                                 : is_set(schema, ban.member);
      if (is_there) errors_.forbidden(at.child(ban.member), ban.must);
    }
    if (schema["properties"].has("metadata")) {
      errors_.forbidden(at.child("properties").key("metadata"),
                        "must not be specified in a nested context");
    }
  }

  void check_type(const Doc& schema, Level level, const Path& at) {
    const std::string& type = type_of(schema);
    if (is_embedded(schema) && type != "object") {
      constexpr std::string_view kMust = "must be object if x-kubernetes-embedded-resource is true";
      if (type.empty()) {
        errors_.required(at.child("type"), kMust);
      } else {
        errors_.invalid(at.child("type"), type, kMust);
      }
    } else if (type.empty() && !is_int_or_string(schema) && !keeps_unknown(schema)) {
      errors_.required(at.child("type"), level == Level::Root ? "must not be empty at the root"
                                         : level == Level::Item
                                             ? "must not be empty for specified array items"
                                             : "must not be empty for specified object fields");
    }
    if (is_embedded(schema) && has_additional(schema)) {
      errors_.forbidden(at.child("additionalProperties"),
                        "must not be used if x-kubernetes-embedded-resource is set");
    }
    if (level == Level::Root && !type.empty() && type != "object") {
      errors_.invalid(at.child("type"), type, "must be object at the root");
    }
    if (is_embedded(schema) && !keeps_unknown(schema) && schema["properties"].empty()) {
      errors_.required(at.child("properties"),
                       "must not be empty if x-kubernetes-embedded-resource is true without "
                       "x-kubernetes-preserve-unknown-fields");
    }
  }

  void check_type_members(const Doc& schema, Level level, const Path& at) {
    const Doc& properties = schema["properties"];
    const bool is_resource = level == Level::Root || is_embedded(schema);
    const Path here = at.child("properties");
    for (const std::string_view key : {"kind", "apiVersion"}) {
      const Doc* property = properties.find(key);
      if (property == nullptr || !is_resource || type_of(*property) == "string") continue;
      errors_.invalid(here.key(key).child("type"), type_of(*property), "must be string");
    }
    const Doc* metadata = properties.find("metadata");
    if (metadata == nullptr) return;
    if (is_resource && type_of(*metadata) != "object") {
      errors_.invalid(here.key("metadata").child("type"), type_of(*metadata), "must be object");
    }
    if (level == Level::Root && says_too_much(*metadata)) {
      errors_.forbidden(here.key("metadata"),
                        "must not specify anything other than name and generateName, but metadata "
                        "is implicitly specified");
    }
  }

  static bool says_too_much(const Doc& metadata) {
    return std::any_of(
        metadata.members().begin(), metadata.members().end(), [](const Doc::Member& member) {
          if (member.key == "type" || member.key == "default") return false;
          if (member.key != "properties") return true;
          const auto& names = member.value.members();
          return std::any_of(names.begin(), names.end(), [](const Doc::Member& property) {
            return property.key != "name" && property.key != "generateName";
          });
        });
  }

  FieldErrors& errors_;
};

}  // namespace

FieldErrors check_structural(const Doc& schema, const Path& at) {
  FieldErrors found;
  Checker checker(found);
  checker.check(schema, Level::Root, at);
  checker.check_complete(schema, &schema, at, at);
  std::vector<FieldError> list = found.list();
  std::stable_sort(list.begin(), list.end(), [](const FieldError& a, const FieldError& b) {
    return a.field + ": " + a.message < b.field + ": " + b.message;
  });
  FieldErrors out;
  for (FieldError& error : list) out.add(std::move(error));
  return out;
}

void check_defaults(const Doc& schema, const Path& at, FieldErrors& errors) {
  const Doc* fallback = schema.find("default");
  if (fallback != nullptr && !fallback->is_null()) {
    const Path here = at.child("default");
    Doc pruned = *fallback;
    prune(pruned, &schema, is_embedded(schema));
    if (pruned != *fallback) errors.invalid(here, *fallback, "must not have unknown fields");
    const std::size_t before = errors.size();
    check_embedded(*fallback, schema, here, errors);
    if (errors.size() == before) check_value(*fallback, nullptr, schema, here.text(), errors);
  }
  if (const Doc* items = items_schema(schema)) check_defaults(*items, at.child("items"), errors);
  for (const auto& [key, property] : schema["properties"].members()) {
    check_defaults(property, at.child("properties").key(key), errors);
  }
}

}  // namespace jogak::api
