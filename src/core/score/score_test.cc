// SPDX-License-Identifier: Apache-2.0
// Scores by hand: the worked example read from a running kube-scheduler, then one plugin at a time
// with the arithmetic in comments.
#include "core/score/score.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "core/model/testing.h"
#include "core/score/normalize.h"
#include "core/score/resources_score.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::exists;
using testing::greater;
using testing::in;
using testing::kGib;
using testing::kMib;
using testing::NodeBuilder;
using testing::PodBuilder;
using testing::view;

using Values = std::vector<std::int64_t>;

// What one plugin gives; nullopt: it skipped itself.
std::optional<Values> scores_of(Plugin plugin, const std::vector<PluginScores>& all) {
  for (const PluginScores& scores : all) {
    if (scores.plugin == plugin) return scores.values;
  }
  return std::nullopt;
}

std::optional<Values> scores_of(Plugin plugin, Cluster& cluster, const PodBuilder& pod,
                                const ScoreConfig& config = {}) {
  return scores_of(plugin, kube_scores(cluster, view(cluster, pod), cluster.node_order(), config));
}

// The scores of this scene were read from a running kube-scheduler 1.36.3.
TEST(KubeScores, WorkedExample) {
  Cluster cluster;
  const auto node = [](const char* name) { return NodeBuilder(name).cpu(16).memory_gib(32); };
  const auto prefer_not = TaintEffect::PreferNoSchedule;
  add(cluster, node("n1"));
  add(cluster, node("n2").taint("a", "", prefer_not).taint("b", "", prefer_not));
  add(cluster, node("n3").taint("a", "", prefer_not));
  add(cluster, PodBuilder("p1").cpu(8).memory_gib(8).on("n1"));
  add(cluster, PodBuilder("p2").cpu(2).memory_gib(24).on("n2"));
  add(cluster, PodBuilder("p3").on("n3"));  // counts as 100m and 200 MiB

  const auto all = kube_scores(cluster, view(cluster, PodBuilder("new").cpu(4).memory_gib(4)),
                               cluster.node_order());
  // n1 (25+62)/2, n2 (62+12)/2, n3 (74+86)/2
  EXPECT_EQ(scores_of(Plugin::NodeResourcesFit, all), (Values{43, 37, 80}));
  // balance 87 -> 81, 68 -> 75, 100 -> 93
  EXPECT_EQ(scores_of(Plugin::NodeResourcesBalancedAllocation, all), (Values{72, 78, 71}));
  EXPECT_EQ(scores_of(Plugin::TaintToleration, all), (Values{300, 0, 150}));
  EXPECT_EQ(scores_of(Plugin::ImageLocality, all), (Values{0, 0, 0}));
  EXPECT_EQ(scores_of(Plugin::NodeAffinity, all), std::nullopt);
  EXPECT_EQ(scores_of(Plugin::InterPodAffinity, all), std::nullopt);
  EXPECT_EQ(scores_of(Plugin::PodTopologySpread, all), std::nullopt);
}

TEST(Normalize, TheBestBecomesAHundred) {
  Values values = {0, 1, 2, 3};
  normalize(values, Direction::MoreIsBetter);
  EXPECT_EQ(values, (Values{0, 33, 66, 100}));
  values = {0, 1, 2, 3};
  normalize(values, Direction::LessIsBetter);
  EXPECT_EQ(values, (Values{100, 67, 34, 0}));
}

TEST(Normalize, NothingToTellApart) {
  Values values = {0, 0};
  normalize(values, Direction::MoreIsBetter);
  EXPECT_EQ(values, (Values{0, 0}));
  normalize(values, Direction::LessIsBetter);
  EXPECT_EQ(values, (Values{100, 100}));
}

// ---- NodeResourcesFit ------------------------------------------------------------------------

// Two nodes with 10 cpu and 100 GiB: n1 empty, n2 with 5 cpu and 80 GiB used. The pod asks for 1
// cpu and 10 GiB.
class FitStrategies : public ::testing::Test {
 protected:
  FitStrategies() {
    add(cluster_, NodeBuilder("n1").cpu(10).memory_gib(100).resource("example.com/fpga", 4));
    add(cluster_, NodeBuilder("n2").cpu(10).memory_gib(100));
    add(cluster_, PodBuilder("old").cpu(5).memory_gib(80).on("n2"));
  }
  std::optional<Values> fit(const ScoreConfig& config, PodBuilder pod = PodBuilder("p")) {
    return scores_of(Plugin::NodeResourcesFit, cluster_, pod.cpu(1).memory_gib(10), config);
  }
  Cluster cluster_;
};

