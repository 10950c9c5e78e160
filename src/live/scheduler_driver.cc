// SPDX-License-Identifier: Apache-2.0
//
// The cluster as it is seen, and turns of decisions. Changes are noted as they come; decisions
// follow in turns of a few pods each, so that the loop stays free. Pods are followed once all else
// is known, so that none is judged by half a picture.
#include "live/scheduler_driver.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "core/plan/validate.h"
#include "import/observe.h"

namespace jogak::live {

namespace {

constexpr int kPodsPerTurn = 64;                // then the loop may serve others
constexpr std::size_t kInternedSlack = 20'000;  // unused shapes and label sets that may pile up

constexpr const char* kNoClaims =
    "spec.resourceClaims: this scheduler does not allocate DRA claims yet; ask for devices by "
    "limits such as nvidia.com/gpu, or name a scheduler that does in spec.schedulerName";
constexpr const char* kNoPodGroups =
    "spec.schedulingGroup: this scheduler does not place pod groups yet, and would start half of "
    "one; name a scheduler that does in spec.schedulerName";

// Resources that decisions depend on besides pods and nodes, and the kind of their objects.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kOthers = {{
    {"namespaces", "Namespace"},
    {"poddisruptionbudgets.policy", "PodDisruptionBudget"},
    {"services", "Service"},
    {"replicationcontrollers", "ReplicationController"},
    {"replicasets.apps", "ReplicaSet"},
    {"statefulsets.apps", "StatefulSet"},
    {"persistentvolumes", "PersistentVolume"},
    {"persistentvolumeclaims", "PersistentVolumeClaim"},
    {"storageclasses.storage.k8s.io", "StorageClass"},
    {"csinodes.storage.k8s.io", "CSINode"},
    {"csidrivers.storage.k8s.io", "CSIDriver"},
    {"csistoragecapacities.storage.k8s.io", "CSIStorageCapacity"},
    {"volumeattachments.storage.k8s.io", "VolumeAttachment"},
}};

std::string key_of(std::string_view ns, std::string_view name) {
  std::string key(ns);
  key.append("/").append(name);
  return key;
}

std::pair<std::string_view, std::string_view> split_key(std::string_view key) {
  const std::size_t slash = key.find('/');
  return {key.substr(0, slash), key.substr(slash + 1)};
}

}  // namespace

Result<std::unique_ptr<SchedulerDriver>> SchedulerDriver::make(ClusterApi& api,
                                                               DriverOptions options) {
  if (options.profiles.empty()) return invalid("profiles: name at least one scheduler name");
  auto driver = std::unique_ptr<SchedulerDriver>(new SchedulerDriver(api, std::move(options)));
  JOGAK_TRY_VOID(driver->make_schedulers());
  driver->follow_all();
  return driver;
}

SchedulerDriver::SchedulerDriver(ClusterApi& api, DriverOptions options)
    : api_(api), options_(std::move(options)), queue_(options_.backoff) {}

SchedulerDriver::~SchedulerDriver() {
  alive_.reset();
  api_.loop().cancel(wake_timer_);
  for (const auto& [key, job] : jobs_) api_.loop().cancel(job.timer);
}

// Profiles of one policy share its indexes.
Result<void> SchedulerDriver::make_schedulers() {
  std::map<std::string, std::size_t> engine_of;
  for (std::size_t i = 0; i < options_.profiles.size(); ++i) {
    const Profile& profile = options_.profiles[i];
    const auto [at, is_new] = engine_of.try_emplace(profile.policy, engines_.size());
    if (is_new) {
      JOGAK_TRY(auto policy, core::make_policy(profile.policy, options_.seed));
      auto scheduler = std::make_unique<core::Scheduler>(cluster_, *policy);
      engines_.push_back({std::move(policy), std::move(scheduler)});
    }
    if (!profiles_.try_emplace(profile.scheduler_name, at->second, i).second) {
      return invalid("profiles: the scheduler name \"{}\" is there twice", profile.scheduler_name);
    }
  }
  return {};
}

SchedulerDriver::Engine& SchedulerDriver::engine_of(const Job& job) {
  return engines_[profiles_.find(options_.profiles[job.profile].scheduler_name)->second.first];
}

bool SchedulerDriver::is_assumed(std::string_view ns, std::string_view name) const {
  const auto job = jobs_.find(key_of(ns, name));
  return job != jobs_.end() && job->second.stage != Stage::Queued && !job->second.is_seen_bound;
}

std::string_view SchedulerDriver::scheduler_name_of(std::string_view ns,
                                                    std::string_view name) const {
  const auto job = jobs_.find(key_of(ns, name));
  if (job == jobs_.end()) return "";
  return options_.profiles[job->second.profile].scheduler_name;
}

