// SPDX-License-Identifier: Apache-2.0
//
// Children are looked up once and kept, so that a decision costs a few additions. Bounds of
// scheduler_* are kube-scheduler's: dashboards compare quantiles across the two.
#include "live/scheduler_metrics.h"

#include <algorithm>

namespace jogak::live {

namespace {

constexpr std::array<std::string_view, 3> kResultNames = {"scheduled", "unschedulable", "error"};
constexpr std::array<std::string_view, kQueueKinds> kQueueNames = {"active", "backoff",
                                                                   "unschedulable", "gated"};
constexpr std::array<std::string_view, 6> kErrcNames = {"Invalid", "NotFound",    "Conflict",
                                                        "Gone",    "Unavailable", "Timeout"};

double seconds(TimeUs span) { return static_cast<double>(span) / kSecondInUs; }

}  // namespace

std::string_view result_name(AttemptResult result) {
  return kResultNames[static_cast<std::size_t>(result)];
}
std::string_view queue_name(QueueKind queue) {
  return kQueueNames[static_cast<std::size_t>(queue)];
}
std::string_view errc_name(Errc code) { return kErrcNames[static_cast<std::size_t>(code)]; }

SchedulerMetrics::SchedulerMetrics(Registry& registry, Log& log,
                                   std::span<const std::string> profiles)
    : log_(log),
      attempts_(registry.counters("scheduler_schedule_attempts_total",
                                  "Tries to place pods, by how they ended: error means a fault, "
                                  "not a pod that does not fit.",
                                  {"result", "profile"})),
      durations_(registry.histograms("scheduler_scheduling_attempt_duration_seconds",
                                     "Time of a try, the binding included.", {"result", "profile"},
                                     exponential_bounds(0.001, 2, 15))),
      algorithm_(registry.histogram("scheduler_scheduling_algorithm_duration_seconds",
                                    "Time of a decision alone.", exponential_bounds(0.001, 2, 15))),
      decisions_(registry.histogram("jogak_decision_duration_seconds",
                                    "Time of a decision alone, in finer steps.",
                                    exponential_bounds(0.000'005, 2, 20))),
      sli_(registry.histograms("scheduler_pod_scheduling_sli_duration_seconds",
                               "Time from a pod's first appearance without gates to its binding, "
                               "by how many tries it took.",
                               {"attempts"}, exponential_bounds(0.01, 2, 20))),
      pod_attempts_(registry.histogram("scheduler_pod_scheduling_attempts",
                                       "Tries that a pod took until it was bound.",
                                       exponential_bounds(1, 2, 5))),
      pending_(registry.gauges("scheduler_pending_pods",
                               "Pods that wait: active ones are tried next, backoff ones when "
                               "their time is over, unschedulable ones when the cluster changes, "
                               "gated ones not before their gates are gone.",
                               {"queue"})),
      incoming_(registry.counters("scheduler_queue_incoming_pods_total",
                                  "Pods that entered a queue, by what brought them there.",
                                  {"queue", "event"})),
      preemptions_(registry.counter("scheduler_preemption_attempts_total",
                                    "Pods for which preemption was considered.")),
      victims_(registry.histogram("scheduler_preemption_victims",
                                  "Pods chosen to make room for one.",
                                  exponential_bounds(1, 2, 7))),
      refused_(registry.gauges("scheduler_unschedulable_pods",
                               "Unschedulable pods by the filter that refused nodes to them; a pod "
                               "counts under each of its filters.",
                               {"plugin", "profile"})),
      in_flight_(
          registry.gauge("jogak_binds_in_flight", "Bindings sent whose outcome is not known yet.")),
      bind_errors_(registry.counters("jogak_bind_errors_total",
                                     "Bindings that did not come about, by kind of error.",
                                     {"code"})),
      invalid_plans_(registry.counter("jogak_invalid_plans_total",
                                      "Decisions that the independent check stopped. Any is a "
                                      "fault of the scheduler.")),
      unreadable_(registry.counters("jogak_unreadable_objects_total",
                                    "Objects that could not be understood and count for nothing.",
                                    {"kind"})) {
  for (const std::string& name : profiles) profile(name);
  for (std::size_t i = 0; i < kQueueKinds; ++i) {
    pending_by_queue_[i] = &pending_.with({std::string(kQueueNames[i])});
  }
  for (std::size_t i = 0; i < kErrcs; ++i) {
    bind_errors_by_code_[i] = &bind_errors_.with({std::string(kErrcNames[i])});
  }
}

SchedulerMetrics::Profile& SchedulerMetrics::profile(std::string_view name) {
  if (const auto at = profiles_.find(name); at != profiles_.end()) return at->second;
  Profile& made = profiles_[std::string(name)];
  for (std::size_t i = 0; i < kResults; ++i) {
    const LabelValues labels = {std::string(kResultNames[i]), std::string(name)};
    made.attempts[i] = &attempts_.with(labels);
    made.durations[i] = &durations_.with(labels);
  }
  return made;
}

void SchedulerMetrics::attempted(const Attempt& attempt) {
  Profile& counts = profile(attempt.profile);
  const auto result = static_cast<std::size_t>(attempt.result);
  counts.attempts[result]->add();
  counts.durations[result]->observe(seconds(attempt.whole));
  algorithm_.observe(seconds(attempt.decide));
  decisions_.observe(seconds(attempt.decide));
  const bool is_fault = attempt.result == AttemptResult::Error;
  if (is_fault || log_.is_on(LogLevel::Debug)) tell(attempt);
}

void SchedulerMetrics::tell(const Attempt& attempt) {
  const std::initializer_list<LogField> fields = {{"pod", attempt.pod},
                                                  {"result", result_name(attempt.result)},
                                                  {"detail", attempt.detail},
                                                  {"decide_us", attempt.decide},
                                                  {"whole_us", attempt.whole}};
  if (attempt.result == AttemptResult::Error) {
    const TimeUs now = log_.now();
    if (now - minute_begin_ >= 60 * kSecondInUs) {
      minute_begin_ = now;
      warnings_ = 0;
    }
    if (++warnings_ <= kWarningsMax) return log_.warn("a try failed", fields);
  }
  log_.debug("tried", fields);
}

void SchedulerMetrics::bound(const Bound& bound) {
  pod_attempts_.observe(bound.attempts);
  const int slot = std::clamp(bound.attempts, 0, kAttemptsMax);
  Histogram*& sli = sli_by_attempts_[static_cast<std::size_t>(slot)];
  if (sli == nullptr) {
    sli = &sli_.with({slot == kAttemptsMax ? std::to_string(slot) + "+" : std::to_string(slot)});
  }
  sli->observe(seconds(bound.since_seen));
}

void SchedulerMetrics::bind_failed(Errc code) {
  bind_errors_by_code_[static_cast<std::size_t>(code)]->add();
}

void SchedulerMetrics::binds_in_flight(std::size_t count) {
  in_flight_.set(static_cast<double>(count));
}

Gauge& SchedulerMetrics::refused_gauge(std::string_view name, std::string_view plugin) {
  Profile& counts = profile(name);
  if (const auto at = counts.refused.find(plugin); at != counts.refused.end()) return *at->second;
  Gauge& made = refused_.with({std::string(plugin), std::string(name)});
  counts.refused.emplace(plugin, &made);
  return made;
}

void SchedulerMetrics::refused(std::string_view profile,
                               std::span<const std::string_view> plugins) {
  for (const std::string_view plugin : plugins) refused_gauge(profile, plugin).add(1);
}

void SchedulerMetrics::refused_no_more(std::string_view profile,
                                       std::span<const std::string_view> plugins) {
  for (const std::string_view plugin : plugins) refused_gauge(profile, plugin).add(-1);
}

void SchedulerMetrics::preemption_tried(std::size_t victims) {
  preemptions_.add();
  if (victims > 0) victims_.observe(static_cast<double>(victims));
}

void SchedulerMetrics::queued(QueueKind queue, std::string_view event, std::size_t pods) {
  if (pods == 0) return;
  auto& by_event = incoming_by_event_[static_cast<std::size_t>(queue)];
  auto at = by_event.find(event);
  if (at == by_event.end()) {
    Counter& made = incoming_.with({std::string(queue_name(queue)), std::string(event)});
    at = by_event.emplace(event, &made).first;
  }
  at->second->add(pods);
}

void SchedulerMetrics::queue_lengths(const std::array<std::size_t, kQueueKinds>& lengths) {
  for (std::size_t i = 0; i < kQueueKinds; ++i) {
    pending_by_queue_[i]->set(static_cast<double>(lengths[i]));
  }
}

void SchedulerMetrics::plan_invalid(std::string_view pod, std::string_view why) {
  invalid_plans_.add();
  log_.error("a plan breaks a rule and was stopped", {{"pod", pod}, {"why", why}});
}

void SchedulerMetrics::unreadable(std::string_view kind, std::string_view object,
                                  std::string_view why) {
  unreadable_.with({std::string(kind)}).add();
  log_.warn("an object could not be read", {{"kind", kind}, {"object", object}, {"why", why}});
}

}  // namespace jogak::live
