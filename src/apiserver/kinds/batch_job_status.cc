// SPDX-License-Identifier: Apache-2.0
//
// A job's status: counts, index lists and conditions that fit each other, and the way they may
// move. A rule about members counts only when one of them changes, so that an older status can be
// repaired.
#include <algorithm>
#include <set>
#include <string>

#include "apiserver/kinds/batch.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

// Two states of one job. The spec is the same in both: a status update does not change it.
struct StatusMove {
  const Doc& job;
  const Doc& old;

  const Doc& now(std::string_view name) const { return job["status"][name]; }
  const Doc& was(std::string_view name) const { return old["status"][name]; }
  const Doc& spec(std::string_view name) const { return job["spec"][name]; }
  bool changed(std::string_view name) const { return !(now(name) == was(name)); }

  bool is(std::string_view condition) const { return has_condition(job, condition, "True"); }
  bool was_condition(std::string_view condition) const {
    return has_condition(old, condition, "True");
  }
  bool turned(std::string_view condition) const {
    return is(condition) != was_condition(condition);
  }
  bool is_finished() const { return is("Complete") || is("Failed"); }
  bool turned_finished() const {
    return is_finished() != (was_condition("Complete") || was_condition("Failed"));
  }
};

Path status_at(std::string_view name) { return Path("status").child(name); }

void refuse_conditions(const StatusMove& move, std::string_view why, FieldErrors& errors) {
  errors.invalid(status_at("conditions"), move.now("conditions"), why);
}

void validate_uncounted(const Doc& uncounted, FieldErrors& errors) {
  std::set<std::string_view> seen;
  for (const std::string_view list : {"succeeded", "failed"}) {
    const Doc::Items& uids = uncounted[list].items();
    for (std::size_t i = 0; i < uids.size(); ++i) {
      const Path at = status_at("uncountedTerminatedPods").child(list).index(i);
      if (uids[i].as_string().empty()) {
        errors.invalid(at, uids[i], "must not be empty");
      } else if (!seen.insert(uids[i].as_string()).second) {
        errors.duplicate(at, uids[i]);
      }
    }
  }
}

void validate_completion(const StatusMove& move, FieldErrors& errors) {
  const bool turned_complete = move.turned("Complete");
  if ((turned_complete || move.turned("Failed")) && move.is("Complete") && move.is("Failed")) {
    refuse_conditions(move, "cannot set Complete=True and Failed=true conditions", errors);
  }
  if ((turned_complete || move.turned("FailureTarget")) && move.is("Complete") &&
      move.is("FailureTarget")) {
    refuse_conditions(move, "cannot set Complete=True and FailureTarget=true conditions", errors);
  }
  const Doc& completion = move.now("completionTime");
  const Path at = status_at("completionTime");
  if (turned_complete || move.changed("completionTime")) {
    if (!completion.is_null() && !move.is("Complete")) {
      errors.invalid(at, completion,
                     "cannot set completionTime when there is no Complete=True condition");
    }
    if (completion.is_null() && move.is("Complete")) {
      errors.required(at, "completionTime is required for Complete jobs");
    }
  }
  if (!move.changed("startTime") && !move.changed("completionTime")) return;
  const auto start = parse_time(move.now("startTime").as_string());
  const auto end = parse_time(completion.as_string());
  if (start.has_value() && end.has_value() && *end < *start) {
    errors.invalid(at, completion, "must be equal to or after `startTime`");
  }
}

void validate_announcements(const StatusMove& move, FieldErrors& errors) {
  if ((move.turned("Failed") || move.changed("failedIndexes")) && move.is("Failed") &&
      !move.is("FailureTarget")) {
    refuse_conditions(
        move, "cannot set Failed=True condition without the FailureTarget=true condition", errors);
  }
  if ((move.turned("Complete") || move.turned("SuccessCriteriaMet")) && move.is("Complete") &&
      !move.is("SuccessCriteriaMet")) {
    refuse_conditions(
        move, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        errors);
  }
}

void validate_finished(const StatusMove& move, FieldErrors& errors) {
  if (!move.is_finished()) return;
  const bool turned = move.turned_finished();
  if ((turned || move.changed("active")) && move.now("active").as_int() > 0) {
    errors.invalid(status_at("active"), move.now("active"), "active>0 is invalid for finished job");
  }
  const bool never_runs = move.spec("suspend").as_bool() && move.spec("completions").is_int() &&
                          move.spec("completions").as_int() == 0;
  if ((turned || move.changed("startTime")) && !never_runs && move.now("startTime").is_null()) {
    errors.required(status_at("startTime"), "startTime is required for finished job");
  }
  const Doc& uncounted = move.now("uncountedTerminatedPods");
  if ((turned || move.changed("uncountedTerminatedPods")) &&
      uncounted["failed"].size() + uncounted["succeeded"].size() > 0) {
    errors.invalid(status_at("uncountedTerminatedPods"), uncounted,
                   "must be empty for finished job");
  }
}

void validate_index_list(const StatusMove& move, std::string_view name, FieldErrors& errors) {
  const auto counted = count_indexes(move.now(name).as_string(), move.spec("completions").as_int());
  if (!counted.has_value()) {
    errors.invalid(status_at(name), move.now(name),
                   "error parsing " + std::string(name) + ": " + counted.error().what);
  }
}

