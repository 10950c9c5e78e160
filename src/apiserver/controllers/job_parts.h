// SPDX-License-Identifier: Apache-2.0
//
// What a job adds up to: indexes done, pods wanted, conditions. No writes here.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/doc.h"
#include "base/loop.h"

namespace jogak::controllers {

inline constexpr std::string_view kTracking = "batch.kubernetes.io/job-tracking";
inline constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";

bool is_job_finished(const Doc& job);  // Complete or Failed
bool is_indexed(const Doc& job);
bool has_job_condition(const Doc& job, std::string_view type);
// Adds the condition, or changes its status.
void set_job_condition(Doc& job, std::string_view type, std::string_view status,
                       std::string_view reason, std::string_view message, TimeUs now);

// "0-2,5" and back.
std::set<std::int64_t> parse_indexes(std::string_view text);
std::string indexes_text(const std::set<std::int64_t>& indexes);

// How many pods should be active now, given what is done and what is active.
std::int64_t wanted_active(const Doc& job, std::int64_t succeeded, std::int64_t active);
// The wait before the next pod after so many failures in a row: 10 s doubling to 10 min.
TimeUs failure_backoff(std::int64_t failures);

// The pod's environment and labels for its index.
void set_index(Doc& pod, std::string_view job_name, std::int64_t index);

}  // namespace jogak::controllers
