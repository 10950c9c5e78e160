// SPDX-License-Identifier: Apache-2.0
// The incremental scheduler, the same scheduler scanning every node, and the reference must agree
// at every step on the feasible nodes, the node and the devices, whatever happened before.
// Clusters, pods and events are drawn from a seed; JOGAK_SEED and JOGAK_ROUNDS repeat and extend.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "core/engine/scheduler.h"
#include "core/plan/evaluation.h"
#include "core/plan/validate.h"
#include "core/policy/policy.h"
#include "core/testing/random_world.h"
#include "test/reference/reference_scheduler.h"

namespace jogak::reference {
namespace {

using core::Cluster;
using core::Decision;
using core::GpuAsk;
using core::NodeId;
using core::PodId;
using core::PodState;
using core::PodView;
using core::Policy;
using core::Scheduler;
using core::testing::Event;
using core::testing::RandomWorld;
using core::testing::Trial;

void apply(ReferenceScheduler& reference, const Event& event) {
  const core::PodSpec& pod = event.pod;
  switch (event.kind) {
    case Event::Kind::Node:
      return reference.set_node(event.node);
    case Event::Kind::NodeGone:
      return reference.remove_node(event.node_name);
    case Event::Kind::Pod:
      return reference.set_pod(pod);
    case Event::Kind::PodGone:
      return reference.remove_pod(pod.ns, pod.name);
    case Event::Kind::Terminating:
      return reference.set_terminating(pod.ns, pod.name);
    case Event::Kind::Nominate:
      return reference.nominate(pod.ns, pod.name, event.node_name);
    case Event::Kind::Namespace:
      return reference.set_namespace(event.name_space);
  }
}

// Three schedulers over the same events.
class Trio {
 public:
  Trio(std::string_view policy, std::uint64_t seed, std::size_t class_limit, core::WorkloadMix mix)
      : fast_policy_(std::move(core::make_policy(policy, seed)).value()),
        scan_policy_(std::move(core::make_policy(policy, seed)).value()),
        policy_(std::move(core::make_policy(policy, seed)).value()),
        fast_(a_, *fast_policy_, {.class_limit = class_limit, .full_scan = false}),
        scan_(b_, *scan_policy_, {.class_limit = 1, .full_scan = true}),
        mix_(std::move(mix)) {
    fast_.set_mix(mix_);
    scan_.set_mix(mix_);
  }

  void tell(const Event& event) {
    core::testing::apply(a_, event);
    core::testing::apply(b_, event);
    apply(reference_, event);
  }

  // Empty if all agree about the pod; it is placed if `take`.
  std::string ask(PodId pod, bool take);

  // Moves that are undone; the fast scheduler looks at the middle of them.
  void try_and_undo(Rng& rng);

  Cluster& cluster() { return a_; }
  std::vector<PodId> waiting() const {
    std::vector<PodId> pods;
    for (std::uint32_t i = 0; i < a_.pods().size(); ++i) {
      if (a_.pods()[i].state == PodState::Pending) pods.push_back(PodId{i});
    }
    return pods;
  }
  std::string state() const {
    if (a_.digest() != b_.digest()) return "the two clusters differ";
    return a_.recount();
  }

 private:
  std::string name(const Cluster& cluster, NodeId node) const {
    return node.valid() ? std::string(cluster.text(cluster.node(node).name)) : "(none)";
  }
  std::string expected_node(const PodView& view, const std::vector<std::string>& feasible);
  std::string compare(const Decision& fast, const Decision& scan,
                      const std::vector<std::string>& feasible) const;
  void prepare();

