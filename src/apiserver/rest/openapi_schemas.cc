// SPDX-License-Identifier: Apache-2.0
//
// Schemas from the facts of types, by the rules of kube-openapi: what is required, what has a
// default, how lists and maps merge.
#include "apiserver/rest/openapi_schemas.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "apiserver/codec/codec.h"
#include "apiserver/rest/openapi_facts.h"
#include "apiserver/rest/openapi_fixed.h"
#include "apiserver/rest/openapi_words.h"
#include "base/check.h"

namespace jogak::api {
namespace {

using schema::Base;
using Shape = schema::Type::Shape;

constexpr std::string_view kRefRoot = "#/components/schemas/";
constexpr std::string_view kKinds = "x-kubernetes-group-version-kind";

// "core.v1.Pod" in its three parts.
struct TypeName {
  std::string_view package, version, name;
};
TypeName split_name(std::string_view full) {
  const std::size_t first = full.find('.'), last = full.rfind('.');
  return {full.substr(0, first), full.substr(first + 1, last - first - 1), full.substr(last + 1)};
}

Doc kind_of(std::string_view group, std::string_view version, std::string_view kind) {
  Doc entry = Doc::object();
  entry.set("group", group).set("kind", kind).set("version", version);
  return entry;
}

struct ScalarFact {
  std::string_view type, format;
};
// Null type: no scalar.
ScalarFact scalar_fact(Base base) {
  switch (base) {
    case Base::String:
      return {"string", ""};
    case Base::Bool:
      return {"boolean", ""};
    case Base::Int32:
      return {"integer", "int32"};
    case Base::Int64:
      return {"integer", "int64"};
    case Base::Float64:
      return {"number", "double"};
    case Base::Bytes:
      return {"string", "byte"};
    default:
      return {"", ""};
  }
}

std::string_view wrapper_name(Base base) {
  switch (base) {
    case Base::Quantity:
      return "Quantity";
    case Base::Time:
      return "Time";
    case Base::MicroTime:
      return "MicroTime";
    case Base::Duration:
      return "Duration";
    case Base::IntOrString:
      return "IntOrString";
    case Base::Json:
      return "JSON";
    case Base::Fields:
      return "FieldsV1";
    default:
      return "RawExtension";
  }
}

Doc scalar_schema(const ScalarFact& fact) {
  Doc schema = Doc::object();
  schema.set("type", fact.type);
  if (!fact.format.empty()) {
    schema.set("format", fact.format);
  }
  return schema;
}

// What Go has where nothing was given; null for what has no zero in JSON.
Doc zero_of(Base base) {
  switch (base) {
    case Base::String:
      return "";
    case Base::Bool:
      return false;
    case Base::Int32:
    case Base::Int64:
      return 0;
    default:
      return {};
  }
}

Doc all_of(Doc reference) {
  Doc schema = Doc::object();
  schema.set("allOf", Doc::array({std::move(reference)}));
  return schema;
}

bool is_required(const schema::Struct& type, const schema::Field& field) {
  return (!field.omit_empty && !field.omit_zero && !field.is_optional) ||
         is_required_anyway(type.name, field.name);
}

void add_list_facts(Doc& schema, const schema::Field& field) {
  if (field.names_list) {
    constexpr std::string_view kNames[] = {"atomic", "set", "map"};
    schema.set("x-kubernetes-list-type", kNames[static_cast<std::size_t>(field.list)]);
  }
  if (!field.list_keys.empty()) {
    Doc keys = Doc::array();
    for (const std::string_view key : field.list_keys) {
      keys.push(key);
    }
    schema.set("x-kubernetes-list-map-keys", std::move(keys));
  }
  if (!field.patch_key.empty()) {
    schema.set("x-kubernetes-patch-merge-key", field.patch_key);
  }
  std::string strategy;
  for (const auto& [is_set, word] :
       {std::pair(field.patch_merge, "merge"), std::pair(field.patch_retain_keys, "retainKeys"),
        std::pair(field.patch_replace, "replace")}) {
    if (is_set) {
      strategy += (strategy.empty() ? "" : ",") + std::string(word);
    }
  }
  if (!strategy.empty()) {
    schema.set("x-kubernetes-patch-strategy", strategy);
  }
  if (field.is_atomic) {
    schema.set("x-kubernetes-map-type", "atomic");
  }
}

void add_enum(Doc& schema, const schema::Struct& type, const schema::Field& field) {
  Doc values = Doc::array();
  for (const std::string_view value : enum_values(type.name, field.name)) {
    values.push(value);
  }
  if (values.empty()) {
    return;
  }
  if (Doc* items = schema.find("items")) {
    items->set("enum", std::move(values));
  } else if (Doc* inner = schema.find("additionalProperties")) {
    inner->set("enum", std::move(values));
  } else {
    schema.set("enum", std::move(values));
  }
}

// The description stands first, where there is one.
Doc described(std::string_view words, Doc schema) {
  if (words.empty()) {
    return schema;
  }
  Doc whole = Doc::object();
  whole.set("description", words);
  for (Doc::Member& member : schema.members()) {
    whole.set(member.key, std::move(member.value));
  }
  return whole;
}

// A schema of JSON schemas has members that are this or that.
std::string_view special_member(std::string_view type, std::string_view member) {
  if (type != "apiextensions.v1.JSONSchemaProps") {
    return "";
  }
  if (member == "items") {
    return "JSONSchemaPropsOrArray";
  }
  if (member == "additionalItems" || member == "additionalProperties") {
    return "JSONSchemaPropsOrBool";
  }
  return member == "example" ? "JSON" : "";
}

// Puts references in place of "@Name" and tells which those are.
void resolve_names(Doc& value, std::vector<std::string_view>& used) {
  if (value.is_array()) {
    for (Doc& item : value.items()) {
      resolve_names(item, used);
    }
  } else if (value.is_object()) {
    for (Doc::Member& member : value.members()) {
      if (member.key == "$ref") {
        const FixedComponent& target = fixed_component(member.value.as_string().substr(1));
        used.push_back(target.short_name);
        member.value = std::string(kRefRoot) + std::string(target.name);
      } else {
        resolve_names(member.value, used);
      }
    }
  }
}

}  // namespace

std::string component_name(const schema::Struct& type) {
  const TypeName parts = split_name(type.name);
  if (parts.package == "meta") {
    return "io.k8s.apimachinery.pkg.apis." + std::string(type.name);
  }
  if (parts.package == "apiextensions") {
    return "io.k8s.apiextensions-apiserver.pkg.apis." + std::string(type.name);
  }
  return "io.k8s.api." + std::string(type.name);
}

std::string custom_component_name(const Resource& resource) {
  std::string name;
  std::string_view left = resource.group;
  while (!left.empty()) {
    const std::size_t dot = left.rfind('.');
    name.append(dot == std::string_view::npos ? left : left.substr(dot + 1)).append(".");
    left = dot == std::string_view::npos ? "" : left.substr(0, dot);
  }
  return name + resource.version + "." + resource.kind;
}

Doc Components::ref_to(std::string_view name) {
  Doc reference = Doc::object();
  reference.set("$ref", std::string(kRefRoot) + std::string(name));
  return reference;
}

Doc Components::ref(const schema::Struct& type) {
  std::string name = component_name(type);
  if (schemas_.try_emplace(name).second) {  // first, so that a type may contain itself
    schemas_[name] = struct_schema(type);
  }
  return ref_to(name);
}

Doc Components::ref_fixed(std::string_view short_name) {
  const FixedComponent& fixed = fixed_component(short_name);
  const std::string name(fixed.name);
  if (schemas_.try_emplace(name).second) {
    auto parsed = codec::parse_json(fixed.json);
    JOGAK_CHECK(parsed.has_value(), "component {}", fixed.name);
    Doc schema = std::move(parsed->doc);
    std::vector<std::string_view> used;
    resolve_names(schema, used);
    if (fixed.is_of_group && !group_.empty()) {
      schema.at(kKinds).push(kind_of(group_, version_, fixed.short_name));
    }
    schemas_[name] = std::move(schema);
    for (const std::string_view other : used) {
      ref_fixed(other);
    }
  }
  return ref_to(name);
}

Doc Components::ref_object(const Resource& resource) {
  if (resource.type != nullptr) {
    return ref(*resource.type);
  }
  std::string name = custom_component_name(resource);
  if (schemas_.try_emplace(name).second) {
    schemas_[name] = custom_schema(resource);
  }
  return ref_to(name);
}

Doc Components::ref_list(const Resource& resource) {
  const std::string object_name =
      resource.type != nullptr ? component_name(*resource.type) : custom_component_name(resource);
  const std::string name = object_name + "List";
  if (schemas_.contains(name)) {
    return ref_to(name);
  }
  Doc text = scalar_schema({"string", ""});
  Doc item = ref_object(resource);
  if (resource.type != nullptr) {  // Go writes an empty object for a missing one
    item = all_of(std::move(item));
    item.set("default", Doc::object());
  }
  Doc items = Doc::object();
  items.set("type", "array").set("items", std::move(item));
  Doc metadata = all_of(ref(schema::get("meta.v1.ListMeta")));
  metadata.set("default", Doc::object());
  Doc properties = Doc::object();
  properties.set("apiVersion", text)
      .set("items", std::move(items))
      .set("kind", std::move(text))
      .set("metadata", std::move(metadata));
  Doc schema = Doc::object();
  schema.set("description", "A list of " + resource.kind)
      .set("type", "object")
      .set("required", Doc::array({Doc("items")}))
      .set("properties", std::move(properties))
      .set(kKinds, Doc::array({kind_of(resource.group, resource.version, resource.list_kind)}));
  schemas_[name] = std::move(schema);
  return ref_to(name);
}

Doc Components::take() {
  Doc all = Doc::object();
  for (auto& [name, schema] : schemas_) {
    all.set(name, std::move(schema));
  }
  schemas_.clear();
  return all;
}

Doc Components::struct_schema(const schema::Struct& type) {
  Doc properties = Doc::object(), required = Doc::array();
  for (const schema::Field& field : type.fields) {
    properties.set(field.name,
                   described(member_words(type.name, field.name), member_schema(type, field)));
    if (is_required(type, field)) {
      required.push(field.name);
    }
  }
  Doc schema = Doc::object();
  schema.set("type", "object");
  schema = described(type_words(type.name), std::move(schema));
  if (!properties.empty()) {
    schema.set("properties", std::move(properties));
  }
  if (!required.empty()) {
    schema.set("required", std::move(required));
  }
  if (type.is_atomic) {
    schema.set("x-kubernetes-map-type", "atomic");
  }
  if (Doc unions = unions_of(type.name); !unions.is_null()) {
    schema.set("x-kubernetes-unions", std::move(unions));
  }
  add_gvk(schema, type);
  return schema;
}

// Kinds are the types with a kind and a version of their own, which protobuf does not carry.
void Components::add_gvk(Doc& schema, const schema::Struct& type) const {
  const schema::Field* kind = type.find("kind");
  if (kind == nullptr || kind->number != 0 || type.find("apiVersion") == nullptr) {
    return;
  }
  const TypeName parts = split_name(type.name);
  Doc kinds = Doc::array({kind_of(group_of_package(parts.package), parts.version, parts.name)});
  if (parts.package == "meta" && parts.name.ends_with("Options") && !group_.empty()) {
    kinds.push(kind_of(group_, version_, parts.name));
  }
  schema.set(kKinds, std::move(kinds));
}

Doc Components::member_schema(const schema::Struct& type, const schema::Field& field) {
  const schema::Type& member = field.type;
  const ScalarFact scalar = scalar_fact(member.base);
  Doc schema;
  if (const std::string_view special = special_member(type.name, field.name); !special.empty()) {
    return ref_fixed(special);
  }
  if (type.name == "apiextensions.v1.JSONSchemaProps" && field.name == "dependencies") {
    schema.set("type", "object");
    schema.set("additionalProperties", ref_fixed("JSONSchemaPropsOrStringArray"));
    return schema;
  }
  if (member.shape != Shape::One) {
    schema = element_schema(member);
  } else if (!scalar.type.empty()) {
    schema = scalar_schema(scalar);
    if (!member.is_pointer && !field.omit_empty) {
      if (Doc zero = zero_of(member.base); !zero.is_null()) {
        schema.set("default", std::move(zero));
      }
    }
  } else if (member.base == Base::Struct) {
    schema = all_of(ref(*member.of));
    if (!member.is_pointer) {
      schema.set("default", Doc::object());
    }
  } else {
    schema = all_of(ref_fixed(wrapper_name(member.base)));
  }
  add_list_facts(schema, field);
  if (is_granular(type.name, field.name)) {
    schema.set("x-kubernetes-map-type", "granular");
  }
  add_enum(schema, type, field);
  if (const std::string_view name = named_default(type.name, field.name); !name.empty()) {
    schema.set("default", name);
  } else if (!field.default_text.empty()) {
    auto parsed = codec::parse_json(field.default_text);
    schema.set("default", parsed ? std::move(parsed->doc) : Doc(field.default_text));
  }
  return schema;
}

// One element of a list or map, which is never absent.
Doc Components::element_schema(schema::Type type) {
  Doc schema = Doc::object();
  if (type.shape != Shape::One) {
    const bool is_list = type.shape == Shape::List;
    schema.set("type", is_list ? "array" : "object");
    schema.set(is_list ? "items" : "additionalProperties", element_schema(type.element()));
    return schema;
  }
  if (const ScalarFact scalar = scalar_fact(type.base); !scalar.type.empty()) {
    schema = scalar_schema(scalar);
    if (Doc zero = zero_of(type.base); !zero.is_null()) {
      schema.set("default", std::move(zero));
    }
  } else if (type.base == Base::Struct) {
    schema = all_of(ref(*type.of));
    schema.set("default", Doc::object());
  } else {
    schema = ref_fixed(wrapper_name(type.base));
  }
  return schema;
}

// The schema as its definition has it, with what every object has besides.
Doc Components::custom_schema(const Resource& resource) {
  Doc schema = resource.custom_schema == nullptr ? Doc::object() : *resource.custom_schema;
  schema.set_default("type", "object");
  if (schema["properties"].is_object()) {
    Doc& properties = schema.at("properties");
    properties.set("apiVersion", scalar_schema({"string", ""}));
    properties.set("kind", scalar_schema({"string", ""}));
    properties.set("metadata", all_of(ref(schema::get("meta.v1.ObjectMeta"))));
  }
  schema.set(kKinds, Doc::array({kind_of(resource.group, resource.version, resource.kind)}));
  return schema;
}

}  // namespace jogak::api
