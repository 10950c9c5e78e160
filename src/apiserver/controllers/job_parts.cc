// SPDX-License-Identifier: Apache-2.0
//
// Indexes are kept as the text of their ranges (1,3-5), since a job may have 100,000 of them.
#include "apiserver/controllers/job_parts.h"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "apiserver/object/meta.h"

namespace jogak::controllers {

bool is_job_finished(const Doc& job) {
  return api::condition_is(job, "Complete", "True") || api::condition_is(job, "Failed", "True");
}

bool is_indexed(const Doc& job) {
  return job.get("spec", "completionMode").as_string() == "Indexed";
}

bool has_job_condition(const Doc& job, std::string_view type) {
  return api::condition_is(job, type, "True");
}

void set_job_condition(Doc& job, std::string_view type, std::string_view status,
                       std::string_view reason, std::string_view message, TimeUs now) {
  const std::string time = api::format_time(now);
  Doc made = Doc::object();
  made.set("type", type)
      .set("status", status)
      .set("lastProbeTime", time)
      .set("lastTransitionTime", time)
      .set("reason", reason)
      .set("message", message);
  Doc& conditions = job.at("status", "conditions");
  if (conditions.is_null()) conditions = Doc::array();
  for (Doc& condition : conditions.items()) {
    if (condition["type"].as_string() != type) continue;
    if (condition["status"].as_string() != status) condition = std::move(made);
    return;
  }
  conditions.push(std::move(made));
}

std::set<std::int64_t> parse_indexes(std::string_view text) {
  std::set<std::int64_t> indexes;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::int64_t first = 0;
    const auto [at, error] = std::from_chars(part.data(), part.data() + part.size(), first);
    if (error != std::errc()) continue;
    std::int64_t last = first;
    if (at != part.data() + part.size() && *at == '-') {
      std::from_chars(at + 1, part.data() + part.size(), last);
    }
    for (std::int64_t i = first; i <= last; ++i) indexes.insert(i);
  }
  return indexes;
}

std::string indexes_text(const std::set<std::int64_t>& indexes) {
  std::string text;
  for (auto it = indexes.begin(); it != indexes.end();) {
    const std::int64_t first = *it;
    std::int64_t last = first;
    for (++it; it != indexes.end() && *it == last + 1; ++it) last = *it;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    // a run of two is written as two, as the real controller does
    if (last == first + 1) text += "," + std::to_string(last);
    if (last > first + 1) text += "-" + std::to_string(last);
  }
  return text;
}

std::int64_t wanted_active(const Doc& job, std::int64_t succeeded, std::int64_t active) {
  if (job.get("spec", "suspend").as_bool()) return 0;
  const std::int64_t parallelism = job.get("spec", "parallelism").as_int(1);
  const Doc* completions = job["spec"].find("completions");
  if (completions == nullptr) {
    // a work queue: once one pod succeeded no more are made
    return succeeded > 0 ? std::min(active, parallelism) : parallelism;
  }
  return std::min(parallelism, std::max<std::int64_t>(completions->as_int() - succeeded, 0));
}

TimeUs failure_backoff(std::int64_t failures) {
  if (failures <= 0) return 0;
  constexpr TimeUs kFirst = 10 * kSecondInUs;
  constexpr TimeUs kLongest = 600 * kSecondInUs;
  return std::min(kLongest, kFirst << std::min<std::int64_t>(failures - 1, 10));
}

void set_index(Doc& pod, std::string_view job_name, std::int64_t index) {
  const std::string text = std::to_string(index);
  pod.at("metadata").set("generateName", fmt::format("{}-{}-", job_name, index));
  pod.at("metadata", "annotations").set(kCompletionIndex, text);
  pod.at("metadata", "labels").set(kCompletionIndex, text);
  pod.at("spec").set("hostname", fmt::format("{}-{}", job_name, index));
  const std::string path = fmt::format("metadata.labels['{}']", kCompletionIndex);
  for (const std::string_view list : {"initContainers", "containers"}) {
    Doc* containers = pod.at("spec").find(list);
    if (containers == nullptr) continue;
    for (Doc& container : containers->items()) {
      container.at("env").push(
          Doc::object()
              .set("name", "JOB_COMPLETION_INDEX")
              .set("valueFrom",
                   Doc::object().set("fieldRef", Doc::object().set("fieldPath", path))));
    }
  }
}

}  // namespace jogak::controllers
