// SPDX-License-Identifier: Apache-2.0
//
// The cron job controller (pkg/controller/cronjob of Kubernetes is the model): a job at every
// moment of the schedule, the old ones removed.
#include <algorithm>

#include <fmt/core.h>

#include "apiserver/controllers/cron_schedule.h"
#include "apiserver/controllers/events.h"
#include "apiserver/controllers/job_parts.h"
#include "apiserver/controllers/pod_control.h"
#include "apiserver/controllers/work_queue.h"
#include "apiserver/controllers/workloads.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kTable = "cronjobs.batch";
constexpr std::string_view kJobs = "jobs.batch";
constexpr std::string_view kComponent = "cronjob-controller";
constexpr std::string_view kScheduled = "batch.kubernetes.io/cronjob-scheduled-timestamp";
constexpr TimeUs kSlack = 100 * kMsInUs;  // a look comes just after the moment, not before
constexpr std::int64_t kManyMissed = 100;

std::string_view end_of(const Doc& job) {
  for (const std::string_view type : {"Complete", "Failed"}) {
    if (api::condition_is(job, type, "True")) return type;
  }
  return "";
}

TimeUs time_of(const Doc& text) { return api::parse_time(text.as_string()).value_or(0); }

// The last moment of the schedule up to now, counted from the last that was used.
struct Due {
  TimeUs earliest = 0;
  std::optional<TimeUs> time;
  std::int64_t missed = 0;
};

Due due_time(const Doc& cron_job, const CronSchedule& schedule, TimeUs now, bool with_deadline) {
  Due due;
  const Doc& last = cron_job.get("status", "lastScheduleTime");
  due.earliest = time_of(last.is_null() ? api::meta(cron_job)["creationTimestamp"] : last);
  const Doc& deadline = cron_job.get("spec", "startingDeadlineSeconds");
  if (with_deadline && !deadline.is_null()) {
    due.earliest = std::max(due.earliest, now - deadline.as_int() * kSecondInUs);
  }
  const auto first = schedule.next(due.earliest);
  if (!first.has_value() || *first > now) return due;
  const auto second = schedule.next(*first);
  if (!second.has_value() || *second > now) {
    due.time = first;
    return due;
  }
  // after a long sleep: near the end by the first interval, then step by step
  const TimeUs interval = *second - *first;
  due.missed = (now - *first) / interval + 1;
  auto time = schedule.next(*first + (due.missed - 2) * interval);
  while (time.has_value() && *time <= now) {
    due.time = time;
    time = schedule.next(*time);
  }
  return due;
}

class CronJobs : public Controller {
 public:
  explicit CronJobs(const ControllerContext& context)
      : api_(context.make_api("kube-controller-manager")),
        queue_(api_->loop(), [this](const std::string& key) { return sync(key); }) {
    following_ = api_->follow(
        kTable, [this](const api::Api::Change& change) { queue_.add(key_of(*change.object)); });
    jobs_handle_ = api_->follow(kJobs, [this](const api::Api::Change& change) {
      const Doc& owner = api::controller_of(*change.object);
      if (owner["kind"].as_string() != "CronJob") return;
      const std::string key = key_of(api::namespace_of(*change.object), owner["name"].as_string());
      auto& names = jobs_[key];
      if (change.type == store::EventType::Deleted) {
        names.erase(api::name_of(*change.object));
        if (names.empty()) jobs_.erase(key);
      } else {
        names.insert(api::name_of(*change.object));
      }
      queue_.add(key);
    });
  }

 private:
  Outcome sync(const std::string& key) {
    const auto [ns, name] = split_key(key);
    const auto before = api_->get(kTable, ns, name);
    if (!before.has_value()) return Outcome::Done;
    Doc cron_job = *before;
    const std::vector<Doc> jobs = jobs_of(key, cron_job);
    settle(cron_job, jobs);
    Outcome outcome = Outcome::Done;
    if (!api::is_deleting(cron_job)) {
      outcome = start(key, cron_job);
      drop_history(cron_job, jobs);
    }
    if (cron_job["status"] != (*before)["status"] &&
        !api_->update(kTable, std::move(cron_job), "status").has_value()) {
      return Outcome::Retry;
    }
    return outcome;
  }

  std::vector<Doc> jobs_of(const std::string& key, const Doc& cron_job) const {
    std::vector<Doc> jobs;
    const auto it = jobs_.find(key);
    if (it == jobs_.end()) return jobs;
    for (const std::string& name : it->second) {
      auto job = api_->get(kJobs, api::namespace_of(cron_job), name);
      const bool is_mine =
          job.has_value() && api::controller_of(*job)["uid"].as_string() == api::uid_of(cron_job);
      if (is_mine) jobs.push_back(*std::move(job));
    }
    return jobs;
  }

