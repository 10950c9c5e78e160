// SPDX-License-Identifier: Apache-2.0
//
// Checks that several workload kinds share. Facts: pkg/apis/apps/validation of Kubernetes 1.36.
#include "apiserver/kinds/workload_checks.h"

#include <algorithm>

#include "apiserver/object/meta.h"
#include "base/parse_number.h"

namespace jogak::api {

namespace {

bool is_percent(std::string_view text) { return check_percent(text).empty(); }

}  // namespace

void check_not_negative(const Doc& parent, std::string_view name, const Path& parent_at,
                        FieldErrors& errors) {
  const Doc& value = parent[name];
  if (value.as_int() < 0) errors.invalid(parent_at.child(name), value, kNotNegative);
}

void check_not_negative(const Doc& parent, std::initializer_list<std::string_view> names,
                        const Path& parent_at, FieldErrors& errors) {
  for (const std::string_view name : names) check_not_negative(parent, name, parent_at, errors);
}

void check_at_most(const Doc& status, std::string_view name, std::string_view bound,
                   std::string_view detail, const Path& at, FieldErrors& errors) {
  if (status[name].as_int() > status[bound].as_int()) {
    errors.invalid(at.child(name), status[name], detail);
  }
}

void check_immutable(const Doc& parent, const Doc& old_parent, std::string_view name,
                     const Path& parent_at, FieldErrors& errors) {
  if (!(parent[name] == old_parent[name])) {
    errors.invalid(parent_at.child(name), parent[name], kImmutable);
  }
}

void check_collisions(const Doc& status, const Doc& old_status, const Path& at,
                      FieldErrors& errors) {
  const Doc* before = old_status.find("collisionCount");
  if (before == nullptr || before->is_null()) return;
  const std::int64_t now = status["collisionCount"].as_int();
  if (!status.has("collisionCount") || now < before->as_int()) {
    errors.invalid(at.child("collisionCount"), now, "cannot be decremented");
  }
}

void check_supported(const Doc& value, const std::vector<std::string_view>& supported,
                     const Path& at, FieldErrors& errors) {
  if (std::ranges::find(supported, value.as_string()) == supported.end()) {
    errors.not_supported(at, value.is_null() ? Doc("") : value, supported);
  }
}

void check_int_or_percent(const Doc& value, const Path& at, FieldErrors& errors) {
  if (value.is_string()) {
    add_problems(errors, at, value, check_percent(value.as_string()));
  } else if (value.as_int() < 0) {
    errors.invalid(at, value, kNotNegative);
  }
}

void check_at_most_100_percent(const Doc& value, const Path& at, FieldErrors& errors) {
  if (value.is_string() && is_percent(value.as_string()) && int_or_percent_value(value) > 100) {
    errors.invalid(at, value, "must not be greater than 100%");
  }
}

std::int64_t int_or_percent_value(const Doc& value) {
  if (!value.is_string()) return value.as_int();
  std::string_view text = value.as_string();
  if (is_percent(text)) text.remove_suffix(1);
  return parse_int(text).value_or(0);
}

bool check_selector(const Doc& selector, std::string_view kind_word, const Path& at,
                    FieldErrors& errors) {
  if (selector.is_null()) {
    errors.required(at);
    return true;
  }
  FieldErrors found;
  validate_label_selector(selector, at, found);
  for (const FieldError& error : found.list()) errors.add(error);
  if (selector["matchLabels"].empty() && selector["matchExpressions"].empty()) {
    errors.invalid(at, selector, "empty selector is invalid for " + std::string(kind_word));
  }
  return found.empty();
}

void check_runs_forever(const Doc& pod_template, std::string_view kind_word, const Path& at,
                        FieldErrors& errors) {
  const Doc& spec = pod_template["spec"];
  check_supported(spec["restartPolicy"], {"Always"}, at.child("spec", "restartPolicy"), errors);
  if (spec.has("activeDeadlineSeconds")) {
    errors.forbidden(at.child("spec", "activeDeadlineSeconds"),
                     "activeDeadlineSeconds in " + std::string(kind_word) + " is not Supported");
  }
}

void warn_about_name(const Doc& object, std::vector<std::string>& warnings) {
  const Problems problems = check_dns1123_label(name_of(object));
  if (problems.empty()) return;
  std::string text =
      "metadata.name: this is used in Pod names and hostnames, which can result in surprising "
      "behavior; a DNS label is recommended: [";
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (i > 0) text += " ";
    text += problems[i];
  }
  warnings.push_back(text + "]");
}

}  // namespace jogak::api
