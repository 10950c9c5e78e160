// SPDX-License-Identifier: Apache-2.0
//
// Random weeks of a node in minutes: labels, pods that come and go, a kubelet that hears late and
// sometimes does not answer, an agent that dies anywhere. What a pod holds is always there; when
// all is quiet again, the label is carried out and everything is on offer.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/mig/testing/trial.h"
#include "agent/run/testing/node_rig.h"
#include "base/rng.h"
#include "nvml/nvml_source.h"

namespace jogak::agent {
namespace {

using testing::MigTrial;
using testing::NodeRig;

constexpr auto kMachine = "identity: t\ngpus: [{model: H100-SXM5-80GB, count: 2}]\n";
constexpr auto kConfig = "nvidia.com/mig.config";
constexpr auto kState = "nvidia.com/mig.config.state";
constexpr TimeUs kTick = 50 * kMsInUs;
constexpr TimeUs kHearsWithin = 400 * kMsInUs;  // of an offer; less than MigWorkOptions::settle
constexpr TimeUs kShowsWithin = 300 * kMsInUs;  // PodResources, after an allocation

AgentOptions options_of(bool on_demand) {
  AgentOptions options = NodeRig::quiet();
  options.plugin.mig_strategy = MigStrategy::Mixed;
  options.mig.cuts_on_demand = on_demand;
  options.facts_every = 60 * kSecondInUs;
  return options;
}

class World {
 public:
  explicit World(std::uint64_t seed)
      : rng_(seed, "mig-work"),
        on_demand_(rng_.below(2) == 0),
        rig_(kMachine, options_of(on_demand_)) {
    rig_.start();
  }

  void live(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) {
      act();
      pass(static_cast<TimeUs>(rng_.below(40)) * kTick);
    }
  }

  // Nobody disturbs it any more.
  void settle() {
    rig_.kubelet = {};
    pods_.clear();
    asks_.clear();
    rig_.node->on_asks({});
    rig_.label(kConfig, "");
    rig_.label(kConfig, "all-1g.10gb");
    pass(90 * kSecondInUs);
    EXPECT_EQ(rig_.node_label(kState), "success")
        << rig_.node_annotation("jogak.io/mig.config.reason");
    for (const int gpu : {0, 1}) {
      EXPECT_EQ(rig_.instances(gpu), std::vector<std::string>(7, "1g.10gb"));
    }
    EXPECT_EQ(rig_.offered("nvidia.com/mig-1g.10gb"), std::vector<std::string>(14, "healthy"));
    EXPECT_TRUE(rig_.node->mig().is_resting());
    EXPECT_TRUE(rig_.node->mig().withheld().empty());
    EXPECT_TRUE(rig_.journal->load()->empty());
  }

  int allocations = 0, restarts = 0;

 private:
  struct Pod {
    std::string name, resource, id;
    TimeUs shown_at = 0;
  };

  void act() {
    switch (rng_.below(8)) {
      case 0: {
        static const std::vector<std::string> kConfigs = {
            "all-disabled", "all-1g.10gb", "all-balanced", "all-3g.40gb", "all-7g.80gb", "no-such"};
        return rig_.label(kConfig, kConfigs[rng_.below(kConfigs.size())]);
      }
      case 1:
      case 2:
      case 3:
        return allocate();
      case 4:
        if (!pods_.empty()) {
          const std::size_t at = rng_.below(pods_.size());
          pods_.erase(pods_.begin() + static_cast<std::ptrdiff_t>(at));
        }
        return;
      case 5:
        if (rng_.below(3) == 0) {
          rig_.kubelet = rig_.kubelet ? Result<void>(fail(Errc::Unavailable, "nobody listens"))
                                      : Result<void>();
        }
        return;
      case 6:
        if (rng_.below(3) != 0) return;
        ++restarts;
        rig_.restart();
        heard_ = nullptr;  // all its devices are unhealthy until it is back
        offers_seen_ = 0;
        return rig_.node->on_asks(asks_);
      default:
        return change_asks();
    }
  }

  void change_asks() {
    static const std::vector<std::string> kProfiles = {"1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"};
    if (!asks_.empty() && rng_.below(2) == 0) {
      asks_.erase(asks_.begin());
    } else if (asks_.size() < 4) {
      asks_.push_back({.pod = {"ml", "ask-" + std::to_string(++names_)},
                       .profile = kProfiles[rng_.below(kProfiles.size())],
                       .count = 1,
                       .places = {}});
    }
    rig_.node->on_asks(asks_);
  }

