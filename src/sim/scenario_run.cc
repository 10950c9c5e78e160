// SPDX-License-Identifier: Apache-2.0
// The event loop of a scenario. At one instant, ends come first, then what happens to the cluster,
// then arrivals; then the waiting pods are tried.
//
//   NotArrived --arrival--> Waiting --start--> Running --end--> Done
//                              ^-- preempted, node lost --'        (either may be Deleted)
//
// Pods of a real cluster that run there are Running from the start. Those that belong to their node
// are Deleted with it, and Running again when it is back.
#include "sim/scenario_run.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/digest.h"
#include "base/mono_clock.h"
#include "core/engine/scheduler.h"
#include "core/plan/evaluation.h"
#include "core/plan/validate.h"
#include "sim/budgets.h"
#include "sim/node_copy.h"
#include "sim/usage_meter.h"

namespace jogak::sim {

namespace {

enum class Kind : std::uint8_t { End, Cluster, Arrival };

struct Event {
  std::int64_t at_ns = 0;
  Kind kind = Kind::End;
  std::size_t index = 0;   // of the pod or scenario event
  std::int32_t start = 0;  // End: which start of the pod it ends; an older one is stale
  auto order() const { return std::tuple(at_ns, kind, index, start); }
  friend bool operator>(const Event& a, const Event& b) { return a.order() > b.order(); }
};

// Waiting pods: highest priority first, then earliest arrival, then the order of the file.
struct WaitKey {
  std::int32_t priority = 0;
  std::int64_t arrival_ns = 0;
  std::size_t index = 0;
  friend bool operator<(const WaitKey& a, const WaitKey& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    return std::tie(a.arrival_ns, a.index) < std::tie(b.arrival_ns, b.index);
  }
};

std::string devices_text(const std::vector<core::GpuHold>& holds) {
  std::string text;
  for (const core::GpuHold& hold : holds) {
    if (!text.empty()) text += ' ';
    text += std::to_string(hold.gpu);
    if (hold.amount > 0) text += fmt::format(":{}", hold.amount);
    if (hold.mig_start >= 0) text += fmt::format("@{}", hold.mig_start);
  }
  return text;
}

bool has_affinity(const core::PodShape& shape) {
  return !shape.required_affinity.empty() || !shape.spread.empty();
}

class ScenarioRun {
 public:
  ScenarioRun(const Scenario& scenario, const ScenarioRunOptions& options, core::Policy& policy)
      : scenario_(scenario), options_(options), scheduler_(cluster_, policy), meter_(0, 0) {}

  Result<void> prepare(const core::WorkloadMix& mix);
  Result<ScenarioResult> run();

 private:
  struct Live {
    core::PodId id;
    core::ShapeId shape;
    core::IdentityId identity;
    std::int32_t starts = 0;
    bool is_displaced = false;  // lost its place and has no other yet: its budgets lack it
  };
  struct Away {  // it went with its node
    std::size_t index = 0;
    core::PodSpec spec;
  };

  Result<void> add_nodes();
  Result<void> add_pods();
  Result<void> add_running(std::size_t index, const core::PodSpec& spec);
  void note_id(std::size_t index, core::PodId id);
  void take_sample();
  void step(const Event& event);
  Result<void> happen(const ScenarioEvent& event);
  void arrive(std::size_t index);
  void end(std::size_t index);
  void lose_pods(core::NodeId node, std::int32_t gpu);
  void lose_place(std::size_t index);
  void send_away(core::NodeId node);
  Result<void> bring_back(const std::string& node);
  Result<void> change_gpu(core::NodeSpec& spec, std::int32_t gpu, core::GpuHealth health);
  void delete_pod(std::size_t index);
  void take_off(std::size_t index);
  void requeue(std::size_t index);

  void try_waiting();
  bool try_start(std::size_t index);
  core::Decision decide(std::size_t index);
  void start(std::size_t index, const core::Decision& decision);
  void push_end(std::size_t index);
  bool preempt_for(std::size_t index);
  std::string broken_rule() const;
  void check_state();
  void finish();
  void summarise_waits();

