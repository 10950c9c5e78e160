// SPDX-License-Identifier: Apache-2.0
//
// Findings on the way to field errors, and the checks that look at one value alone; between
// value_check.cc and value_scalar.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

// An error before it has its final field: `name` is the path, and equal messages count once.
struct Finding {
  FieldErrorType type = FieldErrorType::Invalid;
  std::string name;
  std::string text;  // what makes it unique
  Doc value = "";
  bool has_place = true;  // false: upstream gives it no path
  std::size_t limit = 0;
  std::vector<std::string> supported;
};

struct Outcome {
  std::vector<Finding> findings;
  int matches = 0;

  void add(Finding finding);
  void merge(Outcome other);
  bool is_valid() const { return findings.empty(); }
};

// "PATH in body WHAT".
Finding invalid_at(const std::string& path, const Doc& value, std::string_view what);
Finding placeless(std::string text);
Finding wrong_type(const std::string& path, std::string_view wanted, std::string_view found);

// What the schema allows: {"integer", "string"} for int-or-string.
std::vector<std::string> types_of(const Doc& schema);
// The format, where the server knows it for the schema's type; "" otherwise.
std::string_view format_of(const Doc& schema);

Outcome check_type(const Doc& value, const Doc& schema, const std::string& path);
Outcome check_string(const Doc& value, const Doc& schema, const std::string& path);
Outcome check_number(const Doc& value, const Doc& schema, const std::string& path);
Outcome check_enum(const Doc& value, const Doc& schema, const std::string& path);

}  // namespace jogak::api
