// SPDX-License-Identifier: Apache-2.0
//
// The rules of batch/v1: jobs and cron jobs, and what they share.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "apiserver/kinds/kinds.h"
#include "apiserver/registry/resource.h"
#include "base/result.h"

namespace jogak::api {

inline constexpr std::string_view kJobName = "batch.kubernetes.io/job-name";
inline constexpr std::string_view kOldJobName = "job-name";
inline constexpr std::string_view kControllerUid = "batch.kubernetes.io/controller-uid";
inline constexpr std::string_view kOldControllerUid = "controller-uid";

std::shared_ptr<const Strategy> job_strategy(const KindOptions& options);
std::shared_ptr<const Strategy> cron_job_strategy(const KindOptions& options);
void add_batch_kinds(Registry& registry, const KindOptions& options);

bool is_indexed(const Doc& job_spec);
// Whether any condition of that type has that status; a list may name a type twice.
bool has_condition(const Doc& job, std::string_view type, std::string_view status);
// The template, and the patterns of the pod failure policy.
void default_job_template_parts(Doc& job_spec);
// All of a JobSpec but its selector, which only a job itself has.
void validate_job_spec_parts(const Doc& spec, const Path& at, FieldErrors& errors);
// spec.podFailurePolicy and spec.successPolicy.
void validate_pod_failure_policy(const Doc& spec, const Path& at, FieldErrors& errors);
void validate_success_policy(const Doc& spec, const Path& at, FieldErrors& errors);
// What may change in a job's spec besides what validates.
void validate_job_spec_change(const Doc& object, const Doc& old, FieldErrors& errors);
// How a job's status may look and move.
void validate_job_status(const Doc& job, const Doc& old, FieldErrors& errors);
void warn_about_job_spec(const Doc& spec, const Path& at, std::vector<std::string>& warnings);

// "0-3,5,7": how many indexes that is, all below `completions`; or what is wrong.
Result<std::int64_t> count_indexes(std::string_view text, std::int64_t completions);
// The first index in both, or -1. Parts that cannot be read are passed over.
std::int64_t first_common_index(std::string_view a, std::string_view b, std::int64_t completions);

// A cron line ("*/5 * * * 1-5", "@daily", "@every 1h30m"), or what is wrong with it.
Result<void> check_cron_schedule(std::string_view text);
// Whether the time zone database has that name, where this machine has the database; its form
// otherwise.
bool is_time_zone(std::string_view name);

}  // namespace jogak::api
