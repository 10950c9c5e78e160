// SPDX-License-Identifier: Apache-2.0
//
// Types, bounds, patterns, formats and enums.
#include "apiserver/crd/value_scalar.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "apiserver/crd/formats.h"
#include "apiserver/crd/json_schema.h"
#include "apiserver/crd/pattern.h"
#include "apiserver/crd/value_check.h"

namespace jogak::api {
namespace {

std::string type_name(const Doc& value) {
  switch (value.kind()) {
    case Doc::Kind::Null:
      return "null";
    case Doc::Kind::Bool:
      return "boolean";
    case Doc::Kind::Int:
      return "integer";
    case Doc::Kind::Number:
      return "number";
    case Doc::Kind::String:
      return "string";
    case Doc::Kind::Array:
      return "array";
    case Doc::Kind::Object:
      return "object";
  }
  return "";
}

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string joined(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& word : list) out.append(out.empty() ? "" : ",").append(word);
  return out;
}

bool is_whole(double value) {
  return std::abs(value) < 9007199254740992.0 && std::trunc(value) == value;
}

std::size_t rune_count(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string shown(const Doc& number) {
  return number.is_int() ? number.number_text() : go_float(number_of(number));
}

// -1, 0, 1: whole numbers compare as such, all others as float64.
int compare(const Doc& a, const Doc& b) {
  if (a.is_int()) {
    // Upstream cuts the bound to a whole number where the value is one.
    const auto bound = b.is_int() ? b.as_int() : static_cast<std::int64_t>(number_of(b));
    return a.as_int() < bound ? -1 : a.as_int() > bound ? 1 : 0;
  }
  const double left = number_of(a);
  const double right = number_of(b);
  return left < right ? -1 : left > right ? 1 : 0;
}

// The bound in the message: cut to a whole number where the value is one.
std::string bound_text(const Doc& value, const Doc& bound) {
  if (value.is_int() && !bound.is_int()) {
    return std::to_string(static_cast<std::int64_t>(number_of(bound)));
  }
  return shown(bound);
}

bool is_multiple(const Doc& value, const Doc& factor) {
  if (value.is_int()) {
    const auto by =
        factor.is_int() ? factor.as_int() : static_cast<std::int64_t>(number_of(factor));
    return by > 0 && value.as_int() % by == 0;
  }
  const double by = number_of(factor);
  if (by <= 0) return false;
  return is_whole(by < 1 ? 1 / by * number_of(value) : number_of(value) / by);
}

std::optional<Finding> check_range(const Doc& value, const Doc& schema, const std::string& path) {
  const std::string_view format = format_of(schema);
  const std::string& type = schema["type"].as_string();
  const double number = number_of(value);
  bool fits = true;
  if (type == "integer") {
    const bool is_32 = format == "int32";
    const double least = is_32 ? std::numeric_limits<std::int32_t>::min() : -9223372036854775808.0;
    const double most = is_32 ? std::numeric_limits<std::int32_t>::max() : 9223372036854775807.0;
    fits = value.is_int() ? !is_32 || (number >= least && number <= most)
                          : is_whole(number) && number >= least && number < most;
  } else if (format == "float") {
    fits = std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max());
  }
  if (fits) return std::nullopt;
  const std::string wanted =
      format.empty() ? "(default format)" : fmt::format("with format {}", format);
  return placeless(fmt::format("Checked value must be of type {} {} in {}", type, wanted, path));
}

bool same_value(const Doc& a, const Doc& b) {
  if (a.is_number() && b.is_number()) return number_of(a) == number_of(b);
  return a == b;
}

}  // namespace

void Outcome::add(Finding finding) {
  const bool is_known = std::any_of(findings.begin(), findings.end(),
                                    [&](const Finding& one) { return one.text == finding.text; });
  if (!is_known) findings.push_back(std::move(finding));
}

void Outcome::merge(Outcome other) {
  for (Finding& finding : other.findings) add(std::move(finding));
  matches += other.matches;
}

Finding invalid_at(const std::string& path, const Doc& value, std::string_view what) {
  Finding out;
  out.name = path;
  out.text = fmt::format("{} in body {}", path, what);
  out.value = value;
  return out;
}

Finding placeless(std::string text) {
  Finding out;
  out.text = std::move(text);
  out.has_place = false;
  return out;
}

std::vector<std::string> types_of(const Doc& schema) {
  if (is_int_or_string(schema)) return {"integer", "string"};
  const std::string& type = schema["type"].as_string();
  return type.empty() ? std::vector<std::string>() : std::vector<std::string>{type};
}

