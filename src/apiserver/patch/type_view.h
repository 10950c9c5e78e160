// SPDX-License-Identifier: Apache-2.0
//
// What structured merge wants to know of the type of a value, the same for built-in structs and for
// the schemas of custom resources: which forms the value may have, how lists find their items, what
// is one indivisible value. Two types have no schema: "deduced" takes its shape from the value
// (maps merge, lists are one value), "untyped" is one value whatever it holds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apiserver/patch/managed_fields.h"
#include "apiserver/schema/schema.h"
#include "base/doc.h"

namespace jogak::patch {

class TypeView {
 public:
  enum class Scalar : std::uint8_t { None, String, Numeric, Boolean, Untyped };
  // In the order in which a type of several forms takes a null.
  enum class Form : std::uint8_t { Map, Scalar, List };

  static TypeView of(const ObjectType& object);
  static TypeView deduced() { return TypeView(Origin::Deduced); }
  // A map that names no members and takes whatever there is.
  bool is_free_form() const;

  Scalar scalar() const;
  bool has_map() const;
  bool has_list() const;
  // The form in which this value is to be read; of a null or an absent value the first there is.
  Form form_for(const Doc* value) const;

  bool is_atomic_map() const;
  // Lists that are not atomic tell their items apart by keys or, without keys, by value.
  bool is_atomic_list() const;
  bool has_keys() const;
  TypeView item() const;
  // Of a map or struct; nullopt: no such member is declared.
  std::optional<TypeView> member(std::string_view name) const;
  // Whether the type names that member, other than by letting any name in.
  bool names_member(std::string_view name) const;
  // The struct behind a map-like type, or nullptr.
  const schema::Struct* as_struct() const;

  static TypeView of_field(const schema::Field& field);

  // The path element of a list's item. nullopt: the item has none; `why`, if given, says why.
  std::optional<std::string> item_element(const Doc& item, std::string* why = nullptr) const;

 private:
  enum class Origin : std::uint8_t { Builtin, Custom, CustomRoot, Deduced, Untyped };

  explicit TypeView(Origin origin) : origin_(origin) {}
  static TypeView builtin(const schema::Type& type, const schema::Field* field);
  static TypeView custom(const Doc& schema, bool preserves_unknown, Origin origin);

  std::string_view custom_type() const { return (*custom_)["type"].as_string(); }
  bool is_one(schema::Base base) const;
  std::optional<std::string> keyed_element(const Doc& item, std::string* why) const;
  // The default of a key that an item leaves out; a null Doc for none.
  Doc key_default(std::string_view key) const;

  Origin origin_ = Origin::Deduced;
  bool preserves_unknown_ = false;        // Custom: handed down from a schema above
  schema::Type type_;                     // Builtin
  const schema::Field* field_ = nullptr;  // Builtin: what is said of it where it is a member
  const Doc* custom_ = nullptr;           // Custom
};

// The value of a member that Go always writes, as it is when nothing was set.
const Doc& zero_value(const schema::Field& field);

}  // namespace jogak::patch
