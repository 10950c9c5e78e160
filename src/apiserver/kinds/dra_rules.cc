// SPDX-License-Identifier: Apache-2.0
//
// What the kinds of resource.k8s.io check alike: names of devices, drivers and pools, selectors,
// opaque configuration. Limits are those of version 1.36.
#include "apiserver/kinds/dra_rules.h"

#include <algorithm>

#include "apiserver/crd/cel.h"

namespace jogak::api {

namespace {

constexpr std::size_t kPoolNameMax = 253;
constexpr std::size_t kMemberNameMax = 32;
constexpr std::size_t kSelectorsMax = 32;
constexpr std::size_t kExpressionMax = 10 * 1024;
constexpr std::size_t kOpaqueMax = 10 * 1024;
constexpr std::size_t kBindingConditionsMax = 4;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

void validate_identifier(std::string_view text, const Path& at, FieldErrors& errors) {
  if (text.size() > kMemberNameMax) errors.too_long(at, kMemberNameMax);
  bool is_right = !text.empty() && (is_letter(text[0]) || text[0] == '_');
  for (const char c : text) {
    is_right = is_right && (is_letter(c) || c == '_' || (c >= '0' && c <= '9'));
  }
  if (!is_right) {
    errors.invalid(at, text,
                   "a valid C identifier must start with alphabetic character or '_', followed "
                   "by a string of alphanumeric characters or '_'");
  }
}

void validate_selector(const Doc& selector, const Path& at, FieldErrors& errors) {
  const Path here = at.child("cel");
  if (!selector.has("cel")) {
    errors.required(here);
    return;
  }
  const std::string& expression = selector.get("cel", "expression").as_string();
  if (expression.size() > kExpressionMax) {
    errors.too_long(here.child("expression"), kExpressionMax);
    return;
  }
  // types are not checked: an expression of another type than bool is let through
  if (const std::string problem = cel::syntax_error(expression); !problem.empty()) {
    errors.invalid(here.child("expression"), expression, "compilation failed: " + problem);
  }
}

}  // namespace

void validate_list(const Doc& list, const Path& at, const ListRule& rule, FieldErrors& errors) {
  if (rule.max > 0 && list.size() > rule.max) {
    errors.too_many(at, list.size(), rule.max);
    return;
  }
  for (std::size_t i = 0; i < list.size() && rule.check; ++i) {
    rule.check(list.items()[i], at.index(i), errors);
  }
  if (rule.key) validate_unique(list, at, rule.key, errors);
}

void validate_pool_name(std::string_view name, const Path& at, FieldErrors& errors) {
  if (name.empty()) {
    errors.required(at);
    return;
  }
  if (name.size() > kPoolNameMax) errors.too_long(at, kPoolNameMax);
  while (true) {
    const std::size_t slash = std::min(name.find('/'), name.size());
    validate_name(name.substr(0, slash), check_dns1123_subdomain, at, errors);
    if (slash == name.size()) return;
    name.remove_prefix(slash + 1);
  }
}

void validate_device_member_name(std::string_view name, const Path& at, FieldErrors& errors) {
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) {
    validate_identifier(name, at, errors);
    return;
  }
  const std::string_view domain = name.substr(0, slash);
  const std::string_view id = name.substr(slash + 1);
  if (id.contains('/')) return;  // upstream lets more than one slash pass
  if (domain.empty()) {
    errors.invalid(at, "", "the domain must not be empty");
  } else {
    validate_driver_name(domain, at, errors);
  }
  if (id.empty()) {
    errors.invalid(at, "", "the name must not be empty");
  } else {
    validate_identifier(id, at, errors);
  }
}

void validate_fully_qualified_name(std::string_view name, const Path& at, FieldErrors& errors) {
  validate_device_member_name(name, at, errors);
  if (!name.contains('/')) {
    errors.invalid(at, name,
                   "a fully qualified name must be a domain and a name separated by a slash");
  }
}

