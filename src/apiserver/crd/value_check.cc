// SPDX-License-Identifier: Apache-2.0
//
// Lists, objects and combinations of schemas; single values are in value_scalar.cc. An Outcome
// counts what matched as upstream does: of several alternatives that all fail, the one with most
// matches speaks.
#include "apiserver/crd/value_check.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "apiserver/crd/formats.h"
#include "apiserver/crd/json_schema.h"
#include "apiserver/crd/value_scalar.h"

namespace jogak::api {
namespace {

Finding too_many(const std::string& path, std::size_t size, const Doc& limit,
                 std::string_view things) {
  Finding finding =
      invalid_at(path, Doc(size), fmt::format("should have at most {} {}", limit.as_int(), things));
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
    out.merge(
        check(item, correlated_item(schema, item, old), *items, fmt::format("{}[{}]", path, i)));
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
  out.add(
      placeless(fmt::format("{} must validate one and only one schema (oneOf). {}", quoted(path),
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
    case FieldErrorType::Required:
      errors.required(at);
      break;
    case FieldErrorType::TooLong:
      errors.too_long(at, finding.limit);
      break;
    case FieldErrorType::TypeInvalid:
      errors.type_invalid(at, finding.value, finding.text);
      break;
    case FieldErrorType::TooMany:
      errors.too_many(at, static_cast<std::size_t>(finding.value.as_int()), finding.limit);
      break;
    case FieldErrorType::NotSupported: {
      const std::vector<std::string_view> supported(finding.supported.begin(),
                                                    finding.supported.end());
      errors.not_supported(at, finding.value, supported);
      break;
    }
    default:
      errors.invalid(at, finding.value, finding.text);
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
