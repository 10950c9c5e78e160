// SPDX-License-Identifier: Apache-2.0
//
// Changes are noted as they come; decisions follow in turns of a few pods each, so that the loop
// stays free. A binding counts as placed until the server says otherwise.
#include "live/scheduler_driver.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "core/plan/evaluation.h"
#include "core/plan/validate.h"
#include "import/export.h"
#include "kube/decode.h"

namespace jogak::live {

namespace {

constexpr int kPodsPerTurn = 64;  // then the loop may serve others
constexpr std::string_view kScheduler = "default-scheduler";

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

// Forgets a deleted object of one of kOthers.
void erase_object(core::Objects& objects, std::string_view kind, std::string_view ns,
                  std::string_view name) {
  const std::string full = key_of(ns, name);
  const std::string plain(name);
  if (kind == "Namespace") objects.namespaces.erase(plain);
  if (kind == "PodDisruptionBudget") objects.pdbs.erase(full);
  if (kind == "Service" || kind == "ReplicationController" || kind == "ReplicaSet" ||
      kind == "StatefulSet") {
    objects.workloads.erase(fmt::format("{}/{}", kind, full));
  }
  if (kind == "PersistentVolume") objects.pvs.erase(plain);
  if (kind == "PersistentVolumeClaim") objects.pvcs.erase(full);
  if (kind == "StorageClass") objects.storage_classes.erase(plain);
  if (kind == "CSINode") objects.csi_nodes.erase(plain);
  if (kind == "CSIDriver") objects.csi_drivers.erase(plain);
  if (kind == "CSIStorageCapacity") objects.csi_capacities.erase(full);
  if (kind == "VolumeAttachment") objects.attachments.erase(plain);
}

}  // namespace

Result<std::unique_ptr<SchedulerDriver>> SchedulerDriver::make(ClusterApi& api,
                                                               DriverOptions options) {
  JOGAK_TRY(auto policy, core::make_policy(options.policy, options.seed));
  auto driver = std::unique_ptr<SchedulerDriver>(
      new SchedulerDriver(api, std::move(options), std::move(policy)));
  driver->follow_all();
  return driver;
}

SchedulerDriver::SchedulerDriver(ClusterApi& api, DriverOptions options,
                                 std::unique_ptr<core::Policy> policy)
    : api_(api),
      options_(std::move(options)),
      policy_(std::move(policy)),
      scheduler_(cluster_, *policy_) {}

SchedulerDriver::~SchedulerDriver() {
  *alive_ = false;
  api_.loop().cancel(wake_timer_);
}

void SchedulerDriver::follow_all() {
  using Change = ClusterApi::ObjectChange;
  for (const auto& [resource, kind] : kOthers) {
    following_.push_back(api_.follow(
        resource, {.on_change = [this, kind](const Change& change) { on_other(kind, change); },
                   .on_synced = nullptr}));
  }
  following_.push_back(api_.follow(
      "nodes",
      {.on_change = [this](const Change& change) { on_node(change); }, .on_synced = nullptr}));
  following_.push_back(api_.follow(
      "pods",
      {.on_change = [this](const Change& change) { on_pod(change); }, .on_synced = nullptr}));
}

void SchedulerDriver::fault(std::string what) { last_fault_ = std::move(what); }

void SchedulerDriver::read(std::string_view kind, const ClusterApi::ObjectChange& change) {
  importer::ImportBatch batch;
  Result<void> added = batch.add_object(change.json, kind, "cluster");
  Result<importer::ImportReport> applied =
      added.has_value() ? batch.apply(cluster_) : std::unexpected(added.error());
  if (applied.has_value()) return;
  ++counts_.unreadable;
  fault(fmt::format("{} {}: {}", kind, key_of(change.ns, change.name), applied.error().what));
}

void SchedulerDriver::on_node(const ClusterApi::ObjectChange& change) {
  if (change.is_deleted) {
    if (const auto node = cluster_.find_node(change.name)) cluster_.remove_node(*node);
  } else {
    read("Node", change);
  }
  cluster_changed();
}

void SchedulerDriver::on_other(std::string_view kind, const ClusterApi::ObjectChange& change) {
  if (change.is_deleted) {
    erase_object(cluster_.mutable_objects(), kind, change.ns, change.name);
  } else {
    read(kind, change);
  }
  cluster_changed();
}

void SchedulerDriver::forget_pod(std::string_view ns, std::string_view name) {
  const std::string key = key_of(ns, name);
  queue_.remove(key);
  assumed_.erase(key);
  told_.erase(key);
  const auto pod = cluster_.find_pod(ns, name);
  if (!pod.has_value()) return;
  const bool freed = cluster_.pod(*pod).state == core::PodState::Placed;
  cluster_.remove_pod(*pod);
  if (freed) cluster_changed();
}

void SchedulerDriver::on_pod(const ClusterApi::ObjectChange& change) {
  if (change.is_deleted) return forget_pod(change.ns, change.name);
  const std::string key = key_of(change.ns, change.name);
  kube::Decoder decoder;
  const auto object = decoder.decode({.kind = "Pod", .json = change.json});
  if (!object.has_value() || !std::holds_alternative<kube::Pod>(*object)) {
    ++counts_.unreadable;
    fault(fmt::format("Pod {}: {}", key, object.has_value() ? "not a pod" : object.error().what));
    return;
  }
  const kube::Pod& pod = std::get<kube::Pod>(*object);
  const auto known = cluster_.find_pod(change.ns, change.name);
  if (known.has_value() && cluster_.pod(*known).uid != pod.meta.uid) {
    forget_pod(change.ns, change.name);  // another pod of the same name
  }
  if (pod.finished) return forget_pod(change.ns, change.name);
  const auto assumed = assumed_.find(key);
  if (assumed != assumed_.end()) {
    // Until the binding shows, what the server says is older than what is booked here.
    if (pod.node_name.empty() && !pod.meta.deleting) return;
    assumed_.erase(assumed);
  }
  const bool was_known = cluster_.find_pod(change.ns, change.name).has_value();
  const bool was_terminating = was_known && cluster_.pod(*known).terminating;
  const core::ShapeId shape_before = was_known ? cluster_.pod(*known).shape : core::ShapeId{};
  read("Pod", change);
  if (pod.meta.deleting && !was_terminating) cluster_changed();
  const bool is_ours = options_.scheduler_names.contains(pod.scheduler_name);
  if (!pod.node_name.empty() || pod.meta.deleting || !pod.scheduling_gates.empty() || !is_ours) {
    queue_.remove(key);
    told_.erase(key);
    return;
  }
  // Our own condition comes back; a pod that asks for the same as before waits for the cluster.
  const auto now_known = cluster_.find_pod(change.ns, change.name);
  if (!now_known.has_value()) return;
  if (was_known && told_.contains(key) && cluster_.pod(*now_known).shape == shape_before) return;
  queue_.add(key, pod.priority.value_or(0));
  wake();
}

void SchedulerDriver::cluster_changed() {
  has_changed_ = true;
  if (queue_.waiting() > 0) wake();
}

void SchedulerDriver::wake() {
  if (is_awake_) return;
  is_awake_ = true;
  api_.loop().post([this, alive = alive_] {
    if (*alive) turn();
  });
}

void SchedulerDriver::wake_at(TimeUs when) {
  if (wake_timer_ != 0 && wake_time_ <= when) return;
  api_.loop().cancel(wake_timer_);
  wake_time_ = when;
  wake_timer_ = api_.loop().at(when, [this, alive = alive_] {
    if (!*alive) return;
    wake_timer_ = 0;
    has_changed_ = true;
    wake();
  });
}

void SchedulerDriver::turn() {
  is_awake_ = false;
  if (std::exchange(has_changed_, false)) {
    if (const auto next = queue_.release(api_.loop().now())) wake_at(*next);
  }
  for (int i = 0; i < kPodsPerTurn; ++i) {
    const auto key = queue_.pop();
    if (!key.has_value()) break;
    schedule(*key);
  }
  if (queue_.has_ready()) wake();
}

PodRef SchedulerDriver::ref_of(core::PodId pod) const {
  return {.ns = cluster_.identity_of(pod).ns,
          .name = cluster_.pod(pod).name,
          .uid = cluster_.pod(pod).uid};
}

void SchedulerDriver::schedule(const std::string& key) {
  const auto [ns, name] = split_key(key);
  const auto pod = cluster_.find_pod(ns, name);
  if (!pod.has_value() || cluster_.pod(*pod).state != core::PodState::Pending) return;
  ++counts_.decisions;
  const core::Decision decision = scheduler_.decide(*pod);
  if (decision.node == core::kNoNode) return refuse(key, *pod);
  if (const std::string why = core::validate(cluster_, decision); !why.empty()) {
    ++counts_.invalid_plans;
    fault(fmt::format("plan for {} breaks a rule: {}", key, why));
    queue_.refuse(key, cluster_.shape_of(*pod).spec.priority, api_.loop().now());
    return;
  }
  bind(key, *pod, decision);
}

void SchedulerDriver::bind(const std::string& key, core::PodId pod,
                           const core::Decision& decision) {
  scheduler_.accept(decision);
  const PodRef ref = ref_of(pod);
  assumed_[key] = ref.uid;
  Binding binding{.pod = ref,
                  .node = std::string(cluster_.text(cluster_.node(decision.node).name)),
                  .gpu_holds = {}};
  if (!decision.holds.empty()) {
    binding.gpu_holds = importer::holds_text(decision.holds, cluster_.shape_of(pod).spec.gpu.kind);
  }
  api_.bind(binding, [this, alive = alive_, key, ref, node = binding.node](Result<void> outcome) {
    if (*alive) bound(key, ref, node, outcome);
  });
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

void SchedulerDriver::bound(const std::string& key, const PodRef& ref, const std::string& node,
                            const Result<void>& outcome) {
  const auto pod = cluster_.find_pod(ref.ns, ref.name);
  const bool is_there = pod.has_value() && cluster_.pod(*pod).uid == ref.uid;
  if (outcome.has_value()) {
    ++counts_.bound;
    if (is_there) {  // else the key may be another pod's by now
      queue_.remove(key);
      told_.erase(key);
    }
    api_.note({.pod = ref,
               .type = "Normal",
               .reason = "Scheduled",
               .action = "Binding",
               .message = fmt::format("Successfully assigned {}/{} to {}", ref.ns, ref.name, node),
               .reporter = "default-scheduler"});
    return;
  }
  ++counts_.bind_errors;
  const auto assumed = assumed_.find(key);
  const bool is_same = assumed != assumed_.end() && assumed->second == ref.uid;
  if (is_same) assumed_.erase(assumed);
  if (!is_same || !is_there) return;
  const std::int32_t priority = cluster_.shape_of(*pod).spec.priority;
  make_pending(*pod);
  cluster_changed();
  // Gone or changed: the change that says so is on its way. Anything else is tried again.
  if (outcome.error().code == Errc::NotFound) return;
  queue_.refuse(key, priority, api_.loop().now());
  has_changed_ = true;
  wake();
}

void SchedulerDriver::refuse(const std::string& key, core::PodId pod) {
  ++counts_.refused;
  const PodRef ref = ref_of(pod);
  const std::int32_t priority = cluster_.shape_of(pod).spec.priority;
  const core::Evaluation evaluation = core::evaluate(cluster_, pod);
  queue_.refuse(key, priority, api_.loop().now());
  std::string message = evaluation.message;
  std::string nominated;
  const std::string* nomination = nullptr;
  std::vector<core::PodId> victims;
  if (evaluation.preemption.has_value()) {
    const core::PreemptionResult& preemption = *evaluation.preemption;
    if (!preemption.best.empty()) {
      const core::PreemptionCandidate& candidate = preemption.candidates[preemption.best.front()];
      nominated = cluster_.text(cluster_.node(candidate.node).name);
      nomination = &nominated;
      for (const core::PodId victim : candidate.victims) {
        if (std::ranges::find(candidate.already_terminating, victim) ==
            candidate.already_terminating.end()) {
          victims.push_back(victim);
        }
      }
      cluster_.nominate(pod, candidate.node);
    } else if (preemption.nomination == core::NominationChange::Clear) {
      nomination = &nominated;
      cluster_.nominate(pod, core::kNoNode);
    }
  }
  const std::string said = message + "|" + nominated;
  if (const auto told = told_.find(key); told == told_.end() || told->second != said) {
    told_[key] = said;
    api_.refuse(
        {.pod = ref, .reason = "Unschedulable", .message = message, .nominated_node = nomination},
        [](const Result<void>&) {});
    api_.note({.pod = ref,
               .type = "Warning",
               .reason = "FailedScheduling",
               .action = "Scheduling",
               .message = message,
               .reporter = "default-scheduler"});
  }
  preempt(ref, victims);
}

void SchedulerDriver::preempt(const PodRef& preemptor, const std::vector<core::PodId>& victims) {
  for (const core::PodId victim : victims) {
    const PodRef ref = ref_of(victim);
    ++counts_.preempted;
    cluster_.set_terminating(victim);
    api_.note({.pod = ref,
               .type = "Normal",
               .reason = "Preempted",
               .action = "Preempting",
               .message = fmt::format("Preempted by pod {} on node {}", preemptor.uid,
                                      cluster_.text(cluster_.node(cluster_.pod(victim).node).name)),
               .reporter = "default-scheduler"});
    api_.preempt(ref,
                 fmt::format("{}: preempting to accommodate a higher priority pod", kScheduler),
                 [this, alive = alive_, ref](const Result<void>& outcome) {
                   if (*alive && !outcome.has_value()) not_preempted(ref, outcome.error());
                 });
  }
}

void SchedulerDriver::not_preempted(const PodRef& victim, const Error& error) {
  // Gone already: the change that says so is on its way. Else it stays, and may be asked again.
  const auto pod = cluster_.find_pod(victim.ns, victim.name);
  if (error.code != Errc::NotFound && pod.has_value() && cluster_.pod(*pod).uid == victim.uid) {
    cluster_.set_terminating(*pod, false);
  }
  cluster_changed();
}

}  // namespace jogak::live