// The format, where the server knows it for the schema's type.
std::string_view format_of(const Doc& schema) {
  const std::string& format = schema["format"].as_string();
  const std::vector<std::string> types = types_of(schema);
  const std::string_view type = types.size() == 1 ? std::string_view(types[0]) : "";
  return !format.empty() && is_known_format(type, format) ? std::string_view(format) : "";
}

Finding wrong_type(const std::string& path, std::string_view wanted, std::string_view found) {
  Finding finding =
      invalid_at(path, Doc(found), fmt::format("must be of type {}: {}", wanted, quoted(found)));
  finding.type = FieldErrorType::TypeInvalid;
  return finding;
}

Outcome check_type(const Doc& value, const Doc& schema, const std::string& path) {
  Outcome out;
  const std::vector<std::string> types = types_of(schema);
  const std::string found = type_name(value);
  if (value.is_null()) {
    if (!types.empty() && !is_nullable(schema)) {
      out.add(wrong_type(path, joined(types), found));
    } else {
      ++out.matches;
    }
    return out;
  }
  const std::string_view format = format_of(schema);
  const bool is_whole_number =
      found == "number" && contains(types, "integer") && is_whole(number_of(value));
  const bool is_right = contains(types, found) || is_whole_number ||
                        (found == "integer" && contains(types, "number"));
  const bool is_text = value.is_string() || value.is_array();
  const bool wants_number = contains(types, "number") || contains(types, "integer");
  if (!is_text && !format.empty() && !is_right) {
    const std::string_view found_format = value.is_int()      ? "int64"
                                          : value.is_number() ? "float64"
                                                              : "";
    if (found_format != format) {
      out.add(wrong_type(path, format, found_format));
      return out;
    }
  }
  if (!(is_text && !format.empty() && !wants_number) && !types.empty() && !is_right) {
    out.add(wrong_type(path, joined(types), found));
    return out;
  }
  ++out.matches;
  return out;
}

Outcome check_string(const Doc& value, const Doc& schema, const std::string& path) {
  Outcome out;
  const std::string& text = value.as_string();
  const auto length = static_cast<std::int64_t>(rune_count(text));
  const Doc& longest = schema["maxLength"];
  const Doc& shortest = schema["minLength"];
  const std::string& pattern = schema["pattern"].as_string();
  if (longest.is_int() && length > longest.as_int()) {
    Finding finding =
        invalid_at(path, value, fmt::format("should be at most {} chars long", longest.as_int()));
    finding.type = FieldErrorType::TooLong;
    finding.limit = static_cast<std::size_t>(longest.as_int());
    out.add(std::move(finding));
  } else if (shortest.is_int() && length < shortest.as_int()) {
    out.add(invalid_at(path, value,
                       fmt::format("should be at least {} chars long", shortest.as_int())));
  } else if (!pattern.empty() && !pattern_matches(pattern, text)) {
    out.add(invalid_at(path, value, fmt::format("should match '{}'", pattern)));
  }
  return out;
}

Outcome check_number(const Doc& value, const Doc& schema, const std::string& path) {
  Outcome out;
  if (auto finding = check_range(value, schema, path)) out.add(*std::move(finding));
  const Doc& factor = schema["multipleOf"];
  if (factor.is_number() && !is_multiple(value, factor)) {
    out.add(invalid_at(path, value, fmt::format("should be a multiple of {}", shown(factor))));
  }
  const Doc& least = schema["minimum"];
  if (least.is_number()) {
    const bool is_open = schema["exclusiveMinimum"].as_bool();
    const int order = compare(value, least);
    if (order < 0 || (is_open && order == 0)) {
      out.add(invalid_at(path, value,
                         fmt::format("should be greater than{} {}", is_open ? "" : " or equal to",
                                     bound_text(value, least))));
    }
  }
  const Doc& most = schema["maximum"];
  if (most.is_number()) {
    const bool is_open = schema["exclusiveMaximum"].as_bool();
    const int order = compare(value, most);
    if (order > 0 || (is_open && order == 0)) {
      out.add(invalid_at(path, value,
                         fmt::format("should be less than{} {}", is_open ? "" : " or equal to",
                                     bound_text(value, most))));
    }
  }
  ++out.matches;
  return out;
}

Outcome check_enum(const Doc& value, const Doc& schema, const std::string& path) {
  Outcome out;
  const Doc& allowed = schema["enum"];
  if (allowed.empty()) return out;
  Finding finding = invalid_at(path, value, "should be one of the enum");
  finding.type = FieldErrorType::NotSupported;
  for (const Doc& one : allowed.items()) {
    if (!one.is_null() && same_value(value, one)) return out;
    std::string text;
    if (one.is_string()) {
      text = one.as_string();
    } else {
      one.append_json(text);
    }
    finding.supported.push_back(std::move(text));
  }
  out.add(std::move(finding));
  return out;
}

}  // namespace jogak::api
