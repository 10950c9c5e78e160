// SPDX-License-Identifier: Apache-2.0
// The loop and records of the openb experiment on a cluster of two nodes, and the published data.
#include "sim/openb_run.h"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/openb_published.h"
#include "sim/openb_report.h"

namespace jogak::sim {
namespace {

TEST(PercentColumn, TiesGoToEven) {
  EXPECT_EQ(percent_column(0, 1000), 0U);
  EXPECT_EQ(percent_column(4, 1000), 0U);
  EXPECT_EQ(percent_column(5, 1000), 0U);  // 0.5
  EXPECT_EQ(percent_column(6, 1000), 1U);
  EXPECT_EQ(percent_column(15, 1000), 2U);  // 1.5
  EXPECT_EQ(percent_column(25, 1000), 2U);  // 2.5
  EXPECT_EQ(percent_column(1300, 1000), 130U);
}

OpenbPod pod(std::string name, std::int32_t gpus, std::int32_t milli) {
  OpenbPod p;
  p.name = std::move(name);
  p.cpu_milli = 1000;
  p.memory_mib = 1024;
  p.gpus = gpus;
  p.gpu_milli = milli;
  return p;
}

class OpenbRunTest : public ::testing::Test {
 protected:
  OpenbRunTest() {
    nodes.nodes = {{"a", 8000, 16384, 1, "T4"}, {"b", 8000, 16384, 2, "T4"}};
    variant.name = "tiny";
    variant.pods.pods = {pod("half", 1, 500), pod("whole", 1, 1000), pod("two", 2, 1000)};
    variant.mix = openb_mix(variant.pods);
    order.seed = 42;
    order.node_rank = {0, 1};
  }
  OpenbResult run(std::string_view policy, std::vector<std::int32_t> arrivals) {
    order.arrivals = std::move(arrivals);
    auto result = run_openb(nodes, variant, order, variant.mix,
                            {.policy = policy, .keep_placements = true, .check = true});
    EXPECT_TRUE(result.has_value());
    return *std::move(result);
  }
  OpenbNodes nodes;
  OpenbVariant variant;
  OpenbOrder order;
};

TEST_F(OpenbRunTest, DropsWhatDoesNotFitAndGoesOn) {
  // 3 GPUs. Best-fit puts the half on a (least left), then the pair takes b; the whole has no room.
  const OpenbResult r = run("best-fit", {0, 2, 1, 0});
  EXPECT_EQ(r.allocated_milli, 3000);
  EXPECT_EQ(r.failed_pods(), 1);
  ASSERT_EQ(r.failures.size(), 1U);
  EXPECT_EQ(r.failures[0].example.name, "whole");
  ASSERT_EQ(r.placements.size(), 3U);
  EXPECT_EQ(r.placements[0], "tiny,best-fit,42,0,half,a,0:500");
  EXPECT_EQ(r.placements[1], "tiny,best-fit,42,1,two,b,0 1");
  EXPECT_EQ(r.placements[2], "tiny,best-fit,42,3,half,a,0:500");
  // Arrived 500, 2500, 3500, 4000 of 3000: columns 17, 83, 117, and 133, which is past the last.
  EXPECT_NEAR(r.allocated_percent(17), 100.0 / 6, 1e-9);
  EXPECT_NEAR(r.allocated_percent(83), 250.0 / 3, 1e-9);
  EXPECT_NEAR(r.allocated_percent(117), 250.0 / 3, 1e-9);
  EXPECT_TRUE(std::isnan(r.allocated_percent(100)));
  EXPECT_EQ(r.nodes_used, 2);
  EXPECT_EQ(r.devices_touched, 3);
}

TEST_F(OpenbRunTest, MemoryIsAFilter) {
  variant.pods.pods[0].memory_mib = 16385;
  EXPECT_EQ(run("best-fit", {0}).failed_pods(), 1);
}

TEST_F(OpenbRunTest, NodeOrderSettlesEqualScores) {
  nodes.nodes[0] = {"a", 8000, 16384, 2, "T4"};
  EXPECT_NE(run("packing", {1}).placements[0].find(",a,"), std::string::npos);
  order.node_rank = {1, 0};
  EXPECT_NE(run("packing", {1}).placements[0].find(",b,"), std::string::npos);
}

TEST_F(OpenbRunTest, EqualRunsHaveEqualDigests) {
  for (const std::string_view policy : {"random", "fgd", "kube"}) {
    EXPECT_EQ(run(policy, {0, 1, 2, 0}).digest, run(policy, {0, 1, 2, 0}).digest);
  }
  EXPECT_NE(run("fgd", {0, 1, 2, 0}).digest, run("fgd", {1, 0, 2, 0}).digest);
}

TEST(OpenbReport, AveragesAndDeviations) {
  const MeanDeviation v = mean_deviation({1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(v.mean, 2.5);
  EXPECT_NEAR(v.deviation, std::sqrt(5.0 / 3), 1e-12);
  EXPECT_DOUBLE_EQ(mean_deviation({7}).deviation, 0);
}

TEST(OpenbReport, FindsMissesOfThePublished) {
  ASSERT_EQ(published_variants().size(), 17U);
  const auto fgd = published_allocation("default", "fgd", 100);
  ASSERT_TRUE(fgd.has_value());
  EXPECT_EQ(fgd->mean, 9523);
  EXPECT_EQ(fgd->deviation, 11);
  EXPECT_FALSE(published_allocation("default", "jogak", 100).has_value());
  EXPECT_FALSE(published_allocation("default", "fgd", 99).has_value());

  OpenbSummary summary;
  summary.variant = "default";
  summary.policy = "fgd";
  summary.allocated[100] = {.count = 10, .mean = 95.23 + 0.32, .deviation = 0};
  summary.allocated[130] = {.count = 10, .mean = 95.39, .deviation = 0};
  EXPECT_TRUE(published_misses({&summary, 1}).empty());
  summary.allocated[100].mean = 95.23 + 0.34;
  const auto misses = published_misses({&summary, 1});
  ASSERT_EQ(misses.size(), 1U);
  EXPECT_NE(misses[0].find("default fgd at 100 %"), std::string::npos);
  summary.allocated[130].count = 0;  // no record there: not a hit
  EXPECT_EQ(published_misses({&summary, 1}).size(), 2U);
}

}  // namespace
}  // namespace jogak::sim
