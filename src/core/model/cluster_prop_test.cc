// SPDX-License-Identifier: Apache-2.0
// What must hold of the cluster state whatever happens: usage is the sum over the pods, undoing is
// exact, and the order in which independent things become known does not show.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/filter/gpu_devices.h"
#include "core/model/cluster.h"
#include "core/model/testing.h"
#include "core/policy/policy.h"
#include "core/testing/random_world.h"

namespace jogak::core {
namespace {

using testing::apply;
using testing::Event;
using testing::RandomWorld;
using testing::Trial;

// Live pods in one state, by id.
std::vector<PodId> pods_in(const Cluster& cluster, PodState state) {
  std::vector<PodId> pods;
  for (std::uint32_t i = 0; i < cluster.pods().size(); ++i) {
    if (cluster.pods()[i].state == state) pods.push_back(PodId{i});
  }
  return pods;
}

PodId pick(Rng& rng, const std::vector<PodId>& pods) { return pods[rng.below(pods.size())]; }

// A legal placement of the pod on the node where its devices allow one; else with devices unknown.
void place_somehow(Cluster& cluster, Policy& policy, PodId pod, NodeId node) {
  const Node& at = cluster.node(node);
  const PodView view = PodView::of(cluster, pod);
  if (!gpu_devices_filter(cluster, view, at, nullptr).fits()) {
    cluster.place_unknown(pod, node);
    return;
  }
  std::vector<GpuHold> holds;
  if (!at.gpus.empty()) policy.choose(cluster, *view.shape, at, holds);
  cluster.place(pod, node, holds);
}

TEST(ClusterProperty, UsageIsTheSumOverPodsAfterEveryEvent) {
  const Trial trial = Trial::from_env(1000);
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    RandomWorld world(trial.seed_of(round));
    const auto policy = std::move(make_policy("random", round)).value();
    Cluster cluster;
    for (const Event& event : world.start()) apply(cluster, event);
    for (int step = 0; step < 120; ++step) {
      apply(cluster, world.event());
      const std::vector<PodId> waiting = pods_in(cluster, PodState::Pending);
      if (!waiting.empty() && cluster.node_count() > 0) {
        const PodId pod = pick(world.rng(), waiting);
        const NodeId node = cluster.node_order()[world.rng().below(cluster.node_count())];
        place_somehow(cluster, *policy, pod, node);
      }
      ASSERT_EQ(cluster.recount(), "") << "step " << step << "; " << trial.repeat(round);
    }
  }
}

// ---- transactions ---------------------------------------------------------------------------

// Everything that a rollback must bring back.
struct Picture {
  std::uint64_t digest = 0;
  std::int64_t placed_with_affinity = 0;
  std::vector<std::uint64_t> versions;
  std::vector<std::vector<PodId>> orders;
  std::vector<PodId> nominated;

  explicit Picture(const Cluster& cluster)
      : digest(cluster.digest()), placed_with_affinity(cluster.placed_with_affinity()) {
    for (const Node& node : cluster.nodes()) {
      versions.push_back(node.version);
      orders.push_back(node.pods);
    }
    nominated.assign(cluster.nominated_pods().begin(), cluster.nominated_pods().end());
  }
  friend bool operator==(const Picture&, const Picture&) = default;
};

class RandomMoves {
 public:
  RandomMoves(Cluster& cluster, Policy& policy, Rng& rng)
      : cluster_(cluster), policy_(policy), rng_(rng) {}

  // Moves, nested checkpoints and rollbacks; every rollback is compared with what was.
  void run(int depth, const std::string& hint) {
    const Picture before(cluster_);
    const Cluster::Checkpoint mark = cluster_.checkpoint();
    const std::uint64_t moves = rng_.below(12);
    for (std::uint64_t i = 0; i < moves; ++i) {
      if (depth > 0 && rng_.chance(1, 4)) run(depth - 1, hint);
      move();
    }
    if (rng_.chance(1, 4)) static_cast<void>(cluster_.checkpoint());  // never closed by itself
    ASSERT_EQ(cluster_.recount(), "") << hint;
    cluster_.rollback_to(mark);
    ASSERT_TRUE(Picture(cluster_) == before) << hint;
  }

