// SPDX-License-Identifier: Apache-2.0
//
// Resource quotas: which names may be limited, and which scopes go with them.
#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/object/resource_list.h"

namespace jogak::api {

namespace {

constexpr std::array<std::string_view, 7> kScopes = {"Terminating",
                                                     "NotTerminating",
                                                     "BestEffort",
                                                     "NotBestEffort",
                                                     "PriorityClass",
                                                     "VolumeAttributesClass",
                                                     "CrossNamespacePodAffinity"};

bool is_scope(std::string_view scope) { return std::ranges::find(kScopes, scope) != kScopes.end(); }

bool fits_scope(std::string_view scope, std::string_view resource) {
  static constexpr std::array<std::string_view, 6> kCompute = {
      "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"};
  if (scope == "BestEffort") return resource == "pods";
  if (scope == "VolumeAttributesClass") {
    return resource == "persistentvolumeclaims" || resource == "requests.storage";
  }
  if (!is_scope(scope)) return true;
  return resource == "pods" || std::ranges::find(kCompute, resource) != kCompute.end();
}

void validate_name_in_quota(std::string_view name, const Path& at, FieldErrors& errors) {
  validate_resource_name(name, at, errors);
  if (!name.contains('/') && !is_standard_quota_resource(name)) {
    errors.invalid(at, name, "must be a standard resource for quota");
  }
}

void validate_list(const Doc& list, const Path& at, FieldErrors& errors) {
  for (const auto& [name, value] : list.members()) {
    validate_name_in_quota(name, at.key(name), errors);
    validate_quantity(name, value, at.key(name), errors);
  }
}

std::vector<std::string_view> sorted_names(const Doc& list) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : list.members()) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

void check_scope_fits(std::string_view scope, const Doc& spec, const Path& at, const Doc& shown,
                      FieldErrors& errors) {
  for (const std::string_view name : sorted_names(spec["hard"])) {
    if (is_standard_quota_resource(name) && !fits_scope(scope, name)) {
      errors.invalid(at, shown, "unsupported scope applied to resource");
    }
  }
}

void check_conflicts(const std::set<std::string_view>& scopes, const Path& at, const Doc& shown,
                     FieldErrors& errors) {
  for (const std::string_view scope : {"BestEffort", "Terminating"}) {
    if (scopes.contains(scope) && scopes.contains("Not" + std::string(scope))) {
      errors.invalid(at, shown, "conflicting scopes");
    }
  }
}

void validate_scopes(const Doc& spec, FieldErrors& errors) {
  const Doc& scopes = spec["scopes"];
  const Path at("spec.scopes");
  std::set<std::string_view> seen;
  for (const Doc& scope : scopes.items()) {
    if (!is_scope(scope.as_string())) errors.invalid(at, scopes, "unsupported scope");
    check_scope_fits(scope.as_string(), spec, at, scopes, errors);
    seen.insert(scope.as_string());
  }
  check_conflicts(seen, at, scopes, errors);
}

void validate_operator(const Doc& requirement, std::string_view scope, const Path& at,
                       FieldErrors& errors) {
  const std::string& op = requirement["operator"].as_string();
  const bool takes_values = scope == "PriorityClass" || scope == "VolumeAttributesClass";
  if (is_scope(scope) && !takes_values && op != "Exists") {
    errors.invalid(at.child("operator"), op,
                   "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
                   "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                   "ResourceQuotaScopeNotBestEffort or "
                   "ResourceQuotaScopeCrossNamespacePodAffinity");
  }
  const Doc& values = requirement["values"];
  if (op == "In" || op == "NotIn") {
    if (values.empty()) {
      errors.required(at.child("values"),
                      "must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                      "selector");
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) {
      errors.invalid(at.child("values"), values,
                     "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope "
                     "selector");
    }
  } else {
    errors.invalid(at.child("operator"), op, "not a valid selector operator");
  }
}

void validate_scope_selector(const Doc& spec, FieldErrors& errors) {
  const Doc& selector = spec["scopeSelector"];
  const Path at("spec.scopeSelector.matchExpressions");
  std::set<std::string_view> seen;
  for (const Doc& requirement : selector["matchExpressions"].items()) {
    const std::string& scope = requirement["scopeName"].as_string();
    if (!is_scope(scope)) errors.invalid(at.child("scopeName"), scope, "unsupported scope");
    check_scope_fits(scope, spec, at, selector, errors);
    validate_operator(requirement, scope, at, errors);
    seen.insert(scope);
  }
  check_conflicts(seen, at, spec["scopes"], errors);
}

void validate_spec(const Doc& quota, FieldErrors& errors) {
  const Doc& spec = quota["spec"];
  validate_list(spec["hard"], Path("spec.hard"), errors);
  validate_scopes(spec, errors);
  validate_scope_selector(spec, errors);
}

// A request above the limit of the same resource can never be used up.
void warn_about_limits(const Doc& quota, WriteContext& context) {
  const Doc& hard = quota.get("spec", "hard");
  for (const std::string resource : {"cpu", "memory", "ephemeral-storage"}) {
    std::string request = "requests." + resource;
    if (!hard.has(request) && resource != "ephemeral-storage") request = resource;
    const std::string limit = "limits." + resource;
    if (!hard.has(request) || !hard.has(limit)) continue;
    if (quantity_of(hard[request]) <= quantity_of(hard[limit])) continue;
    context.warnings.push_back("ResourceQuota " + request + " (" + hard[request].as_string() +
                               ") should be less than " + limit + " (" + hard[limit].as_string() +
                               ")");
  }
}

class QuotaStrategy : public PlainStrategy {
 public:
  void set_defaults(Doc& quota) const override {
    if (Doc* spec = quota.find("spec")) round_resources(*spec, "hard");
    if (Doc* status = quota.find("status")) {
      round_resources(*status, "hard");
      round_resources(*status, "used");
    }
  }

  void prepare_create(Doc& quota, WriteContext& context) const override {
    quota.erase("status");
    warn_about_limits(quota, context);
  }
  void validate_create(const Doc& quota, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_spec(quota, errors);
  }
  void validate_update(const Doc& quota, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_spec(quota, errors);
    const auto as_set = [](const Doc& scopes) {
      std::set<std::string_view> set;
      for (const Doc& scope : scopes.items()) set.insert(scope.as_string());
      return set;
    };
    const Doc& scopes = quota.get("spec", "scopes");
    if (as_set(scopes) != as_set(old.get("spec", "scopes"))) {
      errors.invalid(Path("spec.scopes"), scopes, "field is immutable");
    }
  }

  void prepare_subresource_update(std::string_view /*subresource*/, Doc& quota, const Doc& old,
                                  WriteContext& /*context*/) const override {
    take_status_and_metadata(quota, old);
  }
  void validate_subresource_update(std::string_view /*subresource*/, const Doc& quota,
                                   const Doc& /*old*/, WriteContext& /*context*/,
                                   FieldErrors& errors) const override {
    for (const std::string_view list : {"hard", "used"}) {
      validate_list(quota.get("status", list), Path("status").child(list), errors);
    }
  }
  bool returns_deleted_object() const override { return true; }
};

}  // namespace

StrategyPtr quota_strategy() { return std::make_shared<QuotaStrategy>(); }

}  // namespace jogak::api
