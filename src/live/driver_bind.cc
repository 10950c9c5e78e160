// SPDX-License-Identifier: Apache-2.0
//
// From a decision to a pod on its node: claims first, then the binding, and what to do when the
// answer is no, late, or never comes. Between the two the pod's room counts as taken.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "core/filter/volume_binding.h"
#include "import/export.h"
#include "import/observe.h"
#include "live/scheduler_driver.h"

namespace jogak::live {

namespace {

constexpr TimeUs kFirstRepeat = 100 * kMsInUs;
constexpr TimeUs kLongestRepeat = 10 * kSecondInUs;
// A request that was given up may still be carried out that long (the limit of an API server for a
// request, and some for the way).
constexpr TimeUs kClaimRepeat = 30 * kSecondInUs;
constexpr TimeUs kLateWriteMax = 70 * kSecondInUs;

TimeUs repeat_after(int tries) {
  return std::min(kLongestRepeat, kFirstRepeat << std::clamp(tries - 1, 0, 10));
}

std::string claim_key(const ClaimPlan& plan) { return plan.ns + "/" + plan.name; }

}  // namespace

void SchedulerDriver::start_binding(const std::string& key, Job& job, core::PodId pod,
                                    const core::Decision& decision) {
  job.node = cluster_.text(cluster_.node(decision.node).name);
  job.gpu_holds.clear();
  if (!decision.holds.empty()) {
    job.gpu_holds = importer::holds_text(decision.holds, cluster_.shape_of(pod).spec.gpu.kind);
  }
  job.tries = 0;
  job.is_seen_bound = false;
  job.is_noted = false;
  count_refusal(job, {});
  const bool has_claims = plan_claims(job, pod, decision.node);
  engine_of(job).scheduler->accept(decision);
  pod_placed();
  if (has_claims) return write_claims(key, job);
  send_bind(key, job);
}

// ---- claims that wait for their first consumer ----------------------------------------------

bool SchedulerDriver::plan_claims(Job& job, core::PodId pod, core::NodeId node) {
  job.claims.clear();
  if (!cluster_.shape_of(pod).has_volumes) return false;
  core::VolumeBindingFilter filter;
  const core::PodView view = core::PodView::of(cluster_, pod);
  if (!filter.build(cluster_, view).verdict.fits()) return false;
  for (const auto& plan : filter.plan(cluster_, node)) {
    job.claims.push_back({.plan = {.ns = plan.claim->ns,
                                   .name = plan.claim->name,
                                   .uid = plan.claim->uid,
                                   .node = job.node,
                                   .volume = plan.volume == nullptr ? "" : plan.volume->name}});
  }
  return !job.claims.empty();
}

void SchedulerDriver::write_claims(const std::string& key, Job& job) {
  job.stage = Stage::Claiming;
  // A claim that names the node already waits for whoever provisions it: nothing to write.
  std::vector<ClaimPlan> to_write;
  for (const Claim& claim : job.claims) {
    const auto pvc = cluster_.objects().pvcs.find(claim_key(claim.plan));
    const bool is_told = claim.plan.volume.empty() && pvc != cluster_.objects().pvcs.end() &&
                         pvc->second.selected_node == claim.plan.node;
    if (!is_told) to_write.push_back(claim.plan);
  }
  for (const Claim& claim : job.claims) {
    assumed_claims_[claim_key(claim.plan)] = key;
    assume_claims("PersistentVolumeClaim", claim.plan.ns, claim.plan.name);
    if (claim.plan.volume.empty()) continue;
    assumed_volumes_[claim.plan.volume] = key;
    assume_claims("PersistentVolume", "", claim.plan.volume);
  }
  api_.loop().cancel(job.timer);
  job.timer = api_.loop().after(
      options_.volume_bind_timeout, guarded([this, key, uid = job.ref.uid] {
        Job* const late = job_of(key, uid);
        if (late == nullptr || late->stage != Stage::Claiming) return;
        late->timer = 0;
        not_bound(key, *late, Errc::Timeout, "the volumes were not bound in time");
      }));
  repeat_claims(key, job.ref.uid);
  send_claims(key, job, to_write);
}

void SchedulerDriver::send_claims(const std::string& key, Job& job,
                                  const std::vector<ClaimPlan>& plans) {
  job.claims_open = plans.size();
  // Answers may come before the call returns, and end the job.
  const std::string uid = job.ref.uid;
  for (const ClaimPlan& plan : plans) {
    api_.plan_claim(plan, guarded([this, key, uid](const Result<void>& outcome) {
                      claim_written(key, uid, outcome);
                    }));
  }
}

// A claim whose node was written and taken back while the watch was silent looks as it did before:
// it is told again, which changes nothing where it was not.
void SchedulerDriver::repeat_claims(const std::string& key, const std::string& uid) {
  api_.loop().after(kClaimRepeat, guarded([this, key, uid] {
                      Job* const job = job_of(key, uid);
                      if (job == nullptr || job->stage != Stage::Claiming) return;
                      repeat_claims(key, uid);
                      if (job->claims_open > 0) return;
                      std::vector<ClaimPlan> to_write;
                      for (const Claim& claim : job->claims) {
                        const bool is_told =
                            claim.plan.volume.empty() ? claim.is_node_shown : claim.is_volume_shown;
                        if (!is_told) to_write.push_back(claim.plan);
                      }
                      send_claims(key, *job, to_write);
                    }));
}

void SchedulerDriver::claim_written(const std::string& key, const std::string& uid,
                                    const Result<void>& outcome) {
  Job* const job = job_of(key, uid);
  if (job == nullptr || job->stage != Stage::Claiming) return;
  if (!outcome.has_value()) {
    return not_bound(key, *job, outcome.error().code,
                     "its volumes cannot be bound: " + outcome.error().what);
  }
  if (job->claims_open > 0) --job->claims_open;
  check_claims(key, *job);
}

// What is written but not seen yet counts, so that no other pod is promised the same volume.
void SchedulerDriver::assume_claims(std::string_view kind, std::string_view ns,
                                    std::string_view name) {
  const bool is_volume = kind == "PersistentVolume";
  if (!is_volume && kind != "PersistentVolumeClaim") return;
  const std::string full = is_volume ? std::string(name) : fmt::format("{}/{}", ns, name);
  const auto& assumed = is_volume ? assumed_volumes_ : assumed_claims_;
  const auto at = assumed.find(full);
  if (at == assumed.end()) return;
  const auto job = jobs_.find(at->second);
  if (job == jobs_.end()) return;
  for (Claim& claim : job->second.claims) {
    if (is_volume ? claim.plan.volume != name : claim_key(claim.plan) != full) continue;
    cluster_.change_objects([&](core::Objects& objects) {
      return is_volume ? assume_volume(objects, claim) : assume_node(objects, claim, full);
    });
  }
}

bool SchedulerDriver::assume_volume(core::Objects& objects, Claim& claim) {
  const auto pv = objects.pvs.find(claim.plan.volume);
  if (pv == objects.pvs.end()) return false;
  claim.is_volume_shown = !pv->second.claim_name.empty();
  if (claim.is_volume_shown) return false;
  pv->second.claim_ns = claim.plan.ns;
  pv->second.claim_name = claim.plan.name;
  pv->second.claim_uid = claim.plan.uid;
  return true;
}

bool SchedulerDriver::assume_node(core::Objects& objects, Claim& claim, const std::string& full) {
  const auto pvc = objects.pvcs.find(full);
  if (pvc == objects.pvcs.end() || !claim.plan.volume.empty()) return false;
  const bool is_shown = !pvc->second.selected_node.empty();
  // Whoever provisions takes the annotation away when it cannot do it there.
  if (claim.is_node_shown && !is_shown && pvc->second.volume_name.empty()) claim.is_rejected = true;
  claim.is_node_shown = is_shown;
  if (is_shown || claim.is_rejected) return false;
  pvc->second.selected_node = claim.plan.node;
  return true;
}

void SchedulerDriver::release_claims(Job& job) {
  for (const Claim& claim : std::exchange(job.claims, {})) {
    const std::string full = claim_key(claim.plan);
    assumed_claims_.erase(full);
    assumed_volumes_.erase(claim.plan.volume);
    cluster_.change_objects([&](core::Objects& objects) {
      const auto pv = objects.pvs.find(claim.plan.volume);
      const bool frees_volume = pv != objects.pvs.end() && !claim.is_volume_shown &&
                                pv->second.claim_uid == claim.plan.uid;
      if (frees_volume) {
        pv->second.claim_ns.clear();
        pv->second.claim_name.clear();
        pv->second.claim_uid.clear();
      }
      const auto pvc = objects.pvcs.find(full);
      const bool frees_claim = pvc != objects.pvcs.end() && !claim.is_node_shown &&
                               pvc->second.volume_name.empty() && claim.plan.volume.empty();
      if (frees_claim) pvc->second.selected_node.clear();
      return frees_volume || frees_claim;
    });
  }
}

void SchedulerDriver::check_all_claims() {
  std::vector<std::pair<std::string, std::string>> waiting;
  for (const auto& [claim, key] : assumed_claims_) {
    const auto job = jobs_.find(key);
    if (job != jobs_.end()) waiting.emplace_back(key, job->second.ref.uid);
  }
  for (const auto& [key, uid] : waiting) {
    Job* const job = job_of(key, uid);
    if (job != nullptr && job->stage == Stage::Claiming) check_claims(key, *job);
  }
}

void SchedulerDriver::check_claims(const std::string& key, Job& job) {
  if (job.claims_open > 0) return;
  for (const Claim& claim : job.claims) {
    if (claim.is_rejected) {
      return not_bound(key, job, Errc::Conflict,
                       fmt::format("the volume of claim {} cannot be provisioned for node {}",
                                   claim.plan.name, claim.plan.node));
    }
    const auto& pvcs = cluster_.objects().pvcs;
    const auto pvc = pvcs.find(claim_key(claim.plan));
    if (pvc == pvcs.end() || pvc->second.uid != claim.plan.uid) {
      return not_bound(key, job, Errc::Conflict, "a claim of the pod is gone");
    }
    if (pvc->second.volume_name.empty() || !pvc->second.bind_completed) return;
  }
  api_.loop().cancel(std::exchange(job.timer, 0));
  send_bind(key, job);
}

// ---- the binding ----------------------------------------------------------------------------

void SchedulerDriver::enter_flight(Job& job) {
  if (std::exchange(job.is_in_flight, true)) return;
  ++in_flight_;
  if (options_.observer != nullptr) options_.observer->binds_in_flight(in_flight_);
}

void SchedulerDriver::leave_flight(Job& job) {
  if (!std::exchange(job.is_in_flight, false)) return;
  --in_flight_;
  if (options_.observer != nullptr) options_.observer->binds_in_flight(in_flight_);
  if (queue_.has_ready()) wake();
}

void SchedulerDriver::send_bind(const std::string& key, Job& job) {
  job.stage = Stage::Binding;
  job.sent = now();
  ++job.tries;
  enter_flight(job);
  const Binding binding{.pod = job.ref, .node = job.node, .gpu_holds = job.gpu_holds};
  api_.bind(binding, guarded([this, key, uid = job.ref.uid](const Result<void>& outcome) {
              bind_answered(key, uid, outcome);
            }));
}

void SchedulerDriver::bind_answered(const std::string& key, const std::string& uid,
                                    const Result<void>& outcome) {
  Job* const job = job_of(key, uid);
  if (job == nullptr || job->stage != Stage::Binding) return;
  if (outcome.has_value()) return bound(key, *job);
  ++counts_.bind_errors;
  if (options_.observer != nullptr) options_.observer->bind_failed(outcome.error().code);
  switch (outcome.error().code) {
    case Errc::Conflict:
    case Errc::Timeout:
      job->is_unsure = outcome.error().code == Errc::Timeout || job->is_unsure;
      return ask_about(key, *job);
    case Errc::NotFound:
    case Errc::Unavailable:
    case Errc::Invalid:
    case Errc::Gone:
      // While an earlier try may still be carried out, a no to this one settles nothing.
      if (job->is_unsure && outcome.error().code != Errc::NotFound) return ask_about(key, *job);
      return not_bound(key, *job, outcome.error().code, outcome.error().what);
  }
}

void SchedulerDriver::ask_about(const std::string& key, Job& job) {
  job.stage = Stage::Checking;
  api_.read_pod(job.ref, guarded([this, key, uid = job.ref.uid](const Result<std::string>& json) {
                  asked_about(key, uid, json);
                }));
}

void SchedulerDriver::asked_about(const std::string& key, const std::string& uid,
                                  const Result<std::string>& json) {
  Job* const job = job_of(key, uid);
  if (job == nullptr || job->stage != Stage::Checking) return;
  if (!json.has_value()) {
    if (json.error().code == Errc::NotFound) return not_bound(key, *job, Errc::NotFound, "");
    return later(key, *job, [this](const std::string& k, Job& j) { ask_about(k, j); });
  }
  auto object = decoder_.decode({.kind = "Pod", .json = *json});
  auto* const pod = object.has_value() ? std::get_if<kube::Pod>(&*object) : nullptr;
  if (pod == nullptr) {
    unreadable("Pod", key, object.has_value() ? "not a pod" : object.error().what);
    return later(key, *job, [this](const std::string& k, Job& j) { ask_about(k, j); });
  }
  if (pod->meta.uid != uid || pod->finished || (pod->meta.deleting && pod->node_name.empty())) {
    return not_bound(key, *job, Errc::NotFound, "");
  }
  if (pod->node_name == job->node) return bound(key, *job);
  if (!pod->node_name.empty()) return bound_elsewhere(key, *job, std::move(*pod));
  if (!job->is_unsure) {
    return not_bound(key, *job, Errc::Conflict, "the server refused the binding");
  }
  // Not yet, but our own request may still be on its way: the same again, and nothing else. On a
  // node that is gone it is waited for instead.
  const bool has_node = cluster_.find_node(job->node).has_value();
  if (!has_node && now() - job->sent > kLateWriteMax) {
    return not_bound(key, *job, Errc::Conflict, "its node is gone");
  }
  later(key, *job, [this](const std::string& k, Job& j) {
    cluster_.find_node(j.node).has_value() ? send_bind(k, j) : ask_about(k, j);
  });
}

void SchedulerDriver::later(const std::string& key, Job& job,
                            std::function<void(const std::string&, Job&)> task) {
  ++job.tries;
  api_.loop().cancel(job.timer);
  job.timer = api_.loop().after(repeat_after(job.tries),
                                guarded([this, key, uid = job.ref.uid, task = std::move(task)] {
                                  Job* const then = job_of(key, uid);
                                  if (then == nullptr) return;
                                  then->timer = 0;
                                  task(key, *then);
                                }));
}

// The server has it. The job stays until the watch shows it, so that older news changes nothing.
void SchedulerDriver::bound(const std::string& key, Job& job) {
  if (std::exchange(job.is_noted, true)) return;
  job.stage = Stage::Bound;
  release_claims(job);
  ++counts_.bound;
  const PodQueue::History history = queue_.history(key);
  queue_.remove(key);
  if (std::exchange(job.has_constraints, false)) --constrained_;
  leave_flight(job);
  if (options_.observer != nullptr) {
    const std::string_view profile = options_.profiles[job.profile].scheduler_name;
    options_.observer->attempted({.profile = profile,
                                  .result = AttemptResult::Scheduled,
                                  .decide = job.decided_in,
                                  .whole = now() - job.started,
                                  .pod = key,
                                  .detail = job.node});
    options_.observer->bound({.profile = profile,
                              .attempts = history.attempts + 1,
                              .since_seen = now() - history.since});
  }
  note(job, "Normal", "Scheduled", "Binding",
       fmt::format("Successfully assigned {}/{} to {}", job.ref.ns, job.ref.name, job.node));
}

// Somebody else was faster.
void SchedulerDriver::bound_elsewhere(const std::string& key, Job& job, kube::Pod&& pod) {
  release_claims(job);
  queue_.remove(key);
  if (std::exchange(job.has_constraints, false)) --constrained_;
  leave_flight(job);
  job.stage = Stage::Bound;
  job.is_noted = true;
  job.node = pod.node_name;
  const auto seen = importer::observe_pod(cluster_, std::move(pod));
  if (!seen.has_value()) unreadable("Pod", key, seen.error().what);
  cluster_changed();
}

// Takes back an assumed place.
void SchedulerDriver::make_pending(core::PodId id) {
  const core::PodState state = cluster_.pod(id).state;
  if (state == core::PodState::Placed) cluster_.unplace(id);
  if (state != core::PodState::Orphan) return;
  const core::Pod pod = cluster_.pod(id);  // its node went away meanwhile: it begins anew
  cluster_.remove_pod(id);
  cluster_.add_pending(pod.name, pod.uid, pod.shape, pod.identity);
}

void SchedulerDriver::not_bound(const std::string& key, Job& job, Errc code,
                                const std::string& why) {
  release_claims(job);
  leave_flight(job);
  api_.loop().cancel(std::exchange(job.timer, 0));
  job.stage = Stage::Queued;
  job.is_unsure = false;
  if (options_.observer != nullptr) {
    options_.observer->attempted({.profile = options_.profiles[job.profile].scheduler_name,
                                  .result = AttemptResult::Error,
                                  .decide = job.decided_in,
                                  .whole = now() - job.started,
                                  .pod = key,
                                  .detail = why});
  }
  const auto pod = cluster_.find_pod(job.ref.ns, job.ref.name);
  const bool is_there = pod.has_value() && cluster_.pod(*pod).uid == job.ref.uid;
  if (is_there) make_pending(*pod);
  cluster_changed();
  // Gone: the change that says so is on its way.
  if (code == Errc::NotFound || !is_there) return drop_job(jobs_.find(key));
  const auto again = cluster_.find_pod(job.ref.ns, job.ref.name);
  keep_nomination(job, *again);
  queue_.retry(key, cluster_.shape_of(*again).spec.priority, now());
  wake();
  if (code != Errc::Unavailable && code != Errc::Conflict) {
    tell(key, job, "SchedulerError", why);
  }
}

}  // namespace jogak::live