  Cluster a_;
  Cluster b_;
  ReferenceScheduler reference_;
  std::unique_ptr<Policy> fast_policy_;
  std::unique_ptr<Policy> scan_policy_;
  std::unique_ptr<Policy> policy_;  // the reference's
  Scheduler fast_;
  Scheduler scan_;
  core::WorkloadMix mix_;
  std::pair<std::uint64_t, std::uint64_t> prepared_{};
  std::uint64_t followed_ = 0;
};

void Trio::prepare() {
  const std::pair now{a_.topology_version(), a_.capacity_version()};
  if (prepared_ != now) {
    policy_->prepare(a_, mix_);
    prepared_ = now;
  } else if (policy_->follows_changes()) {
    for (; followed_ < a_.change_end(); ++followed_) {
      policy_->node_changed(a_, a_.change(followed_).node);
    }
  }
  followed_ = a_.change_end();
}

// What the policies are told to expect.
core::WorkloadMix random_mix(Rng& rng) {
  core::WorkloadMix mix;
  const std::uint64_t classes = rng.below(5);
  for (std::uint64_t i = 0; i < classes; ++i) {
    core::MixClass c;
    c.cpu = rng.between(0, 4) * 500;
    c.memory = rng.between(0, 4) << 30;
    if (rng.chance(3, 4)) {
      c.gpu_count = static_cast<std::int32_t>(rng.between(1, 3));
      c.gpu_milli = c.gpu_count == 1 ? static_cast<std::int32_t>(rng.between(1, 9)) * 111 : 1000;
    }
    if (rng.chance(1, 4)) c.models.push_back("Tesla-T4");
    c.weight = rng.between(1, 100);
    mix.push_back(std::move(c));
  }
  return mix;
}

std::string Trio::expected_node(const PodView& view, const std::vector<std::string>& feasible) {
  if (feasible.empty()) return "(none)";
  std::vector<NodeId> nodes;
  for (const std::string& n : feasible) nodes.push_back(*a_.find_node(n));
  const NodeId nominated = a_.pod(view.id).nominated;
  if (nominated.valid() && nodes[0] == nominated && nodes.size() == 1) {
    // The seat kept for the pod: nothing is scored. (Alone among feasible ones it is the same.)
    const bool is_global = policy_->scope() == core::ScoreScope::Global;
    if (is_global) return feasible[0];
  }
  std::vector<std::int64_t> scores(nodes.size());
  if (policy_->scope() == core::ScoreScope::Global) {
    policy_->score_all(a_, view, nodes, scores);
  } else {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      scores[i] = policy_->score(a_, *view.shape, a_.node(nodes[i]));
    }
  }
  std::size_t best = 0;
  for (std::size_t i = 1; i < scores.size(); ++i) {
    if (scores[i] > scores[best]) best = i;
  }
  return feasible[best];
}

std::string Trio::compare(const Decision& fast, const Decision& scan,
                          const std::vector<std::string>& feasible) const {
  const std::string fast_node = name(a_, fast.node);
  const std::string scan_node = name(b_, scan.node);
  if (fast.feasible_nodes != feasible.size() || scan.feasible_nodes != feasible.size()) {
    return fmt::format("feasible: fast {} nodes, scan {}, reference {}", fast.feasible_nodes,
                       scan.feasible_nodes, fmt::join(feasible, " "));
  }
  if (fast_node != scan_node) return fmt::format("fast {}, scan {}", fast_node, scan_node);
  if (fast.score != scan.score) return fmt::format("score {} and {}", fast.score, scan.score);
  if (fast.holds != scan.holds) return "fast and scan choose other devices";
  return {};
}

std::string Trio::ask(PodId pod, bool take) {
  const PodView view = PodView::of(a_, pod);
  const std::string ns = view.identity->ns;
  const std::string pod_name = a_.pod(pod).name;
  const PodId twin = *b_.find_pod(ns, pod_name);
  const Decision fast = fast_.decide(pod);
  const Decision scan = scan_.decide(twin);
  const std::vector<std::string> feasible = reference_.feasible(ns, pod_name);
  prepare();
  if (std::string d = compare(fast, scan, feasible); !d.empty()) {
    return fmt::format("{}; search: {}; reference:{}", d, core::evaluate(a_, pod).message,
                       reference_.explain(ns, pod_name));
  }
  const std::string expected = expected_node(view, feasible);
  if (name(a_, fast.node) != expected) {
    return fmt::format("fast {}, reference {} of {}", name(a_, fast.node), expected,
                       fmt::join(feasible, " "));
  }
  if (!fast.node.valid()) return {};
  const core::Node& node = a_.node(fast.node);
  // The checker is stricter where holders are unknown.
  if (node.unknown_gpus == 0) {
    if (std::string broken = core::validate(a_, fast); !broken.empty()) return broken;
  }
  std::vector<core::GpuHold> holds;
  const core::GpuRequest& request = view.shape->spec.gpu;
  const bool is_share = request.kind == GpuAsk::ShareMilli || request.kind == GpuAsk::ShareMib;
  if (is_share && node.unknown_gpus > 0) {
    core::choose_tightest(node, request, holds);  // the policy has no say, see Scheduler
  } else {
    policy_->choose(a_, *view.shape, node, holds);
  }
  if (holds != fast.holds) return "the reference's policy chooses other devices";
  if (!take) return {};
  fast_.accept(fast);
  scan_.accept(scan);
  reference_.place(ns, pod_name, expected, fast.holds);
  return {};
}

void Trio::try_and_undo(Rng& rng) {
  const std::vector<PodId> pods = waiting();
  // A policy with a picture of the cluster may remember the way to a state (charges that follow
  // demand in steps, with slack): tries that only one of two clusters saw may show.
  if (pods.empty() || a_.node_count() == 0 || policy_->follows_changes()) return;
  const Cluster::Checkpoint mark = a_.checkpoint();
  const std::uint64_t moves = rng.below(4);
  for (std::uint64_t i = 0; i < moves; ++i) {
    const PodId pod = pods[rng.below(pods.size())];
    const NodeId node = a_.node_order()[rng.below(a_.node_count())];
    if (a_.pod(pod).state == PodState::Pending) {
      a_.place_unknown(pod, node);
    } else {
      a_.unplace(pod);
    }
    const PodId look = pods[rng.below(pods.size())];
    if (rng.chance(1, 2)) static_cast<void>(fast_.refusals(look));
  }
  a_.rollback_to(mark);
}

// Promised seats with shares or instances are left out: which devices they will get depends on the
// order in which they are seated, and the reference does not follow that.
bool is_in_scope(Cluster& cluster, Event& event) {
  const auto exact = [](const core::GpuRequest& ask) {
    return ask.kind == GpuAsk::None || ask.kind == GpuAsk::Whole;
  };
  if (event.kind == Event::Kind::Pod && !exact(event.pod.shape.gpu)) {
    event.pod.nominated_node.clear();
  }
  if (event.kind != Event::Kind::Nominate) return true;
  const auto pod = cluster.find_pod(event.pod.ns, event.pod.name);
  return !pod || exact(cluster.shape_of(*pod).spec.gpu);
}

std::string play(std::string_view policy, std::uint64_t seed) {
  Rng rng(seed, "differential");
  core::testing::WorldOptions options;
  options.nodes = static_cast<std::int32_t>(rng.between(1, 8));
  options.pods = 20;
  options.exact_holds = rng.chance(1, 2);
  RandomWorld world(seed, options);
  const std::size_t class_limit = rng.chance(1, 4) ? 2 : 64;
  Trio trio(policy, seed, class_limit, random_mix(rng));
  for (const Event& event : world.start()) trio.tell(event);
  for (int step = 0; step < 60; ++step) {
    Event event = world.event();
    if (is_in_scope(trio.cluster(), event)) trio.tell(event);
    if (rng.chance(1, 6)) trio.try_and_undo(rng);
    std::vector<PodId> waiting = trio.waiting();
    rng.shuffle(std::span(waiting));
    if (waiting.size() > 3) waiting.resize(3);
    for (const PodId pod : waiting) {
      const std::string pod_name = trio.cluster().pod_full_name(pod);
      if (std::string d = trio.ask(pod, rng.chance(3, 4)); !d.empty()) {
        return fmt::format("step {}, pod {}: {}", step, pod_name, d);
      }
    }
    if (std::string d = trio.state(); !d.empty()) return fmt::format("step {}: {}", step, d);
  }
  return {};
}

TEST(Differential, FastScanAndReferenceAgree) {
  const Trial trial = Trial::from_env(3000);
  const auto policies = core::policies();
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    const std::uint64_t seed = trial.seed_of(round);
    const std::string_view policy = policies[seed % policies.size()].name;
    ASSERT_EQ(play(policy, seed), "") << "policy " << policy << "; " << trial.repeat(round);
  }
}

}  // namespace
}  // namespace jogak::reference