TEST_F(FitStrategies, LeastAllocated) {
  // n1 (90+90)/2, n2 (40+10)/2
  EXPECT_EQ(fit({}), (Values{90, 25}));
}

TEST_F(FitStrategies, MostAllocated) {
  EXPECT_EQ(fit({.strategy = FitStrategy::MostAllocated}), (Values{10, 75}));
}

TEST_F(FitStrategies, Weights) {
  // n1 (3*90+90)/4, n2 (3*40+10)/4
  EXPECT_EQ(fit({.fit_resources = {{"cpu", 3}, {"memory", 1}}}), (Values{90, 32}));
}

TEST_F(FitStrategies, RequestedToCapacityRatio) {
  // 0 -> 0, 50 -> 100, 100 -> 0: n1 10 % twice -> 20; n2 60 % -> 80, 90 % -> 20
  EXPECT_EQ(fit({.strategy = FitStrategy::RequestedToCapacityRatio,
                 .shape = {{0, 0}, {50, 10}, {100, 0}}}),
            (Values{20, 50}));
}

TEST_F(FitStrategies, TheRatioLeavesOutResourcesThatScoreNothingAndRounds) {
  // 60 -> 0, 100 -> 100: cpu of n2 at 60 % gives 0 and is left out, memory at 90 % gives 75.
  EXPECT_EQ(fit({.strategy = FitStrategy::RequestedToCapacityRatio, .shape = {{60, 0}, {100, 10}}}),
            (Values{0, 75}));
  // cpu 10 %, memory 10 % on n1; weights 1:1 of 60 % -> 60 and 90 % -> 90 on n2; then 2:1 rounds
  // (2*60+90)/3 = 70 and 1:3 gives (60+270)/4 = 82.5 -> 83.
  EXPECT_EQ(fit({.strategy = FitStrategy::RequestedToCapacityRatio,
                 .fit_resources = {{"cpu", 1}, {"memory", 3}}}),
            (Values{10, 83}));
}

TEST_F(FitStrategies, AScalarCountsWhereThePodAsksAndTheNodeHasIt) {
  const ScoreConfig config = {.fit_resources = {{"cpu", 1}, {"example.com/fpga", 1}}};
  EXPECT_EQ(fit(config), (Values{90, 40}));
  EXPECT_EQ(fit(config, PodBuilder("q").resource("example.com/fpga", 1)), (Values{82, 40}));
}

TEST_F(FitStrategies, UnknownResourcesScoreNothing) {
  EXPECT_EQ(fit({.fit_resources = {{"example.com/none", 1}}}), (Values{0, 0}));
}

TEST(ShapeValue, IsLinearBetweenPointsAndConstantOutside) {
  const std::vector<ShapePoint> shape = {{20, 2}, {40, 10}, {90, 5}};
  EXPECT_EQ(shape_value(shape, 0), 20);
  EXPECT_EQ(shape_value(shape, 20), 20);
  EXPECT_EQ(shape_value(shape, 30), 60);
  EXPECT_EQ(shape_value(shape, 40), 100);
  EXPECT_EQ(shape_value(shape, 47), 93);  // 100 - 50*7/50
  EXPECT_EQ(shape_value(shape, 91), 50);
}

// ---- NodeResourcesBalancedAllocation ----------------------------------------------------------

TEST(BalancedAllocation, APodThatAsksForNothingIsNotScored) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1"));
  add(cluster, NodeBuilder("n2"));
  EXPECT_EQ(scores_of(Plugin::NodeResourcesBalancedAllocation, cluster,
                      PodBuilder("p").cpu(0).resource("nvidia.com/gpu", 1)),
            std::nullopt);
}

TEST(BalancedAllocation, OneResourceIsAlwaysBalanced) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1"));
  EXPECT_EQ(scores_of(Plugin::NodeResourcesBalancedAllocation, cluster, PodBuilder("p").cpu(3),
                      {.balanced_resources = {{"cpu", 1}}}),
            Values{75});
}