void SchedulerDriver::lead() {
  options_.is_standby = false;
  cluster_changed();
  wake();
}

// ---- following ------------------------------------------------------------------------------

void SchedulerDriver::follow_all() {
  using Change = ClusterApi::ObjectChange;
  unsynced_ = kOthers.size() + 1;
  for (const auto& [resource, kind] : kOthers) {
    following_.push_back(api_.follow(
        resource, {.on_change = [this, kind](const Change& change) { on_other(kind, change); },
                   .on_synced = [this] { followed(); }}));
  }
  following_.push_back(
      api_.follow("nodes", {.on_change = [this](const Change& change) { on_node(change); },
                            .on_synced = [this] { followed(); }}));
}

void SchedulerDriver::followed() {
  if (--unsynced_ > 0) return;
  api_.loop().post(guarded([this] { follow_pods(); }));
}

void SchedulerDriver::follow_pods() {
  using Change = ClusterApi::ObjectChange;
  following_.push_back(
      api_.follow("pods", {.on_change = [this](const Change& change) { on_pod(change); },
                           .on_synced =
                               [this] {
                                 is_synced_ = true;
                                 cluster_changed();
                                 wake();
                               }}));
}

void SchedulerDriver::fault(std::string what) { last_fault_ = std::move(what); }

void SchedulerDriver::unreadable(std::string_view kind, std::string_view object,
                                 const std::string& why) {
  ++counts_.unreadable;
  if (options_.observer != nullptr) options_.observer->unreadable(kind, object, why);
  fault(fmt::format("{} {}: {}", kind, object, why));
}

// ---- nodes and the objects around pods ------------------------------------------------------

void SchedulerDriver::on_node(const ClusterApi::ObjectChange& change) {
  const std::uint64_t before = cluster_.change_end();
  if (change.is_deleted) {
    if (const auto node = cluster_.find_node(change.name)) cluster_.remove_node(*node);
  } else {
    auto object = decoder_.decode({.kind = "Node", .json = change.json});
    Result<void> seen = object.has_value() ? Result<void>() : std::unexpected(object.error());
    if (auto* node = object.has_value() ? std::get_if<kube::Node>(&*object) : nullptr) {
      if (const auto id = importer::observe_node(cluster_, std::move(*node)); !id.has_value()) {
        seen = std::unexpected(id.error());
      }
    }
    if (!seen.has_value()) return unreadable("Node", change.name, seen.error().what);
  }
  if (cluster_.change_end() != before) cluster_changed();
}

void SchedulerDriver::on_other(std::string_view kind, const ClusterApi::ObjectChange& change) {
  bool has_changed = false;
  if (change.is_deleted) {
    has_changed = importer::forget_object(cluster_, kind, change.ns, change.name);
  } else {
    auto object = decoder_.decode({.kind = kind, .json = change.json});
    if (!object.has_value()) {
      return unreadable(kind, key_of(change.ns, change.name), object.error().what);
    }
    has_changed = importer::observe_object(cluster_, std::move(*object));
    assume_claims(kind, change.ns, change.name);
  }
  if (has_changed) cluster_changed();
  // What is seen may be what was known before our own write: whoever provisions took it back.
  if (kind == "PersistentVolumeClaim") check_all_claims();
}

// ---- pods -----------------------------------------------------------------------------------

void SchedulerDriver::on_pod(const ClusterApi::ObjectChange& change) {
  if (change.is_deleted) return forget_pod(change.ns, change.name);
  const std::string key = key_of(change.ns, change.name);
  auto object = decoder_.decode({.kind = "Pod", .json = change.json});
  if (!object.has_value() || !std::holds_alternative<kube::Pod>(*object)) {
    return unreadable("Pod", key, object.has_value() ? "not a pod" : object.error().what);
  }
  take_pod(key, std::get<kube::Pod>(std::move(*object)));
}

void SchedulerDriver::take_pod(const std::string& key, kube::Pod&& pod) {
  const auto known = cluster_.find_pod(pod.meta.ns, pod.meta.name);
  const auto job = jobs_.find(key);
  const bool is_another = (known.has_value() && cluster_.pod(*known).uid != pod.meta.uid) ||
                          (job != jobs_.end() && job->second.ref.uid != pod.meta.uid);
  if (is_another || pod.finished) forget_pod(pod.meta.ns, pod.meta.name);
  if (pod.finished) return;
  take_own(key, std::move(pod));
}

