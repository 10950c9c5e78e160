// SPDX-License-Identifier: Apache-2.0
//
// One device of a resource slice: attributes, capacities and how they may be shared, taints, where
// it can be used.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/dra_rules.h"
#include "apiserver/kinds/dra_slice.h"

namespace jogak::api {

namespace {

constexpr std::size_t kMembersMax = 32;  // attributes and capacities
constexpr std::size_t kValueMax = 64;
constexpr std::size_t kTaintsMax = 16;
constexpr std::size_t kConsumptionsMax = 2;
constexpr std::size_t kCountersMax = 32;
constexpr std::size_t kValidValuesMax = 10;

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_strict_number(std::string_view text) {
  return is_number(text) && (text.size() == 1 || text[0] != '0');
}

// Dot-separated parts of letters, digits and hyphens; no leading zeros in a pre-release.
bool are_identifiers(std::string_view text, bool is_prerelease) {
  while (true) {
    const std::size_t dot = std::min(text.find('.'), text.size());
    const std::string_view part = text.substr(0, dot);
    const bool is_plain = std::ranges::all_of(part, [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
    });
    if (part.empty() || !is_plain) return false;
    if (is_prerelease && is_number(part) && !is_strict_number(part)) return false;
    if (dot == text.size()) return true;
    text.remove_prefix(dot + 1);
  }
}

// semver.org 2.0.0
bool is_version(std::string_view text) {
  if (const std::size_t plus = text.find('+'); plus != std::string_view::npos) {
    if (!are_identifiers(text.substr(plus + 1), false)) return false;
    text = text.substr(0, plus);
  }
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    if (!are_identifiers(text.substr(dash + 1), true)) return false;
    text = text.substr(0, dash);
  }
  for (int part = 0; part < 3; ++part) {
    const std::size_t dot = std::min(text.find('.'), text.size());
    if (!is_strict_number(text.substr(0, dot)) || (part == 2) != (dot == text.size())) return false;
    text.remove_prefix(std::min(dot + 1, text.size()));
  }
  return true;
}

void validate_attribute(const Doc& attribute, const Path& at, FieldErrors& errors) {
  if (const Doc* text = attribute.find("string")) {
    if (text->as_string().size() > kValueMax) errors.too_long(at.child("string"), kValueMax);
  }
  if (const Doc* version = attribute.find("version")) {
    if (!is_version(version->as_string())) {
      errors.invalid(at.child("version"), *version,
                     "must be a string compatible with semver.org spec 2.0.0");
    }
    if (version->as_string().size() > kValueMax) errors.too_long(at.child("version"), kValueMax);
  }
  int count = 0;
  for (const std::string_view kind : {"bool", "int", "string", "version"}) {
    count += attribute.has(kind) ? 1 : 0;
  }
  if (count == 0) errors.invalid(at, "", "exactly one value must be specified");
  if (count > 1) errors.invalid(at, attribute, "exactly one value must be specified");
}

void check_step(const Doc& value, const Doc& range, const Path& at, FieldErrors& errors) {
  const std::int64_t step = quantity_of(range["step"]).value();
  const std::int64_t distance = quantity_of(value).value() - quantity_of(range["min"]).value();
  if (step == 0 || distance % step == 0) return;
  errors.invalid(at, value,
                 "value is not a multiple of a given step (" + range["step"].as_string() +
                     ") from (" + range["min"].as_string() + ")");
}

void validate_range(const Doc& chosen, const Doc& capacity, const Doc& range, const Path& at,
                    FieldErrors& errors) {
  if (!range.has("min")) {
    errors.required(at.child("min"), "required when validRange is defined");
    return;
  }
  const Amount most = quantity_of(capacity);
  const Amount min = quantity_of(range["min"]);
  const std::string& most_text = capacity.as_string();
  if (min > most) {
    errors.invalid(at.child("min"), range["min"],
                   "min is larger than capacity value: " + most_text);
  }
  if (quantity_of(chosen) < min) {
    errors.invalid(at.child("min"), chosen,
                   "default is less than min: " + range["min"].as_string());
  }
  if (const Doc* max = range.find("max")) {
    if (min > quantity_of(*max)) {
      errors.invalid(at.child("max"), range["min"], "min is larger than max: " + max->as_string());
    }
    if (quantity_of(*max) > most) {
      errors.invalid(at.child("max"), *max, "max is larger than capacity value: " + most_text);
    }
    if (quantity_of(chosen) > quantity_of(*max)) {
      errors.invalid(at.child("max"), chosen, "default is more than max: " + max->as_string());
    }
  }
  if (!range.has("step")) return;
  Amount first = min;
  first += quantity_of(range["step"]);
  if (first > most) {
    errors.invalid(at.child("step"), range["step"],
                   "one step " + first.text() + " is larger than capacity value: " + most_text);
  }
  check_step(chosen, range, at.child("step"), errors);
  if (range.has("max")) check_step(range["max"], range, at.child("step"), errors);
}

void validate_values(const Doc& chosen, const Doc& capacity, const Doc& values, const Path& at,
                     FieldErrors& errors) {
  bool has_chosen = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Amount value = quantity_of(values.items()[i]);
    if (i > 0 && quantity_of(values.items()[i - 1]) > value) {
      errors.invalid(at.index(i), values.items()[i], "values must be sorted in ascending order");
    }
    has_chosen = has_chosen || value == quantity_of(chosen);
  }
  validate_list(values, at,
                {.max = kValidValuesMax,
                 .check =
                     [&](const Doc& item, const Path& here, FieldErrors& found) {
                       if (quantity_of(item) <= quantity_of(capacity)) return;
                       found.invalid(
                           here, item,
                           "option is larger than capacity value: " + capacity.as_string());
                     },
                 .key = [](const Doc& item) { return Doc(quantity_of(item).value()); }},
                errors);
  if (!has_chosen) {
    errors.invalid(at, chosen, "default value is not valid according to the requestPolicy");
  }
}

