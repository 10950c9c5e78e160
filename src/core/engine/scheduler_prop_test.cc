// SPDX-License-Identifier: Apache-2.0
// An index that followed the change log all along answers as one built this moment, whatever
// happened and also in the middle of a transaction: same feasible nodes, scores, best node and
// refusals.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "core/engine/class_index.h"
#include "core/model/testing.h"
#include "core/testing/random_world.h"

namespace jogak::core {
namespace {

using testing::apply;
using testing::Event;
using testing::RandomWorld;
using testing::Trial;

// Indexes of a few classes over one cluster. The keys are those of the scheduler: a class whose
// pods are told apart by nothing else is asked only while no placed pod has affinity terms.
class Followers {
 public:
  Followers(Cluster& cluster, std::uint64_t seed)
      : cluster_(cluster), policy_(std::move(make_policy("best-fit", seed)).value()) {}

  void follow(PodId pod) {
    if (followers_.size() >= 12) return;
    policy_->prepare(cluster_, {});
    Follower f;
    f.view = PodView::of(cluster_, pod);
    f.view.id = kNoPod;
    f.any_identity = !matters(f.view);
    f.index = std::make_unique<ClassIndex>(cluster_, *policy_, scratch_, f.view);
    followers_.push_back(std::move(f));
  }

  // The first difference, empty if none.
  std::string differs() {
    policy_->prepare(cluster_, {});
    const bool capacity_changed = capacity_ != cluster_.capacity_version();
    capacity_ = cluster_.capacity_version();
    for (Follower& f : followers_) {
      if (f.any_identity && matters(f.view)) continue;
      // The scheduler drops its indexes then: the policy's picture is another.
      if (capacity_changed) {
        f.index = std::make_unique<ClassIndex>(cluster_, *policy_, scratch_, f.view);
      }
      f.index->sync();
      ClassIndex fresh(cluster_, *policy_, scratch_, f.view);
      if (std::string d = compare(*f.index, fresh); !d.empty()) return d;
    }
    return {};
  }

 private:
  struct Follower {
    PodView view;
    bool any_identity = false;
    std::unique_ptr<ClassIndex> index;
  };

  bool matters(const PodView& view) const {
    return view.shape->has_pod_constraints || cluster_.placed_with_affinity() > 0;
  }

  std::string compare(ClassIndex& old, ClassIndex& fresh) const {
    std::vector<NodeId> old_nodes;
    std::vector<NodeId> fresh_nodes;
    old.feasible(old_nodes);
    fresh.feasible(fresh_nodes);
    if (old_nodes != fresh_nodes) {
      return fmt::format("{} nodes, fresh {}", old_nodes.size(), fresh_nodes.size());
    }
    if (old.feasible_count() != fresh_nodes.size()) return "the number of feasible nodes";
    const NodeId old_best = old.best();
    const NodeId fresh_best = fresh.best();
    if (old_best != fresh_best) return "the best node";
    if (old.best_score() != fresh.best_score()) return "the best score";
    if (old.refusals() != fresh.refusals()) return "refusals";
    // Scores of all: each best node is hidden in turn.
    for (std::size_t i = 0; i < fresh_nodes.size(); ++i) {
      const NodeId next = old.best();
      if (next != fresh.best() || old.best_score() != fresh.best_score()) return "a score";
      old.hide(next);
      fresh.hide(next);
      if (old.feasible_count() != fresh_nodes.size() - i - 1) return "the count of hidden nodes";
    }
    for (const NodeId node : fresh_nodes) old.reveal(node);
    return old.feasible_count() == fresh_nodes.size() ? "" : "the count of revealed nodes";
  }

  Cluster& cluster_;
  std::unique_ptr<Policy> policy_;
  SyncScratch scratch_;
  std::vector<Follower> followers_;
  std::uint64_t capacity_ = 0;
};

std::vector<PodId> waiting(const Cluster& cluster) {
  std::vector<PodId> pods;
  for (std::uint32_t i = 0; i < cluster.pods().size(); ++i) {
    if (cluster.pods()[i].state == PodState::Pending) pods.push_back(PodId{i});
  }
  return pods;
}

// A few moves that are undone; looked at in between.
std::string try_moves(Cluster& cluster, Followers& followers, Rng& rng) {
  const std::vector<PodId> pods = waiting(cluster);
  if (pods.empty() || cluster.node_count() == 0) return {};
  const Cluster::Checkpoint mark = cluster.checkpoint();
  std::string difference;
  for (int i = 0; i < 4 && difference.empty(); ++i) {
    const PodId pod = pods[rng.below(pods.size())];
    const NodeId node = cluster.node_order()[rng.below(cluster.node_count())];
    if (cluster.pod(pod).state == PodState::Pending) {
      cluster.place_unknown(pod, node);
    } else {
      cluster.unplace(pod);
    }
    if (rng.chance(1, 2)) difference = followers.differs();
  }
  cluster.rollback_to(mark);
  return difference;
}

TEST(ClassIndexProperty, FollowingEqualsBuildingAnew) {
  const Trial trial = Trial::from_env(600);
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    RandomWorld world(trial.seed_of(round));
    Cluster cluster;
    for (const Event& event : world.start()) apply(cluster, event);
    Followers followers(cluster, round);
    for (int step = 0; step < 60; ++step) {
      const std::uint64_t events = world.rng().between(1, 4) == 1 ? 5 : 1;
      for (std::uint64_t i = 0; i < events; ++i) apply(cluster, world.event());
      const std::vector<PodId> pods = waiting(cluster);
      if (!pods.empty()) followers.follow(pods[world.rng().below(pods.size())]);
      std::string difference = followers.differs();
      if (difference.empty() && world.rng().chance(1, 5)) {
        difference = try_moves(cluster, followers, world.rng());
      }
      ASSERT_EQ(difference, "") << "step " << step << "; " << trial.repeat(round);
    }
  }
}

}  // namespace
}  // namespace jogak::core
