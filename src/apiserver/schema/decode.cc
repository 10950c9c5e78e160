// SPDX-License-Identifier: Apache-2.0
//
// decode(): walks a value and its type together and changes the value in place. Nothing is copied;
// where a member stands is kept as a chain on the stack and spelled out only for a message.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "apiserver/object/amount.h"
#include "apiserver/schema/base64.h"
#include "apiserver/schema/go_text.h"
#include "apiserver/schema/go_time.h"
#include "apiserver/schema/normalise.h"
#include "apiserver/schema/order.h"
#include "apiserver/schema/unions.h"
#include "base/check.h"

namespace jogak::schema {
namespace {

constexpr std::size_t kComplaintsMax = 100;
constexpr std::string_view kDuplicate = "duplicate field ";

// One step of the way to a value: a member of a struct (of != nullptr), the key of a map, or an
// index (name empty).
struct Step {
  const Step* up = nullptr;
  std::string_view name;
  std::size_t index = 0;
  const Struct* of = nullptr;
};

// "spec.containers[0].image"
std::string strict_path(const Step* step) {
  if (step == nullptr) return "";
  std::string path = strict_path(step->up);
  if (step->name.data() == nullptr) return path + fmt::format("[{}]", step->index);
  if (!path.empty()) path += '.';
  return path.append(step->name);
}

// "spec.containers.image": Go's error names members alone.
std::string member_path(const Step* step) {
  if (step == nullptr) return "";
  std::string path = member_path(step->up);
  if (step->of == nullptr) return path;
  if (!path.empty()) path += '.';
  return path.append(step->name);
}

std::string_view short_name(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// "core.v1.PodSpec" is "v1.PodSpec" to Go.
std::string_view go_name(std::string_view name) { return name.substr(name.find('.') + 1); }

std::string go_type(const Type& type) {
  if (type.shape == Type::Shape::List) return "[]" + go_type(type.element());
  if (type.shape == Type::Shape::Map) return "map[string]" + go_type(type.element());
  switch (type.base) {
    case Base::Struct:
      return std::string(go_name(type.of->name));
    case Base::Bool:
      return "bool";
    case Base::Int32:
      return "int32";
    case Base::Int64:
      return "int64";
    case Base::Float64:
      return "float64";
    case Base::Bytes:
      return "[]uint8";
    case Base::IntOrString:
      return "int32";
    case Base::Quantity:
      return "resource.Quantity";
    case Base::String:
    case Base::Time:
    case Base::MicroTime:
    case Base::Duration:
    case Base::Raw:
    case Base::Json:
    case Base::Fields:
      break;
  }
  return "string";
}

std::string go_value(const Doc& value, bool with_digits) {
  std::string text(json_type(value));
  return with_digits && value.is_number() ? text + " " + value.number_text() : text;
}

// Digits that the canonical form leaves alone: what nearly all quantities are.
bool is_plain_quantity(std::string_view text) {
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
  if (digits == 0 || digits > 15) return false;
  if (text.front() == '0') return text == "0";
  const std::string_view suffix = text.substr(digits);
  if (suffix.empty()) return !text.ends_with("000");
  // Less than the next larger suffix, whichever family.
  return digits <= 3 && (suffix == "m" || suffix == "k" || suffix == "Ki" || suffix == "Mi" ||
                         suffix == "Gi" || suffix == "Ti" || suffix == "M" || suffix == "G");
}

class Decoder {
 public:
  explicit Decoder(Complaints& complaints) : complaints_(complaints) {
    // What a YAML reader says of duplicates is about the text, not about members.
    std::erase_if(complaints_.duplicates, [&](std::string& text) {
      if (text.starts_with(kDuplicate)) return false;
      complain(std::move(text));
      return true;
    });
  }

  bool structure(Doc& value, const Struct& type, const Step* at) {
    if (!value.is_object()) {
      return refuse(value, {.base = Base::Struct, .of = &type}, at, false);
    }
    Doc::Members& members = value.members();
    FieldOrder order(type);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      Doc::Member& member = members[i];
      const Field* field = order.find(member.key);
      const Step here{.up = at, .name = member.key, .of = &type};
      if (field == nullptr) {
        complain("unknown field " + quoted(strict_path(&here)));
        continue;
      }
      if (!complaints_.duplicates.empty()) notice_duplicate(here);
      if (member.value.is_null()) continue;
      const Union kind = union_of(type, *field);
      const bool is_right = kind == Union::None ? one(member.value, field->type, here)
                                                : either(member.value, *field, kind, here);
      if (!is_right) return false;
      if (is_dropped(member.value, *field)) continue;
      order.keep(*field, kept);
      if (kept != i) members[kept] = std::move(member);
      ++kept;
    }
    members.erase(members.begin() + static_cast<std::ptrdiff_t>(kept), members.end());
    order.sort(members);
    return true;
  }

  Error take_error() { return {.code = Errc::Invalid, .what = std::move(error_)}; }

  void finish() { complaints_.duplicates.clear(); }

 private:
  // What Go would not write again. An empty list counts as absent: the real server keeps its
  // objects as protobuf, which does not know the difference.
  static bool is_dropped(const Doc& value, const Field& field) {
    if (value.is_null()) return true;
    if (field.type.is_pointer) return false;
    if (field.type.shape != Type::Shape::One) return value.empty();
    return !field.is_always && is_zero(value);
  }

  void complain(std::string text) {
    if (is_quiet_) return;
    if (complaints_.unknown.size() < kComplaintsMax) {
      complaints_.unknown.push_back(std::move(text));
    }
  }

  void notice_duplicate(const Step& here) {
    std::string text = std::string(kDuplicate) + quoted(strict_path(&here));
    const auto found = std::ranges::find(complaints_.duplicates, text);
    if (found == complaints_.duplicates.end()) return;
    complaints_.duplicates.erase(found);
    complain(std::move(text));
  }

  // Notes a value of the wrong kind; always false.
  bool refuse(const Doc& value, const Type& type, const Step* at, bool with_digits) {
    const Step* member = at;
    while (member != nullptr && member->of == nullptr) member = member->up;
    const std::string where =
        member == nullptr
            ? "value"
            : fmt::format("struct field {}.{}", short_name(member->of->name), member_path(member));
    error_ = fmt::format("json: cannot unmarshal {} into Go {} of type {}",
                         go_value(value, with_digits), where, go_type(type));
    return false;
  }

  bool refuse(std::string text) {
    error_ = std::move(text);
    return false;
  }

  bool one(Doc& value, const Type& type, const Step& at) {
    if (type.shape == Type::Shape::List) return list(value, type, at);
    if (type.shape == Type::Shape::Map) return map(value, type, at);
    return scalar(value, type, at);
  }

  // Go reads these with a decoder of their own, which is never strict.
  bool either(Doc& value, const Field& field, Union kind, const Step& at) {
    const bool was_quiet = std::exchange(is_quiet_, true);
    bool is_right = true;
    if (field.type.shape == Type::Shape::Map) {
      if (!value.is_object()) return refuse(value, field.type, &at, false);
      for (Doc::Member& member : value.members()) {
        is_right = is_right && either(member.value, kind, at);
      }
    } else {
      is_right = either(value, kind, at);
    }
    is_quiet_ = was_quiet;
    return is_right;
  }

  bool either(Doc& value, Union kind, const Step& at) {
    const Type props{.base = Base::Struct, .of = &get(kSchemaProps)};
    if (value.is_object()) return structure(value, *props.of, &at);
    switch (kind) {
      case Union::SchemaOrBool:
        return value.is_bool() || value.is_null() || refuse("boolean or JSON schema expected");
      case Union::SchemaOrArray:
        if (!value.is_array()) break;
        return list(value, {.base = props.base, .of = props.of, .shape = Type::Shape::List}, at);
      case Union::SchemaOrStrings:
        if (!value.is_array()) break;
        return list(value, {.base = Base::String, .of = nullptr, .shape = Type::Shape::List}, at);
      case Union::None:
        break;
    }
    value = Doc();  // Go drops anything else
    return true;
  }

  bool list(Doc& value, const Type& type, const Step& at) {
    if (!value.is_array()) return refuse(value, type, &at, false);
    const Type element = type.element();
    std::size_t index = 0;
    for (Doc& item : value.items()) {
      const Step here{.up = &at, .name = {}, .index = index++};
      if (item.is_null()) {
        item = zero_element(element);
      } else if (!one(item, element, here)) {
        return false;
      }
    }
    return true;
  }

  bool map(Doc& value, const Type& type, const Step& at) {
    if (!value.is_object()) return refuse(value, type, &at, false);
    const Type element = type.element();
    for (Doc::Member& member : value.members()) {
      const Step here{.up = &at, .name = member.key};
      if (!complaints_.duplicates.empty()) notice_duplicate(here);
      if (member.value.is_null()) {
        member.value = zero_element(element);
      } else if (!one(member.value, element, here)) {
        return false;
      }
    }
    return true;
  }

  // null in a list or map: Go's zero value. Empty bytes, as protobuf gives them back.
  static Doc zero_element(const Type& element) {
    if (element.shape == Type::Shape::One && element.base == Base::Bytes) return Doc("");
    return zero(element);
  }

  bool scalar(Doc& value, const Type& type, const Step& at) {
    switch (type.base) {
      case Base::Struct:
        return structure(value, *type.of, &at);
      case Base::String:
        return value.is_string() || refuse(value, type, &at, false);
      case Base::Bool:
        return value.is_bool() || refuse(value, type, &at, false);
      case Base::Int32:
      case Base::Int64:
        return whole(value, type, at);
      case Base::Float64:
        return floating(value, type, at);
      case Base::Bytes:
        return bytes(value, type, at);
      case Base::Quantity:
        return quantity(value);
      case Base::Time:
        return text(value, at, canonical_time);
      case Base::MicroTime:
        return text(value, at, canonical_micro_time);
      case Base::Duration:
        return text(value, at, canonical_duration);
      case Base::IntOrString:
        return value.is_string() || whole(value, type, at);
      case Base::Raw:
      case Base::Json:
      case Base::Fields:
        return true;
    }
    return true;
  }

  bool whole(const Doc& value, const Type& type, const Step& at) {
    if (!value.is_int()) return refuse(value, type, &at, true);
    const bool fits = type.base == Base::Int64 || std::in_range<std::int32_t>(value.as_int());
    return fits || refuse(value, type, &at, true);
  }

  bool floating(Doc& value, const Type& type, const Step& at) {
    if (value.is_int()) return true;
    if (!value.is_number() || !settle(value)) return refuse(value, type, &at, true);
    return true;
  }

  bool bytes(Doc& value, const Type& type, const Step& at) {
    if (!value.is_string()) return refuse(value, type, &at, false);
    if (is_canonical_base64(value.as_string())) return true;
    const auto decoded = decode_base64(value.as_string());
    if (!decoded) {
      return refuse(fmt::format("illegal base64 data at input byte {}", decoded.error()));
    }
    value = Doc(encode_base64(*decoded));
    return true;
  }

  bool quantity(Doc& value) {
    if (value.is_string() && is_plain_quantity(value.as_string())) return true;
    std::string digits;
    if (value.is_number()) digits = value.number_text();
    // Any other kind is read as the text it has in JSON, and never fits.
    const std::string_view written = value.is_string() ? value.as_string() : digits;
    auto amount = api::Amount::read(written);
    if (!amount) return refuse(std::move(amount.error().what));
    value = Doc(amount->text());
    return true;
  }

  // Times and durations. The zero time is null.
  bool text(Doc& value, const Step& at, Result<std::string> (*canonical)(std::string_view)) {
    if (!value.is_string()) return refuse(value, {.base = Base::String}, &at, false);
    auto result = canonical(value.as_string());
    if (!result) return refuse(std::move(result.error().what));
    if (result->empty()) {
      value = Doc();
    } else if (*result != value.as_string()) {
      value = Doc(*std::move(result));
    }
    return true;
  }

  Complaints& complaints_;
  bool is_quiet_ = false;  // unknown members go without a word
  std::string error_;
};

}  // namespace

Result<Doc> decode(Doc value, const Struct& type, Complaints& complaints) {
  Decoder decoder(complaints);
  if (value.is_null()) return Doc::object();
  if (!decoder.structure(value, type, nullptr)) return std::unexpected(decoder.take_error());
  decoder.finish();
  return value;
}

}  // namespace jogak::schema
