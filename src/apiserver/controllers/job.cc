// SPDX-License-Identifier: Apache-2.0
//
// The job controller (pkg/controller/job of Kubernetes is the model). Finished pods are counted in
// two steps, so that none is counted twice or lost: their uids go into the status, their tracking
// finalizers go, the counts grow.
#include <algorithm>

#include "apiserver/controllers/events.h"
#include "apiserver/controllers/job_parts.h"
#include "apiserver/controllers/pod_control.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/controllers/workloads.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kTable = "jobs.batch";
constexpr std::string_view kComponent = "job-controller";
constexpr std::int64_t kPerTurn = 25;

class Jobs : public Controller {
 public:
  explicit Jobs(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        pods_(context.pods),
        queue_(api_->loop(), [this](const std::string& key) { return sync(key); }),
        control_(*api_, context.pods, std::string(kComponent), "Job",
                 [this](const std::string& key) { queue_.add(key); }) {
    following_ = api_->follow(kTable, [this](const api::Api::Change& change) {
      queue_.add(control_.note_owner(change));
    });
  }

 private:
  struct Pods {
    std::vector<PodViewPtr> active, terminating, succeeded, failed;
    std::int64_t ready = 0;
    TimeUs last_failure = 0;
  };

  Outcome sync(const std::string& key) {
    const auto [ns, name] = split_key(key);
    auto job = api_->get(kTable, ns, name);
    if (!job.has_value()) return release_orphans(ns, name);
    const auto selector = api::LabelSelector::from_object(job->get("spec", "selector"));
    const Pods pods = sort_pods(*job, control_.claim(*job, selector));
    if (is_job_finished(*job)) return after_end(key, *job, pods);
    const Doc before = *job;
    if (!count(*job, pods)) return Outcome::Retry;
    if (api::is_deleting(*job)) return write(before, *std::move(job));
    start_or_suspend(*job);
    decide_end(key, *job, pods);
    const Outcome outcome = manage(key, *job, pods);
    set_counts(*job, pods);
    const Outcome written = write(before, *std::move(job));
    return outcome == Outcome::Retry ? outcome : written;
  }

  Outcome write(const Doc& before, Doc job) {
    if (job["status"] == before["status"]) return Outcome::Done;
    return api_->update(kTable, std::move(job), "status").has_value() ? Outcome::Done
                                                                      : Outcome::Retry;
  }

  // Pods that wait for a controller that is gone may go.
  Outcome release_orphans(const std::string& ns, const std::string& name) {
    for (const PodViewPtr& pod : pods_.in_namespace(ns)) {
      if (pod->owner_kind == "Job" && pod->owner_name == name && pod->has_finalizers) {
        drop_tracking(*pod);
      }
    }
    return Outcome::Done;
  }

  bool drop_tracking(const PodView& pod) {
    Doc patch = Doc::object();
    patch.at("metadata").set("uid", pod.uid);
    patch.at("metadata").set("$deleteFromPrimitiveList/finalizers", Doc::array().push(kTracking));
    const auto written = api_->patch("pods", pod.ns, pod.name, api::PatchType::Strategic, patch);
    return written.has_value() || written.error().code == 404;
  }

  static Pods sort_pods(const Doc& job, const std::vector<PodViewPtr>& all) {
    Pods pods;
    const bool only_failed = job.get("spec", "podReplacementPolicy").as_string() == "Failed";
    for (const PodViewPtr& pod : all) {
      if (pod->phase == PodPhase::Succeeded) {
        pods.succeeded.push_back(pod);
      } else if (pod->phase == PodPhase::Failed) {
        pods.failed.push_back(pod);
      } else if (pod->is_deleting) {
        pods.terminating.push_back(pod);
        if (!only_failed) pods.failed.push_back(pod);  // it is replaced at once
      } else {
        pods.active.push_back(pod);
        if (pod->is_ready) ++pods.ready;
      }
    }
    return pods;
  }

  static bool lists(const Doc& list, std::string_view uid) {
    return std::ranges::any_of(list.items(),
                               [&](const Doc& item) { return item.as_string() == uid; });
  }

  // Moves finished pods into the counts; false when a write failed.
  bool count(Doc& job, const Pods& pods) {
    Doc& uncounted = job.at("status", "uncountedTerminatedPods");
    if (uncounted.is_null()) uncounted = Doc::object();
    bool has_new = false;
    const auto note = [&](std::string_view list, const std::vector<PodViewPtr>& finished) {
      for (const PodViewPtr& pod : finished) {
        if (!pod->has_finalizers || lists(uncounted[list], pod->uid)) continue;
        uncounted.at(list).push(pod->uid);
        has_new = true;
      }
    };
    note("succeeded", pods.succeeded);
    note("failed", pods.failed);
    if (has_new) {
      auto written = api_->update(kTable, job, "status");
      if (!written.has_value()) return false;
      job = *std::move(written);
    }
    std::set<std::int64_t> indexes =
        parse_indexes(job.get("status", "completedIndexes").as_string());
    const auto settle = [&](std::string_view list, std::string_view counter,
                            const std::vector<PodViewPtr>& finished) {
      for (const PodViewPtr& pod : finished) {
        if (!pod->has_finalizers) continue;
        if (!drop_tracking(*pod)) return false;
      }
      Doc& status = job.at("status");
      const Doc done = status["uncountedTerminatedPods"][list];
      if (done.empty()) return true;
      status.set(counter, status[counter].as_int() + static_cast<std::int64_t>(done.size()));
      for (const PodViewPtr& pod : finished) {
        const std::string_view index = pod->label(kCompletionIndex);
        if (list == "succeeded" && !index.empty() && lists(done, pod->uid)) {
          indexes.insert(std::stoll(std::string(index)));
        }
      }
      status.at("uncountedTerminatedPods").erase(list);
      return true;
    };
    if (!settle("succeeded", "succeeded", pods.succeeded)) return false;
    if (!settle("failed", "failed", pods.failed)) return false;
    if (is_indexed(job)) {
      job.at("status").set("succeeded", static_cast<std::int64_t>(indexes.size()));
      if (indexes.empty()) {
        job.at("status").erase("succeeded");
      } else {
        job.at("status").set("completedIndexes", indexes_text(indexes));
      }
    }
    return true;
  }

  void start_or_suspend(Doc& job) {
    const TimeUs now = api_->now();
    const bool is_suspended = job.get("spec", "suspend").as_bool();
    if (is_suspended) {
      if (!has_job_condition(job, "Suspended")) {
        set_job_condition(job, "Suspended", "True", "JobSuspended", "Job suspended", now);
        write_event(*api_, kComponent, job, "Normal", "Suspended", "Job suspended");
      }
      job.at("status").erase("startTime");
      return;
    }
    if (has_job_condition(job, "Suspended")) {
      set_job_condition(job, "Suspended", "False", "JobResumed", "Job resumed", now);
      write_event(*api_, kComponent, job, "Normal", "Resumed", "Job resumed");
    }
    job.at("status").set_default("startTime", api::format_time(now));
  }

  // Whether it has succeeded or failed; the pods that still run are ended first.
  void decide_end(const std::string& key, Doc& job, const Pods& pods) {
    const TimeUs now = api_->now();
    const Doc& spec = job["spec"];
    const std::int64_t succeeded = job.get("status", "succeeded").as_int();
    const std::int64_t failed = job.get("status", "failed").as_int();
    if (has_job_condition(job, "SuccessCriteriaMet") || has_job_condition(job, "FailureTarget")) {
      return;
    }
    std::int64_t restarts = 0;
    for (const PodViewPtr& pod : pods.active) restarts += pod->restarts;
    const std::int64_t limit = spec["backoffLimit"].as_int(6);
    const bool counts_restarts =
        spec.get("template", "spec", "restartPolicy").as_string() == "OnFailure";
    const bool is_exhausted =
        failed > limit || (counts_restarts && restarts > 0 && restarts + failed >= limit);
    if (is_exhausted) {
      set_job_condition(job, "FailureTarget", "True", "BackoffLimitExceeded",
                        "Job has reached the specified backoff limit", now);
      return;
    }
    if (const Doc* deadline = spec.find("activeDeadlineSeconds")) {
      const auto start = api::parse_time(job.get("status", "startTime").as_string());
      if (start.has_value()) {
        const TimeUs end = *start + deadline->as_int() * kSecondInUs;
        if (end <= now) {
          set_job_condition(job, "FailureTarget", "True", "DeadlineExceeded",
                            "Job was active longer than specified deadline", now);
          return;
        }
        queue_.add_at(end, key);
      }
    }
    const Doc* completions = spec.find("completions");
    const bool is_complete = completions != nullptr
                                 ? succeeded >= completions->as_int()
                                 : succeeded > 0 && pods.active.empty() && pods.terminating.empty();
    if (is_complete) {
      set_job_condition(job, "SuccessCriteriaMet", "True", "CompletionsReached",
                        "Reached expected number of succeeded pods", now);
    }
  }

  Outcome manage(const std::string& key, Doc& job, const Pods& pods) {
    const bool has_failed = has_job_condition(job, "FailureTarget");
    const bool has_succeeded = has_job_condition(job, "SuccessCriteriaMet");
    if (has_failed || has_succeeded) {
      Outcome outcome = Outcome::Done;
      for (const PodViewPtr& pod : pods.active) {
        if (!control_.remove(key, job, *pod).has_value()) outcome = Outcome::Retry;
      }
      if (pods.active.empty() && pods.terminating.empty()) finish(job, has_succeeded);
      return outcome;
    }
    if (!control_.is_settled(key)) return Outcome::Done;
    const auto active = static_cast<std::int64_t>(pods.active.size());
    const std::int64_t wanted = wanted_active(job, job.get("status", "succeeded").as_int(), active);
    if (active > wanted) return remove_surplus(key, job, pods, active - wanted);
    const TimeUs next = next_attempt(job, pods);
    if (active < wanted && next > api_->now()) {
      queue_.add_at(next, key);
      return Outcome::Done;
    }
    return make_pods(key, job, pods, wanted - active);
  }

  // After failures the next pod waits, longer each time.
  TimeUs next_attempt(const Doc& job, const Pods& pods) const {
    std::vector<TimeUs> failures;
    TimeUs last_success = 0;
    for (const PodViewPtr& pod : pods.succeeded) last_success = std::max(last_success, pod->ended);
    for (const PodViewPtr& pod : pods.failed) {
      if (pod->phase == PodPhase::Failed) failures.push_back(pod->ended);
    }
    const auto in_a_row =
        std::ranges::count_if(failures, [&](TimeUs ended) { return ended > last_success; });
    if (in_a_row == 0 || job.get("status", "failed").as_int() == 0) return 0;
    return *std::ranges::max_element(failures) + failure_backoff(in_a_row);
  }

  Outcome remove_surplus(const std::string& key, const Doc& job, const Pods& pods,
                         std::int64_t surplus) {
    std::vector<PodViewPtr> active = pods.active;
    std::ranges::sort(
        active, [](const PodViewPtr& a, const PodViewPtr& b) { return goes_first(*a, *b, {}); });
    for (std::int64_t i = 0; i < surplus; ++i) {
      const PodView& pod = *active[static_cast<std::size_t>(i)];
      if (!drop_tracking(pod)) return Outcome::Retry;  // it is not to be counted as a failure
      if (!control_.remove(key, job, pod).has_value()) return Outcome::Retry;
    }
    return Outcome::Done;
  }

  Outcome make_pods(const std::string& key, const Doc& job, const Pods& pods,
                    std::int64_t missing) {
    std::set<std::int64_t> taken;
    if (is_indexed(job)) {
      taken = parse_indexes(job.get("status", "completedIndexes").as_string());
      for (const PodViewPtr& pod : pods.active) {
        const std::string_view index = pod->label(kCompletionIndex);
        if (!index.empty()) taken.insert(std::stoll(std::string(index)));
      }
    }
    std::int64_t index = 0;
    for (std::int64_t i = 0; i < std::min(missing, kPerTurn); ++i) {
      Doc pod = pod_from_template(job.get("spec", "template"), job);
      pod.at("metadata").at("finalizers").push(kTracking);
      if (is_indexed(job)) {
        while (taken.contains(index)) ++index;
        set_index(pod, api::name_of(job), index);
        taken.insert(index);
      }
      if (!control_.create(key, job, std::move(pod)).has_value()) return Outcome::Retry;
    }
    if (missing > kPerTurn) queue_.add(key);
    return Outcome::Done;
  }

  void finish(Doc& job, bool has_succeeded) {
    const TimeUs now = api_->now();
    if (has_succeeded) {
      set_job_condition(job, "Complete", "True", "CompletionsReached",
                        "Reached expected number of succeeded pods", now);
      job.at("status").set_default("completionTime", api::format_time(now));
      write_event(*api_, kComponent, job, "Normal", "Completed", "Job completed");
      return;
    }
    const Doc target = api::condition_of(job, "FailureTarget");
    set_job_condition(job, "Failed", "True", target["reason"].as_string(),
                      target["message"].as_string(), now);
    write_event(*api_, kComponent, job, "Warning", target["reason"].as_string(),
                target["message"].as_string());
  }

  void set_counts(Doc& job, const Pods& pods) {
    Doc& status = job.at("status");
    auto active = static_cast<std::int64_t>(pods.active.size());
    if (is_job_finished(job)) active = 0;
    const std::int64_t wanted = wanted_active(job, status["succeeded"].as_int(), active);
    // what was made in this turn is active already
    if (!control_.is_settled(key_of(job)) && !is_job_finished(job)) {
      active = std::max(active, wanted);
    }
    if (active == 0) {
      status.erase("active");
    } else {
      status.set("active", active);
    }
    status.set("ready", pods.ready);
    status.set("terminating", static_cast<std::int64_t>(pods.terminating.size()));
  }

  Outcome after_end(const std::string& key, Doc& job, const Pods& pods) {
    const Doc before = job;
    if (!count(job, pods)) return Outcome::Retry;
    for (const PodViewPtr& pod : pods.active) {
      if (!control_.remove(key, job, *pod).has_value()) return Outcome::Retry;
    }
    if (write(before, job) == Outcome::Retry) return Outcome::Retry;
    const Doc* ttl = job["spec"].find("ttlSecondsAfterFinished");
    if (ttl == nullptr) return Outcome::Done;
    TimeUs end = 0;
    for (const std::string_view type : {"Complete", "Failed"}) {
      const Doc& condition = api::condition_of(job, type);
      if (condition["status"].as_string() == "True") {
        end = api::parse_time(condition["lastTransitionTime"].as_string()).value_or(0);
      }
    }
    const TimeUs due = end + ttl->as_int() * kSecondInUs;
    if (due > api_->now()) {
      queue_.add_at(due, key);
      return Outcome::Done;
    }
    const auto removed = api_->remove(kTable, api::namespace_of(job), api::name_of(job),
                                      Doc::object().set("propagationPolicy", "Foreground"));
    return removed.has_value() || removed.error().code == 404 ? Outcome::Done : Outcome::Retry;
  }

  std::unique_ptr<api::Api> api_;
  PodIndex& pods_;
  WorkQueue queue_;
  PodControl control_;
  std::shared_ptr<void> following_;
};

}  // namespace

std::unique_ptr<Controller> job_controller(const ControllerContext& context) {
  return std::make_unique<Jobs>(context);
}

}  // namespace jogak::controllers