  void say(const Doc& cron_job, std::string_view type, std::string_view reason,
           const std::string& message) {
    write_event(*api_, kComponent, cron_job, type, reason, message);
  }

  static bool is_active(const Doc& cron_job, std::string_view member, const std::string& value) {
    return std::ranges::any_of(cron_job.get("status", "active").items(),
                               [&](const Doc& job) { return job[member].as_string() == value; });
  }

  static void drop_active(Doc& cron_job, const std::string& uid) {
    Doc kept = Doc::array();
    for (const Doc& job : cron_job.get("status", "active").items()) {
      if (job["uid"].as_string() != uid) kept.push(job);
    }
    if (kept.empty()) {
      cron_job.at("status").erase("active");
    } else {
      cron_job.at("status").set("active", std::move(kept));
    }
  }

  // Takes finished and missing jobs off the list of active ones.
  void settle(Doc& cron_job, const std::vector<Doc>& jobs) {
    std::set<std::string, std::less<>> known;
    for (const Doc& job : jobs) {
      const std::string& uid = api::uid_of(job);
      known.insert(uid);
      const std::string_view end = end_of(job);
      const bool was_active = is_active(cron_job, "uid", uid);
      if (end.empty()) {
        if (!was_active) {
          say(cron_job, "Warning", "UnexpectedJob",
              "Saw a job that the controller did not create or forgot: " + api::name_of(job));
        }
        continue;
      }
      if (was_active) {
        drop_active(cron_job, uid);
        say(cron_job, "Normal", "SawCompletedJob",
            fmt::format("Saw completed job: {}, condition: {}", api::name_of(job), end));
      }
      const Doc& completed = job.get("status", "completionTime");
      const Doc& latest = cron_job.get("status", "lastSuccessfulTime");
      if (end == "Complete" && time_of(completed) > time_of(latest)) {
        cron_job.at("status").set("lastSuccessfulTime", completed);
      }
    }
    const Doc active = cron_job.get("status", "active");
    for (const Doc& job : active.items()) {
      const std::string& uid = job["uid"].as_string();
      if (known.contains(uid)) continue;
      const auto there = api_->get(kJobs, job["namespace"].as_string(), job["name"].as_string());
      if (there.has_value() && api::uid_of(*there) == uid) continue;
      say(cron_job, "Normal", "MissingJob", "Active job went missing: " + job["name"].as_string());
      drop_active(cron_job, uid);
    }
  }

  Outcome start(const std::string& key, Doc& cron_job) {
    const Doc& spec = cron_job["spec"];
    if (spec["suspend"].as_bool()) return Outcome::Done;
    const std::string& zone = spec["timeZone"].as_string();
    if (TimeZone::find(zone) == nullptr) {
      say(cron_job, "Warning", "UnknownTimeZone",
          fmt::format("invalid timeZone: \"{}\": unknown time zone {}", zone, zone));
      return Outcome::Done;
    }
    const auto schedule = CronSchedule::parse(spec["schedule"].as_string(), zone);
    if (!schedule.has_value()) {
      say(cron_job, "Warning", "UnparseableSchedule",
          fmt::format("unparseable schedule: \"{}\"", spec["schedule"].as_string()));
      return Outcome::Done;
    }
    const TimeUs now = api_->now();
    const Due due = due_time(cron_job, *schedule, now, true);
    if (due.missed > kManyMissed) {
      say(cron_job, "Warning", "TooManyMissedTimes",
          "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check "
          "clock skew");
    }
    Outcome outcome = Outcome::Done;
    if (due.time.has_value() && may_start(cron_job, *due.time)) {
      outcome = start_job(cron_job, *schedule, *due.time);
    }
    const Due next = due_time(cron_job, *schedule, now, false);
    const TimeUs from = next.time.value_or(next.missed == 0 ? next.earliest : now);
    if (const auto when = schedule->next(from)) queue_.add_at(*when + kSlack, key);
    return outcome;
  }

  static std::string job_name(const Doc& cron_job, TimeUs time) {
    return fmt::format("{}-{}", api::name_of(cron_job), time / (60 * kSecondInUs));
  }

  bool may_start(const Doc& cron_job, TimeUs time) {
    const Doc& spec = cron_job["spec"];
    const Doc& deadline = spec["startingDeadlineSeconds"];
    if (!deadline.is_null() && time + deadline.as_int() * kSecondInUs < api_->now()) {
      say(cron_job, "Warning", "MissSchedule",
          "Missed scheduled time to start a job: " + api::format_time(time));
      return false;
    }
    if (is_active(cron_job, "name", job_name(cron_job, time))) return false;
    if (time_of(cron_job.get("status", "lastScheduleTime")) == time) return false;
    const bool is_busy = !cron_job.get("status", "active").empty();
    if (is_busy && spec["concurrencyPolicy"].as_string() == "Forbid") {
      say(cron_job, "Normal", "JobAlreadyActive",
          "Not starting job because prior execution is running and concurrency policy is Forbid");
      return false;
    }
    return true;
  }

