// SPDX-License-Identifier: Apache-2.0
//
// What a pod that waits is told, and room made for it. A nomination is written before the first
// victim is deleted: whoever takes over in between knows for whom the room is meant.
#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include "core/plan/evaluation.h"
#include "live/scheduler_driver.h"

namespace jogak::live {

namespace {

constexpr TimeUs kFirstRepeat = 500 * kMsInUs;
constexpr int kDoublingsMax = 6;  // 32 s
constexpr std::size_t kRefusalsMax = 4096;
constexpr std::size_t kTellsMax = 16;

TimeUs repeat_after(int failures) {
  return kFirstRepeat << std::clamp(failures - 1, 0, kDoublingsMax);
}

std::vector<std::string_view> plugins_of(const core::Evaluation& evaluation) {
  std::vector<std::string_view> names;
  const auto add = [&names](core::Plugin plugin) {
    const std::string_view name = core::plugin_name(plugin);
    if (plugin != core::Plugin::None && std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
  };
  add(evaluation.prefilter.verdict.plugin);
  for (const core::NodeVerdict& node : evaluation.nodes) add(node.verdict.plugin);
  return names;
}

}  // namespace

// ---- refusals -------------------------------------------------------------------------------

// The full look at every node, which only a refusal needs. Pods of one class hear the same as long
// as nothing changes, unless preemption may help this one.
SchedulerDriver::Refusal SchedulerDriver::find_refusal(core::PodId pod, std::uint64_t class_key) {
  const std::array<std::uint64_t, 4> state = {cluster_.change_end(), cluster_.objects_version(),
                                              cluster_.topology_version(),
                                              cluster_.capacity_version()};
  if (state != refusals_at_ || refusals_.size() > kRefusalsMax) {
    refusals_.clear();
    refusals_at_ = state;
  }
  // Claims are the pod's own, whatever its class.
  const bool is_plain = !cluster_.pod(pod).nominated.valid() &&
                        !cluster_.shape_of(pod).has_volumes && cluster_.nominated_pods().empty();
  if (is_plain) {
    if (const auto known = refusals_.find(class_key); known != refusals_.end()) {
      return known->second;
    }
  }
  core::Evaluation evaluation = core::evaluate(cluster_, pod);
  Refusal refusal{.message = std::make_shared<const std::string>(std::move(evaluation.message)),
                  .plugins = plugins_of(evaluation),
                  .preemption = std::move(evaluation.preemption)};
  if (!options_.may_preempt) refusal.preemption.reset();
  const bool may_help = refusal.preemption.has_value() && !refusal.preemption->best.empty();
  if (is_plain && !may_help) {
    refusal.preemption.reset();
    refusals_[class_key] = refusal;
  }
  return refusal;
}

void SchedulerDriver::refuse(const std::string& key, Job& job, core::PodId pod,
                             std::uint64_t class_key) {
  ++counts_.refused;
  Refusal refusal = find_refusal(pod, class_key);
  queue_.refuse(key, cluster_.shape_of(pod).spec.priority, now());
  count_refusal(job, refusal.plugins);
  if (options_.observer != nullptr) {
    options_.observer->attempted({.profile = options_.profiles[job.profile].scheduler_name,
                                  .result = AttemptResult::Unschedulable,
                                  .decide = job.decided_in,
                                  .whole = now() - job.started,
                                  .pod = key,
                                  .detail = *refusal.message});
  }
  if (refusal.preemption.has_value()) plan_preemption(job, pod, *refusal.preemption);
  tell(key, job, "Unschedulable", refusal.message);
}

void SchedulerDriver::count_refusal(Job& job, const std::vector<std::string_view>& plugins) {
  if (job.refused_by == plugins || options_.observer == nullptr) return;
  const std::string_view profile = options_.profiles[job.profile].scheduler_name;
  if (!job.refused_by.empty()) options_.observer->refused_no_more(profile, job.refused_by);
  job.refused_by = plugins;
  if (!plugins.empty()) options_.observer->refused(profile, plugins);
}

// ---- conditions and events ------------------------------------------------------------------

void SchedulerDriver::tell(const std::string& key, Job& job, std::string_view reason,
                           SharedText message) {
  const std::uint64_t wanted = digest_of(reason, *message, job.nominated);
  if (!job.is_telling && wanted == job.told) {
    // Nothing new to say; what was to follow the saying may go on.
    if (!job.victims.empty()) preempt(key, job);
    return;
  }
  if (job.is_telling && wanted == job.wanted) return;
  note(job, "Warning", "FailedScheduling", "Scheduling", *message);
  job.wanted = wanted;
  job.wanted_reason = reason;
  job.wanted_message = std::move(message);
  queue_tell(key, job);
}

// Few at a time: thousands that are refused at once leave the server room for what matters more. A
// nomination goes first, since somebody waits for it.
void SchedulerDriver::queue_tell(const std::string& key, Job& job) {
  if (job.is_telling) return;
  job.is_telling = true;
  if (job.victims.empty()) {
    tells_.emplace_back(key, job.ref.uid);
  } else {
    tells_.emplace_front(key, job.ref.uid);
  }
  pump_tells();
}

void SchedulerDriver::pump_tells() {
  while (tells_open_ < kTellsMax && !tells_.empty()) {
    const auto [key, uid] = std::move(tells_.front());
    tells_.pop_front();
    Job* const job = job_of(key, uid);
    if (job == nullptr) continue;
    if (job->stage == Stage::Queued && job->wanted != job->told) {
      send_told(key, *job);
    } else {
      job->is_telling = false;  // it is being placed, or was told already
    }
  }
}

void SchedulerDriver::send_told(const std::string& key, Job& job) {
  ++tells_open_;
  const std::string nomination = job.nominated;
  ClusterApi::Refusal refusal{.pod = job.ref,
                              .reason = std::string(job.wanted_reason),
                              .nominated_node = &nomination,
                              .has_condition = job.wanted_message != nullptr,
                              .is_update = job.has_condition};
  if (job.wanted_message != nullptr) {
    refusal.message = *job.wanted_message;
    job.has_condition = true;
  }
  api_.refuse(refusal,
              guarded([this, key, uid = job.ref.uid, said = job.wanted](
                          const Result<void>& outcome) { told(key, uid, said, outcome); }));
}

void SchedulerDriver::told(const std::string& key, const std::string& uid, std::uint64_t said,
                           const Result<void>& outcome) {
  --tells_open_;
  if (Job* const job = job_of(key, uid); job != nullptr) {
    job->is_telling = false;
    take_told(key, *job, said, outcome);
  }
  pump_tells();
}

void SchedulerDriver::take_told(const std::string& key, Job& job, std::uint64_t said,
                                const Result<void>& outcome) {
  if (outcome.has_value()) {
    job.tell_failures = 0;
    job.told = said;
    if (job.stage != Stage::Queued) return;  // it is being placed: nothing more to say
    if (job.wanted != said) return queue_tell(key, job);
    if (!job.victims.empty()) preempt(key, job);
    return;
  }
  const Errc code = outcome.error().code;
  if (code == Errc::NotFound || code == Errc::Conflict) {
    job.victims.clear();
    return;
  }
  if (code == Errc::Invalid) fault(fmt::format("status of {}: {}", key, outcome.error().what));
  job.is_telling = true;  // until the pause is over
  api_.loop().after(repeat_after(++job.tell_failures), guarded([this, key, uid = job.ref.uid] {
                      Job* const then = job_of(key, uid);
                      if (then == nullptr) return;
                      then->is_telling = false;
                      if (then->stage == Stage::Queued) queue_tell(key, *then);
                    }));
}

void SchedulerDriver::note(const Job& job, std::string_view type, std::string_view reason,
                           std::string_view action, std::string message) {
  api_.note({.pod = job.ref,
             .type = std::string(type),
             .reason = std::string(reason),
             .action = std::string(action),
             .message = std::move(message),
             .reporter = options_.profiles[job.profile].scheduler_name,
             .related = {}});
}

// ---- preemption -----------------------------------------------------------------------------

void SchedulerDriver::keep_nomination(const Job& job, core::PodId pod) {
  const auto node = cluster_.find_node(job.nominated);
  const core::NodeId nominated = node.value_or(core::kNoNode);
  if (cluster_.pod(pod).nominated != nominated) cluster_.nominate(pod, nominated);
}

void SchedulerDriver::withdraw_nomination(core::PodId pod) {
  const PodRef ref = ref_of(pod);
  const std::string key = ref.ns + "/" + ref.name;
  cluster_.nominate(pod, core::kNoNode);
  Job* const job = job_of(key, ref.uid);
  if (job == nullptr) return;
  job->nominated.clear();
  job->victims.clear();
  // The condition stays as it was told; what a former process told is not known word for word.
  const bool is_known = job->wanted_message != nullptr;
  job->wanted = digest_of(job->wanted_reason, is_known ? *job->wanted_message : "", "");
  queue_tell(key, *job);
}

// The best, but not again a node where the room that was promised never came, if there is another.
const core::PreemptionCandidate& SchedulerDriver::choose(
    const Job& job, const core::PreemptionResult& preemption) const {
  const auto& candidates = preemption.candidates;
  const core::PreemptionCandidate& best = candidates[preemption.best.front()];
  const auto gave_up = [&](const core::PreemptionCandidate& candidate) {
    return cluster_.text(cluster_.node(candidate.node).name) == job.gave_up_on;
  };
  if (job.gave_up_on.empty() || !gave_up(best)) return best;
  const auto loss = [this](const core::PreemptionCandidate& candidate) {
    const std::int32_t highest = cluster_.shape_of(candidate.victims.front()).spec.priority;
    return std::tuple(candidate.pdb_violations, highest, candidate.victims.size());
  };
  const core::PreemptionCandidate* chosen = nullptr;
  for (const core::PreemptionCandidate& candidate : candidates) {
    if (gave_up(candidate) || candidate.victims.empty()) continue;
    if (chosen == nullptr || loss(candidate) < loss(*chosen)) chosen = &candidate;
  }
  return chosen == nullptr ? best : *chosen;
}

void SchedulerDriver::plan_preemption(Job& job, core::PodId pod,
                                      const core::PreemptionResult& preemption) {
  if (options_.observer != nullptr) {
    options_.observer->preemption_tried(
        preemption.best.empty() ? 0
                                : preemption.candidates[preemption.best.front()].victims.size());
  }
  if (!job.victims.empty()) return;  // an earlier plan is being carried out
  if (preemption.best.empty()) {
    if (preemption.nomination != core::NominationChange::Clear) return;
    job.nominated.clear();
    cluster_.nominate(pod, core::kNoNode);
    return;
  }
  const core::PreemptionCandidate& candidate = choose(job, preemption);
  for (const core::PodId victim : candidate.victims) {
    const auto& gone = candidate.already_terminating;
    if (std::ranges::find(gone, victim) == gone.end()) job.victims.push_back(ref_of(victim));
  }
  job.nominated = cluster_.text(cluster_.node(candidate.node).name);
  job.nominated_at = now();
  cluster_.nominate(pod, candidate.node);
  if (preemption.loses_nomination.empty()) return;
  for (const core::PodId other : preemption.loses_nomination.front()) {
    if (other != pod) withdraw_nomination(other);
  }
}

// The nomination is written: now the victims, if they are still in the way.
void SchedulerDriver::preempt(const std::string& key, Job& job) {
  const std::vector<PodRef> victims = std::exchange(job.victims, {});
  const auto pod = cluster_.find_pod(job.ref.ns, job.ref.name);
  if (!pod.has_value() || job.stage != Stage::Queued) return;
  if (engine_of(job).scheduler->decide(*pod).node != core::kNoNode) {
    queue_.add(key, cluster_.shape_of(*pod).spec.priority, now());  // room came by itself
    return wake();
  }
  const std::string why = fmt::format("{}: preempting to accommodate a higher priority pod",
                                      options_.profiles[job.profile].scheduler_name);
  for (const PodRef& victim : victims) {
    const auto id = cluster_.find_pod(victim.ns, victim.name);
    if (!id.has_value() || cluster_.pod(*id).uid != victim.uid) continue;
    if (cluster_.pod(*id).terminating || cluster_.pod(*id).state != core::PodState::Placed)
      continue;
    ++counts_.preempted;
    cluster_.set_terminating(*id);
    preempting_[victim.uid] = 0;
    api_.note({.pod = victim,
               .type = "Normal",
               .reason = "Preempted",
               .action = "Preempting",
               .message = fmt::format("Preempted by pod {} on node {}", job.ref.uid,
                                      cluster_.text(cluster_.node(cluster_.pod(*id).node).name)),
               .reporter = options_.profiles[job.profile].scheduler_name,
               .related = job.ref});
    send_delete(victim, why);
  }
}

void SchedulerDriver::send_delete(const PodRef& victim, const std::string& why) {
  api_.preempt(victim, why, guarded([this, victim, why](const Result<void>& outcome) {
                 deleted(victim, why, outcome);
               }));
}

void SchedulerDriver::deleted(const PodRef& victim, const std::string& why,
                              const Result<void>& outcome) {
  const auto at = preempting_.find(victim.uid);
  if (at == preempting_.end()) return;  // the watch has shown it
  // Gone: the change that says so is on its way.
  if (outcome.has_value() || outcome.error().code == Errc::NotFound) return;
  if (outcome.error().code == Errc::Conflict) return check_victim(victim, why);
  if (outcome.error().code == Errc::Invalid) {
    fault(fmt::format("preempting {}/{}: {}", victim.ns, victim.name, outcome.error().what));
    return not_preempted(victim);
  }
  delete_later(victim, why);
}

// Not done, or nobody knows: a second deletion of the same pod changes nothing.
void SchedulerDriver::delete_later(const PodRef& victim, const std::string& why) {
  api_.loop().after(repeat_after(++preempting_[victim.uid]), guarded([this, victim, why] {
                      if (!preempting_.contains(victim.uid)) return;
                      const auto pod = cluster_.find_pod(victim.ns, victim.name);
                      if (!pod.has_value() || cluster_.pod(*pod).uid != victim.uid) {
                        preempting_.erase(victim.uid);
                        return;
                      }
                      send_delete(victim, why);
                    }));
}

// The server says that it is another pod, or that it changed under way.
void SchedulerDriver::check_victim(const PodRef& victim, const std::string& why) {
  api_.read_pod(victim, guarded([this, victim, why](const Result<std::string>& json) {
                  if (!preempting_.contains(victim.uid)) return;
                  if (!json.has_value()) {
                    if (json.error().code != Errc::NotFound) delete_later(victim, why);
                    return;
                  }
                  const auto object = decoder_.decode({.kind = "Pod", .json = *json});
                  const auto* const pod =
                      object.has_value() ? std::get_if<kube::Pod>(&*object) : nullptr;
                  if (pod == nullptr || pod->meta.uid != victim.uid || pod->meta.deleting) return;
                  not_preempted(victim);
                }));
}

void SchedulerDriver::not_preempted(const PodRef& victim) {
  preempting_.erase(victim.uid);
  const auto pod = cluster_.find_pod(victim.ns, victim.name);
  if (pod.has_value() && cluster_.pod(*pod).uid == victim.uid) {
    cluster_.set_terminating(*pod, false);
  }
  cluster_changed();
}

}  // namespace jogak::live