void SchedulerDriver::take_own(const std::string& key, kube::Pod&& pod) {
  const auto at = jobs_.find(key);
  Job* const known_job = at == jobs_.end() ? nullptr : &at->second;
  const bool is_unbound = pod.node_name.empty() && !pod.meta.deleting;
  // Until the binding shows, what the watch says is older than what is booked here.
  if (known_job != nullptr && known_job->stage != Stage::Queued && is_unbound) return;

  const bool is_ours =
      is_unbound && pod.scheduling_gates.empty() && profiles_.contains(pod.scheduler_name);
  const auto before = cluster_.find_pod(pod.meta.ns, pod.meta.name);
  const bool was_known = before.has_value();
  const core::Pod old = was_known ? cluster_.pod(*before) : core::Pod{};
  const bool is_deleting = pod.meta.deleting;
  const std::string uid = pod.meta.uid;
  const std::string node = pod.node_name;
  if (is_ours) job_for(key, pod);
  const auto seen = importer::observe_pod(cluster_, std::move(pod));
  if (!seen.has_value()) {
    if (was_known) cluster_.remove_pod(*before);
    if (is_ours) {
      tell(key, jobs_.at(key), "Unschedulable", seen.error().what);
    } else {
      if (known_job != nullptr) drop_job(jobs_.find(key));
      unreadable("Pod", key, seen.error().what);
    }
    return;
  }
  const core::Pod& now_seen = cluster_.pod(*seen);
  if (preempting_.contains(uid)) {
    if (is_deleting) {
      preempting_.erase(uid);
    } else {
      cluster_.set_terminating(*seen, true);  // its deletion is on its way
    }
  }
  const bool is_placed = now_seen.state == core::PodState::Placed;
  const bool was_placed = was_known && old.state == core::PodState::Placed;
  if (was_placed && (!is_placed || old.shape != now_seen.shape)) cluster_changed();
  if (is_placed && (!was_placed || old.identity != now_seen.identity)) pod_placed();
  if (is_deleting && !(was_known && old.terminating)) cluster_changed();
  if (is_ours) {
    const bool is_same = was_known && old.shape == now_seen.shape &&
                         old.identity == now_seen.identity && known_job != nullptr;
    keep_nomination(jobs_.at(key), *seen);
    if (!is_same) requeue(key, jobs_.at(key), *seen);
    return;
  }
  if (known_job == nullptr) return;
  if (!node.empty() && known_job->stage != Stage::Queued) {
    // The binding shows. Whether it is ours is seen by the node.
    known_job->is_seen_bound = true;
    if (node == known_job->node) bound(key, *known_job);
  }
  drop_job(jobs_.find(key));
}

// A new pod, or one that asks for something else now.
void SchedulerDriver::requeue(const std::string& key, Job& job, core::PodId pod) {
  const core::Shape& shape = cluster_.shape_of(pod);
  const bool has_constraints = shape.has_pod_constraints;
  if (has_constraints != job.has_constraints) {
    constrained_ += has_constraints ? 1 : std::size_t(-1);
    job.has_constraints = has_constraints;
  }
  queue_.add(key, shape.spec.priority, now());
  if (options_.observer != nullptr) options_.observer->queued(QueueKind::Active, "PodAdd", 1);
  wake();
}

SchedulerDriver::Job& SchedulerDriver::job_for(const std::string& key, const kube::Pod& pod) {
  const auto [it, is_new] = jobs_.try_emplace(key);
  Job& job = it->second;
  job.profile = profiles_.find(pod.scheduler_name)->second.second;
  job.blocked = nullptr;
  if (pod.has_pod_group) job.blocked = kNoPodGroups;
  if (pod.has_resource_claims) job.blocked = kNoClaims;
  if (!is_new) return job;
  job.ref = {.ns = pod.meta.ns, .name = pod.meta.name, .uid = pod.meta.uid};
  // A restart says nothing twice.
  job.told = digest_of("Unschedulable", pod.refusal, pod.nominated_node_name);
  job.has_condition = !pod.refusal.empty();
  job.nominated = pod.nominated_node_name;
  job.nominated_at = now();
  return job;
}

void SchedulerDriver::drop_job(Jobs::iterator it) {
  if (it == jobs_.end()) return;
  Job& job = it->second;
  api_.loop().cancel(job.timer);
  leave_flight(job);
  count_refusal(job, {});
  if (job.has_constraints) --constrained_;
  queue_.remove(it->first);
  jobs_.erase(it);
}

void SchedulerDriver::forget_pod(std::string_view ns, std::string_view name) {
  drop_job(jobs_.find(key_of(ns, name)));
  const auto pod = cluster_.find_pod(ns, name);
  if (!pod.has_value()) return;
  preempting_.erase(cluster_.pod(*pod).uid);
  const bool freed = cluster_.pod(*pod).state == core::PodState::Placed;
  const bool was_promised = cluster_.pod(*pod).nominated.valid();
  cluster_.remove_pod(*pod);
  if (freed || was_promised) cluster_changed();
}