void validate_request_policy(const Doc& capacity, const Path& at, FieldErrors& errors) {
  const Doc& policy = capacity["requestPolicy"];
  const Doc& values = policy["validValues"];
  const bool has_range = policy.has("validRange");
  if (!values.empty() && has_range) {
    errors.forbidden(at,
                     "exactly one policy can be specified, cannot specify \"validValues\" and "
                     "\"validRange\" at the same time");
  } else if (values.empty() && !has_range) {
    return;
  } else if (!policy.has("default")) {
    errors.required(at.child("default"), has_range ? "required when validRange is defined"
                                                   : "required when validValues is defined");
  } else if (has_range) {
    validate_range(policy["default"], capacity["value"], policy["validRange"],
                   at.child("validRange"), errors);
  } else {
    validate_values(policy["default"], capacity["value"], values, at.child("validValues"), errors);
  }
}

void validate_members(const Doc& device, const Path& at, FieldErrors& errors) {
  const Doc& attributes = device["attributes"];
  const Doc& capacity = device["capacity"];
  const std::size_t count = attributes.size() + capacity.size();
  if (count > kMembersMax) {
    errors.invalid(at, count,
                   "the total number of attributes and capacities must not exceed " +
                       std::to_string(kMembersMax));
  }
  for (const auto& [name, attribute] : attributes.members()) {
    validate_device_member_name(name, at.child("attributes"), errors);
    validate_attribute(attribute, at.child("attributes").key(name), errors);
  }
  const bool is_shared = device["allowMultipleAllocations"].as_bool();
  for (const auto& [name, value] : capacity.members()) {
    validate_device_member_name(name, at.child("capacity"), errors);
    if (!value.has("requestPolicy")) continue;
    const Path policy_at = at.child("capacity").key(name).child("requestPolicy");
    if (is_shared) {
      validate_request_policy(value, policy_at, errors);
    } else {
      errors.forbidden(policy_at, "allowMultipleAllocations must be true");
    }
  }
}

