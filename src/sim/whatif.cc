// SPDX-License-Identifier: Apache-2.0
// Changes first, then rounds of decisions over a queue; see whatif.h for the order of events.
#include "sim/whatif.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/edit_distance.h"
#include "core/engine/scheduler.h"
#include "core/plan/evaluation.h"
#include "core/plan/validate.h"
#include "core/policy/gpu_view.h"
#include "core/policy/policy.h"
#include "sim/budgets.h"
#include "sim/node_copy.h"

namespace jogak::sim {

namespace {

using core::Cluster;
using core::NodeId;
using core::PodId;
using core::PodState;

constexpr std::uint64_t kSeed = 1;  // what the live driver draws from
constexpr std::int64_t kCopiesMax = 20'000;
// A pod preempts at most so often; beyond that somebody keeps taking what it made free.
constexpr int kPreemptionsMax = 8;

std::string node_name(const Cluster& cluster, NodeId node) {
  return std::string(cluster.text(cluster.node(node).name));
}

WhatifTotals totals_of(const Cluster& cluster) {
  WhatifTotals totals;
  core::GpuView view;
  view.prepare(cluster);
  for (const NodeId id : cluster.node_order()) {
    const core::Node& node = cluster.node(id);
    ++totals.nodes;
    for (const core::GpuAsk kind : {core::GpuAsk::Whole, core::GpuAsk::Mig}) {
      const core::FreeGpus& seen = view.look(node, kind);
      const std::int64_t all = std::int64_t{seen.devices} * core::kWholeMilli;
      totals.gpu_milli += all;
      totals.gpu_allocated_milli += all - seen.total;
    }
    totals.cpu_milli += node.cpu_allocatable;
    totals.cpu_requested_milli += node.cpu_requested;
  }
  for (const core::Pod& pod : cluster.pods()) {
    if (pod.state == PodState::Placed) ++totals.running;
    if (pod.state == PodState::Pending) ++totals.waiting;
  }
  return totals;
}

// Devices or instances that the pod asks for, also where only a resource says so.
std::int64_t gpus_asked(const core::PodShape& shape) {
  if (shape.gpu.kind != core::GpuAsk::None) return shape.gpu.count;
  std::int64_t sum = 0;
  for (const auto& [name, amount] : shape.requests) {
    if (name == "nvidia.com/gpu" || name.starts_with("nvidia.com/mig-")) sum += amount;
  }
  return sum;
}

class Model {
 public:
  Model(Cluster& cluster, const WhatifChanges& changes, std::unique_ptr<core::Policy> policy)
      : cluster_(cluster), changes_(changes), policy_(std::move(policy)) {}

  Result<WhatifReport> run();

 private:
  // Higher priority first, then who came first.
  struct Place {
    std::int32_t priority = 0;
    std::uint64_t age = 0;
    std::size_t pod = 0;  // index in report_.pods
    friend bool operator<(const Place& a, const Place& b) {
      return std::tuple(-std::int64_t{a.priority}, a.age) <
             std::tuple(-std::int64_t{b.priority}, b.age);
    }
  };
  struct State {
    std::uint64_t age = 0;
    int preemptions = 0;
    bool is_last = false;  // nobody makes it anew
  };

  Result<NodeId> find_node(std::string_view flag, const std::string& name) const;
  Result<void> add_copies(const WhatifChanges::Copies& copies);
  Result<void> add_node(const core::NodeSpec& spec);
  Result<void> drain(const std::string& name);
  Result<void> remove(const std::string& name);
  void empty_node(NodeId node, bool is_removed);
  void forget_deleted();
  void forget(PodId pod);

  std::size_t entry_of(PodId pod, bool is_new);
  void lose_place(PodId pod, const std::string& preemptor);
  void queue_waiting();
  void run_rounds();
  void run_last();
  void attempt(std::size_t index, bool may_preempt);
  void place(std::size_t index, const core::Decision& decision);
  void refuse(std::size_t index, std::uint64_t class_key, bool may_preempt);
  void preempt(std::size_t index, const core::PreemptionResult& found);

