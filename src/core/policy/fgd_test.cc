// SPDX-License-Identifier: Apache-2.0
// FGD's whole-number logistic against the exponential function, its memo against fresh computation.
#include "core/policy/fgd.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "core/engine/scheduler.h"
#include "core/model/testing.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::NodeBuilder;
using testing::PodBuilder;

std::int64_t by_doubles(double x) {
  return static_cast<std::int64_t>(100.0 / (1.0 + std::exp(-x)));
}

TEST(LogisticSteps, AgreeWithTheExponentialFunction) {
  for (const std::int64_t weight : {std::int64_t{1}, std::int64_t{7766}, std::int64_t{1} << 30}) {
    const LogisticSteps steps(weight);
    // Odd steps avoid the one exact boundary, x = 0, which is tested below.
    for (std::int64_t milli = -8001; milli <= 8000; milli += 2) {
      EXPECT_EQ(steps.step(milli * weight), by_doubles(static_cast<double>(milli) / 1000))
          << milli << " milli at weight " << weight;
    }
  }
}

TEST(LogisticSteps, EveryThresholdIsWhereTheExponentialHasIt) {
  // With a large weight a difference of one is finer than a double's rounding of the boundary.
  const std::int64_t weight = std::int64_t{1} << 40;
  const LogisticSteps steps(weight);
  for (int i = 1; i < 100; ++i) {
    const double x = std::log(static_cast<double>(i) / (100.0 - i)) * 1000;
    const auto at = static_cast<std::int64_t>(std::llround(x * static_cast<double>(weight)));
    const std::int64_t slack = weight / 1'000'000;
    EXPECT_EQ(steps.step(at - slack), i - 1);
    EXPECT_EQ(steps.step(at + slack), i);
  }
}

TEST(LogisticSteps, NoChangeIsHalf) {
  EXPECT_EQ(LogisticSteps(1).step(0), 50);
  EXPECT_EQ(LogisticSteps(12345).step(0), 50);
  EXPECT_EQ(LogisticSteps(12345).step(-1), 49);
}

TEST(ScoreMemo, KeepsWhatItWasGivenThroughGrowth) {
  ScoreMemo memo;
  EXPECT_EQ(memo.find(0), ScoreMemo::kMissing);
  for (std::uint64_t key = 0; key < 20000; ++key) {
    memo.insert(key << 32 | key, static_cast<std::int64_t>(key % 100));
  }
  EXPECT_EQ(memo.size(), 20000U);
  for (std::uint64_t key = 0; key < 20000; ++key) {
    ASSERT_EQ(memo.find(key << 32 | key), static_cast<std::int64_t>(key % 100));
  }
  EXPECT_EQ(memo.find(77), ScoreMemo::kMissing);
}

TEST(Fgd, PutsASharesWhereTheHoleIsOfNoUse) {
  // Pods of 600 milli; a share of 400 fits the remainder of device 1 and costs nothing there.
  Cluster cluster;
  const NodeId node = add(cluster, NodeBuilder("n").gpus("T4", 2, 0));
  add(cluster, PodBuilder("h").cpu(1).gpu_milli(600).on("n", {{1, 600, -1}}));
  FgdPolicy policy;
  policy.prepare(
      cluster,
      {{.cpu = 0, .memory = 0, .gpu_count = 1, .gpu_milli = 600, .models = {}, .weight = 1}});
  const PodView pod = testing::view(cluster, PodBuilder("p").cpu(1).gpu_milli(400));
  // F before: 400 on device 1. On device 1: 0, so x = 0.4 and the step is 59. On device 0: 600 left
  // there still fits, 400 stay: x = 0, 50.
  EXPECT_EQ(policy.score(cluster, *pod.shape, cluster.node(node)), 59);
  std::vector<GpuHold> holds;
  policy.choose(cluster, *pod.shape, cluster.node(node), holds);
  ASSERT_EQ(holds.size(), 1U);
  EXPECT_EQ(holds[0].gpu, 1);
}

TEST(Fgd, RememberedScoresEqualFreshOnes) {
  const std::uint64_t seed = 4711;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  Rng rng(seed, "fgd");
  Cluster cluster;
  for (int i = 0; i < 6; ++i) {
    add(cluster,
        NodeBuilder("n" + std::to_string(i)).gpus(i < 3 ? "T4" : "A100", 2 + 2 * (i % 3), 0));
  }
  const WorkloadMix mix = {
      {.cpu = 4000, .memory = 0, .gpu_count = 1, .gpu_milli = 500, .models = {}, .weight = 30},
      {.cpu = 8000, .memory = 0, .gpu_count = 1, .gpu_milli = 1000, .models = {}, .weight = 40},
      {.cpu = 2000, .memory = 0, .gpu_count = 0, .gpu_milli = 0, .models = {}, .weight = 10},
      {.cpu = 16000,
       .memory = 0,
       .gpu_count = 2,
       .gpu_milli = 1000,
       .models = {"A100"},
       .weight = 20}};
  FgdPolicy policy;
  Scheduler scheduler(cluster, policy);
  scheduler.set_mix(mix);
  for (int i = 0; i < 60; ++i) {
    PodBuilder builder("p" + std::to_string(i));
    builder.cpu(static_cast<std::int64_t>(1 + rng.below(6)));
    const std::uint64_t kind = rng.below(4);
    if (kind == 0) builder.gpus(1);
    if (kind == 1) builder.gpus(2);
    if (kind == 2) builder.gpu_milli(static_cast<std::int32_t>(100 + 100 * rng.below(8)));
    const PodId pod = add(cluster, builder);
    const Decision decision = scheduler.decide(pod);
    FgdPolicy fresh;
    fresh.prepare(cluster, mix);
    if (decision.node.valid()) {
      ASSERT_EQ(decision.score,
                fresh.score(cluster, cluster.shape_of(pod), cluster.node(decision.node)));
      scheduler.accept(decision);
    }
  }
}

}  // namespace
}  // namespace jogak::core