void validate_indexes(const StatusMove& move, FieldErrors& errors) {
  const bool completed_changed = move.changed("completedIndexes");
  const bool failed_changed = move.changed("failedIndexes");
  const bool has_completions = !move.spec("completions").is_null();
  const bool is_per_index = !move.spec("backoffLimitPerIndex").is_null();
  const Doc& completed = move.now("completedIndexes");
  const Doc& failed = move.now("failedIndexes");
  if (completed_changed && has_completions) validate_index_list(move, "completedIndexes", errors);
  if (failed_changed && has_completions && is_per_index && !failed.is_null()) {
    validate_index_list(move, "failedIndexes", errors);
  }
  if (completed_changed && !completed.as_string().empty() && !is_indexed(move.job["spec"])) {
    errors.invalid(status_at("completedIndexes"), completed,
                   "cannot set non-empty completedIndexes when non-indexed completion mode");
  }
  if (failed_changed && !is_per_index && !failed.is_null()) {
    errors.invalid(status_at("failedIndexes"), failed,
                   "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
  }
  if (!(completed_changed || failed_changed) || !has_completions || failed.is_null()) return;
  const std::int64_t common = first_common_index(completed.as_string(), failed.as_string(),
                                                 move.spec("completions").as_int());
  if (common >= 0) {
    errors.invalid(
        status_at("failedIndexes"), failed,
        "failedIndexes and completedIndexes overlap at index: " + std::to_string(common));
  }
}

void validate_counts(const StatusMove& move, FieldErrors& errors) {
  const Doc& terminating = move.now("terminating");
  if ((move.turned_finished() || move.changed("terminating")) && move.is_finished() &&
      terminating.as_int() > 0) {
    errors.invalid(status_at("terminating"), terminating,
                   "terminating>0 is invalid for finished job");
  }
  const Doc& ready = move.now("ready");
  if ((move.changed("ready") || move.changed("active")) && !ready.is_null() &&
      ready.as_int() > move.now("active").as_int()) {
    errors.invalid(status_at("ready"), ready, "cannot set more ready pods than active");
  }
}

void validate_success(const StatusMove& move, FieldErrors& errors) {
  const bool is_met = move.is("SuccessCriteriaMet");
  if (is_met && move.is("Failed")) {
    refuse_conditions(move, "cannot set SuccessCriteriaMet=True and Failed=true conditions",
                      errors);
  }
  if (is_met && move.is("FailureTarget")) {
    refuse_conditions(move, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
                      errors);
  }
  if (!move.spec("successPolicy").is_null() && !is_met && move.is("Complete")) {
    refuse_conditions(move,
                      "cannot set Complete=True for Job with SuccessPolicy unless "
                      "SuccessCriteriaMet=True",
                      errors);
  }
}

// Succeeded pods may be forgotten only by a job that can be scaled down.
bool may_lose_successes(const StatusMove& move) {
  return is_indexed(move.job["spec"]) && move.spec("completions") == move.spec("parallelism");
}

void validate_movement(const StatusMove& move, FieldErrors& errors) {
  for (const std::string_view type : {"Failed", "Complete", "FailureTarget"}) {
    if (move.was_condition(type) && !move.is(type)) {
      refuse_conditions(
          move, "cannot disable the terminal " + std::string(type) + "=True condition", errors);
    }
  }
  const auto check_counter = [&](std::string_view name) {
    if (move.now(name).as_int() < move.was(name).as_int()) {
      errors.invalid(status_at(name), move.now(name),
                     "cannot decrease the " + std::string(name) + " counter");
    }
  };
  check_counter("failed");
  if (!may_lose_successes(move)) check_counter("succeeded");
  if (!move.now("completionTime").is_null() && !move.was("completionTime").is_null() &&
      move.changed("completionTime")) {
    errors.invalid(status_at("completionTime"), move.now("completionTime"), kImmutable);
  }
  const bool is_resuming =
      move.was_condition("Suspended") && has_condition(move.job, "Suspended", "False");
  if (!move.was("startTime").is_null() && move.changed("startTime") && !is_resuming &&
      !move.spec("suspend").as_bool()) {
    errors.invalid(status_at("startTime"), move.now("startTime"),
                   "field is immutable for unsuspended job once set");
  }
  if (move.was_condition("SuccessCriteriaMet") && !move.is("SuccessCriteriaMet")) {
    refuse_conditions(move, "cannot disable the SuccessCriteriaMet=True condition", errors);
  }
  if (move.was_condition("Complete") && !move.was_condition("SuccessCriteriaMet") &&
      move.is("SuccessCriteriaMet")) {
    refuse_conditions(move,
                      "cannot set SuccessCriteriaMet=True for Job already has Complete=true "
                      "conditions",
                      errors);
  }
}

}  // namespace

bool has_condition(const Doc& job, std::string_view type, std::string_view status) {
  return std::ranges::any_of(job["status"]["conditions"].items(), [&](const Doc& condition) {
    return condition["type"].as_string() == type && condition["status"].as_string() == status;
  });
}

void validate_job_status(const Doc& job, const Doc& old, FieldErrors& errors) {
  const StatusMove move{.job = job, .old = old};
  check_not_negative(job["status"], {"active", "succeeded", "failed", "ready", "terminating"},
                     Path("status"), errors);
  validate_uncounted(move.now("uncountedTerminatedPods"), errors);
  validate_completion(move, errors);
  validate_announcements(move, errors);
  validate_finished(move, errors);
  validate_indexes(move, errors);
  validate_counts(move, errors);
  validate_success(move, errors);
  validate_movement(move, errors);
}

}  // namespace jogak::api
