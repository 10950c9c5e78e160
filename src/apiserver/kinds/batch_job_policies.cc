// SPDX-License-Identifier: Apache-2.0
//
// A job's pod failure policy (what a failed pod means) and success policy (which indexes suffice).
#include <algorithm>
#include <set>
#include <string>

#include "apiserver/kinds/batch.h"
#include "apiserver/kinds/workload_checks.h"

namespace jogak::api {

namespace {

constexpr std::size_t kRulesMax = 20;
constexpr std::size_t kExitCodesMax = 255;
constexpr std::size_t kPatternsMax = 20;
constexpr std::size_t kSucceededIndexesMax = 64 * 1024;

// A member that must be one of `values`; none at all is an error of its own.
void require_one_of(const Doc& value, const std::vector<std::string_view>& values, const Path& at,
                    FieldErrors& errors) {
  if (!value.as_string().empty()) {
    check_supported(value, values, at, errors);
    return;
  }
  std::string text = "valid values: [";
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += (i > 0 ? " \"" : "\"") + std::string(values[i]) + "\"";
  }
  errors.required(at, text + "]");
}

bool has_container(const Doc& spec, std::string_view name) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const Doc& container : spec["template"]["spec"][list].items()) {
      if (container["name"].as_string() == name) return true;
    }
  }
  return false;
}

void validate_exit_code_values(const Doc& codes, const Path& at, FieldErrors& errors) {
  const Doc::Items& values = codes["values"].items();
  if (values.empty()) {
    errors.invalid(at, codes["values"], "at least one value is required");
  } else if (values.size() > kExitCodesMax) {
    errors.too_many(at, values.size(), kExitCodesMax);
  }
  std::set<std::int64_t> seen;
  bool is_ordered = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t code = values[i].as_int();
    if (codes["operator"].as_string() == "In" && code == 0) {
      errors.invalid(at.index(i), values[i], "must not be 0 for the In operator");
    }
    if (!seen.insert(code).second) errors.duplicate(at.index(i), values[i]);
    if (i > 0 && values[i - 1].as_int() > code) is_ordered = false;
  }
  if (!is_ordered) errors.invalid(at, codes["values"], "must be ordered");
}

void validate_exit_codes(const Doc& spec, const Doc& codes, const Path& at, FieldErrors& errors) {
  require_one_of(codes["operator"], {"In", "NotIn"}, at.child("operator"), errors);
  const Doc& container = codes["containerName"];
  if (!container.is_null() && !has_container(spec, container.as_string())) {
    errors.invalid(at.child("containerName"), container,
                   "must be one of the container or initContainer names in the pod template");
  }
  validate_exit_code_values(codes, at.child("values"), errors);
}

void validate_pod_conditions(const Doc& patterns, const Path& at, FieldErrors& errors) {
  if (patterns.size() > kPatternsMax) errors.too_many(at, patterns.size(), kPatternsMax);
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const Doc& pattern = patterns.items()[i];
    const std::string& type = pattern["type"].as_string();
    add_problems(errors, at.index(i).child("type"), type, check_qualified_name(type));
    require_one_of(pattern["status"], {"False", "True", "Unknown"}, at.index(i).child("status"),
                   errors);
  }
}

void validate_failure_rule(const Doc& spec, const Doc& rule, const Path& at, FieldErrors& errors) {
  const Doc& action = rule["action"];
  if (action.as_string() == "FailIndex") {
    if (!spec.has("backoffLimitPerIndex")) {
      errors.invalid(at.child("action"), action, "requires the backoffLimitPerIndex to be set");
    }
  } else {
    require_one_of(action, {"Count", "FailIndex", "FailJob", "Ignore"}, at.child("action"), errors);
  }
  const bool has_codes = rule.has("onExitCodes");
  const bool has_conditions = !rule["onPodConditions"].empty();
  if (has_codes) validate_exit_codes(spec, rule["onExitCodes"], at.child("onExitCodes"), errors);
  if (has_conditions) {
    validate_pod_conditions(rule["onPodConditions"], at.child("onPodConditions"), errors);
  }
  if (has_codes && has_conditions) {
    errors.invalid(at, rule, "specifying both OnExitCodes and OnPodConditions is not supported");
  } else if (!has_codes && !has_conditions) {
    errors.invalid(at, rule, "specifying one of OnExitCodes and OnPodConditions is required");
  }
}

void validate_success_rule(const Doc& spec, const Doc& rule, const Path& at, FieldErrors& errors) {
  const Doc& count = rule["succeededCount"];
  const Doc& indexes = rule["succeededIndexes"];
  if (count.is_null() && indexes.is_null()) {
    errors.required(at, "at least one of succeededCount or succeededIndexes must be specified");
  }
  const std::int64_t completions = spec["completions"].as_int();
  std::int64_t total = 0;
  if (!indexes.is_null()) {
    const Path indexes_at = at.child("succeededIndexes");
    if (indexes.as_string().size() > kSucceededIndexesMax) {
      errors.too_long(indexes_at, kSucceededIndexesMax);
    }
    const auto counted = count_indexes(indexes.as_string(), completions);
    if (counted.has_value()) {
      total = *counted;
    } else {
      errors.invalid(indexes_at, indexes,
                     "error parsing succeededIndexes: " + counted.error().what);
    }
  }
  if (count.is_null()) return;
  const Path count_at = at.child("succeededCount");
  check_not_negative(rule, "succeededCount", at, errors);
  if (count.as_int() > completions) {
    errors.invalid(count_at, count,
                   "must be less than or equal to " + std::to_string(completions) +
                       " (the number of specified completions)");
  }
  if (!indexes.is_null() && count.as_int() > total) {
    errors.invalid(count_at, count,
                   "must be less than or equal to " + std::to_string(total) +
                       " (the number of indexes in the specified succeededIndexes field)");
  }
}

}  // namespace

void validate_pod_failure_policy(const Doc& spec, const Path& at, FieldErrors& errors) {
  const Doc& rules = spec["podFailurePolicy"]["rules"];
  const Path rules_at = at.child("rules");
  if (rules.size() > kRulesMax) errors.too_many(rules_at, rules.size(), kRulesMax);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    validate_failure_rule(spec, rules.items()[i], rules_at.index(i), errors);
  }
}

void validate_success_policy(const Doc& spec, const Path& at, FieldErrors& errors) {
  const Doc& rules = spec["successPolicy"]["rules"];
  const Path rules_at = at.child("rules");
  if (rules.empty()) {
    errors.required(rules_at,
                    "at least one rules must be specified when the successPolicy is specified");
  }
  if (rules.size() > kRulesMax) errors.too_many(rules_at, rules.size(), kRulesMax);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    validate_success_rule(spec, rules.items()[i], rules_at.index(i), errors);
  }
}

}  // namespace jogak::api
