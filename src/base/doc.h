// SPDX-License-Identifier: Apache-2.0
//
// A tree of values, as JSON has them: what a command prints with `-o json` or `-o yaml`, and what
// the API server reads, changes and stores. Keys stay in the order they were set. Numbers that are
// not whole (or do not fit 64 bits) carry their digits, so that the text is the same on every
// machine and survives a round trip. A Doc owns all it holds; copies are deep. Reading text into a
// Doc is the codec's work (apiserver/codec).
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/json_writer.h"

namespace jogak {

class Doc {
 public:
  enum class Kind : std::uint8_t { Null, Bool, Int, Number, String, Array, Object };

  struct Member;
  using Items = std::vector<Doc>;
  using Members = std::vector<Member>;

  Doc() = default;                    // null
  Doc(std::same_as<bool> auto flag);  // NOLINT(google-explicit-constructor): values convert
  Doc(std::integral auto number)      // NOLINT(google-explicit-constructor)
    requires(!std::same_as<decltype(number), bool>);
  Doc(std::string text);       // NOLINT(google-explicit-constructor)
  Doc(std::string_view text);  // NOLINT(google-explicit-constructor)
  Doc(const char* text);       // NOLINT(google-explicit-constructor)
  // A double needs its number of digits: use decimal().
  Doc(std::floating_point auto) = delete;

  static Doc object();
  static Doc array();
  static Doc array(Items items);
  // See fixed_decimal() in json_writer.h.
  static Doc decimal(double value, int places);
  static Doc decimal(std::int64_t unscaled, int places);
  // A number by its digits, which must be a JSON number: "1.5", "1e21", "18446744073709551615".
  static Doc number(std::string digits);
  // ["a", ...]
  static Doc strings(const std::vector<std::string>& items);

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool is_null() const { return kind() == Kind::Null; }
  bool is_bool() const { return kind() == Kind::Bool; }
  bool is_int() const { return kind() == Kind::Int; }
  bool is_number() const { return kind() == Kind::Int || kind() == Kind::Number; }
  bool is_string() const { return kind() == Kind::String; }
  bool is_array() const { return kind() == Kind::Array; }
  bool is_object() const { return kind() == Kind::Object; }
  // Items of an array, members of an object; 0 for anything else.
  std::size_t size() const;
  bool empty() const { return size() == 0; }

  // The value where it has this kind, else the fallback: absent and wrong read alike.
  bool as_bool(bool fallback = false) const;
  std::int64_t as_int(std::int64_t fallback = 0) const;
  const std::string& as_string() const;  // "" for anything but a string
  std::string number_text() const;       // digits of an Int or a Number, else ""
  const Items& items() const;            // none for anything but an array
  Items& items();                        // CHECKs: array
  const Members& members() const;        // none for anything but an object
  Members& members();                    // CHECKs: object

  // A member by key: nullptr when absent or when this is not an object.
  const Doc* find(std::string_view key) const;
  Doc* find(std::string_view key);
  bool has(std::string_view key) const { return find(key) != nullptr; }
  // A member by key, or by a path of keys; a shared null Doc where something is absent.
  const Doc& operator[](std::string_view key) const;
  template <class... Keys>
  const Doc& get(std::string_view key, const Keys&... rest) const {
    const Doc& inner = (*this)[key];
    if constexpr (sizeof...(rest) == 0) {
      return inner;
    } else {
      return inner.get(rest...);
    }
  }
  // The member, made as null when absent. A null Doc becomes an object first. CHECKs: object.
  Doc& at(std::string_view key);
  template <class... Keys>
    requires(sizeof...(Keys) > 0)
  Doc& at(std::string_view key, const Keys&... rest) {
    return at(key).at(rest...);
  }
  // In an object: sets a key, in place if it is there already. Returns this object. A null Doc
  // becomes an object first.
  Doc& set(std::string_view key, Doc value);
  // Sets the key only when it is absent (or null).
  Doc& set_default(std::string_view key, Doc value);
  // Removes a key; false when it was not there.
  bool erase(std::string_view key);
  // Appends to an array. A null Doc becomes an array first. Returns this array.
  Doc& push(Doc value);

  // Equal values; the order of members says nothing. 1 and 1.0 differ.
  friend bool operator==(const Doc& a, const Doc& b);

  std::string json(JsonWriter::Style style = JsonWriter::Style::Pretty) const;
  // Appends compact JSON; the fast way to bytes.
  void append_json(std::string& out) const;
  // Block style, two spaces; a string that YAML could read as something else is quoted.
  std::string yaml() const;

 private:
  struct Digits {
    std::string text;
    friend bool operator==(const Digits&, const Digits&) = default;
  };

  void write(JsonWriter& writer) const;
  void write_yaml(std::string& out, std::size_t indent) const;
  void write_yaml_value(std::string& out, std::size_t indent, bool in_object) const;
  bool is_block() const { return !empty(); }
  std::string yaml_scalar() const;

  // In the order of Kind.
  std::variant<std::monostate, bool, std::int64_t, Digits, std::string, Items, Members> value_;
};

struct Doc::Member {
  std::string key;
  Doc value;

  friend bool operator==(const Member&, const Member&) = default;
};

// Defined where Member is complete: the variant's parts must be.
inline Doc::Doc(std::string text) : value_(std::move(text)) {}
inline Doc::Doc(std::string_view text) : value_(std::string(text)) {}
inline Doc::Doc(const char* text) : value_(std::string(text)) {}
Doc::Doc(std::same_as<bool> auto flag) : value_(flag) {}
Doc::Doc(std::integral auto number)
  requires(!std::same_as<decltype(number), bool>)
{
  if (std::in_range<std::int64_t>(number)) {
    value_ = static_cast<std::int64_t>(number);
  } else {
    value_ = Digits{std::to_string(number)};
  }
}

}  // namespace jogak
