// SPDX-License-Identifier: Apache-2.0
//
// What a JobSpec may say, in a job and in the template of a cron job.
#include <algorithm>
#include <string>

#include "apiserver/kinds/batch.h"
#include "apiserver/kinds/pod_spec.h"
#include "apiserver/kinds/workload_checks.h"

namespace jogak::api {

namespace {

constexpr std::int64_t kIndexedParallelismMax = 100'000;
constexpr std::int64_t kFailedIndexesMax = 100'000;
constexpr std::int64_t kCompletionsSoftMax = 100'000;
constexpr std::int64_t kParallelismMaxOfMany = 10'000;  // above the soft limit of completions
constexpr std::int64_t kFailedIndexesMaxOfMany = 10'000;
constexpr std::size_t kManagedByMax = 63;

// What URLs allow in a path (RFC 3986), percent signs included.
bool is_path_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("/-._~%!$&'()*+,;=:").contains(c);
}

// "acme.io/foo"
void validate_managed_by(const Doc& value, const Path& at, FieldErrors& errors) {
  if (value.is_null()) return;
  const std::string_view text = value.as_string();
  const std::size_t slash = text.find('/');
  if (text.empty()) {
    errors.required(at);
  } else if (slash == 0 || slash == std::string_view::npos || slash + 1 == text.size()) {
    errors.invalid(at, value, "must be a domain-prefixed path (such as \"acme.io/foo\")");
  } else {
    const std::string host(text.substr(0, slash));
    add_problems(errors, at, host, check_dns1123_subdomain(host));
    const std::string_view path = text.substr(slash + 1);
    if (!std::ranges::all_of(path, is_path_char)) errors.invalid(at, path, "Invalid path");
  }
  if (text.size() > kManagedByMax) errors.too_long(at, kManagedByMax);
}

void check_at_most(const Doc& spec, std::string_view name, std::int64_t bound,
                   std::string_view condition, const Path& at, FieldErrors& errors) {
  if (spec[name].as_int() > bound) {
    errors.invalid(
        at.child(name), spec[name],
        "must be less than or equal to " + std::to_string(bound) + std::string(condition));
  }
}

void validate_indexed(const Doc& spec, const Path& at, FieldErrors& errors) {
  const bool has_completions = spec.has("completions");
  const bool has_max_failed = spec.has("maxFailedIndexes");
  const std::int64_t completions = spec["completions"].as_int();
  if (!has_completions) {
    errors.required(at.child("completions"), "when completion mode is Indexed");
  }
  check_at_most(spec, "parallelism", kIndexedParallelismMax, " when completion mode is Indexed", at,
                errors);
  if (has_completions && has_max_failed && spec["maxFailedIndexes"].as_int() > completions) {
    errors.invalid(at.child("maxFailedIndexes"), spec["maxFailedIndexes"],
                   "must be less than or equal to completions");
  }
  check_at_most(spec, "maxFailedIndexes", kFailedIndexesMax, "", at, errors);
  if (completions <= kCompletionsSoftMax || !spec.has("backoffLimitPerIndex")) return;
  if (!has_max_failed) {
    errors.required(at.child("maxFailedIndexes"),
                    "must be specified when completions is above 100000");
  }
  constexpr std::string_view kWhen =
      " when completions are above 100000 and used with backoff limit per index";
  check_at_most(spec, "parallelism", kParallelismMaxOfMany, kWhen, at, errors);
  check_at_most(spec, "maxFailedIndexes", kFailedIndexesMaxOfMany, kWhen, at, errors);
}

void validate_completion_mode(const Doc& spec, const Path& at, FieldErrors& errors) {
  const Doc& mode = spec["completionMode"];
  if (!mode.is_null()) {
    check_supported(mode, {"NonIndexed", "Indexed"}, at.child("completionMode"), errors);
    if (is_indexed(spec)) validate_indexed(spec, at, errors);
  }
  if (!mode.is_null() && mode.as_string() != "NonIndexed") return;
  for (const std::string_view name : {"backoffLimitPerIndex", "maxFailedIndexes"}) {
    if (spec.has(name)) {
      errors.invalid(at.child(name), spec[name], "requires indexed completion mode");
    }
  }
}

void validate_replacement(const Doc& spec, const Path& at, FieldErrors& errors) {
  const Doc& policy = spec["podReplacementPolicy"];
  if (policy.is_null()) return;
  if (spec.has("podFailurePolicy")) {
    check_supported(policy, {"Failed"}, at, errors);
  } else {
    check_supported(policy, {"Failed", "TerminatingOrFailed"}, at, errors);
  }
}

void validate_restart_policy(const Doc& spec, const Path& at, FieldErrors& errors) {
  const Doc& policy = spec["template"]["spec"]["restartPolicy"];
  const std::string& text = policy.as_string();
  if (text.empty() || text == "Always") {
    errors.required(at, "valid values: \"OnFailure\", \"Never\"");
  } else if (text != "OnFailure" && text != "Never") {
    errors.not_supported(at, policy, {"OnFailure", "Never"});
  } else if (spec.has("podFailurePolicy") && text != "Never") {
    errors.invalid(at, policy, "only \"Never\" is supported when podFailurePolicy is specified");
  }
}

}  // namespace

