// SPDX-License-Identifier: Apache-2.0
//
// Types as structured merge sees them: x-kubernetes-list-type and its relatives, spelled in
// kube.types for built-in kinds and in the schema itself for custom ones.
#include "apiserver/patch/type_view.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "apiserver/patch/path_element.h"
#include "apiserver/schema/normalise.h"

namespace jogak::patch {
namespace {

using schema::Base;
using schema::ListKind;
using Shape = schema::Type::Shape;

constexpr std::string_view kListType = "x-kubernetes-list-type";
constexpr std::string_view kListKeys = "x-kubernetes-list-map-keys";
constexpr std::string_view kMapType = "x-kubernetes-map-type";
constexpr std::string_view kPreserve = "x-kubernetes-preserve-unknown-fields";
constexpr std::string_view kEmbedded = "x-kubernetes-embedded-resource";

TypeView::Scalar scalar_of(Base base) {
  switch (base) {
    case Base::String:
    case Base::Bytes:
    case Base::Duration:
      return TypeView::Scalar::String;
    case Base::Bool:
      return TypeView::Scalar::Boolean;
    case Base::Int32:
    case Base::Int64:
    case Base::Float64:
      return TypeView::Scalar::Numeric;
    case Base::Quantity:
    case Base::Time:
    case Base::MicroTime:
    case Base::IntOrString:
    case Base::Raw:
    case Base::Json:
      return TypeView::Scalar::Untyped;
    case Base::Struct:
    case Base::Fields:
      return TypeView::Scalar::None;
  }
  return TypeView::Scalar::None;
}

// The members that every object and every embedded one has besides its schema.
bool is_type_meta(std::string_view name) { return name == "apiVersion" || name == "kind"; }

const schema::Field& string_field() {
  static const schema::Field& field = *schema::get("meta.v1.ObjectMeta").find("name");
  return field;
}

// JSON text of a scalar, from kube.types.
Doc scalar_from(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"') return Doc(text.substr(1, text.size() - 2));
  if (text == "true" || text == "false") return Doc(text == "true");
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return Doc(number);
}

}  // namespace

const Doc& zero_value(const schema::Field& field) {
  static const Doc kNull;
  static const auto kZeros = [] {
    std::array<Doc, schema::kBaseCount> zeros;
    zeros[0] = Doc::object();  // a struct, without the members that Go would write of it
    for (std::size_t i = 1; i < zeros.size(); ++i) {
      zeros[i] = schema::zero({.base = static_cast<Base>(i)});
    }
    return zeros;
  }();
  static_assert(std::to_underlying(Base::Struct) == 0);
  if (field.type.is_pointer || field.type.shape != Shape::One) return kNull;
  return kZeros[std::to_underlying(field.type.base)];
}

TypeView TypeView::of(const ObjectType& object) {
  if (object.builtin != nullptr) {
    return builtin({.base = Base::Struct, .of = object.builtin}, nullptr);
  }
  if (object.custom == nullptr || object.custom->is_null()) return deduced();
  return custom(*object.custom, false, Origin::CustomRoot);
}

TypeView TypeView::builtin(const schema::Type& type, const schema::Field* field) {
  TypeView view(Origin::Builtin);
  view.type_ = type;
  view.field_ = field;
  return view;
}

TypeView TypeView::of_field(const schema::Field& field) { return builtin(field.type, &field); }

TypeView TypeView::custom(const Doc& schema, bool preserves_unknown, Origin origin) {
  TypeView view(origin);
  view.custom_ = &schema;
  view.preserves_unknown_ = preserves_unknown || schema[kPreserve].as_bool();
  if (origin == Origin::Custom && schema[kEmbedded].as_bool()) view.origin_ = Origin::CustomRoot;
  return view;
}

bool TypeView::is_one(Base base) const { return type_.shape == Shape::One && type_.base == base; }

TypeView::Scalar TypeView::scalar() const {
  if (origin_ == Origin::Deduced || origin_ == Origin::Untyped) return Scalar::Untyped;
  if (origin_ == Origin::Builtin) {
    return type_.shape == Shape::One ? scalar_of(type_.base) : Scalar::None;
  }
  const std::string_view type = custom_type();
  if (type == "object" || type == "array") return Scalar::None;
  if (type == "integer" || type == "number") return Scalar::Numeric;
  if (type == "boolean") return Scalar::Boolean;
  if (type != "string") return Scalar::Untyped;
  const std::string& format = (*custom_)["format"].as_string();
  return format.empty() || format == "byte" ? Scalar::String : Scalar::Untyped;
}

bool TypeView::has_map() const {
  switch (origin_) {
    case Origin::Deduced:
    case Origin::Untyped:
      return true;
    case Origin::Builtin:
      return type_.shape == Shape::Map || is_one(Base::Struct) || is_one(Base::Fields) ||
             is_one(Base::Raw) || is_one(Base::Json);
    case Origin::Custom:
    case Origin::CustomRoot:
      return custom_type() == "object" || custom_type().empty();
  }
  return false;
}

bool TypeView::has_list() const {
  switch (origin_) {
    case Origin::Deduced:
    case Origin::Untyped:
      return true;
    case Origin::Builtin:
      return type_.shape == Shape::List || is_one(Base::Raw) || is_one(Base::Json);
    case Origin::Custom:
    case Origin::CustomRoot:
      return custom_type() == "array" || custom_type().empty();
  }
  return false;
}

TypeView::Form TypeView::form_for(const Doc* value) const {
  const Doc::Kind kind = value == nullptr ? Doc::Kind::Null : value->kind();
  if (kind == Doc::Kind::Object && has_map()) return Form::Map;
  if (kind == Doc::Kind::Array && has_list()) return Form::List;
  if (kind != Doc::Kind::Null && kind != Doc::Kind::Object && kind != Doc::Kind::Array &&
      scalar() != Scalar::None) {
    return Form::Scalar;
  }
  if (has_map()) return Form::Map;
  return scalar() != Scalar::None ? Form::Scalar : Form::List;
}

bool TypeView::is_atomic_map() const {
  switch (origin_) {
    case Origin::Deduced:
      return false;
    case Origin::Untyped:
      return true;
    case Origin::Builtin:
      if (is_one(Base::Raw)) return true;
      if (field_ != nullptr && field_->is_atomic) return true;
      // The claim reference of a volume is the one place where an atomic struct is made granular.
      return is_one(Base::Struct) && type_.of->is_atomic &&
             (field_ == nullptr || field_->name != "claimRef");
    case Origin::Custom:
    case Origin::CustomRoot:
      return (*custom_)[kMapType].as_string() == "atomic";
  }
  return false;
}

bool TypeView::is_atomic_list() const {
  switch (origin_) {
    case Origin::Deduced:
    case Origin::Untyped:
      return true;
    case Origin::Builtin:
      return field_ == nullptr || type_.shape != Shape::List || field_->list == ListKind::Atomic;
    case Origin::Custom:
    case Origin::CustomRoot: {
      const std::string& kind = (*custom_)[kListType].as_string();
      return kind != "set" && kind != "map";
    }
  }
  return true;
}

bool TypeView::has_keys() const {
  if (origin_ == Origin::Builtin) return field_ != nullptr && field_->list == ListKind::Map;
  return custom_ != nullptr && (*custom_)[kListType].as_string() == "map";
}

TypeView TypeView::item() const {
  if (origin_ == Origin::Builtin && type_.shape == Shape::List) {
    return builtin(type_.element(), nullptr);
  }
  if (custom_ != nullptr && (*custom_)["items"].is_object()) {
    return custom((*custom_)["items"], preserves_unknown_, Origin::Custom);
  }
  return TypeView(Origin::Untyped);
}

const schema::Struct* TypeView::as_struct() const {
  return origin_ == Origin::Builtin && is_one(Base::Struct) ? type_.of : nullptr;
}

bool TypeView::names_member(std::string_view name) const {
  if (const schema::Struct* type = as_struct()) return type->find(name) != nullptr;
  if (custom_ == nullptr) return false;
  if (origin_ == Origin::CustomRoot && (is_type_meta(name) || name == "metadata")) return true;
  return (*custom_)["properties"].has(name);
}

std::optional<TypeView> TypeView::member(std::string_view name) const {
  if (origin_ == Origin::Deduced) return deduced();
  if (origin_ == Origin::Untyped) return TypeView(Origin::Untyped);
  if (origin_ == Origin::Builtin) {
    if (type_.shape == Shape::Map) return builtin(type_.element(), nullptr);
    if (is_one(Base::Raw)) return TypeView(Origin::Untyped);
    if (!is_one(Base::Struct)) return deduced();
    const schema::Field* field = type_.of->find(name);
    if (field == nullptr) return std::nullopt;
    return of_field(*field);
  }
  if (origin_ == Origin::CustomRoot) {
    if (is_type_meta(name)) return of_field(string_field());
    if (name == "metadata") {
      return builtin({.base = Base::Struct, .of = &schema::get("meta.v1.ObjectMeta")}, nullptr);
    }
  }
  const Doc& properties = (*custom_)["properties"];
  if (const Doc* declared = properties.find(name)) {
    return custom(*declared, preserves_unknown_, Origin::Custom);
  }
  const Doc& additional = (*custom_)["additionalProperties"];
  if (additional.is_object()) return custom(additional, preserves_unknown_, Origin::Custom);
  if (additional.is_bool()) {
    return additional.as_bool() ? std::optional(deduced()) : std::nullopt;
  }
  if (preserves_unknown_ || (properties.empty() && origin_ == Origin::Custom)) return deduced();
  return std::nullopt;
}

bool TypeView::is_free_form() const {
  if (origin_ == Origin::Deduced) return true;
  if (origin_ == Origin::Builtin) return is_one(Base::Fields) || is_one(Base::Json);
  if (origin_ != Origin::Custom || !has_map() || !(*custom_)["properties"].empty()) return false;
  const auto any = member("");
  return any && any->scalar() == Scalar::Untyped;
}

Doc TypeView::key_default(std::string_view key) const {
  if (origin_ == Origin::Builtin) {
    const schema::Field* field = type_.of == nullptr ? nullptr : type_.of->find(key);
    if (field == nullptr) return {};
    if (!field->default_text.empty()) return scalar_from(field->default_text);
    return field->is_always ? zero_value(*field) : Doc();
  }
  return (*custom_)["items"]["properties"][key]["default"];
}

std::optional<std::string> TypeView::keyed_element(const Doc& item, std::string* why) const {
  const auto refuse = [&](std::string_view reason) {
    if (why != nullptr) *why = reason;
    return std::nullopt;
  };
  if (item.is_null()) {
    return refuse("associative list with keys may not have a null element");
  }
  if (!item.is_object()) {
    return refuse("associative list with keys may not have non-map elements");
  }
  std::vector<std::string_view> names;
  if (origin_ == Origin::Builtin) {
    names = field_->list_keys;
  } else {
    for (const Doc& key : (*custom_)[kListKeys].items()) names.push_back(key.as_string());
  }
  std::vector<Doc> defaults(names.size());
  std::vector<KeyField> keys;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Doc* value = item.find(names[i]);
    if (value == nullptr) {
      defaults[i] = key_default(names[i]);
      if (defaults[i].is_null()) continue;
      value = &defaults[i];
    }
    keys.push_back({.name = names[i], .value = value});
  }
  if (keys.empty()) {
    std::string list;
    for (const std::string_view name : names) list += fmt::format(" \"{}\"", name);
    if (!list.empty()) list.erase(0, 1);
    return refuse(
        fmt::format("associative list with keys has an element that omits all key fields "
                    "[{}] (and doesn't have default values for any key fields)",
                    list));
  }
  return key_element(std::move(keys));
}

std::optional<std::string> TypeView::item_element(const Doc& item, std::string* why) const {
  if (has_keys()) return keyed_element(item, why);
  if (!item.is_object() && !item.is_array() && !item.is_null()) return value_element(item);
  if (why != nullptr) {
    *why = item.is_object() ? "associative list without keys has an element that's a map type"
           : item.is_array()
               ? "not supported: associative list with lists as elements"
               : "associative list without keys has an element that's an explicit null";
  }
  return std::nullopt;
}

}  // namespace jogak::patch
