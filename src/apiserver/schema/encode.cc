// SPDX-License-Identifier: Apache-2.0
//
// encode(), zero() and settle(): values as Go's encoding/json writes them.
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "apiserver/schema/go_text.h"
#include "apiserver/schema/normalise.h"
#include "apiserver/schema/order.h"
#include "apiserver/schema/unions.h"

namespace jogak::schema {
namespace {

void encode_struct(Doc& value, const Struct& type);

void sort_keys(Doc& value) {
  Doc::Members& members = value.members();
  if (!std::ranges::is_sorted(members, {}, &Doc::Member::key)) {
    std::ranges::sort(members, {}, &Doc::Member::key);
  }
}

void encode_value(Doc& value, const Type& type) {
  if (type.shape == Type::Shape::One) {
    if (type.base == Base::Struct) encode_struct(value, *type.of);
    return;
  }
  const Type element = type.element();
  if (type.shape == Type::Shape::List && value.is_array()) {
    if (element.shape == Type::Shape::One && element.base != Base::Struct) return;
    for (Doc& item : value.items()) encode_value(item, element);
  } else if (type.shape == Type::Shape::Map && value.is_object()) {
    sort_keys(value);
    if (element.shape == Type::Shape::One && element.base != Base::Struct) return;
    for (Doc::Member& member : value.members()) encode_value(member.value, element);
  }
}

// A schema of a custom resource may stand where a list or a flag may.
void encode_either(Doc& value, const Field& field) {
  const Struct& props = get(kSchemaProps);
  if (field.type.shape == Type::Shape::Map) {
    sort_keys(value);
    for (Doc::Member& member : value.members()) {
      if (member.value.is_object()) encode_struct(member.value, props);
    }
  } else if (value.is_object()) {
    encode_struct(value, props);
  } else if (value.is_array()) {
    for (Doc& item : value.items()) encode_struct(item, props);
  }
}

bool is_dropped(const Doc& value, const Field& field) {
  if (field.is_always) return false;
  return value.is_null() || (!field.type.is_pointer && is_zero(value));
}

void encode_struct(Doc& value, const Struct& type) {
  if (!value.is_object()) value = Doc::object();
  Doc::Members& members = value.members();
  FieldOrder order(type);
  std::size_t always = 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    Doc::Member& member = members[i];
    const Field* field = order.find(member.key);
    if (field == nullptr) continue;
    if (member.value.is_null()) {
      if (!field->is_always) continue;
      member.value = zero(field->type);
    } else if (union_of(type, *field) != Union::None) {
      encode_either(member.value, *field);
    } else {
      encode_value(member.value, field->type);
    }
    if (is_dropped(member.value, *field)) continue;
    always += field->is_always ? 1 : 0;
    order.keep(*field, kept);
    if (kept != i) members[kept] = std::move(member);
    ++kept;
  }
  members.erase(members.begin() + static_cast<std::ptrdiff_t>(kept), members.end());
  if (order.is_sorted() && always == type.always_count) return;
  order.rebuild(members, [](const Field& field, Doc::Members& sorted) {
    if (field.is_always) sorted.emplace_back(std::string(field.name), zero(field.type));
  });
}

}  // namespace

Doc encode(Doc value, const Struct& type) {
  encode_struct(value, type);
  return value;
}

Doc zero(const Type& type) {
  if (type.is_pointer || type.shape != Type::Shape::One) return Doc();
  switch (type.base) {
    case Base::Struct: {
      Doc object = Doc::object();
      encode_struct(object, *type.of);
      return object;
    }
    case Base::String:
      return Doc("");
    case Base::Bool:
      return Doc(false);
    case Base::Int32:
    case Base::Int64:
    case Base::Float64:
    case Base::IntOrString:
      return Doc(0);
    case Base::Quantity:
      return Doc("0");
    case Base::Duration:
      return Doc("0s");
    case Base::Bytes:
    case Base::Time:
    case Base::MicroTime:
    case Base::Raw:
    case Base::Json:
    case Base::Fields:
      break;
  }
  return Doc();
}

Result<void> settle(Doc& value) {
  if (value.is_array()) {
    for (Doc& item : value.items()) JOGAK_TRY_VOID(settle(item));
  } else if (value.is_object()) {
    for (Doc::Member& member : value.members()) JOGAK_TRY_VOID(settle(member.value));
    sort_keys(value);
  } else if (value.kind() == Doc::Kind::Number) {
    const std::string digits = value.number_text();
    const auto number = read_float(digits);
    if (!number) {
      return invalid("json: cannot unmarshal number {} into Go value of type float64", digits);
    }
    std::string text = float_text(*number);
    std::int64_t whole = 0;
    const char* const end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, whole);
    value =
        result.ec == std::errc() && result.ptr == end ? Doc(whole) : Doc::number(std::move(text));
  }
  return {};
}

}  // namespace jogak::schema