 private:
  void move() {
    const std::vector<PodId> waiting = pods_in(cluster_, PodState::Pending);
    const std::vector<PodId> placed = pods_in(cluster_, PodState::Placed);
    const NodeId node = cluster_.node_order()[rng_.below(cluster_.node_count())];
    const std::uint64_t draw = rng_.below(4);
    if (draw == 0 && !placed.empty()) {
      const PodId pod = pick(rng_, placed);
      const Pod was = cluster_.pod(pod);
      cluster_.unplace(pod);
      if (rng_.chance(1, 3)) cluster_.place_back(pod, was.node, was.holds, was.holds_known);
    } else if (draw == 1 && !waiting.empty()) {
      cluster_.nominate(pick(rng_, waiting), rng_.chance(1, 3) ? kNoNode : node);
    } else if (!waiting.empty()) {
      place_somehow(cluster_, policy_, pick(rng_, waiting), node);
    }
  }

  Cluster& cluster_;
  Policy& policy_;
  Rng& rng_;
};

TEST(ClusterProperty, RollbackRestoresEverything) {
  const Trial trial = Trial::from_env(800);
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    RandomWorld world(trial.seed_of(round));
    const auto policy = std::move(make_policy("random", round)).value();
    Cluster cluster;
    for (const Event& event : world.start()) apply(cluster, event);
    for (int step = 0; step < 40; ++step) apply(cluster, world.event());
    if (cluster.node_count() == 0) continue;
    RandomMoves moves(cluster, *policy, world.rng());
    for (int i = 0; i < 6; ++i) {
      moves.run(3, trial.repeat(round));
      if (HasFatalFailure()) return;
    }
    for (int step = 0; step < 10; ++step) apply(cluster, world.event());
    ASSERT_EQ(cluster.recount(), "") << trial.repeat(round);
  }
}

// ---- order of events ------------------------------------------------------------------------

// One event for each node, each pod, in any order: what became known is the same.
TEST(ClusterProperty, OrderOfIndependentEventsDoesNotShow) {
  const Trial trial = Trial::from_env(1000);
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    RandomWorld world(trial.seed_of(round));
    std::vector<Event> events = world.start();
    for (std::int32_t i = 0; i < world.options().pods; ++i) {
      Event event;
      event.kind = Event::Kind::Pod;
      event.pod = world.pod(i);
      if (world.rng().chance(2, 3)) world.bind(event.pod);
      event.pod.terminating = world.rng().chance(1, 10);
      events.push_back(std::move(event));
    }
    std::uint64_t first = 0;
    for (int order = 0; order < 4; ++order) {
      Cluster cluster;
      for (const Event& event : events) apply(cluster, event);
      ASSERT_EQ(cluster.recount(), "") << trial.repeat(round);
      if (order == 0) first = cluster.digest();
      ASSERT_EQ(cluster.digest(), first) << "order " << order << "; " << trial.repeat(round);
      world.rng().shuffle(std::span(events));
    }
  }
}

// Telling everything again, as a relist does, gives what a restart would give; once more changes
// nothing. (Before, a device that vanished and came back may have left its holder unknown.)
TEST(ClusterProperty, ARelistEqualsARestart) {
  const Trial trial = Trial::from_env(600);
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    RandomWorld world(trial.seed_of(round));
    Cluster cluster;
    std::map<std::string, Event> last;  // of each object
    for (const Event& event : world.start()) {
      apply(cluster, event);
      if (event.kind == Event::Kind::Node) last["node " + event.node.name] = event;
    }
    for (int step = 0; step < 60; ++step) {
      const Event event = world.event();
      const bool tells = event.kind == Event::Kind::Node || event.kind == Event::Kind::Pod;
      if (!tells || !event.pod.nominated_node.empty()) continue;
      apply(cluster, event);
      const bool is_node = event.kind == Event::Kind::Node;
      last[is_node ? "node " + event.node.name : event.pod.ns + "/" + event.pod.name] = event;
    }
    Cluster fresh;
    for (const auto& [object, event] : last) apply(fresh, event);
    for (int i = 0; i < 2; ++i) {
      for (const auto& [object, event] : last) apply(cluster, event);
      ASSERT_EQ(cluster.digest(), fresh.digest()) << trial.repeat(round);
    }
  }
}

}  // namespace
}  // namespace jogak::core
