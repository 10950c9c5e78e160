// SPDX-License-Identifier: Apache-2.0
//
// Reads kube.types into Structs, once. The text is ours, so a line that does not fit the format is
// a bug and fails a check. Names and keys are views into the text.
#include "apiserver/schema/schema.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <utility>

#include "apiserver/schema/kube_types.h"
#include "base/check.h"

namespace jogak::schema {
namespace {

constexpr std::size_t kFieldsMax = 255;  // slots are bytes, 0 is free
constexpr std::string_view kTypeWord = "type ";

// The next word up to `separator`, which goes too.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t end = text.find(separator);
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

bool drop_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::uint16_t number_of(std::string_view text) {
  std::uint16_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  JOGAK_CHECK(error == std::errc() && end == text.data() + text.size(), "kube.types: {}", text);
  return number;
}

struct BaseName {
  std::string_view name;
  Base base;
};
constexpr BaseName kBases[] = {
    {"string", Base::String},     {"bool", Base::Bool},       {"int32", Base::Int32},
    {"int64", Base::Int64},       {"float64", Base::Float64}, {"bytes", Base::Bytes},
    {"quantity", Base::Quantity}, {"time", Base::Time},       {"microtime", Base::MicroTime},
    {"duration", Base::Duration}, {"raw", Base::Raw},         {"intorstring", Base::IntOrString},
    {"json", Base::Json},         {"fields", Base::Fields},
};

// Mixes the length with the first and the last bytes, which tell the members of a struct apart.
std::uint32_t hash_of(std::string_view name) {
  std::uint64_t head = 0;
  std::uint64_t tail = 0;
  if (name.size() >= 8) {
    std::memcpy(&head, name.data(), 8);
    std::memcpy(&tail, name.data() + name.size() - 8, 8);
  } else {
    for (const char c : name) head = (head << 8) | static_cast<unsigned char>(c);
  }
  const std::uint64_t mixed =
      (head ^ std::rotl(tail, 23) ^ name.size()) * std::uint64_t{0x9E3779B97F4A7C15};
  return static_cast<std::uint32_t>(mixed >> 40);
}

class Loader {
 public:
  Loader() { load(kube_types()); }

  const Struct* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

 private:
  Struct& named(std::string_view name) {
    Struct*& entry = by_name_[name];
    if (entry == nullptr) {
      entry = &structs_.emplace_back();
      entry->name = name;
    }
    return *entry;
  }

  void load(std::string_view text) {
    Struct* current = nullptr;
    while (!text.empty()) {
      std::string_view line = take(text, '\n');
      if (line.empty() || line.starts_with('#')) continue;
      if (opens_type(line)) {
        line.remove_prefix(kTypeWord.size());
        current = &named(take(line, ' '));
        current->is_atomic = line == "s=atomic";
        continue;
      }
      JOGAK_CHECK(current != nullptr, "kube.types: field before any type: {}", line);
      current->fields.push_back(field(line));
    }
    for (Struct& type : structs_) finish(type);
  }

  // A field may be called "type" too; then a number follows.
  static bool opens_type(std::string_view line) {
    return line.starts_with(kTypeWord) && line.size() > kTypeWord.size() &&
           (line[kTypeWord.size()] < '0' || line[kTypeWord.size()] > '9');
  }

  Field field(std::string_view line) {
    Field result;
    result.name = take(line, ' ');
    result.number = number_of(take(line, ' '));
    result.type = type(take(line, ' '));
    while (!line.empty()) flag(take(line, ' '), result);
    return result;
  }

  Type type(std::string_view text) {
    Type result;
    result.is_pointer = drop_prefix(text, "*");
    result.shape = shape(text);
    if (result.shape != Type::Shape::One) result.inner_shape = shape(text);
    for (const BaseName& entry : kBases) {
      if (entry.name == text) {
        result.base = entry.base;
        return result;
      }
    }
    result.base = Base::Struct;
    result.of = &named(text);
    return result;
  }

  static Type::Shape shape(std::string_view& text) {
    if (drop_prefix(text, "[]")) return Type::Shape::List;
    if (drop_prefix(text, "{}")) return Type::Shape::Map;
    return Type::Shape::One;
  }