SchedulerDriver::Job* SchedulerDriver::job_of(const std::string& key, const std::string& uid) {
  const auto it = jobs_.find(key);
  return it == jobs_.end() || it->second.ref.uid != uid ? nullptr : &it->second;
}

// ---- turns ----------------------------------------------------------------------------------

void SchedulerDriver::cluster_changed() {
  has_changed_ = true;
  if (queue_.waiting() > 0) wake();
}

// A pod came to a node: only who looks at other pods may be helped by that.
void SchedulerDriver::pod_placed() {
  if (constrained_ > 0) cluster_changed();
}

void SchedulerDriver::wake() {
  if (is_awake_ || !is_synced_ || options_.is_standby) return;
  is_awake_ = true;
  api_.loop().post(guarded([this] { turn(); }));
}

void SchedulerDriver::wake_at(TimeUs when) {
  if (wake_timer_ != 0 && wake_time_ <= when) return;
  api_.loop().cancel(wake_timer_);
  wake_time_ = when;
  wake_timer_ = api_.loop().at(when, guarded([this] {
                                 wake_timer_ = 0;
                                 wake();
                               }));
}

void SchedulerDriver::turn() {
  is_awake_ = false;
  if (const auto next = queue_.release(now(), std::exchange(has_changed_, false))) wake_at(*next);
  for (int i = 0; i < kPodsPerTurn && in_flight_ < options_.bindings_max; ++i) {
    const auto key = queue_.pop();
    if (!key.has_value()) break;
    schedule(*key);
  }
  if (const auto next = queue_.release(now(), false)) wake_at(*next);
  // With all bindings under way the next answer wakes us.
  if (queue_.has_ready() && in_flight_ < options_.bindings_max) wake();
  tell_queues();
  collect_garbage();
}

void SchedulerDriver::tell_queues() {
  if (options_.observer == nullptr) return;
  std::array<std::size_t, kQueueKinds> lengths{};
  lengths[static_cast<std::size_t>(QueueKind::Active)] = queue_.ready();
  lengths[static_cast<std::size_t>(QueueKind::Backoff)] = queue_.backing_off();
  lengths[static_cast<std::size_t>(QueueKind::Unschedulable)] = queue_.settled();
  if (lengths == lengths_) return;
  lengths_ = lengths;
  options_.observer->queue_lengths(lengths);
}

// Pods with labels or volumes of their own leave shapes behind: over months that adds up.
void SchedulerDriver::collect_garbage() {
  if (cluster_.interned() < interned_after_collection_ + kInternedSlack) return;
  cluster_.collect_interned();
  interned_after_collection_ = cluster_.interned();
  refusals_.clear();
}

PodRef SchedulerDriver::ref_of(core::PodId pod) const {
  return {.ns = cluster_.identity_of(pod).ns,
          .name = cluster_.pod(pod).name,
          .uid = cluster_.pod(pod).uid};
}

void SchedulerDriver::schedule(const std::string& key) {
  const auto [ns, name] = split_key(key);
  const auto pod = cluster_.find_pod(ns, name);
  const auto it = jobs_.find(key);
  if (!pod.has_value() || it == jobs_.end()) return;
  if (cluster_.pod(*pod).state != core::PodState::Pending) return;
  Job& job = it->second;
  job.started = now();
  const std::int32_t priority = cluster_.shape_of(*pod).spec.priority;
  if (job.blocked != nullptr) {
    queue_.refuse(key, priority, now());
    return tell(key, job, "Unschedulable", std::string(job.blocked));
  }
  if (!job.nominated.empty() && now() - job.nominated_at > options_.nomination_max) {
    job.gave_up_on = job.nominated;
    withdraw_nomination(*pod);
  }
  ++counts_.decisions;
  const core::Decision decision = engine_of(job).scheduler->decide(*pod);
  job.decided_in = now() - job.started;
  if (decision.node == core::kNoNode) return refuse(key, job, *pod, decision.class_key);
  if (const std::string why = core::validate(cluster_, decision); !why.empty()) {
    ++counts_.invalid_plans;
    if (options_.observer != nullptr) options_.observer->plan_invalid(key, why);
    fault(fmt::format("plan for {} breaks a rule: {}", key, why));
    queue_.retry(key, priority, now());
    return tell(key, job, "SchedulerError", "the plan was stopped by a check: " + why);
  }
  start_binding(key, job, *pod, decision);
}

}  // namespace jogak::live
