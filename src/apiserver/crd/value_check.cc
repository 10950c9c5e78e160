// SPDX-License-Identifier: Apache-2.0
//
// One function a group of keywords, in the order upstream runs them. An Outcome counts what matched
// as upstream does: of several alternatives that all fail, the one with most matches speaks.
#include "apiserver/crd/value_check.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "apiserver/crd/formats.h"
#include "apiserver/crd/json_schema.h"
#include "apiserver/crd/pattern.h"

namespace jogak::api {
namespace {

// An error before it has its final field: `name` is the path, and equal messages count once.
struct Finding {
  FieldErrorType type = FieldErrorType::Invalid;
  std::string name;
  std::string text;      // what makes it unique
  Doc value = "";
  bool has_place = true;  // false: upstream gives it no path
  std::size_t limit = 0;
  std::vector<std::string> supported;
};

struct Outcome {
  std::vector<Finding> findings;
  int matches = 0;

  void add(Finding finding) {
    const bool is_known = std::any_of(findings.begin(), findings.end(), [&](const Finding& one) {
      return one.text == finding.text;
    });
    if (!is_known) findings.push_back(std::move(finding));
  }
  void merge(Outcome other) {
    for (Finding& finding : other.findings) add(std::move(finding));
    matches += other.matches;
  }
  bool is_valid() const { return findings.empty(); }
};

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

std::string type_name(const Doc& value) {
  switch (value.kind()) {
    case Doc::Kind::Null: return "null";
    case Doc::Kind::Bool: return "boolean";
    case Doc::Kind::Int: return "integer";
    case Doc::Kind::Number: return "number";
    case Doc::Kind::String: return "string";
    case Doc::Kind::Array: return "array";
    case Doc::Kind::Object: return "object";
  }
  return "";
}

std::vector<std::string> types_of(const Doc& schema) {
  if (is_int_or_string(schema)) return {"integer", "string"};
  const std::string& type = schema["type"].as_string();
  return type.empty() ? std::vector<std::string>() : std::vector<std::string>{type};
}

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string joined(const std::vector<std::string>& list) {
  std::string out;
  for (const std::string& word : list) out.append(out.empty() ? "" : ",").append(word);
  return out;
}

// The format, where the server knows it for the schema's type.
std::string_view format_of(const Doc& schema) {
  const std::string& format = schema["format"].as_string();
  const std::vector<std::string> types = types_of(schema);
  const std::string_view type = types.size() == 1 ? std::string_view(types[0]) : "";
  return !format.empty() && is_known_format(type, format) ? std::string_view(format) : "";
}

bool is_whole(double value) {
  return std::abs(value) < 9007199254740992.0 && std::trunc(value) == value;
}

Finding wrong_type(const std::string& path, std::string_view wanted, std::string_view found) {
  Finding finding = invalid_at(path, Doc(found),
                               fmt::format("must be of type {}: {}", wanted, quoted(found)));
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
  const bool is_whole_number = found == "number" && contains(types, "integer") &&
                               is_whole(number_of(value));
  const bool is_right = contains(types, found) || is_whole_number ||
                        (found == "integer" && contains(types, "number"));
  const bool is_text = value.is_string() || value.is_array();
  const bool wants_number = contains(types, "number") || contains(types, "integer");
  if (!is_text && !format.empty() && !is_right) {
    const std::string_view found_format =
        value.is_int() ? "int64" : value.is_number() ? "float64" : "";
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

std::size_t rune_count(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

Outcome check_string(const Doc& value, const Doc& schema, const std::string& path) {
  Outcome out;
  const std::string& text = value.as_string();
  const auto length = static_cast<std::int64_t>(rune_count(text));
  const Doc& longest = schema["maxLength"];
  const Doc& shortest = schema["minLength"];
  const std::string& pattern = schema["pattern"].as_string();
  if (longest.is_int() && length > longest.as_int()) {
    Finding finding = invalid_at(
        path, value, fmt::format("should be at most {} chars long", longest.as_int()));
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
    const auto by = factor.is_int() ? factor.as_int()
                                    : static_cast<std::int64_t>(number_of(factor));
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
      out.add(invalid_at(path, value, fmt::format("should be greater than{} {}",
                                                  is_open ? "" : " or equal to",
                                                  bound_text(value, least))));
    }
  }
  const Doc& most = schema["maximum"];
  if (most.is_number()) {
    const bool is_open = schema["exclusiveMaximum"].as_bool();
    const int order = compare(value, most);
    if (order > 0 || (is_open && order == 0)) {
      out.add(invalid_at(path, value, fmt::format("should be less than{} {}",
                                                  is_open ? "" : " or equal to",
                                                  bound_text(value, most))));
    }
  }
  ++out.matches;
  return out;
}

bool same_value(const Doc& a, const Doc& b) {
  if (a.is_number() && b.is_number()) return number_of(a) == number_of(b);
  return a == b;
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

Finding too_many(const std::string& path, std::size_t size, const Doc& limit,
                 std::string_view things) {
  Finding finding = invalid_at(
      path, Doc(size), fmt::format("should have at most {} {}", limit.as_int(), things));
  finding.type = FieldErrorType::TooMany;
  finding.limit = static_cast<std::size_t>(limit.as_int());
  return finding;
}

Finding too_few(const std::string& path, std::size_t size, const Doc& limit,
                std::string_view things) {
  return invalid_at(path, Doc(size),
                    fmt::format("should have at least {} {}", limit.as_int(), things));
}

Outcome check(const Doc& value, const Doc* old, const Doc& schema, const std::string& path);

Outcome check_list(const Doc& value, const Doc* old, const Doc& schema, const std::string& path) {
  Outcome out;
  const Doc* items = items_schema(schema);
  for (std::size_t i = 0; items != nullptr && i < value.size(); ++i) {
    const Doc& item = value.items()[i];
    out.merge(check(item, correlated_item(schema, item, old), *items,
                    fmt::format("{}[{}]", path, i)));
  }
  const auto size = static_cast<std::int64_t>(value.size());
  const Doc& least = schema["minItems"];
  const Doc& most = schema["maxItems"];
  if (least.is_int() && size < least.as_int()) {
    out.add(too_few(path, value.size(), least, "items"));
  }
  if (most.is_int() && size > most.as_int()) {
    out.add(too_many(path, value.size(), most, "items"));
  }
  ++out.matches;
  return out;
}

// The old value of a member; null where there is none. What a root's type members were cannot be
// seen after conversion.
const Doc* old_member(const Doc* old, std::string_view key, const std::string& path) {
  if (old == nullptr || (path.empty() && (key == "kind" || key == "apiVersion"))) return nullptr;
  return old->find(key);
}

Outcome check_object(const Doc& value, const Doc* old, const Doc& schema, const std::string& path) {
  Outcome out;
  const auto size = static_cast<std::int64_t>(value.size());
  const Doc& least = schema["minProperties"];
  const Doc& most = schema["maxProperties"];
  if (least.is_int() && size < least.as_int()) {
    out.add(too_few(path, value.size(), least, "properties"));
  }
  if (most.is_int() && size > most.as_int()) {
    out.add(too_many(path, value.size(), most, "properties"));
  }
  const Doc& properties = schema["properties"];
  const Doc& additional = schema["additionalProperties"];
  for (const auto& [key, member] : value.members()) {
    if (properties.has(key)) continue;
    if (additional.is_bool() && !additional.as_bool()) {
      Finding finding = invalid_at(path, Doc(key), "");
      finding.text = fmt::format("{}.{} in body is a forbidden property", path, key);
      out.add(std::move(finding));
    } else if (additional.is_object()) {
      out.merge(check(member, old_member(old, key, path), additional, path + "." + key));
    }
  }
  for (const auto& [key, property] : properties.members()) {
    const Doc* member = value.find(key);
    if (member == nullptr) continue;
    out.merge(check(*member, old_member(old, key, path), property,
                    path.empty() ? key : path + "." + key));
  }
  for (const Doc& key : schema["required"].items()) {
    if (value.has(key.as_string())) continue;
    Finding finding = invalid_at(path + "." + key.as_string(), "", "is required");
    finding.type = FieldErrorType::Required;
    out.add(std::move(finding));
  }
  return out;
}

// The failure with most matches; the first of equals.
void keep_best(std::optional<Outcome>& best, Outcome candidate) {
  if (!best || candidate.matches > best->matches) best = std::move(candidate);
}

void check_any_of(const Doc& value, const Doc* old, const Doc& schema, const std::string& path,
                  Outcome& out) {
  if (schema["anyOf"].empty()) return;
  std::optional<Outcome> best;
  for (const Doc& one : schema["anyOf"].items()) {
    Outcome result = check(value, old, one, path);
    if (result.is_valid()) {
      out.merge(std::move(result));
      return;
    }
    keep_best(best, std::move(result));
  }
  out.add(placeless(quoted(path) + " must validate at least one schema (anyOf)"));
  out.merge(*std::move(best));
}

void check_one_of(const Doc& value, const Doc* old, const Doc& schema, const std::string& path,
                  Outcome& out) {
  if (schema["oneOf"].empty()) return;
  std::optional<Outcome> best;
  std::optional<Outcome> first;
  int valid = 0;
  for (const Doc& one : schema["oneOf"].items()) {
    Outcome result = check(value, old, one, path);
    if (result.is_valid()) {
      ++valid;
      if (!first) first = std::move(result);
    } else {
      keep_best(best, std::move(result));
    }
  }
  if (valid == 1) {
    out.merge(*std::move(first));
    return;
  }
  out.add(placeless(fmt::format("{} must validate one and only one schema (oneOf). {}",
                                quoted(path),
                                valid == 0 ? std::string("Found none valid")
                                           : fmt::format("Found {} valid alternatives", valid))));
  if (valid == 0) out.merge(*std::move(best));
}

Outcome check_combinations(const Doc& value, const Doc* old, const Doc& schema,
                          const std::string& path) {
  Outcome out;
  check_any_of(value, old, schema, path, out);
  check_one_of(value, old, schema, path, out);
  const Doc& all = schema["allOf"];
  std::size_t valid = 0;
  for (const Doc& one : all.items()) {
    Outcome result = check(value, old, one, path);
    if (result.is_valid()) ++valid;
    out.merge(std::move(result));
  }
  if (valid != all.size()) {
    out.add(placeless(fmt::format("{} must validate all the schemas (allOf){}", quoted(path),
                                  valid == 0 ? ". None validated" : "")));
  }
  const Doc* forbidden = schema.find("not");
  if (forbidden != nullptr && forbidden->is_object() &&
      check(value, old, *forbidden, path).is_valid()) {
    out.add(placeless(quoted(path) + " must not validate the schema (not)"));
  }
  ++out.matches;
  return out;
}

Outcome check_all(const Doc& value, const Doc* old, const Doc& schema, const std::string& path) {
  Outcome out;
  if (value.is_null()) {
    out.merge(check_type(value, schema, path));
    out.merge(check_enum(value, schema, path));
    return out;
  }
  const auto take = [&](Outcome result) {
    out.merge(std::move(result));
    ++out.matches;
  };
  const std::string_view format = format_of(schema);
  if (!types_of(schema).empty() || !format.empty()) take(check_type(value, schema, path));
  take(check_combinations(value, old, schema, path));
  if (value.is_string()) {
    take(check_string(value, schema, path));
    if (!format.empty()) {
      Outcome result;
      if (!has_format(format, value.as_string())) {
        result.add(wrong_type(path, format, value.as_string()));
      }
      take(std::move(result));
    }
  }
  if (value.is_number()) take(check_number(value, schema, path));
  if (value.is_array()) take(check_list(value, old, schema, path));
  take(check_enum(value, schema, path));
  if (value.is_object()) take(check_object(value, old, schema, path));
  ++out.matches;
  return out;
}

Outcome check(const Doc& value, const Doc* old, const Doc& schema, const std::string& path) {
  Outcome out = check_all(value, old, schema, path);
  if (!out.is_valid() && old != nullptr && *old == value) out.findings.clear();
  return out;
}

std::string field_of(const Finding& finding, std::string_view prefix) {
  std::string_view name = finding.has_place ? std::string_view(finding.name) : "";
  if (name.starts_with('.')) name.remove_prefix(1);
  if (name.empty()) return prefix.empty() ? "<nil>" : std::string(prefix);
  return prefix.empty() ? std::string(name) : fmt::format("{}.{}", prefix, name);
}

void report(const Finding& finding, std::string_view prefix, FieldErrors& errors) {
  const Path at(field_of(finding, prefix));
  switch (finding.type) {
    case FieldErrorType::Required: errors.required(at); break;
    case FieldErrorType::TooLong: errors.too_long(at, finding.limit); break;
    case FieldErrorType::TypeInvalid: errors.type_invalid(at, finding.value, finding.text); break;
    case FieldErrorType::TooMany:
      errors.too_many(at, static_cast<std::size_t>(finding.value.as_int()), finding.limit);
      break;
    case FieldErrorType::NotSupported: {
      const std::vector<std::string_view> supported(finding.supported.begin(),
                                                    finding.supported.end());
      errors.not_supported(at, finding.value, supported);
      break;
    }
    default: errors.invalid(at, finding.value, finding.text);
  }
}

}  // namespace

void check_value(const Doc& value, const Doc* old, const Doc& schema, std::string_view prefix,
                 FieldErrors& errors) {
  for (const Finding& finding : check(value, old, schema, "").findings) {
    report(finding, prefix, errors);
  }
}

double number_of(const Doc& value) {
  if (value.is_int()) return static_cast<double>(value.as_int());
  const std::string text = value.number_text();
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string go_float(double value) {
  if (value == 0) return "0";
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(value))));
  // Go turns to exponents outside of [1e-4, 1e21).
  if (exponent >= -4 && exponent < 21) {
    std::string out(400, '\0');
    const auto [end, code] =
        std::to_chars(out.data(), out.data() + out.size(), value, std::chars_format::fixed);
    out.resize(static_cast<std::size_t>(end - out.data()));
    return out;
  }
  std::string out(64, '\0');
  const auto [end, code] =
      std::to_chars(out.data(), out.data() + out.size(), value, std::chars_format::scientific);
  out.resize(static_cast<std::size_t>(end - out.data()));
  return out;
}

}  // namespace jogak::api
