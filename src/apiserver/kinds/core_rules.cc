// SPDX-License-Identifier: Apache-2.0
//
// What the rules of the core kinds share. Order of problems and wording of the short texts follow
// the validation packages of Kubernetes 1.36.
#include "apiserver/kinds/core_rules.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "apiserver/object/resource_list.h"
#include "apiserver/schema/normalise.h"
#include "apiserver/schema/order.h"

namespace jogak::api {

namespace {

constexpr std::size_t kConditionReasonMax = 1024;
constexpr std::size_t kConditionMessageMax = 32 * 1024;
constexpr std::size_t kDriverNameMax = 63;

// An object of nothing but zeros is one too.
bool is_all_zero(const Doc& value) {
  if (!value.is_object()) return schema::is_zero(value);
  return std::ranges::all_of(value.members(),
                             [](const Doc::Member& member) { return is_all_zero(member.value); });
}

// Every member of `a` equals that of `b`, absent or not.
bool covers(const Doc& a, const Doc& b) {
  return std::ranges::all_of(
      a.members(), [&](const Doc::Member& member) { return same(member.value, b[member.key]); });
}

void validate_requirement(const Doc& requirement, const Path& at, FieldErrors& errors) {
  const std::string& op = requirement["operator"].as_string();
  const std::size_t count = requirement["values"].size();
  if (op == "In" || op == "NotIn") {
    if (count == 0) {
      errors.required(at.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (count > 0) {
      errors.forbidden(at.child("values"),
                       "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
  } else if (op == "Gt" || op == "Lt") {
    if (count != 1) {
      errors.required(at.child("values"),
                      "must be specified single value when `operator` is 'Lt' or 'Gt'");
    }
  } else {
    errors.invalid(at.child("operator"), op, "not a valid selector operator");
  }
  validate_label_key(requirement["key"].as_string(), at.child("key"), errors);
  for (std::size_t i = 0; i < count; ++i) {
    const Doc& value = requirement["values"].items()[i];
    add_problems(errors, at.child("values").index(i), value, check_label_value(value.as_string()));
  }
}

void validate_field_requirement(const Doc& requirement, const Path& at, FieldErrors& errors) {
  const std::string& op = requirement["operator"].as_string();
  if (op == "In" || op == "NotIn") {
    if (requirement["values"].size() != 1) {
      errors.required(at.child("values"),
                      "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                      "selector");
    }
  } else {
    errors.invalid(at.child("operator"), op, "not a valid selector operator");
  }
  if (requirement["key"].as_string() != "metadata.name") {
    errors.invalid(at.child("key"), requirement["key"].as_string(),
                   "not a valid field selector key");
    return;
  }
  for (std::size_t i = 0; i < requirement["values"].size(); ++i) {
    const Doc& value = requirement["values"].items()[i];
    add_problems(errors, at.child("values").index(i), value,
                 check_dns1123_subdomain(value.as_string()));
  }
}

}  // namespace

void PlainStrategy::take_status_and_metadata(Doc& object, const Doc& old) {
  Doc merged = old;
  merged.set("metadata", object["metadata"]);
  if (const Doc* status = object.find("status")) {
    merged.set("status", *status);
  } else {
    merged.erase("status");
  }
  object = std::move(merged);
}

bool same(const Doc& a, const Doc& b) {
  if (a.is_object() && b.is_object()) return covers(a, b) && covers(b, a);
  if (a.is_array() && b.is_array()) {
    return std::ranges::equal(a.items(), b.items(), same);
  }
  return a == b || (is_all_zero(a) && is_all_zero(b));
}

void require_same(const Doc& value, const Doc& old, const Path& at, FieldErrors& errors) {
  if (!same(value, old)) errors.invalid(at, value, "field is immutable");
}

void require_same_quietly(const Doc& value, const Doc& old, const Path& at, FieldErrors& errors) {
  if (!same(value, old)) errors.invalid(at, {}, "field is immutable");
}

Amount quantity_of(const Doc& value) {
  return Amount::parse(value.is_string() ? value.as_string() : value.number_text())
      .value_or(Amount());
}

void round_resources(Doc& owner, std::string_view member) {
  Doc* list = owner.find(member);
  if (list == nullptr || !list->is_object()) return;
  for (auto& [name, value] : list->members()) {
    // canonical text without these characters has no part finer than a thousandth
    if (value.as_string().find_first_of("nueE.") == std::string::npos) continue;
    const auto amount = Amount::parse(value.as_string());
    if (amount.has_value() && amount->rounded_to_milli() != *amount) {
      value = amount->rounded_to_milli().text();
    }
  }
}

void validate_nonnegative(const Doc& value, const Path& at, FieldErrors& errors) {
  if (quantity_of(value).is_negative()) {
    errors.invalid(at, value, "must be greater than or equal to 0");
  }
}

void validate_quantity(std::string_view resource, const Doc& value, const Path& at,
                       FieldErrors& errors) {
  validate_nonnegative(value, at, errors);
  // the rest of an overflown milli value is not 0 either, as upstream
  if (is_integer_resource(resource) && quantity_of(value).milli_value() % 1000 != 0) {
    errors.invalid(at, value, "must be an integer");
  }
}

void validate_resource_name(std::string_view name, const Path& at, FieldErrors& errors) {
  const Problems problems = check_qualified_name(name);
  add_problems(errors, at, name, problems);
  if (problems.empty() && !name.contains('/') && !is_standard_resource(name)) {
    errors.invalid(at, name, "must be a standard resource type or fully qualified");
  }
}

void validate_container_resource_name(std::string_view name, const Path& at, FieldErrors& errors) {
  validate_resource_name(name, at, errors);
  if (!name.contains('/')) {
    if (!is_standard_container_resource(name)) {
      errors.invalid(at, name, "must be a standard resource for containers");
    }
  } else if (!is_native_resource(name) && !is_extended_resource(name)) {
    errors.invalid(at, name, "doesn't follow extended resource name standard");
  }
}

void validate_node_selector(const Doc& selector, const Path& at, FieldErrors& errors) {
  const Path terms = at.child("nodeSelectorTerms");
  const Doc& list = selector["nodeSelectorTerms"];
  if (list.empty()) {
    errors.required(terms, "must have at least one node selector term");
    return;
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Doc& term = list.items()[i];
    for (std::size_t j = 0; j < term["matchExpressions"].size(); ++j) {
      validate_requirement(term["matchExpressions"].items()[j],
                           terms.index(i).child("matchExpressions").index(j), errors);
    }
    for (std::size_t j = 0; j < term["matchFields"].size(); ++j) {
      validate_field_requirement(term["matchFields"].items()[j],
                                 terms.index(i).child("matchFields").index(j), errors);
    }
  }
}

void validate_label_key(std::string_view key, const Path& at, FieldErrors& errors) {
  add_problems(errors, at, key, check_qualified_name(key));
}

void validate_driver_name(std::string_view name, const Path& at, FieldErrors& errors) {
  if (name.empty()) {
    errors.required(at);
    return;
  }
  if (name.size() > kDriverNameMax) errors.too_long(at, kDriverNameMax);
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  add_problems(errors, at, name, check_dns1123_subdomain(lower));
}

// [A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?
static bool is_condition_reason(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_inner = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == ',' || c == ':';
  };
  return is_letter(text.front()) && std::ranges::all_of(text, is_inner) && text.back() != ',' &&
         text.back() != ':';
}

void validate_conditions(const Doc& conditions, const Path& at, FieldErrors& errors) {
  static constexpr std::array<std::string_view, 3> kStatuses = {"True", "False", "Unknown"};
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    const Doc& condition = conditions.items()[i];
    const Path here = at.index(i);
    const std::string& type = condition["type"].as_string();
    if (!seen.insert(type).second) errors.duplicate(here.child("type"), type);
    validate_label_key(type, here.child("type"), errors);
    const std::string& status = condition["status"].as_string();
    if (std::ranges::find(kStatuses, status) == kStatuses.end()) {
      errors.not_supported(here.child("status"), status, {kStatuses.begin(), kStatuses.end()});
    }
    if (condition["observedGeneration"].as_int() < 0) {
      errors.invalid(here.child("observedGeneration"), condition["observedGeneration"],
                     "must be greater than or equal to zero");
    }
    if (condition["lastTransitionTime"].as_string().empty()) {
      errors.required(here.child("lastTransitionTime"), "must be set");
    }
    const std::string& reason = condition["reason"].as_string();
    if (reason.empty()) {
      errors.required(here.child("reason"), "must be set");
    } else {
      if (!is_condition_reason(reason)) {
        errors.invalid(here.child("reason"), reason,
                       "a condition reason must start with alphabetic character, optionally "
                       "followed by a string of alphanumeric characters or '_,:', and must end "
                       "with an alphanumeric character or '_'");
      }
      if (reason.size() > kConditionReasonMax) {
        errors.too_long(here.child("reason"), kConditionReasonMax);
      }
    }
    if (condition["message"].as_string().size() > kConditionMessageMax) {
      errors.too_long(here.child("message"), kConditionMessageMax);
    }
  }
}

void validate_name(std::string_view name, NameCheck check, const Path& at, FieldErrors& errors) {
  add_problems(errors, at, name, check(name));
}

Problems check_path_segment(std::string_view text) {
  Problems problems;
  if (text == "." || text == "..") {
    problems.push_back("may not be '" + std::string(text) + "'");
    return problems;
  }
  for (const char c : {'/', '%'}) {
    if (text.contains(c)) problems.push_back("may not contain '" + std::string(1, c) + "'");
  }
  return problems;
}

bool is_cidr(std::string_view text, bool* is_v6) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view digits = text.substr(slash + 1);
  if (digits.empty() || digits.size() > 3) return false;
  int bits = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return false;
    bits = bits * 10 + (c - '0');
  }
  // leading zeros in the parts of an IPv4 address are let through, as upstream's parser does
  std::string address;
  std::string part;
  const bool has_colon = text.substr(0, slash).contains(':');
  for (const char c : std::string(text.substr(0, slash)) + ".") {
    if (c != '.') {
      part += c;
      continue;
    }
    while (!has_colon && part.size() > 1 && part.front() == '0') part.erase(0, 1);
    address += part + ".";
    part.clear();
  }
  address.pop_back();
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  const bool v6 = inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1;
  if (is_v6 != nullptr) *is_v6 = v6;
  if (v6) return bits <= 128;
  return inet_pton(AF_INET, address.c_str(), bytes.data()) == 1 && bits <= 32;
}

Answer created(Doc body, std::string_view type) {
  Answer answer;
  answer.code = 201;
  answer.body = schema::encode(std::move(body), schema::get(type));
  return answer;
}

void validate_unique(const Doc& list, const Path& at, const std::function<Doc(const Doc&)>& key,
                     FieldErrors& errors) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Doc value = key(list.items()[i]);
    if (!seen.insert(value.json(JsonWriter::Style::Compact)).second) {
      errors.duplicate(at.index(i), value);
    }
  }
}

}  // namespace jogak::api