void validate_uuid(std::string_view text, const Path& at, FieldErrors& errors) {
  bool is_right = text.size() == 36;
  for (std::size_t i = 0; i < text.size() && is_right; ++i) {
    const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
    const char c = text[i];
    is_right = is_dash ? c == '-' : (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  }
  if (!is_right) {
    errors.invalid(at, text,
                   "uid must be in RFC 4122 normalized form, "
                   "`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters");
  }
}

void validate_device_selectors(const Doc& selectors, const Path& at, FieldErrors& errors) {
  validate_list(selectors, at, {.max = kSelectorsMax, .check = validate_selector, .key = {}},
                errors);
}

void validate_device_config(const Doc& config, const Path& at, FieldErrors& errors) {
  const Path here = at.child("opaque");
  const Doc* opaque = config.find("opaque");
  if (opaque == nullptr) {
    errors.required(here);
    return;
  }
  validate_driver_name((*opaque)["driver"].as_string(), here.child("driver"), errors);
  validate_raw_object((*opaque)["parameters"], here.child("parameters"), errors);
}

void validate_raw_object(const Doc& value, const Path& at, FieldErrors& errors) {
  if (value.is_null()) {
    errors.required(at);
  } else if (value.json(JsonWriter::Style::Compact).size() > kOpaqueMax) {
    errors.too_long(at, kOpaqueMax);
  } else if (!value.is_object()) {
    errors.invalid(at, "<value omitted>", "must be a valid JSON object");
  }
}

void validate_binding_conditions(const Doc& owner, const Path& at, FieldErrors& errors) {
  const Doc& wanted = owner["bindingConditions"];
  const Doc& failed = owner["bindingFailureConditions"];
  const Path wanted_at = at.child("bindingConditions");
  const Path failed_at = at.child("bindingFailureConditions");
  const ListRule rule{
      .max = kBindingConditionsMax,
      .check = [](const Doc& item, const Path& here,
                  FieldErrors& found) { validate_label_key(item.as_string(), here, found); },
      .key = {}};
  validate_list(wanted, wanted_at, rule, errors);
  validate_list(failed, failed_at, rule, errors);
  const auto itself = [](const Doc& item) { return item; };
  validate_unique(wanted, wanted_at, itself, errors);
  validate_unique(failed, failed_at, itself, errors);
  for (std::size_t i = 0; i < failed.size(); ++i) {
    if (std::ranges::find(wanted.items(), failed.items()[i]) == wanted.items().end()) continue;
    errors.invalid(failed_at.index(i), failed.items()[i],
                   "bindingFailureConditions must not overlap with bindingConditions");
  }
  if (wanted.empty() && !failed.empty()) {
    errors.invalid(wanted_at, wanted,
                   "bindingConditions are required to use bindingFailureConditions");
  }
  if (failed.empty() && !wanted.empty()) {
    errors.invalid(failed_at, failed,
                   "bindingFailureConditions are required to use bindingConditions");
  }
}

RequestNames request_names_of(const Doc& device_claim) {
  RequestNames names;
  for (const Doc& request : device_claim["requests"].items()) {
    auto& alternatives = names[request["name"].as_string()];
    for (const Doc& alternative : request["firstAvailable"].items()) {
      alternatives.insert(alternative["name"].as_string());
    }
  }
  return names;
}

void validate_request_reference(std::string_view name, const Path& at, const RequestNames& names,
                                FieldErrors& errors) {
  constexpr std::string_view kWhy =
      "must be the name of a request in the claim or the name of a request and a subrequest "
      "separated by '/'";
  if (std::ranges::count(name, '/') > 1) {
    errors.invalid(at, name, kWhy);
    return;
  }
  const std::size_t slash = name.find('/');
  const std::string_view request = name.substr(0, slash);
  validate_name(request, check_dns1123_label, at, errors);
  const auto it = names.find(request);
  bool is_known = it != names.end();
  if (slash != std::string_view::npos) {
    const std::string alternative(name.substr(slash + 1));
    validate_name(alternative, check_dns1123_label, at, errors);
    is_known = is_known && it->second.contains(alternative);
  }
  if (!is_known) errors.invalid(at, name, kWhy);
}

}  // namespace jogak::api