  Outcome start_job(Doc& cron_job, const CronSchedule& schedule, TimeUs time) {
    if (cron_job.get("spec", "concurrencyPolicy").as_string() == "Replace") {
      const Doc active = cron_job.get("status", "active");
      for (const Doc& job : active.items()) {
        if (!delete_job(cron_job, job["name"].as_string(), job["uid"].as_string())) {
          return Outcome::Retry;
        }
      }
    }
    const std::string& ns = api::namespace_of(cron_job);
    const std::string name = job_name(cron_job, time);
    auto job = api_->create(kJobs, ns, job_for(cron_job, name, schedule.zone().format(time)));
    if (job.has_value()) {
      say(cron_job, "Normal", "SuccessfulCreate", "Created job " + name);
    } else if (job.error().code == 409) {
      job = api_->get(kJobs, ns, name);  // made before, and then forgotten
      if (!job.has_value()) return Outcome::Retry;
      const bool is_mine = api::controller_of(*job)["uid"].as_string() == api::uid_of(cron_job);
      if (!is_mine || is_active(cron_job, "uid", api::uid_of(*job))) return Outcome::Done;
    } else {
      const auto& causes = job.error().causes;
      const bool ns_ends = !causes.empty() && causes[0].reason == "NamespaceTerminating";
      if (!ns_ends) {
        say(cron_job, "Warning", "FailedCreate", "Error creating job: " + job.error().message);
      }
      return Outcome::Retry;
    }
    cron_job.at("status", "active")
        .push(Doc::object()
                  .set("kind", "Job")
                  .set("namespace", ns)
                  .set("name", name)
                  .set("uid", api::uid_of(*job))
                  .set("apiVersion", "batch/v1")
                  .set("resourceVersion", api::meta(*job)["resourceVersion"]));
    cron_job.at("status").set("lastScheduleTime", api::format_time(time));
    return Outcome::Done;
  }

  static Doc job_for(const Doc& cron_job, const std::string& name, const std::string& time) {
    const Doc& job_template = cron_job.get("spec", "jobTemplate");
    Doc job = Doc::object();
    job.set("kind", "Job").set("apiVersion", "batch/v1");
    Doc& metadata = job.at("metadata");
    metadata.set("name", name).set("namespace", api::namespace_of(cron_job));
    const Doc& labels = job_template["metadata"]["labels"];
    if (!labels.empty()) metadata.set("labels", labels);
    metadata.set("annotations", job_template["metadata"]["annotations"]);
    metadata.at("annotations").set(kScheduled, time);
    metadata.set("ownerReferences", Doc::array().push(controller_reference(cron_job)));
    job.set("spec", job_template["spec"]);
    return job;
  }

  bool delete_job(Doc& cron_job, const std::string& name, const std::string& uid) {
    const auto removed = api_->remove(kJobs, api::namespace_of(cron_job), name,
                                      Doc::object().set("propagationPolicy", "Background"));
    if (!removed.has_value() && removed.error().code != 404) {
      say(cron_job, "Warning", "FailedDelete", "Deleted job: " + removed.error().message);
      return false;
    }
    drop_active(cron_job, uid);
    say(cron_job, "Normal", "SuccessfulDelete", "Deleted job " + name);
    return true;
  }

  void drop_history(Doc& cron_job, const std::vector<Doc>& jobs) {
    const auto keep_only = [&](std::string_view end, const Doc& limit) {
      if (limit.is_null()) return;
      std::vector<const Doc*> finished;
      for (const Doc& job : jobs) {
        if (end_of(job) == end && !api::is_deleting(job)) finished.push_back(&job);
      }
      std::ranges::sort(finished, {}, [](const Doc* job) {
        const Doc& started = job->get("status", "startTime");
        return std::tuple(started.is_null(), started.as_string(), api::name_of(*job));
      });
      const auto surplus = static_cast<std::int64_t>(finished.size()) - limit.as_int();
      for (std::int64_t i = 0; i < surplus; ++i) {
        const Doc& job = *finished[static_cast<std::size_t>(i)];
        delete_job(cron_job, api::name_of(job), api::uid_of(job));
      }
    };
    keep_only("Complete", cron_job.get("spec", "successfulJobsHistoryLimit"));
    keep_only("Failed", cron_job.get("spec", "failedJobsHistoryLimit"));
  }

  std::unique_ptr<api::Api> api_;
  WorkQueue queue_;
  std::map<std::string, std::set<std::string, std::less<>>, std::less<>> jobs_;  // by cron job
  std::shared_ptr<void> following_, jobs_handle_;
};

}  // namespace

std::unique_ptr<Controller> cron_job_controller(const ControllerContext& context) {
  return std::make_unique<CronJobs>(context);
}

}  // namespace jogak::controllers
