// SPDX-License-Identifier: Apache-2.0
//
// What an autoscaler's spec may say (v2).
#include <algorithm>
#include <array>
#include <string>

#include "apiserver/kinds/autoscaling.h"
#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/workload_checks.h"

namespace jogak::api {

namespace {

constexpr std::int64_t kPeriodMax = 1800;
constexpr std::int64_t kWindowMax = 3600;

const std::vector<std::string_view>& metric_types() {
  static const std::vector<std::string_view> types = {"ContainerResource", "External", "Object",
                                                      "Pods", "Resource"};
  return types;
}

struct ReferenceRules {
  bool any_version = false;  // an object that was stored with a bad one
  bool core_group = false;   // apiVersion may name no group
};

// What is wrong with an apiVersion, "" when nothing.
std::string version_problem(const Doc& reference, const ReferenceRules& rules) {
  const std::string_view version = reference["apiVersion"].as_string();
  if (rules.any_version) return {};
  const auto slashes = std::ranges::count(version, '/');
  if (slashes > 1) return "unexpected GroupVersion string: " + std::string(version);
  const bool has_group = slashes == 1 && !version.starts_with('/');
  if (!has_group && !rules.core_group) return "apiVersion must specify API group";
  return {};
}

void validate_segment(const Doc& holder, std::string_view name, std::string_view missing,
                      const Path& at, FieldErrors& errors) {
  const std::string& text = holder[name].as_string();
  if (text.empty()) {
    errors.required(at.child(name), missing);
  } else {
    add_problems(errors, at.child(name), text, check_path_segment(text));
  }
}

void validate_reference(const Doc& reference, const ReferenceRules& rules, const Path& at,
                        FieldErrors& errors) {
  validate_segment(reference, "kind", "", at, errors);
  validate_segment(reference, "name", "", at, errors);
  if (const std::string problem = version_problem(reference, rules); !problem.empty()) {
    errors.invalid(at.child("apiVersion"), reference["apiVersion"].as_string(), problem);
  }
}

void check_positive(const Doc& target, std::string_view name, const Path& at, FieldErrors& errors) {
  if (!target.has(name)) return;
  const Amount amount = quantity_of(target[name]);
  if (amount.is_zero() || amount.is_negative()) {
    errors.invalid(at.child(name), target[name], "must be positive");
  }
}

void validate_target(const Doc& target, const Path& at, FieldErrors& errors) {
  const std::string& type = target["type"].as_string();
  if (type.empty()) errors.required(at.child("type"), "must specify a metric target type");
  if (type != "Utilization" && type != "Value" && type != "AverageValue") {
    errors.invalid(at.child("type"), type, "must be either Utilization, Value, or AverageValue");
  }
  check_positive(target, "value", at, errors);
  check_positive(target, "averageValue", at, errors);
  if (target.has("averageUtilization") && target["averageUtilization"].as_int() < 1) {
    errors.invalid(at.child("averageUtilization"), target["averageUtilization"],
                   "must be greater than 0");
  }
}

void validate_object_source(const Doc& source, const ReferenceRules& rules, const Path& at,
                            FieldErrors& errors) {
  validate_reference(source["describedObject"], rules, at.child("describedObject"), errors);
  validate_segment(source["metric"], "name", "must specify a metric name", at.child("metric"),
                   errors);
  validate_target(source["target"], at.child("target"), errors);
  if (!source["target"].has("value") && !source["target"].has("averageValue")) {
    errors.required(at.child("target", "averageValue"),
                    "must set either a target value or averageValue");
  }
}

void validate_external_source(const Doc& source, const Path& at, FieldErrors& errors) {
  validate_segment(source["metric"], "name", "must specify a metric name", at.child("metric"),
                   errors);
  validate_target(source["target"], at.child("target"), errors);
  const bool has_value = source["target"].has("value");
  const bool has_average = source["target"].has("averageValue");
  if (!has_value && !has_average) {
    errors.required(at.child("target", "averageValue"),
                    "must set either a target value for metric or a per-pod target");
  }
  if (has_value && has_average) {
    errors.forbidden(at.child("target", "value"),
                     "may not set both a target value for metric and a per-pod target");
  }
}

void validate_pods_source(const Doc& source, const Path& at, FieldErrors& errors) {
  validate_segment(source["metric"], "name", "must specify a metric name", at.child("metric"),
                   errors);
  validate_target(source["target"], at.child("target"), errors);
  if (!source["target"].has("averageValue")) {
    errors.required(at.child("target", "averageValue"),
                    "must specify a positive target averageValue");
  }
}

// Of whole pods or of one container in each.
void validate_resource_source(const Doc& source, bool is_container, const Path& at,
                              FieldErrors& errors) {
  const std::string& name = source["name"].as_string();
  if (name.empty()) {
    errors.required(at.child("name"), "must specify a resource name");
  } else if (is_container) {
    validate_container_resource_name(name, at.child("name"), errors);
  }
  if (is_container) {
    const std::string& container = source["container"].as_string();
    if (container.empty()) {
      errors.required(at.child("container"), "must specify a container");
    } else {
      add_problems(errors, at.child("container"), container, check_dns1123_label(container));
    }
  }
  const Doc& target = source["target"];
  validate_target(target, at.child("target"), errors);
  const bool has_utilization = target.has("averageUtilization");
  const bool has_value = target.has("averageValue");
  if (!has_utilization && !has_value) {
    errors.required(at.child("target", "averageUtilization"),
                    "must set either a target raw value or a target utilization");
  }
  if (has_utilization && has_value) {
    errors.forbidden(at.child("target", "averageValue"),
                     "may not set both a target raw value and a target utilization");
  }
}

void validate_source(std::string_view name, const Doc& source, const ReferenceRules& rules,
                     const Path& at, FieldErrors& errors) {
  if (name == "object") {
    validate_object_source(source, rules, at, errors);
  } else if (name == "external") {
    validate_external_source(source, at, errors);
  } else if (name == "pods") {
    validate_pods_source(source, at, errors);
  } else {
    validate_resource_source(source, name == "containerResource", at, errors);
  }
}

// The member that a metric of that type must have; "" for an unknown type.
std::string_view member_of_type(std::string_view type) {
  struct Entry {
    std::string_view type, member;
  };
  static constexpr std::array<Entry, 5> kMembers = {{{"Object", "object"},
                                                     {"Pods", "pods"},
                                                     {"Resource", "resource"},
                                                     {"External", "external"},
                                                     {"ContainerResource", "containerResource"}}};
  for (const Entry& entry : kMembers) {
    if (entry.type == type) return entry.member;
  }
  return {};
}

void validate_metric(const Doc& metric, const ReferenceRules& rules, const Path& at,
                     FieldErrors& errors) {
  const std::string& type = metric["type"].as_string();
  if (type.empty()) errors.required(at.child("type"), "must specify a metric source type");
  check_supported(type, metric_types(), at.child("type"), errors);
  // Only the first source found is looked into.
  std::vector<std::string_view> present;
  for (const std::string_view name :
       {"object", "external", "pods", "resource", "containerResource"}) {
    if (!metric.has(name)) continue;
    if (present.empty()) validate_source(name, metric[name], rules, at.child(name), errors);
    present.push_back(name);
  }
  const std::string_view expected = member_of_type(type);
  if (expected.empty()) {
    // The server says it a second time.
    check_supported(type, metric_types(), at.child("type"), errors);
  } else if (!metric.has(expected)) {
    errors.required(at.child(expected), "must populate information for the given metric source");
  }
  if (present.size() == 1) return;
  for (const std::string_view name : present) {
    if (name != expected) {
      errors.forbidden(at.child(name), "must populate the given metric source only");
    }
  }
}

void validate_metrics(const Doc& spec, const ReferenceRules& rules, const Path& at,
                      FieldErrors& errors) {
  bool can_reach_zero = false;
  const Doc::Items& metrics = spec["metrics"].items();
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    validate_metric(metrics[i], rules, at.index(i), errors);
    const std::string& type = metrics[i]["type"].as_string();
    can_reach_zero = can_reach_zero || type == "Object" || type == "External";
  }
  if (spec.has("minReplicas") && spec["minReplicas"].as_int() == 0 && !can_reach_zero) {
    errors.forbidden(at,
                     "must specify at least one Object or External metric to support scaling to "
                     "zero replicas");
  }
}

void validate_policy(const Doc& policy, const Path& at, FieldErrors& errors) {
  check_supported(policy["type"], {"Percent", "Pods"}, at.child("type"), errors);
  for (const std::string_view name : {"value", "periodSeconds"}) {
    if (policy[name].as_int() <= 0) {
      errors.invalid(at.child(name), policy[name].as_int(), "must be greater than zero");
    }
  }
  if (policy["periodSeconds"].as_int() > kPeriodMax) {
    errors.invalid(at.child("periodSeconds"), policy["periodSeconds"],
                   "must be less than or equal to " + std::to_string(kPeriodMax));
  }
}

void validate_rules(const Doc& rules, const Path& at, FieldErrors& errors) {
  if (rules.is_null()) return;
  const Doc& window = rules["stabilizationWindowSeconds"];
  const Path window_at = at.child("stabilizationWindowSeconds");
  if (window.as_int() < 0) {
    errors.invalid(window_at, window, "must be greater than or equal to zero");
  }
  if (window.as_int() > kWindowMax) {
    errors.invalid(window_at, window,
                   "must be less than or equal to " + std::to_string(kWindowMax));
  }
  if (rules.has("selectPolicy")) {
    check_supported(rules["selectPolicy"], {"Disabled", "Max", "Min"}, at.child("selectPolicy"),
                    errors);
  }
  const Doc::Items& policies = rules["policies"].items();
  if (policies.empty()) errors.required(at.child("policies"), "must specify at least one Policy");
  for (std::size_t i = 0; i < policies.size(); ++i) {
    validate_policy(policies[i], at.child("policies").index(i), errors);
  }
  if (rules.has("tolerance") && quantity_of(rules["tolerance"]).is_negative()) {
    errors.invalid(at.child("tolerance"), rules["tolerance"], kNotNegative);
  }
}

void validate_replicas(const Doc& spec, const Doc& old_spec, const Path& at, FieldErrors& errors) {
  // Scaling to zero is behind a gate that is off, but what is zero may stay so.
  const bool was_zero = old_spec.has("minReplicas") && old_spec["minReplicas"].as_int() == 0;
  const std::int64_t lowest = was_zero ? 0 : 1;
  const std::int64_t min = spec["minReplicas"].as_int(lowest);
  const std::int64_t max = spec["maxReplicas"].as_int();
  if (min < lowest) {
    errors.invalid(at.child("minReplicas"), min,
                   "must be greater than or equal to " + std::to_string(lowest));
  }
  if (max == 0) {
    errors.required(at.child("maxReplicas"), "must be set and greater than 0");
  } else if (max < 0) {
    errors.invalid(at.child("maxReplicas"), max, "must be greater than or equal to 1");
  }
  if (spec.has("minReplicas") && max < min) {
    errors.invalid(at.child("maxReplicas"), max, "must be greater than or equal to `minReplicas`");
  }
}

ReferenceRules target_rules(const Doc& spec, const Doc& old_spec) {
  const Doc& now = spec["scaleTargetRef"];
  const Doc& before = old_spec["scaleTargetRef"];
  if (!old_spec.is_null() && same(now["apiVersion"], before["apiVersion"]) &&
      same(now["kind"], before["kind"])) {
    return {.any_version = true, .core_group = false};
  }
  // The one scalable kind of the core group.
  return {.any_version = false, .core_group = now["kind"].as_string() == "ReplicationController"};
}

ReferenceRules object_rules(const Doc& old_spec) {
  ReferenceRules rules{.any_version = false, .core_group = true};
  for (const Doc& metric : old_spec["metrics"].items()) {
    if (metric["type"].as_string() == "Object" && metric.has("object") &&
        !version_problem(metric["object"]["describedObject"], rules).empty()) {
      rules.any_version = true;
      break;
    }
  }
  return rules;
}

}  // namespace

void validate_autoscaler_spec(const Doc& spec, const Doc& old_spec, FieldErrors& errors) {
  const Path at("spec");
  validate_replicas(spec, old_spec, at, errors);
  validate_reference(spec["scaleTargetRef"], target_rules(spec, old_spec),
                     at.child("scaleTargetRef"), errors);
  validate_metrics(spec, object_rules(old_spec), at.child("metrics"), errors);
  validate_rules(spec["behavior"]["scaleUp"], at.child("behavior", "scaleUp"), errors);
  validate_rules(spec["behavior"]["scaleDown"], at.child("behavior", "scaleDown"), errors);
}

}  // namespace jogak::api
