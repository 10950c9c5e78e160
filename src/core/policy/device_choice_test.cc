// SPDX-License-Identifier: Apache-2.0
// Which devices of a node are taken.
#include <gtest/gtest.h>

#include "core/model/testing.h"
#include "core/policy/policy.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::NodeBuilder;
using testing::PodBuilder;

using Picks = std::vector<std::pair<std::int32_t, std::int32_t>>;  // (device, MIG start)

Picks picks(const std::vector<GpuHold>& holds) {
  Picks out;
  for (const GpuHold& hold : holds) out.emplace_back(hold.gpu, hold.mig_start);
  return out;
}

NodeBuilder linked(std::string name, const std::vector<std::uint32_t>& links,
                   const std::vector<std::int32_t>& numa) {
  NodeBuilder node(std::move(name));
  node.gpus("A100", static_cast<std::int32_t>(links.size()), 0);
  for (std::size_t i = 0; i < links.size(); ++i) {
    node.spec().gpus[i].nvlink_mask = links[i];
    if (!numa.empty()) node.spec().gpus[i].numa_node = numa[i];
  }
  return node;
}

TEST(ChooseClose, PrefersLinkedDevices) {
  // 0-2 and 1-3 are linked.
  Cluster cluster;
  const NodeId node = add(cluster, linked("n", {0b0100, 0b1000, 0b0001, 0b0010}, {}));
  std::vector<GpuHold> holds;
  choose_close(cluster.node(node), 2, holds);
  EXPECT_EQ(picks(holds), (Picks{{0, -1}, {2, -1}}));
}

TEST(ChooseClose, ThenOneNumaNode) {
  Cluster cluster;
  const NodeId node = add(cluster, linked("n", {0, 0, 0, 0}, {1, 0, 1, 0}));
  std::vector<GpuHold> holds;
  choose_close(cluster.node(node), 2, holds);
  EXPECT_EQ(picks(holds), (Picks{{0, -1}, {2, -1}}));
}

TEST(ChooseClose, LeavesTheBestConnectedRest) {
  // 1, 2, 3 form a triangle and 0 stands alone: a single device is best taken from outside it.
  Cluster cluster;
  const NodeId node = add(cluster, linked("n", {0b1100, 0b1100, 0b1011, 0b0111}, {}));
  std::vector<GpuHold> holds;
  choose_close(cluster.node(node), 1, holds);
  EXPECT_EQ(picks(holds), (Picks{{0, -1}}));
}

TEST(ChooseClose, WithoutTopologyTakesTheFirstFree) {
  Cluster cluster;
  const NodeId node = add(cluster, NodeBuilder("n").gpus("T4", 4, 0));
  add(cluster, PodBuilder("h").gpus(1).on("n", {{1, 0, -1}}));
  std::vector<GpuHold> holds;
  choose_close(cluster.node(node), 2, holds);
  EXPECT_EQ(picks(holds), (Picks{{0, -1}, {2, -1}}));
}

TEST(ChooseClose, ManyDevicesAreStillChosenFast) {
  // C(32, 16) sets are too many to look at; the greedy way must still find the linked half.
  std::vector<std::uint32_t> links(32, 0xffff0000U);
  for (std::size_t i = 0; i < 16; ++i) links[i] = 0x0000ffffU;
  for (std::size_t i = 0; i < 32; ++i) links[i] &= ~(1U << i);
  Cluster cluster;
  const NodeId node = add(cluster, linked("n", links, {}));
  std::vector<GpuHold> holds;
  choose_close(cluster.node(node), 16, holds);
  ASSERT_EQ(holds.size(), 16U);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(holds[i].gpu, static_cast<std::int32_t>(i));
}

TEST(ChooseTightest, SeveralSharesGoToDifferentDevices) {
  Cluster cluster;
  const NodeId node = add(cluster, NodeBuilder("n").gpus("T4", 3, 0));
  add(cluster, PodBuilder("h").gpu_milli(500).on("n", {{2, 500, -1}}));
  std::vector<GpuHold> holds;
  choose_tightest(cluster.node(node), {GpuAsk::ShareMilli, 2, 400, "", {}}, holds);
  EXPECT_EQ(picks(holds), (Picks{{0, -1}, {2, -1}}));
}

TEST(ChooseTightest, MibSharesCountAgainstMemory) {
  Cluster cluster;
  const NodeId node = add(cluster, NodeBuilder("n").gpus("T4", 2, 16000));
  add(cluster, PodBuilder("h").gpu_mib(10000).on("n", {{1, 10000, -1}}));
  std::vector<GpuHold> holds;
  choose_tightest(cluster.node(node), {GpuAsk::ShareMib, 1, 6000, "", {}}, holds);
  EXPECT_EQ(picks(holds), (Picks{{1, -1}}));
  holds.clear();
  choose_tightest(cluster.node(node), {GpuAsk::ShareMib, 1, 6001, "", {}}, holds);
  EXPECT_EQ(picks(holds), (Picks{{0, -1}}));
}

class ChooseMig : public ::testing::Test {
 protected:
  static GpuSpec cut() {
    GpuSpec gpu;
    gpu.memory_mib = 81920;
    gpu.mig_enabled = true;
    gpu.mig_dynamic = true;
    return gpu;
  }
  Picks choose(NodeId node, const PodBuilder& pod) {
    const PodView v = testing::view(cluster, pod);
    std::vector<GpuHold> holds;
    choose_mig(cluster, cluster.node(node), *v.shape, holds);
    return picks(holds);
  }
  Cluster cluster;
};

TEST_F(ChooseMig, PacksADeviceBeforeItOpensAnother) {
  NodeBuilder builder("n");
  builder.gpu(cut()).gpu(cut());
  builder.spec().gpu_model = "NVIDIA-A100-SXM4-80GB";
  const NodeId node = add(cluster, builder);
  add(cluster, PodBuilder("h").mig("1g.10gb").on("n", {{1, 0, 6}}));
  const Picks one = choose(node, PodBuilder("p").mig("1g.10gb"));
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].first, 1);
  EXPECT_EQ(choose(node, PodBuilder("r").mig("7g.80gb")), (Picks{{0, 0}}));
}

TEST_F(ChooseMig, UsesTheSlotsOfAFixedLayout) {
  GpuSpec gpu = cut();
  gpu.mig_dynamic = false;
  gpu.mig_instances = {{"3g.40gb", 4}, {"1g.10gb", 0}, {"1g.10gb", 1}};
  NodeBuilder builder("n");
  builder.gpu(gpu);
  builder.spec().gpu_model = "NVIDIA-A100-SXM4-80GB";
  const NodeId node = add(cluster, builder);
  EXPECT_EQ(choose(node, PodBuilder("p").mig("1g.10gb", 2)), (Picks{{0, 0}, {0, 1}}));
  EXPECT_EQ(choose(node, PodBuilder("q").mig("3g.40gb")), (Picks{{0, 4}}));
  EXPECT_TRUE(choose(node, PodBuilder("r").mig("2g.20gb")).empty());
}

TEST_F(ChooseMig, OneMediaInstancePerDevice) {
  NodeBuilder builder("n");
  builder.gpu(cut()).gpu(cut());
  builder.spec().gpu_model = "NVIDIA-A100-SXM4-80GB";
  const NodeId node = add(cluster, builder);
  const Picks two = choose(node, PodBuilder("p").mig("1g.10gb+me", 2));
  ASSERT_EQ(two.size(), 2U);
  EXPECT_NE(two[0].first, two[1].first);
}

}  // namespace
}  // namespace jogak::core