  WaitKey key_of(std::size_t index) const {
    return {result_.pods[index].priority, result_.pods[index].arrival_ns, index};
  }
  core::NodeId node_id(const std::string& name) const {
    const auto id = cluster_.find_node(name);
    return id ? *id : core::kNoNode;
  }

  const Scenario& scenario_;
  const ScenarioRunOptions& options_;
  core::Cluster cluster_;
  core::Scheduler scheduler_;
  UsageMeter meter_;
  std::map<std::string, core::NodeSpec> specs_;  // by name, with what happened to them
  std::map<std::string, std::size_t> pod_by_name_;
  std::vector<Live> live_;                         // by pod index
  std::vector<std::size_t> index_of_id_;           // by PodId
  std::map<std::string, std::vector<Away>> away_;  // by node that is down
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::set<WaitKey> waiting_;
  std::set<WaitKey> todo_;  // to be tried at this instant
  bool retry_all_ = false;  // something was freed or changed
  std::size_t affine_waiting_ = 0;
  std::set<std::uint64_t> hopeless_;  // classes for which no preemption was found in this pass
  std::map<std::int32_t, std::int64_t> running_by_priority_;
  std::int64_t now_ns_ = 0;
  bool checks_state_ = false;
  Digest digest_;
  ScenarioResult result_;
};

Result<void> ScenarioRun::add_nodes() {
  for (std::size_t i = 0; i < scenario_.nodes.size(); ++i) {
    core::NodeSpec spec = scenario_.nodes[i];
    spec.order = static_cast<std::int32_t>(i);  // equal scores fall to the first in the file
    JOGAK_TRY_VOID(cluster_.upsert_node(spec));
    const std::string name = spec.name;
    specs_.emplace(name, std::move(spec));
  }
  return {};
}

Result<void> ScenarioRun::add_pods() {
  for (std::size_t i = 0; i < scenario_.pods.size(); ++i) {
    const ScenarioPod& pod = scenario_.pods[i];
    const core::PodSpec& spec = pod.spec;
    Live live;
    live.shape = cluster_.intern_shape(spec.shape);
    live.identity =
        cluster_.intern_identity({spec.ns, spec.labels, spec.owner_kind, spec.owner_name});
    live_.push_back(live);
    PodRecord record;
    record.name = spec.ns + "/" + spec.name;
    record.priority = spec.shape.priority;
    record.arrival_ns = pod.arrival_ns;
    record.was_running = !spec.bound_node.empty();
    pod_by_name_.emplace(record.name, i);
    result_.pods.push_back(std::move(record));
    if (!spec.bound_node.empty()) {
      ++result_.running_at_start;
      JOGAK_TRY_VOID(add_running(i, spec));
    } else {
      events_.push({pod.arrival_ns, Kind::Arrival, i, 0});
    }
  }
  return {};
}

Result<void> ScenarioRun::prepare(const core::WorkloadMix& mix) {
  JOGAK_TRY_VOID(add_nodes());
  cluster_.mutable_objects() = scenario_.objects;
  JOGAK_TRY_VOID(add_pods());
  std::int64_t first_ns = kForever;
  std::int64_t last_ns = 0;
  for (const ScenarioPod& pod : scenario_.pods) {
    first_ns = std::min(first_ns, pod.arrival_ns);
    last_ns = std::max(last_ns, pod.arrival_ns);
  }
  for (std::size_t i = 0; i < scenario_.events.size(); ++i) {
    events_.push({scenario_.events[i].at_ns, Kind::Cluster, i, 0});
  }
  scheduler_.set_mix(mix);
  if (last_ns == first_ns) last_ns = kForever;
  meter_ = UsageMeter(first_ns, std::min(last_ns, scenario_.until_ns));
  meter_.prepare(cluster_, mix);
  meter_.read(cluster_);
  result_.gpu_milli = meter_.capacity_milli();
  if (scenario_.has_cluster) take_sample();
  // A real cluster may have been brought to what no rule allows, a device with two owners say: that
  // is no fault of a decision.
  checks_state_ = options_.check && broken_rule().empty();
  return {};
}

Result<ScenarioResult> ScenarioRun::run() {
  while (!events_.empty() && events_.top().at_ns <= scenario_.until_ns) {
    now_ns_ = events_.top().at_ns;
    meter_.advance(now_ns_);
    while (!events_.empty() && events_.top().at_ns == now_ns_) {
      const Event event = events_.top();
      events_.pop();
      if (event.kind != Kind::Cluster) {
        step(event);
        continue;
      }
      JOGAK_TRY_VOID(happen(scenario_.events[event.index]));
    }
    try_waiting();
    meter_.read(cluster_);
    if (checks_state_) check_state();
    take_sample();
  }
  finish();
  return std::move(result_);
}

// One an instant: the last.
void ScenarioRun::take_sample() {
  auto& samples = result_.samples;
  if (!samples.empty() && samples.back().at_ns == now_ns_) samples.pop_back();
  samples.push_back(
      {now_ns_, meter_.allocated_milli(), static_cast<std::int64_t>(waiting_.size())});
}

void ScenarioRun::note_id(std::size_t index, core::PodId id) {
  live_[index].id = id;
  if (index_of_id_.size() <= id.value) index_of_id_.resize(id.value + 1);
  index_of_id_[id.value] = index;
}

// On the node that the spec names, holding what it says.
Result<void> ScenarioRun::add_running(std::size_t index, const core::PodSpec& spec) {
  JOGAK_TRY(const core::PodId id, cluster_.upsert_pod(spec));
  const core::Pod& placed = cluster_.pod(id);
  PodRecord& pod = result_.pods[index];
  if (placed.state != core::PodState::Placed) {
    return invalid("pod {} runs on {}, which is not there", pod.name, spec.bound_node);
  }
  note_id(index, id);
  ++running_by_priority_[pod.priority];
  pod.fate = PodFate::Running;
  pod.end_ns = -1;
  pod.node = spec.bound_node;
  pod.devices = devices_text(placed.holds);
  digest_.add("runs").add(now_ns_).add(pod.name).add(pod.node).add(pod.devices);
  push_end(index);
  return {};
}

// The pod has just started.
void ScenarioRun::push_end(std::size_t index) {
  const std::int64_t run_ns = scenario_.pods[index].run_ns;
  const std::int32_t starts = ++live_[index].starts;
  if (run_ns != kForever) events_.push({now_ns_ + run_ns, Kind::End, index, starts});
}

void ScenarioRun::step(const Event& event) {
  const PodRecord& pod = result_.pods[event.index];
  if (event.kind == Kind::Arrival) {
    if (pod.fate == PodFate::NotArrived) arrive(event.index);
  } else if (pod.fate == PodFate::Running && live_[event.index].starts == event.start) {
    end(event.index);
  }
}

void ScenarioRun::requeue(std::size_t index) {
  result_.pods[index].fate = PodFate::Waiting;
  waiting_.insert(key_of(index));
  todo_.insert(key_of(index));
  if (has_affinity(scenario_.pods[index].spec.shape)) ++affine_waiting_;
}

void ScenarioRun::arrive(std::size_t index) {
  const PodRecord& record = result_.pods[index];
  const Live& live = live_[index];
  const core::PodSpec& spec = scenario_.pods[index].spec;
  const std::string& uid = spec.uid.empty() ? record.name : spec.uid;
  const core::PodId id = cluster_.add_pending(spec.name, uid, live.shape, live.identity);
  note_id(index, id);
  // A promise of room from before.
  if (!spec.nominated_node.empty()) cluster_.nominate(id, node_id(spec.nominated_node));
  requeue(index);
}

// From its node, not out of the cluster.
void ScenarioRun::take_off(std::size_t index) {
  cluster_.unplace(live_[index].id);
  if (--running_by_priority_[result_.pods[index].priority] == 0) {
    running_by_priority_.erase(result_.pods[index].priority);
  }
  retry_all_ = true;
}

void ScenarioRun::end(std::size_t index) {
  take_off(index);
  cluster_.remove_pod(live_[index].id);
  result_.pods[index].fate = PodFate::Done;
  result_.pods[index].end_ns = now_ns_;
}

void ScenarioRun::delete_pod(std::size_t index) {
  PodRecord& pod = result_.pods[index];
  for (auto& [node, pods] : away_) {
    std::erase_if(pods, [index](const Away& away) { return away.index == index; });
  }
  if (pod.fate == PodFate::Done || pod.fate == PodFate::Deleted) return;
  if (pod.fate == PodFate::Running) take_off(index);
  if (pod.fate == PodFate::Waiting) {
    waiting_.erase(key_of(index));
    todo_.erase(key_of(index));
    if (has_affinity(scenario_.pods[index].spec.shape)) --affine_waiting_;
  }
  if (pod.fate != PodFate::NotArrived) cluster_.remove_pod(live_[index].id);
  pod.fate = PodFate::Deleted;
  pod.end_ns = now_ns_;
}

// gpu -1: every pod of the node, else those on the device.
void ScenarioRun::lose_pods(core::NodeId node, std::int32_t gpu) {
  std::vector<std::size_t> lost;
  for (const core::PodId id : cluster_.node(node).pods) {
    const bool is_hit =
        gpu < 0 ||
        std::ranges::any_of(cluster_.pod(id).holds, [gpu](const auto& h) { return h.gpu == gpu; });
    if (is_hit) lost.push_back(index_of_id_[id.value]);
  }
  std::ranges::sort(lost);
  for (const std::size_t index : lost) {
    ++result_.pods[index].losses;
    ++result_.lost;
    digest_.add("lost").add(now_ns_).add(index);
    lose_place(index);
  }
}

// It waits again as one that was just made: when it had started is forgotten.
void ScenarioRun::lose_place(std::size_t index) {
  Live& live = live_[index];
  change_budgets(cluster_, cluster_.identity(live.identity), -1);
  live.is_displaced = true;
  take_off(index);
  const core::Pod pod = cluster_.pod(live.id);
  cluster_.remove_pod(live.id);
  note_id(index, cluster_.add_pending(pod.name, pod.uid, live.shape, live.identity));
  requeue(index);
}

// Those that belong to the node end with it.
void ScenarioRun::send_away(core::NodeId node) {
  std::vector<core::PodId> pods = cluster_.node(node).pods;
  std::ranges::sort(pods);
  const std::string name(cluster_.text(cluster_.node(node).name));
  for (const core::PodId id : pods) {
    if (!belongs_to_node(cluster_.identity_of(id))) continue;
    const std::size_t index = index_of_id_[id.value];
    core::PodSpec spec = spec_of(cluster_, id);
    digest_.add("ended").add(now_ns_).add(index);
    end(index);
    result_.pods[index].fate = PodFate::Deleted;
    away_[name].push_back({index, std::move(spec)});
  }
}

Result<void> ScenarioRun::bring_back(const std::string& node) {
  const auto found = away_.find(node);
  if (found == away_.end()) return {};
  const std::vector<Away> pods = std::move(found->second);
  away_.erase(found);
  for (const Away& away : pods) {
    JOGAK_TRY_VOID(add_running(away.index, away.spec));
    result_.pods[away.index].start_ns = now_ns_;
  }
  return {};
}

Result<void> ScenarioRun::change_gpu(core::NodeSpec& spec, std::int32_t gpu,
                                     core::GpuHealth health) {
  const core::NodeId node = node_id(spec.name);
  if (health != core::GpuHealth::Healthy && node.valid()) lose_pods(node, gpu);
  spec.gpus[static_cast<std::size_t>(gpu)].health = health;
  if (node.valid()) JOGAK_TRY_VOID(cluster_.upsert_node(spec));
  return {};
}

Result<void> ScenarioRun::happen(const ScenarioEvent& event) {
  retry_all_ = true;
  if (event.action == ScenarioAction::PodDelete) {
    delete_pod(pod_by_name_.at(event.target));
    return {};
  }
  core::NodeSpec& spec = specs_.at(event.target);
  const core::NodeId node = node_id(spec.name);
  switch (event.action) {
    case ScenarioAction::NodeDown:
      if (!node.valid()) return {};
      send_away(node);
      lose_pods(node, -1);
      cluster_.remove_node(node);
      return {};
    case ScenarioAction::GpuUnhealthy:
      return change_gpu(spec, event.gpu, core::GpuHealth::Unhealthy);
    case ScenarioAction::GpuHealthy:
      return change_gpu(spec, event.gpu, core::GpuHealth::Healthy);
    case ScenarioAction::NodeCordon:
      spec.unschedulable = true;
      break;
    case ScenarioAction::NodeUncordon:
      spec.unschedulable = false;
      break;
    case ScenarioAction::NodeLabel: {
      std::map<std::string, std::string> labels(spec.labels.begin(), spec.labels.end());
      for (const auto& [key, value] : event.labels) {
        if (value.empty())
          labels.erase(key);
        else
          labels[key] = value;
      }
      spec.labels.assign(labels.begin(), labels.end());
      break;
    }
    case ScenarioAction::NodeUp:
    case ScenarioAction::PodDelete:
      break;
  }
  // A node that is down only remembers what happened to it.
  if (node.valid() || event.action == ScenarioAction::NodeUp) {
    JOGAK_TRY_VOID(cluster_.upsert_node(spec));
  }
  return event.action == ScenarioAction::NodeUp ? bring_back(spec.name) : Result<void>();
}

void ScenarioRun::try_waiting() {
  bool again = true;
  while (again) {
    if (retry_all_) todo_ = waiting_;
    retry_all_ = false;
    hopeless_.clear();
    bool has_started = false;
    while (!todo_.empty()) {
      const std::size_t index = todo_.begin()->index;
      todo_.erase(todo_.begin());
      has_started = try_start(index) || has_started;
    }
    // Preemption freed more than it used, or a new neighbour is what some affinity waited for.
    again = retry_all_;
    if (has_started && affine_waiting_ > 0) again = retry_all_ = true;
  }
}

core::Decision ScenarioRun::decide(std::size_t index) {
  const std::int64_t start_ns = mono_now_ns();
  core::Decision decision = scheduler_.decide(live_[index].id);
  result_.decision_ns += mono_now_ns() - start_ns;
  ++result_.decisions;
  return decision;
}

bool ScenarioRun::try_start(std::size_t index) {
  core::Decision decision = decide(index);
  if (!decision.node.valid()) {
    const core::PodShape& shape = scenario_.pods[index].spec.shape;
    const bool may_preempt =
        scenario_.has_preemption && shape.preemption == core::PreemptionPolicy::LowerPriority &&
        !running_by_priority_.empty() && running_by_priority_.begin()->first < shape.priority &&
        !hopeless_.contains(decision.class_key);
    if (!may_preempt) return false;
    if (!preempt_for(index)) {
      hopeless_.insert(decision.class_key);
      return false;
    }
    decision = decide(index);
    // Preemption tried the very same filters, so the room it made is there.
    JOGAK_CHECK(decision.node.valid(), "{}: preemption made no room", result_.pods[index].name);
  }
  start(index, decision);
  return true;
}

bool ScenarioRun::preempt_for(std::size_t index) {
  const core::Evaluation evaluation = core::evaluate(cluster_, live_[index].id);
  if (!evaluation.preemption || evaluation.preemption->best.empty()) return false;
  const core::PreemptionCandidate& choice =
      evaluation.preemption->candidates[evaluation.preemption->best.front()];
  for (const core::PodId other : evaluation.preemption->loses_nomination.front()) {
    cluster_.nominate(other, core::kNoNode);
  }
  for (const core::PodId victim : choice.victims) {
    const std::size_t pod = index_of_id_[victim.value];
    ++result_.pods[pod].evictions;
    ++result_.preempted;
    digest_.add("preempted").add(now_ns_).add(pod);
    lose_place(pod);
  }
  return !choice.victims.empty();
}

void ScenarioRun::start(std::size_t index, const core::Decision& decision) {
  if (options_.check) {
    const std::string broken = core::validate(cluster_, decision);
    JOGAK_CHECK(broken.empty(), "{}: {}", result_.pods[index].name, broken);
  }
  const std::int64_t start_ns = mono_now_ns();
  scheduler_.accept(decision);
  result_.decision_ns += mono_now_ns() - start_ns;
  waiting_.erase(key_of(index));
  if (has_affinity(scenario_.pods[index].spec.shape)) --affine_waiting_;

  PodRecord& pod = result_.pods[index];
  ++running_by_priority_[pod.priority];
  pod.fate = PodFate::Running;
  pod.start_ns = now_ns_;
  if (pod.first_start_ns < 0) pod.first_start_ns = now_ns_;
  pod.node = std::string(cluster_.text(cluster_.node(decision.node).name));
  pod.devices = devices_text(decision.holds);
  digest_.add("start").add(now_ns_).add(pod.name).add(pod.node).add(pod.devices);
  if (std::exchange(live_[index].is_displaced, false)) {
    change_budgets(cluster_, cluster_.identity(live_[index].identity), +1);
  }
  push_end(index);
}

std::string ScenarioRun::broken_rule() const {
  std::string broken = core::validate_cluster(cluster_);
  return broken.empty() ? cluster_.recount() : broken;
}

void ScenarioRun::check_state() {
  const std::string broken = broken_rule();
  JOGAK_CHECK(broken.empty(), "at {} ns: {}", now_ns_, broken);
}

WaitSummary summarise(std::vector<std::int64_t> waits, std::int64_t never) {
  WaitSummary summary;
  summary.never = never;
  summary.pods = static_cast<std::int64_t>(waits.size());
  if (waits.empty()) return summary;
  std::ranges::sort(waits);
  std::int64_t sum = 0;
  for (const std::int64_t wait : waits) sum += wait / summary.pods;
  summary.mean_ns = sum;
  // Nearest rank: the smallest value that so many percent of the pods do not exceed.
  summary.p50_ns = waits[(waits.size() * 50 + 99) / 100 - 1];
  summary.p99_ns = waits[(waits.size() * 99 + 99) / 100 - 1];
  return summary;
}

void ScenarioRun::summarise_waits() {
  struct Waits {
    std::vector<std::int64_t> started;
    std::int64_t never = 0;
  };
  Waits all;
  std::map<std::int32_t, Waits, std::greater<>> by_priority;
  for (const PodRecord& pod : result_.pods) {
    if (pod.fate == PodFate::NotArrived || pod.was_running) continue;
    Waits& waits = by_priority[pod.priority];
    if (pod.first_start_ns < 0) {
      ++waits.never;
      ++all.never;
    } else {
      waits.started.push_back(pod.first_start_ns - pod.arrival_ns);
      all.started.push_back(pod.first_start_ns - pod.arrival_ns);
    }
  }
  result_.wait = summarise(std::move(all.started), all.never);
  for (auto& [priority, waits] : by_priority) {
    result_.by_priority.push_back({priority, summarise(std::move(waits.started), waits.never)});
  }
}

void ScenarioRun::finish() {
  result_.end_ns = now_ns_;
  result_.allocated_percent = meter_.allocated_percent();
  result_.stranded_gpus = meter_.stranded_gpus();
  std::tie(result_.hottest_node, result_.hottest_percent) = meter_.hottest();
  result_.digest = digest_.value();
  summarise_waits();
}

}  // namespace

bool is_small(const Scenario& scenario) {
  constexpr std::size_t kSmall = 300'000;
  return scenario.pods.size() * (scenario.nodes.size() + 10) <= kSmall;
}

Result<ScenarioResult> run_scenario(const Scenario& scenario, const ScenarioRunOptions& options) {
  const std::string& name = options.policy.empty() ? scenario.policy : options.policy;
  JOGAK_TRY(const auto policy, core::make_policy(name, static_cast<std::uint64_t>(scenario.seed)));
  ScenarioRun run(scenario, options, *policy);
  const bool has_mix = !scenario.mix.empty() || scenario.has_cluster;
  JOGAK_TRY_VOID(run.prepare(has_mix ? scenario.mix : mix_of_pods(scenario)));
  auto result = run.run();
  if (result) result->policy = name;
  return result;
}

}  // namespace jogak::sim