  Cluster& cluster_;
  const WhatifChanges& changes_;
  std::unique_ptr<core::Policy> policy_;
  std::optional<core::Scheduler> scheduler_;
  WhatifReport report_;
  std::vector<State> states_;             // beside report_.pods
  std::map<PodId, std::size_t> entries_;  // of pods with one; ids follow pods made anew
  std::uint64_t next_age_ = 0;
  std::set<Place> queue_;
  std::vector<std::size_t> again_;                      // for the next round
  std::vector<std::pair<PodId, std::string>> leaving_;  // victims and who preempted them
  bool has_changed_ = false;                            // in this round
  // Why pods of a class were refused, as long as nothing moved: classes of thousands are common.
  std::map<std::uint64_t, std::string> refused_;
};

Result<NodeId> Model::find_node(std::string_view flag, const std::string& name) const {
  if (const auto node = cluster_.find_node(name)) return *node;
  std::vector<std::string> names;
  for (const NodeId id : cluster_.node_order()) names.push_back(node_name(cluster_, id));
  return fail(Errc::NotFound, "{}: no node {} among {}{}", flag, name, names.size(),
              did_you_mean(name, names));
}

// ---- changes --------------------------------------------------------------------------------

Result<void> Model::add_node(const core::NodeSpec& spec) {
  if (cluster_.find_node(spec.name)) {
    return invalid("node {} is there already; give the new one another name", spec.name);
  }
  JOGAK_TRY_VOID(cluster_.upsert_node(spec));
  report_.added_nodes.push_back(spec.name);
  return {};
}

Result<void> Model::add_copies(const WhatifChanges::Copies& copies) {
  JOGAK_TRY(const NodeId from, find_node("--add-nodes", copies.of));
  if (copies.count < 1 || copies.count > kCopiesMax) {
    return invalid("--add-nodes: {} copies of {}; want 1 to {}", copies.count, copies.of,
                   kCopiesMax);
  }
  std::vector<PodId> daemons;
  for (const PodId pod : cluster_.node(from).pods) {
    if (belongs_to_node(cluster_.identity_of(pod))) daemons.push_back(pod);
  }
  std::ranges::sort(daemons);
  std::int64_t number = 0;
  for (std::int64_t i = 0; i < copies.count; ++i) {
    std::string name;
    do {
      name = fmt::format("{}-new-{}", copies.of, ++number);
    } while (cluster_.find_node(name));
    JOGAK_TRY_VOID(add_node(copy_of(cluster_, from, name)));
    if (const auto csi = cluster_.objects().csi_nodes.find(copies.of);
        csi != cluster_.objects().csi_nodes.end()) {
      core::CsiNodeSpec spec = csi->second;
      spec.name = name;
      cluster_.mutable_objects().csi_nodes.insert_or_assign(name, std::move(spec));
    }
    for (const PodId daemon : daemons) {
      core::PodSpec spec = spec_of(cluster_, daemon);
      spec.name = fmt::format("{}-{}", spec.name, name);
      spec.uid.clear();
      spec.bound_node = name;
      spec.start_time = core::kNoTime;
      JOGAK_TRY_VOID(cluster_.upsert_pod(spec));
    }
  }
  return {};
}

// Takes its pods off a node: those that belong to it end or stay, the others wait.
void Model::empty_node(NodeId node, bool is_removed) {
  std::vector<PodId> pods = cluster_.node(node).pods;
  std::ranges::sort(pods);
  for (const PodId pod : pods) {
    if (!belongs_to_node(cluster_.identity_of(pod))) {
      lose_place(pod, {});
    } else if (is_removed) {
      report_.ended.push_back(cluster_.pod_full_name(pod));
      cluster_.remove_pod(pod);
    }
  }
}

Result<void> Model::drain(const std::string& name) {
  JOGAK_TRY(const NodeId node, find_node("--drain", name));
  core::NodeSpec spec = spec_of(cluster_, node);
  spec.unschedulable = true;
  JOGAK_TRY_VOID(cluster_.upsert_node(spec));
  empty_node(node, false);
  report_.drained_nodes.push_back(name);
  return {};
}

Result<void> Model::remove(const std::string& name) {
  JOGAK_TRY(const NodeId node, find_node("--remove-node", name));
  empty_node(node, true);
  cluster_.remove_node(node);
  report_.removed_nodes.push_back(name);
  return {};
}

void Model::forget_deleted() {
  for (std::uint32_t i = 0; i < cluster_.pods().size(); ++i) {
    const core::Pod& pod = cluster_.pods()[i];
    if (pod.state == PodState::Gone || !pod.terminating) continue;
    cluster_.remove_pod(PodId{i});
    ++report_.being_deleted;
  }
}

// ---- pods -----------------------------------------------------------------------------------

std::size_t Model::entry_of(PodId id, bool is_new) {
  const auto [it, is_first] = entries_.try_emplace(id, report_.pods.size());
  if (!is_first) return it->second;
  const core::PodShape& shape = cluster_.shape_of(id).spec;
  WhatifPod& entry = report_.pods.emplace_back();
  entry.id = id;
  entry.name = cluster_.pod_full_name(id);
  entry.priority = shape.priority;
  entry.is_new = is_new;
  entry.ask = shape.gpu.kind;
  entry.gpus = gpus_asked(shape);
  states_.push_back({.age = next_age_++});
  return it->second;
}

// The pod waits again as one that was just made, in place of the old one.
void Model::lose_place(PodId id, const std::string& preemptor) {
  const core::Pod pod = cluster_.pod(id);
  const bool has_owner = !cluster_.identity_of(id).owner_kind.empty();
  const std::string node = node_name(cluster_, pod.node);
  const auto known = entries_.find(id);
  const bool was_running = known == entries_.end();
  const std::size_t index = entry_of(id, false);
  cluster_.remove_pod(id);
  const PodId anew = cluster_.add_pending(pod.name, pod.uid, pod.shape, pod.identity);
  entries_.erase(id);
  entries_[anew] = index;
  WhatifPod& entry = report_.pods[index];
  entry.id = anew;
  entry.node.clear();
  entry.holds.clear();
  entry.preempted_by = preemptor;
  if (was_running) {
    entry.was_on = node;
    entry.has_no_owner = !has_owner;
    states_[index].is_last = !has_owner;
  }
  states_[index].age = next_age_++;
  again_.push_back(index);
}

// Those that waited before, by age, then those that lost their place, then the new ones.
void Model::queue_waiting() {
  const std::vector<std::size_t> moved = std::exchange(again_, {});
  const std::set<PodId> is_new(changes_.new_pods.begin(), changes_.new_pods.end());
  for (std::uint32_t i = 0; i < cluster_.pods().size(); ++i) {
    const PodId id{i};
    if (cluster_.pod(id).state != PodState::Pending) continue;
    if (!is_new.contains(id) && !entries_.contains(id)) again_.push_back(entry_of(id, false));
  }
  for (const std::size_t index : moved) {
    states_[index].age = next_age_++;
    again_.push_back(index);
  }
  for (const PodId id : changes_.new_pods) again_.push_back(entry_of(id, true));
}

// Every round that changes something places a pod, or one of higher priority where lower ones were:
// they come to an end.
void Model::run_rounds() {
  do {
    has_changed_ = false;
    for (const std::size_t index : std::exchange(again_, {})) {
      const WhatifPod& pod = report_.pods[index];
      if (!pod.starts()) queue_.insert({pod.priority, states_[index].age, index});
    }
    while (!queue_.empty()) {
      const std::size_t index = queue_.begin()->pod;
      queue_.erase(queue_.begin());
      if (states_[index].is_last) {
        again_.push_back(index);
      } else {
        attempt(index, true);
      }
    }
    for (const auto& [victim, preemptor] : std::exchange(leaving_, {})) {
      lose_place(victim, preemptor);
    }
  } while (has_changed_ && !again_.empty());
}

void Model::run_last() {
  for (const std::size_t index : std::exchange(again_, {})) {
    if (states_[index].is_last) attempt(index, false);
  }
}

void Model::attempt(std::size_t index, bool may_preempt) {
  const core::Decision decision = scheduler_->decide(report_.pods[index].id);
  if (decision.node == core::kNoNode) return refuse(index, decision.class_key, may_preempt);
  place(index, decision);
}

void Model::place(std::size_t index, const core::Decision& decision) {
  WhatifPod& entry = report_.pods[index];
  if (const std::string why = core::validate(cluster_, decision); !why.empty()) {
    entry.message = fmt::format("the scheduler's plan breaks a rule: {}", why);
    again_.push_back(index);
    return;
  }
  scheduler_->accept(decision);
  has_changed_ = true;
  refused_.clear();
  entry.node = node_name(cluster_, decision.node);
  entry.holds = decision.holds;
  entry.message.clear();
}

void Model::refuse(std::size_t index, std::uint64_t class_key, bool may_preempt) {
  WhatifPod& entry = report_.pods[index];
  const bool is_plain = !cluster_.pod(entry.id).nominated.valid();
  if (const auto known = refused_.find(class_key); is_plain && known != refused_.end()) {
    entry.message = known->second;
    again_.push_back(index);
    return;
  }
  const core::Evaluation evaluation = core::evaluate(cluster_, entry.id);
  entry.message = evaluation.message;
  if (entry.message.empty()) {
    entry.message = fmt::format("{}", fmt::join(evaluation.prefilter.reasons, ", "));
  }
  const bool can_preempt =
      evaluation.preemption.has_value() && !evaluation.preemption->best.empty();
  if (can_preempt && may_preempt && states_[index].preemptions < kPreemptionsMax) {
    return preempt(index, *evaluation.preemption);
  }
  again_.push_back(index);
  if (is_plain && !can_preempt) refused_[class_key] = entry.message;
}

void Model::preempt(std::size_t index, const core::PreemptionResult& found) {
  const PodId id = report_.pods[index].id;
  const std::string preemptor = report_.pods[index].name;
  const core::PreemptionCandidate& candidate = found.candidates[found.best.front()];
  ++states_[index].preemptions;
  has_changed_ = true;
  refused_.clear();
  for (const PodId victim : candidate.victims) {
    if (cluster_.pod(victim).terminating) continue;  // somebody else's already
    cluster_.set_terminating(victim);
    change_budgets(cluster_, cluster_.identity_of(victim), -1);
    leaving_.emplace_back(victim, preemptor);
    if (!entries_.contains(victim)) {
      report_.pods[index].victims.push_back(cluster_.pod_full_name(victim));
    }
  }
  for (const PodId other : found.loses_nomination.front()) {
    cluster_.nominate(other, core::kNoNode);
  }
  cluster_.nominate(id, candidate.node);
  again_.push_back(index);  // with room promised to it, for the next round
}

Result<WhatifReport> Model::run() {
  report_.policy = policy_->name();
  report_.before = totals_of(cluster_);
  report_.before.waiting -= static_cast<std::int64_t>(changes_.new_pods.size());
  forget_deleted();
  for (const WhatifChanges::Copies& copies : changes_.copy_nodes) {
    JOGAK_TRY_VOID(add_copies(copies));
  }
  for (const core::NodeSpec& spec : changes_.add_nodes) JOGAK_TRY_VOID(add_node(spec));
  for (const std::string& name : changes_.drain_nodes) JOGAK_TRY_VOID(drain(name));
  for (const std::string& name : changes_.remove_nodes) JOGAK_TRY_VOID(remove(name));
  scheduler_.emplace(cluster_, *policy_);
  queue_waiting();
  run_rounds();
  run_last();
  report_.after = totals_of(cluster_);
  return std::move(report_);
}

}  // namespace

std::int64_t WhatifReport::count_waiting() const {
  return std::ranges::count_if(pods, [](const WhatifPod& pod) { return !pod.starts(); });
}

Result<WhatifReport> whatif(Cluster& cluster, const WhatifChanges& changes) {
  auto policy = core::make_policy(changes.policy, kSeed);
  if (!policy) return in_context("--policy", std::move(policy).error());
  return Model(cluster, changes, std::move(*policy)).run();
}

}  // namespace jogak::sim