  static void flag(std::string_view word, Field& field) {
    std::string_view value = word;
    const std::string_view name = take(value, '=');
    if (name == "e") {
      field.omit_empty = true;
    } else if (name == "z") {
      field.omit_zero = true;
    } else if (name == "o") {
      field.is_optional = true;
    } else if (name == "p") {
      while (!value.empty()) strategy(take(value, ','), field);
    } else if (name == "pk") {
      field.patch_key = value;
    } else if (name == "l") {
      field.names_list = true;
      field.list = value == "map"   ? ListKind::Map
                   : value == "set" ? ListKind::Set
                                    : ListKind::Atomic;
    } else if (name == "k") {
      while (!value.empty()) field.list_keys.push_back(take(value, ','));
    } else if (name == "m" || name == "s") {
      field.is_atomic = field.is_atomic || value == "atomic";
    } else if (name == "i") {
      field.inline_number = number_of(value);
    } else if (name == "d") {
      // ref(...) names a Go constant; no key of a list has one.
      if (!value.starts_with("ref(")) field.default_text = value;
    } else {
      JOGAK_CHECK(false, "kube.types: flag {}", word);
    }
  }

  static void strategy(std::string_view word, Field& field) {
    field.patch_merge = field.patch_merge || word == "merge";
    field.patch_retain_keys = field.patch_retain_keys || word == "retainKeys";
    field.patch_replace = field.patch_replace || word == "replace";
  }

  static void finish(Struct& type) {
    JOGAK_CHECK(type.fields.size() <= kFieldsMax, "kube.types: fields of {}", type.name);
    for (Field& field : type.fields) {
      field.is_always = is_always(field);
      type.always_count += field.is_always ? 1 : 0;
    }
    type.slots.assign(std::bit_ceil(type.fields.size() * 2 + 1), 0);
    const std::size_t mask = type.slots.size() - 1;
    for (std::size_t i = 0; i < type.fields.size(); ++i) {
      std::size_t slot = hash_of(type.fields[i].name) & mask;
      while (type.slots[slot] != 0) slot = (slot + 1) & mask;
      type.slots[slot] = static_cast<std::uint8_t>(i + 1);
      if (type.fields[i].number != 0) type.wire_order.push_back(static_cast<std::uint8_t>(i));
    }
    std::ranges::sort(type.wire_order, {}, [&](std::uint8_t i) {
      const Field& field = type.fields[i];
      const std::uint16_t outer = field.inline_number != 0 ? field.inline_number : field.number;
      return std::pair(outer, field.number);
    });
  }

  // What Go declares as a struct is never empty for omitempty.
  static bool is_always(const Field& field) {
    if (field.omit_zero) return false;
    if (!field.omit_empty) return true;
    if (field.type.is_pointer || field.type.shape != Type::Shape::One) return false;
    switch (field.type.base) {
      case Base::Struct:
      case Base::Quantity:
      case Base::Time:
      case Base::MicroTime:
      case Base::Duration:
      case Base::IntOrString:
      case Base::Raw:
      case Base::Json:
      case Base::Fields:
        return true;
      case Base::String:
      case Base::Bool:
      case Base::Int32:
      case Base::Int64:
      case Base::Float64:
      case Base::Bytes:
        return false;
    }
    return false;
  }

  std::deque<Struct> structs_;  // addresses stay
  std::unordered_map<std::string_view, Struct*> by_name_;
};

const Loader& types() {
  static const Loader loader;
  return loader;
}

}  // namespace

const Field* Struct::find(std::string_view json_name) const {
  const std::size_t mask = slots.size() - 1;
  for (std::size_t slot = hash_of(json_name) & mask; slots[slot] != 0; slot = (slot + 1) & mask) {
    const Field& field = fields[slots[slot] - 1U];
    if (field.name == json_name) return &field;
  }
  return nullptr;
}

const Struct* find(std::string_view name) { return types().find(name); }

const Struct& get(std::string_view name) {
  const Struct* type = find(name);
  JOGAK_CHECK(type != nullptr, "no API type {}", name);
  return *type;
}

}  // namespace jogak::schema