bool is_indexed(const Doc& job_spec) { return job_spec["completionMode"].as_string() == "Indexed"; }

void default_job_template_parts(Doc& job_spec) {
  default_pod_template(job_spec.at("template"));
  Doc* policy = job_spec.find("podFailurePolicy");
  Doc* rules = policy == nullptr ? nullptr : policy->find("rules");
  if (rules == nullptr || !rules->is_array()) return;
  for (Doc& rule : rules->items()) {
    Doc* patterns = rule.find("onPodConditions");
    if (patterns == nullptr || !patterns->is_array()) continue;
    for (Doc& pattern : patterns->items()) {
      if (pattern["status"].as_string().empty()) pattern.set("status", "True");
    }
  }
}

void validate_job_spec_parts(const Doc& spec, const Path& at, FieldErrors& errors) {
  check_not_negative(spec,
                     {"parallelism", "completions", "activeDeadlineSeconds", "backoffLimit",
                      "ttlSecondsAfterFinished", "backoffLimitPerIndex", "maxFailedIndexes"},
                     at, errors);
  if (spec.has("maxFailedIndexes") && !spec.has("backoffLimitPerIndex")) {
    errors.required(at.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
  }
  validate_managed_by(spec["managedBy"], at.child("managedBy"), errors);
  validate_completion_mode(spec, at, errors);
  if (spec.has("podFailurePolicy")) {
    validate_pod_failure_policy(spec, at.child("podFailurePolicy"), errors);
  }
  if (spec.has("successPolicy")) {
    if (is_indexed(spec)) {
      validate_success_policy(spec, at.child("successPolicy"), errors);
    } else {
      errors.invalid(at.child("successPolicy"), spec["successPolicy"],
                     "requires indexed completion mode");
    }
  }
  validate_replacement(spec, at.child("podReplacementPolicy"), errors);
  validate_pod_template(spec["template"], at.child("template"), errors);
  validate_restart_policy(spec, at.child("template", "spec", "restartPolicy"), errors);
}

void warn_about_job_spec(const Doc& spec, const Path& at, std::vector<std::string>& warnings) {
  if (is_indexed(spec) && spec["completions"].as_int() > kCompletionsSoftMax &&
      spec["parallelism"].as_int() > kParallelismMaxOfMany) {
    warnings.push_back(at.text() +
                       ": In Indexed Jobs with a number of completions higher than 10^5 and a "
                       "parallelism higher than 10^4, Kubernetes might not be able to track "
                       "completedIndexes when a big number of indexes fail");
  }
}

}  // namespace jogak::api