void validate_taint(const Doc& taint, const Path& at, FieldErrors& errors) {
  const std::string& value = taint["value"].as_string();
  const std::string& effect = taint["effect"].as_string();
  validate_label_key(taint["key"].as_string(), at.child("key"), errors);
  if (!value.empty()) validate_name(value, check_label_value, at.child("value"), errors);
  if (effect.empty()) {
    errors.required(at.child("effect"));
  } else if (effect != "NoSchedule" && effect != "NoExecute" && effect != "None") {
    errors.not_supported(at.child("effect"), effect, {"NoExecute", "NoSchedule", "None"});
  }
}

void validate_consumption(const Doc& consumption, const Path& at, FieldErrors& errors) {
  const std::string& set = consumption["counterSet"].as_string();
  if (set.empty()) {
    errors.required(at.child("counterSet"));
  } else {
    validate_name(set, check_dns1123_label, at.child("counterSet"), errors);
  }
  validate_counters(consumption["counters"], kCountersMax, at.child("counters"), errors);
}

void validate_own_place(const Doc& device, const Path& at, FieldErrors& errors) {
  std::vector<std::string> places;
  if (const Doc* node = device.find("nodeName")) {
    if (node->as_string().empty()) {
      errors.invalid(at.child("nodeName"), *node, "must not be empty");
    } else {
      places.emplace_back("`nodeName`");
      validate_name(node->as_string(), check_dns1123_subdomain, at.child("nodeName"), errors);
    }
  }
  if (const Doc* selector = device.find("nodeSelector")) {
    places.emplace_back("`nodeSelector`");
    validate_node_selector(*selector, at.child("nodeSelector"), errors);
  }
  if (const Doc* all = device.find("allNodes")) {
    if (all->as_bool()) {
      places.emplace_back("`allNodes`");
    } else {
      errors.invalid(at.child("allNodes"), *all, "must be either unset or set to true");
    }
  }
  constexpr std::string_view kOne =
      "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
      "`perDeviceNodeSelection` is set to true in the ResourceSlice spec";
  if (places.empty()) errors.required(at, kOne);
  if (places.size() < 2) return;
  std::string shown;
  for (const std::string& place : places) shown += (shown.empty() ? "{" : ", ") + place;
  errors.invalid(at, shown + "}", kOne);
}

}  // namespace

void validate_counters(const Doc& counters, std::size_t max, const Path& at, FieldErrors& errors) {
  if (counters.empty()) {
    errors.required(at);
  } else if (counters.size() > max) {
    errors.too_many(at, counters.size(), max);
  } else {
    for (const auto& [name, value] : counters.members()) {
      validate_name(name, check_dns1123_label, at, errors);
    }
  }
}

void validate_device(const Doc& device, bool per_device, const Path& at, FieldErrors& errors) {
  validate_name(device["name"].as_string(), check_dns1123_label, at.child("name"), errors);
  validate_members(device, at, errors);
  validate_list(device["taints"], at.child("taints"),
                {.max = kTaintsMax, .check = validate_taint, .key = {}}, errors);
  validate_list(device["consumesCounters"], at.child("consumesCounters"),
                {.max = kConsumptionsMax,
                 .check = validate_consumption,
                 .key = [](const Doc& item) { return item["counterSet"]; }},
                errors);
  if (per_device) {
    validate_own_place(device, at, errors);
  } else if (device.has("nodeName") || device.has("nodeSelector") || device.has("allNodes")) {
    errors.invalid(at, {},
                   "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
                   "`perDeviceNodeSelection` is set to true in the ResourceSlice spec");
  }
  validate_binding_conditions(device, at, errors);
}

}  // namespace jogak::api