  // The kubelet gives a pod any device that it believes to be healthy and free.
  void allocate() {
    if (heard_ == nullptr) return;
    std::vector<std::pair<std::string, std::string>> free;  // resource, id
    for (const PluginResource& resource : heard_->inventory.resources) {
      for (const PluginDevice& device : resource.devices) {
        const bool is_held = std::ranges::find(pods_, device.id, &Pod::id) != pods_.end();
        if (device.is_healthy && !is_held) free.emplace_back(resource.name, device.id);
      }
    }
    if (free.empty()) return;
    const auto& [resource, id] = free[rng_.below(free.size())];
    std::string name = "pod-" + std::to_string(++names_);
    if (!asks_.empty() && rng_.below(2) == 0) name = asks_.front().pod.name;
    pods_.push_back({.name = name,
                     .resource = resource,
                     .id = id,
                     .shown_at = rig_.loop.now() + static_cast<TimeUs>(rng_.below(kShowsWithin))});
    ++allocations;
    check();
  }

  void pass(TimeUs span) {
    const TimeUs end = rig_.loop.now() + span;
    while (rig_.loop.now() < end) {
      show_holdings();
      rig_.loop.run_for(kTick);
      if (offers_seen_ != rig_.offers.size()) {
        offers_seen_ = rig_.offers.size();
        const TimeUs hears_at =
            rig_.loop.now() + static_cast<TimeUs>(rng_.below(kHearsWithin - kTick));
        on_the_way_.emplace_back(hears_at, rig_.offers.back());
      }
      while (!on_the_way_.empty() && on_the_way_.front().first <= rig_.loop.now()) {
        if (offers_seen_ > 0) heard_ = on_the_way_.front().second;
        on_the_way_.erase(on_the_way_.begin());
      }
      check();
      if (::testing::Test::HasFailure()) return;
    }
  }

  void show_holdings() {
    std::vector<Holding> shown;
    for (const Pod& pod : pods_) {
      if (pod.shown_at > rig_.loop.now()) continue;
      shown.push_back(
          {.resource = pod.resource,
           .device_id = pod.id,
           .holder = {.pod_namespace = "ml", .pod = pod.name, .container = "main", .pod_uid = ""}});
    }
    rig_.holdings = shown;
    if (rig_.loop.now() < next_list_) return;
    next_list_ = rig_.loop.now() + 5 * kSecondInUs;
    if (rig_.kubelet) rig_.node->on_holdings(shown);
  }

  // Shares nothing with the agent: what the driver says, against what pods were given.
  void check() {
    const auto source =
        nvml::NvmlSource::of_machine(rig_.machine, [this] { return rig_.loop.now(); });
    const auto facts = source->facts();
    ASSERT_TRUE(facts);
    for (const Pod& pod : pods_) {
      bool is_there = false;
      for (const nvml::GpuFacts& gpu : facts->gpus) {
        is_there |= gpu.uuid == pod.id && !gpu.mig_enabled;
        for (const nvml::MigInstanceFacts& row : gpu.mig_instances) is_there |= row.uuid == pod.id;
      }
      ASSERT_TRUE(is_there) << pod.name << " holds " << pod.id << ", which is gone";
    }
  }

  Rng rng_;
  const bool on_demand_;
  NodeRig rig_;
  std::vector<Pod> pods_;
  std::vector<MigAsk> asks_;
  int names_ = 0;
  std::size_t offers_seen_ = 0;
  std::vector<std::pair<TimeUs, PluginSnapshotPtr>> on_the_way_;
  PluginSnapshotPtr heard_;
  TimeUs next_list_ = 0;
};

TEST(MigWorkProperty, WhatAPodHoldsIsNeverTakenAndTheLabelIsCarriedOutInTheEnd) {
  const MigTrial trial = MigTrial::from_env(25);
  int allocations = 0;
  int restarts = 0;
  for (std::uint64_t round = 0; round < trial.rounds; ++round) {
    SCOPED_TRACE(trial.repeat(round));
    World world(trial.seed_of(round));
    world.live(120);
    if (!HasFailure()) world.settle();
    allocations += world.allocations;
    restarts += world.restarts;
    if (HasFailure()) return;
  }
  if (trial.rounds < 20) return;
  EXPECT_GT(allocations, 200);
  EXPECT_GT(restarts, 20);
}

}  // namespace
}  // namespace jogak::agent
