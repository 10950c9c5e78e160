// SPDX-License-Identifier: Apache-2.0
// F on small states, and against its definition written down once more.
#include "core/policy/fragmentation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "core/model/testing.h"

namespace jogak::core {
namespace {

MixClass pods(std::int64_t cpu, std::int32_t count, std::int32_t milli, std::int64_t weight,
              std::vector<std::string> models = {}) {
  return {.cpu = cpu,
          .memory = 0,
          .gpu_count = count,
          .gpu_milli = milli,
          .models = std::move(models),
          .weight = weight};
}

class Fragmentation : public ::testing::Test {
 protected:
  Cluster cluster;
  Symbol t4 = cluster.symbol("T4");
  FragMix mix;

  std::int64_t f(std::int64_t cpu, std::vector<std::int32_t> free) {
    return mix.fragmentation(t4, cpu, free);
  }
};

TEST_F(Fragmentation, SmallPiecesOfAFittingClassCount) {
  mix.prepare(cluster, {pods(1000, 1, 500, 1)});
  EXPECT_EQ(f(1000, {0, 0}), 0);
  EXPECT_EQ(f(1000, {1000, 1000}), 0);
  EXPECT_EQ(f(1000, {300, 1000}), 300);
  EXPECT_EQ(f(1000, {300, 400}), 700);   // fits nowhere: all of it
  EXPECT_EQ(f(999, {300, 1000}), 1300);  // lacks CPU: all of it
}

TEST_F(Fragmentation, WholeDevicesNeedEnoughOfThem) {
  mix.prepare(cluster, {pods(0, 2, 1000, 1)});
  EXPECT_EQ(f(0, {500, 1000, 1000}), 500);
  EXPECT_EQ(f(0, {500, 500, 1000}), 2000);
}

TEST_F(Fragmentation, CpuOnlyAndExcludedModelsLoseEverything) {
  mix.prepare(cluster, {pods(1000, 0, 0, 3), pods(0, 1, 1000, 2, {"A100"})});
  EXPECT_EQ(f(1000, {700}), 5 * 700);
  const std::vector<std::int32_t> free = {700};
  const FragBreakdown b = mix.breakdown(t4, 1000, free);
  EXPECT_EQ(b.by_cause[static_cast<std::size_t>(FragCause::CpuOnlyFits)], 3 * 700);
  EXPECT_EQ(b.by_cause[static_cast<std::size_t>(FragCause::ModelExcluded)], 2 * 700);
  EXPECT_EQ(mix.gpu_weight(), 2);
}

TEST_F(Fragmentation, KeepsTheMostFrequentClassesUpTo95Percent) {
  // 60 + 30 = 90 < 95; with 6 it is 96.
  mix.prepare(cluster,
              {pods(1, 1, 100, 4), pods(2, 1, 200, 6), pods(3, 1, 300, 60), pods(4, 1, 400, 30)});
  EXPECT_EQ(mix.class_count(), 3U);
  EXPECT_EQ(mix.total_weight(), 96);
}

TEST_F(Fragmentation, MergesClassesThatDifferInMemoryOnly) {
  MixClass a = pods(1, 1, 100, 4);
  MixClass b = a;
  b.memory = 5;
  mix.prepare(cluster, {a, b});
  EXPECT_EQ(mix.class_count(), 1U);
  EXPECT_EQ(mix.total_weight(), 8);
}

TEST_F(Fragmentation, HugeWeightsDoNotOverflow) {
  mix.prepare(cluster, {pods(1, 1, 500, std::int64_t{1} << 62), pods(2, 1, 1000, 1)});
  EXPECT_LE(mix.total_weight(), std::int64_t{1} << 40);
  EXPECT_GT(f(0, std::vector<std::int32_t>(32, 1000)), 0);
}

// The definition, class by class.
std::int64_t by_definition(const WorkloadMix& mix, std::string_view model, std::int64_t cpu,
                           const std::vector<std::int32_t>& free) {
  std::int64_t sum = 0;
  for (const MixClass& c : mix) {
    std::int64_t all = 0, small = 0;
    int fitting = 0;
    for (const std::int32_t g : free) {
      all += g;
      if (g >= c.gpu_milli)
        ++fitting;
      else
        small += g;
    }
    const bool allowed = c.models.empty() || std::ranges::find(c.models, model) != c.models.end();
    const bool fits = c.gpu_count > 0 && allowed && cpu >= c.cpu && fitting >= c.gpu_count;
    sum += c.weight * (fits ? small : all);
  }
  return sum;
}

TEST_F(Fragmentation, AgreesWithItsDefinition) {
  const std::uint64_t seed = 20231130;
  SCOPED_TRACE(::testing::Message() << "seed " << seed);
  Rng rng(seed, "fragmentation");
  for (int round = 0; round < 300; ++round) {
    WorkloadMix classes;
    for (std::int64_t i = 0; i < 8; ++i) {
      const std::int32_t count = static_cast<std::int32_t>(rng.below(4));
      const auto milli = static_cast<std::int32_t>(count == 1 ? 100 * (1 + rng.below(10)) : 1000);
      // Equal weights and few classes: none falls under the 95 % line.
      MixClass c =
          pods(static_cast<std::int64_t>(1000 * rng.below(8)), count, count == 0 ? 0 : milli, 1);
      c.cpu += i;  // keeps the classes apart
      if (count > 0 && rng.below(4) == 0) c.models = {rng.below(2) == 0 ? "T4" : "A100"};
      classes.push_back(std::move(c));
    }
    mix.prepare(cluster, classes);
    ASSERT_EQ(mix.class_count(), classes.size());
    std::vector<std::int32_t> free;
    for (std::uint64_t g = rng.below(9); g > 0; --g) {
      free.push_back(static_cast<std::int32_t>(50 * rng.below(21)));
    }
    std::ranges::sort(free);
    const auto cpu = static_cast<std::int64_t>(rng.below(9000));
    ASSERT_EQ(f(cpu, free), by_definition(classes, "T4", cpu, free));
    ASSERT_EQ(mix.breakdown(t4, cpu, free).fragmented(), f(cpu, free));
  }
}

}  // namespace
}  // namespace jogak::core
