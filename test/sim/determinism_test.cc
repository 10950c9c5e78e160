// SPDX-License-Identifier: Apache-2.0
// The same run gives the same plan: again in the same process, on one thread or on eight beside
// each other, from a snapshot, and with every compiler (the plan's digest is written down here).
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/digest.h"
#include "base/parallel.h"
#include "core/engine/scheduler.h"
#include "core/model/testing.h"
#include "core/testing/random_world.h"
#include "import/export.h"
#include "import/import.h"

namespace jogak::core {
namespace {

using testing::Event;
using testing::RandomWorld;

std::vector<PodId> waiting(const Cluster& cluster) {
  std::vector<std::pair<std::string, PodId>> named;
  for (std::uint32_t i = 0; i < cluster.pods().size(); ++i) {
    if (cluster.pods()[i].state != PodState::Pending) continue;
    named.emplace_back(cluster.pod_full_name(PodId{i}), PodId{i});
  }
  std::ranges::sort(named);
  std::vector<PodId> pods;
  for (const auto& [name, pod] : named) pods.push_back(pod);
  return pods;
}

// Decides about every waiting pod, keeps what fits, and adds it to the digest of the plan.
void decide_all(Cluster& cluster, Scheduler& scheduler, Digest& plan) {
  for (const PodId pod : waiting(cluster)) {
    const Decision decision = scheduler.decide(pod);
    plan.add(cluster.pod_full_name(pod)).add(decision.node.valid()).add(decision.feasible_nodes);
    if (!decision.node.valid()) continue;
    plan.add(cluster.text(cluster.node(decision.node).name)).add(decision.score);
    for (const GpuHold& h : decision.holds) plan.add(h.gpu).add(h.amount).add(h.mig_start);
    scheduler.accept(decision);
  }
}

constexpr testing::WorldOptions kOptions = {
    .nodes = 30, .pods = 120, .exact_holds = true, .mig = true, .as_kubernetes = true};

WorkloadMix mix() {
  return {{.cpu = 1000,
           .memory = 1 << 30,
           .gpu_count = 1,
           .gpu_milli = 1000,
           .models = {},
           .weight = 3},
          {.cpu = 500, .memory = 0, .gpu_count = 1, .gpu_milli = 333, .models = {}, .weight = 5},
          {.cpu = 2000, .memory = 0, .gpu_count = 0, .gpu_milli = 0, .models = {}, .weight = 2}};
}

void start(Cluster& cluster, RandomWorld& world) {
  for (const Event& event : world.start()) testing::apply(cluster, event);
  testing::NodeBuilder told("told");  // pods ask for devices where some node tells of its own
  testing::add(cluster, told.cpu(0).gpus("T4", 1, 16000).label("nvidia.com/gpu.product", "T4"));
}

// A few worlds, one policy: events come in and pods are placed between them.
std::uint64_t plan_of(std::string_view policy_name) {
  Digest plan;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    RandomWorld world(seed, kOptions);
    const auto policy = std::move(make_policy(policy_name, seed)).value();
    Cluster cluster;
    start(cluster, world);
    Scheduler scheduler(cluster, *policy);
    scheduler.set_mix(mix());
    for (int step = 0; step < 150; ++step) {
      testing::apply(cluster, world.event());
      if (step % 10 == 9) decide_all(cluster, scheduler, plan);
    }
    plan.add(cluster.digest());
  }
  return plan.value();
}

std::vector<std::uint64_t> plans_with(std::size_t jobs) {
  const auto all = policies();
  std::vector<std::uint64_t> plans(all.size());
  parallel_for(all.size(), jobs, [&](std::size_t i) { plans[i] = plan_of(all[i].name); });
  return plans;
}

TEST(Determinism, EqualOnOneTwoAndEightThreads) {
  const std::vector<std::uint64_t> alone = plans_with(1);
  EXPECT_EQ(alone, plans_with(1));
  EXPECT_EQ(alone, plans_with(2));
  EXPECT_EQ(alone, plans_with(8));
}

// A change of these numbers is a change of decisions: if it is meant, put the new ones here; both
// compilers must give the same.
TEST(Determinism, PlansAreTheOnesWrittenDown) {
  struct Known {
    std::string_view policy;
    std::string_view plan;
  };
  constexpr Known kKnown[] = {
      {"kube", "8cd6666185094227"},        {"random", "d04d72a88d661e4a"},
      {"dot-product", "8a45526383ac4fc1"}, {"clustering", "52fe2f2318240b24"},
      {"packing", "e0b963e5cbc240e8"},     {"best-fit", "3df016c44c169370"},
      {"fgd", "14dacc8316332d95"},         {"jogak", "18fb601c871fa27f"},
  };
  for (const Known& known : kKnown) {
    EXPECT_EQ(fmt::format("{:016x}", plan_of(known.policy)), known.plan) << known.policy;
  }
}

TEST(Determinism, EqualFromASnapshot) {
  for (const PolicyInfo& info : policies()) {
    RandomWorld world(7, kOptions);
    Cluster cluster;
    start(cluster, world);
    for (std::int32_t i = 0; i < 60; ++i) {
      PodSpec pod = world.pod(i);
      if (world.rng().chance(1, 4)) world.bind(pod);
      ASSERT_TRUE(cluster.upsert_pod(pod).has_value());
    }
    const auto fill = std::move(make_policy(info.name, 1)).value();
    Digest before;
    Scheduler first(cluster, *fill);
    decide_all(cluster, first, before);

    const auto snapshot = importer::export_list(cluster);
    ASSERT_TRUE(snapshot.has_value()) << snapshot.error().what;
    Cluster copy;
    const auto report = importer::import_list(*snapshot, "snapshot", copy);
    ASSERT_TRUE(report.has_value()) << report.error().what;
    ASSERT_EQ(copy.digest(), cluster.digest()) << info.name;

    // The rest of the pods, with nothing remembered on either side.
    std::vector<std::uint64_t> plans;
    for (Cluster* const c : {&cluster, &copy}) {
      RandomWorld more(8, kOptions);
      for (std::int32_t i = 60; i < 120; ++i) {
        ASSERT_TRUE(c->upsert_pod(more.pod(i)).has_value());
      }
      const auto policy = std::move(make_policy(info.name, 2)).value();
      Scheduler scheduler(*c, *policy);
      scheduler.set_mix(mix());
      Digest plan;
      decide_all(*c, scheduler, plan);
      plans.push_back(plan.value());
      plans.push_back(c->digest());
    }
    EXPECT_EQ(plans[0], plans[2]) << info.name;
    EXPECT_EQ(plans[1], plans[3]) << info.name;
  }
}

}  // namespace
}  // namespace jogak::core
