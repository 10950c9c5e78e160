// SPDX-License-Identifier: Apache-2.0
// The published baselines on states small enough to work out by hand.
#include <gtest/gtest.h>

#include "core/model/testing.h"
#include "core/policy/best_fit.h"
#include "core/policy/clustering.h"
#include "core/policy/dot_product.h"
#include "core/policy/packing.h"
#include "core/policy/policy.h"
#include "core/policy/random.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::NodeBuilder;
using testing::PodBuilder;
using testing::view;

// Score of a pod on a node, after the policy saw the cluster.
std::int64_t score_on(Policy& policy, Cluster& cluster, const PodBuilder& pod, NodeId node) {
  const PodView v = view(cluster, pod);
  policy.prepare(cluster, {});
  return policy.score(cluster, *v.shape, cluster.node(node));
}

std::vector<std::int32_t> chosen(Policy& policy, Cluster& cluster, const PodBuilder& pod,
                                 NodeId node) {
  const PodView v = view(cluster, pod);
  policy.prepare(cluster, {});
  std::vector<GpuHold> holds;
  policy.choose(cluster, *v.shape, cluster.node(node), holds);
  std::vector<std::int32_t> gpus;
  for (const GpuHold& hold : holds) gpus.push_back(hold.gpu);
  return gpus;
}

class Baselines : public ::testing::Test {
 protected:
  // 64 cpu, two devices; `used` has 16 cpu and 400 milli of device 1 taken.
  Cluster cluster;
  NodeId empty = add(cluster, NodeBuilder("empty").gpus("T4", 2, 0));
  NodeId used = add(cluster, NodeBuilder("used").gpus("T4", 2, 0));
  PodId holder = add(cluster, PodBuilder("h").cpu(16).gpu_milli(400).on("used", {{1, 400, -1}}));
};

TEST_F(Baselines, BestFitLeavesLeast) {
  BestFitPolicy policy;
  // 100 - 50 * (64000 - 8000) / 128000 - 50 * (2000 - 500) / 8000 = 100 - 21.875 - 9.375 = 68.75
  EXPECT_EQ(score_on(policy, cluster, PodBuilder("p").cpu(8).gpu_milli(500), empty), 68);
  // 100 - 50 * 40/128 - 50 * 1100/8000 = 100 - 15.625 - 6.875 = 77.5
  EXPECT_EQ(score_on(policy, cluster, PodBuilder("q").cpu(8).gpu_milli(500), used), 77);
}

TEST_F(Baselines, DotProductWantsTheSmallestProduct) {
  DotProductPolicy policy;
  // 100 - 50 * (0.5 * 0.0625 + 0.25 * 0.0625) = 97.65625
  EXPECT_EQ(score_on(policy, cluster, PodBuilder("p").cpu(8).gpu_milli(500), empty), 97);
  // 100 - 50 * (0.375 * 0.25 + 0.2 * 0.25) = 92.8125
  EXPECT_EQ(score_on(policy, cluster, PodBuilder("q").cpu(32).gpus(2), used), 92);
}

TEST_F(Baselines, ClusteringGathersOneKindOfPod) {
  ClusteringPolicy policy;
  // b: empty 25 * 6000 / 8000 = 18; used 25 * 6400 / 8000 = 20
  EXPECT_EQ(score_on(policy, cluster, PodBuilder("cpu").cpu(1), used), 0);
  EXPECT_EQ(score_on(policy, cluster, PodBuilder("s1").gpu_milli(300), empty), 25 + 18);
  EXPECT_EQ(score_on(policy, cluster, PodBuilder("s2").gpu_milli(300), used), 75 + 20);
  EXPECT_EQ(score_on(policy, cluster, PodBuilder("w1").gpus(1), used), 20);
  add(cluster, PodBuilder("w").gpus(1).on("used", {{0, 0, -1}}));
  // R is 600 now: b = 25 * 7400 / 8000 = 23
  EXPECT_EQ(score_on(policy, cluster, PodBuilder("s3").gpu_milli(300), used), 50 + 23);
}

TEST_F(Baselines, PackingFillsWhatIsOpen) {
  PackingPolicy policy;
  EXPECT_EQ(score_on(policy, cluster, PodBuilder("cpu").cpu(1), used), 0);
  EXPECT_EQ(score_on(policy, cluster, PodBuilder("s1").gpu_milli(300), empty), 33 - 2);
  // device 1 has 600 left: 100 - trunc(60 / 10)
  EXPECT_EQ(score_on(policy, cluster, PodBuilder("s2").gpu_milli(300), used), 94);
  // only device 0 has 700, and it is fully free
  EXPECT_EQ(score_on(policy, cluster, PodBuilder("s3").gpu_milli(700), used), 49);
  EXPECT_EQ(score_on(policy, cluster, PodBuilder("w1").gpus(1), used), 49);
}

TEST_F(Baselines, SharesGoToTheTightestDevice) {
  BestFitPolicy policy;
  EXPECT_EQ(chosen(policy, cluster, PodBuilder("a").gpu_milli(600), used),
            std::vector<std::int32_t>{1});
  EXPECT_EQ(chosen(policy, cluster, PodBuilder("b").gpu_milli(601), used),
            std::vector<std::int32_t>{0});
  EXPECT_EQ(chosen(policy, cluster, PodBuilder("c").gpu_milli(600), empty),
            std::vector<std::int32_t>{0});
}

TEST_F(Baselines, CountedGpusAreSeenWithoutDeviceDetail) {
  // Eight counted devices, six in use: R = 2000, and a pod that asks in the counted way has r =
  // 1000.
  const NodeId counted = add(cluster, NodeBuilder("counted").resource("nvidia.com/gpu", 8));
  add(cluster, PodBuilder("six").cpu(0).resource("nvidia.com/gpu", 6).on("counted"));
  BestFitPolicy policy;
  const auto pod = PodBuilder("p").cpu(64).resource("nvidia.com/gpu", 1);
  // 100 - 0 - 50 * 1000 / 8000 = 93.75
  EXPECT_EQ(score_on(policy, cluster, pod, counted), 93);
  EXPECT_TRUE(
      chosen(policy, cluster, PodBuilder("q").resource("nvidia.com/gpu", 1), counted).empty());
}

TEST_F(Baselines, RandomPicksOneNodeAndRepeatsFromItsSeed) {
  const PodView v = view(cluster, PodBuilder("p").gpu_milli(100));
  const std::vector<NodeId> feasible = {empty, used};
  std::vector<int> hits(2);
  RandomPolicy policy(7);
  RandomPolicy again(7);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::int64_t> scores(2), same(2);
    policy.score_all(cluster, v, feasible, scores);
    again.score_all(cluster, v, feasible, same);
    EXPECT_EQ(scores, same);
    EXPECT_EQ(scores[0] + scores[1], 1);
    ++hits[scores[0] == 1 ? 0 : 1];
  }
  EXPECT_GT(hits[0], 60);
  EXPECT_GT(hits[1], 60);
}

TEST(Registry, KnowsItsPoliciesAndSuggests) {
  for (const std::string_view name :
       {"kube", "random", "dot-product", "clustering", "packing", "best-fit", "fgd"}) {
    const auto policy = make_policy(name, 1);
    ASSERT_TRUE(policy.has_value()) << name;
    EXPECT_EQ((*policy)->name(), name);
  }
  const auto wrong = make_policy("bestfit", 1);
  ASSERT_FALSE(wrong.has_value());
  EXPECT_NE(wrong.error().what.find("did you mean best-fit?"), std::string::npos);
}

}  // namespace
}  // namespace jogak::core
