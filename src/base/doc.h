// SPDX-License-Identifier: Apache-2.0
//
// A tree of values for output: a command builds one Doc, and `-o json` or `-o yaml` prints it. Keys
// stay in the order they were set. Numbers that are not whole carry their digits, so that the text
// is the same on every machine. Made for writing; there is no reader.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_writer.h"

namespace jogak {

class Doc {
 public:
  Doc() = default;                   // null
  Doc(std::same_as<bool> auto flag)  // NOLINT(google-explicit-constructor): values convert
      : kind_(Kind::Literal), text_(flag ? "true" : "false") {}
  Doc(std::integral auto number)  // NOLINT(google-explicit-constructor)
    requires(!std::same_as<decltype(number), bool>)
      : kind_(Kind::Literal), text_(std::to_string(number)) {}
  Doc(std::string text)  // NOLINT(google-explicit-constructor)
      : kind_(Kind::String), text_(std::move(text)) {}
  Doc(std::string_view text)  // NOLINT(google-explicit-constructor)
      : Doc(std::string(text)) {}
  Doc(const char* text)  // NOLINT(google-explicit-constructor)
      : Doc(std::string(text)) {}
  // A double needs its number of digits: use decimal().
  Doc(std::floating_point auto) = delete;

  static Doc object();
  static Doc array();
  // See fixed_decimal() in json_writer.h.
  static Doc decimal(double value, int places);
  static Doc decimal(std::int64_t unscaled, int places);

  // In an object: sets a key, in place if it is there already. Returns this object.
  Doc& set(std::string_view key, Doc value);
  // In an array: appends. Returns this array.
  Doc& push(Doc value);

  bool is_object() const { return kind_ == Kind::Object; }
  bool is_array() const { return kind_ == Kind::Array; }
  std::size_t size() const { return values_.size(); }  // of an object or array

  std::string json(JsonWriter::Style style = JsonWriter::Style::Pretty) const;
  // Block style, two spaces; a string that YAML could read as something else is quoted.
  std::string yaml() const;

 private:
  enum class Kind : std::uint8_t { Null, Literal, String, Array, Object };

  explicit Doc(Kind kind) : kind_(kind) {}

  void write(JsonWriter& writer) const;
  void write_yaml(std::string& out, std::size_t indent) const;
  bool is_block() const { return !values_.empty(); }
  std::string yaml_scalar() const;

  Kind kind_ = Kind::Null;
  std::string text_;
  std::vector<std::string> keys_;  // of an object: one per value
  std::vector<Doc> values_;
};

}  // namespace jogak