TEST(BalancedAllocation, ThreeResourcesUseTheStandardDeviation) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1").cpu(10).memory_gib(10).resource("nvidia.com/gpu", 10));
  // Fractions 0.2, 0.4, 0.9: mean 0.5, deviation sqrt((0.09+0.01+0.16)/3) = 0.294; 70 with the pod.
  // Alone it was balanced: 100. 50 + (50-30)/2 = 60.
  EXPECT_EQ(scores_of(Plugin::NodeResourcesBalancedAllocation, cluster,
                      PodBuilder("p").cpu(2).memory_gib(4).gpus(9),
                      {.balanced_resources = {{"cpu", 1}, {"memory", 1}, {"nvidia.com/gpu", 1}}}),
            Values{60});
}

TEST(BalancedAllocation, OvercommitCountsAsFull) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1").cpu(10).memory_gib(10));
  add(cluster, PodBuilder("old").cpu(30).on("n1"));
  // cpu 1 and memory 0: 50 before; memory 1: 100 with the pod.
  EXPECT_EQ(
      scores_of(Plugin::NodeResourcesBalancedAllocation, cluster, PodBuilder("p").memory_gib(10)),
      Values{100});
}

// ---- TaintToleration, NodeAffinity, ImageLocality ---------------------------------------------

TEST(TaintScore, OnlyPreferNoScheduleTaintsCount) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1").taint("x", "", TaintEffect::NoSchedule));
  add(cluster, NodeBuilder("n2").taint("a", "", TaintEffect::PreferNoSchedule));
  add(cluster, NodeBuilder("n3")
                   .taint("a", "", TaintEffect::PreferNoSchedule)
                   .taint("b", "", TaintEffect::PreferNoSchedule)
                   .taint("c", "", TaintEffect::PreferNoSchedule));
  EXPECT_EQ(scores_of(Plugin::TaintToleration, cluster, PodBuilder("p")), (Values{300, 201, 0}));
  EXPECT_EQ(scores_of(Plugin::TaintToleration, cluster,
                      PodBuilder("q").tolerate_key("a", TaintEffect::PreferNoSchedule)),
            (Values{300, 300, 0}));
  EXPECT_EQ(scores_of(Plugin::TaintToleration, cluster,
                      PodBuilder("r").tolerate_key("a", TaintEffect::NoSchedule)),
            (Values{300, 201, 0}));
}

TEST(NodeAffinityScore, SumsTheWeightsOfMatchingTerms) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1").label("disk", "ssd").label("cores", "16"));
  add(cluster, NodeBuilder("n2").label("disk", "hdd"));
  add(cluster, NodeBuilder("n3"));
  PodBuilder pod("p");
  pod.prefer_node(30, {in("disk", {"ssd"})}).prefer_node(20, {exists("disk")}).prefer_node(90, {});
  EXPECT_EQ(scores_of(Plugin::NodeAffinity, cluster, pod), (Values{200, 80, 0}));
}

TEST(NodeAffinityScore, ATermThatDoesNotParseIsIgnored) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1").label("cores", "16"));
  add(cluster, NodeBuilder("n2"));
  EXPECT_EQ(scores_of(Plugin::NodeAffinity, cluster,
                      PodBuilder("p")
                          .prefer_node(50, {greater("cores", "many")})
                          .prefer_node(10, {exists("cores")})),
            (Values{200, 0}));
}

TEST(ImageLocality, ScalesWithSizeAndSpread) {
  Cluster cluster;
  add(cluster, NodeBuilder("n1").image("big:v1", 500 * kMib).image("huge:v1", 100 * kGib));
  add(cluster, NodeBuilder("n2").image("big:v1", 500 * kMib).image("small:v1", 10 * kMib));
  add(cluster, NodeBuilder("n3"));
  add(cluster, NodeBuilder("n4"));
  const auto locality = [&](PodBuilder pod) {
    return scores_of(Plugin::ImageLocality, cluster, pod);
  };
  // 500 MiB on half the nodes count 250: 100*(250-23)/(1000-23)
  EXPECT_EQ(locality(PodBuilder("a").image("big:v1")), (Values{23, 23, 0, 0}));
  EXPECT_EQ(locality(PodBuilder("b").image("huge:v1")), (Values{100, 0, 0, 0}));
  EXPECT_EQ(locality(PodBuilder("c").image("small:v1")), (Values{0, 0, 0, 0}));
  EXPECT_EQ(locality(PodBuilder("d").image("unknown:v1")), (Values{0, 0, 0, 0}));
  PodBuilder two("e");
  two.image("big:v1").image("big:v1").shape().container_count = 2;
  // 100*(500-23)/(2000-23)
  EXPECT_EQ(locality(two), (Values{24, 24, 0, 0}));
}

}  // namespace
}  // namespace jogak::core
