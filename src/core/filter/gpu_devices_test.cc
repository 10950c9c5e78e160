// SPDX-License-Identifier: Apache-2.0
// The device-exact GPU filter on small nodes: whole devices, shares and MIG instances, beside known
// and unknown holders.
#include "core/filter/gpu_devices.h"

#include <gtest/gtest.h>

#include "core/model/testing.h"

namespace jogak::core {
namespace {

using testing::add;
using testing::NodeBuilder;
using testing::PodBuilder;

constexpr Verdict kFits = {};
constexpr Verdict kNotNow = {Plugin::GpuDevices, Code::Unschedulable};
constexpr Verdict kNever = {Plugin::GpuDevices, Code::Unresolvable};
constexpr const char* kA100 = "NVIDIA-A100-SXM4-80GB";

// One node "n1"; pods on it are added with their devices.
struct World {
  explicit World(const NodeBuilder& node) : id(add(cluster, node)) {}

  Verdict ask(PodBuilder pod, std::string_view reason = "") {
    pod.spec().name = "asker" + std::to_string(asked++);
    const PodView view = testing::view(cluster, pod);
    Reasons reasons;
    const Verdict verdict = gpu_devices_filter(cluster, view, cluster.node(id), &reasons);
    EXPECT_EQ(reasons, verdict.fits() ? Reasons{} : Reasons{std::string(reason)});
    return verdict;
  }

  Cluster cluster;
  NodeId id;
  int asked = 0;
};

constexpr std::string_view kShare = "Insufficient GPU share";
constexpr std::string_view kMemory = "Insufficient GPU memory";
constexpr std::string_view kWhole = "Insufficient free GPUs";
constexpr std::string_view kMig = "Insufficient MIG placement";

// GPU 0 whole, GPU 1 with 700 thousandths taken, GPU 2 and 3 free; 80,000 MiB each.
struct FourGpus : World {
  FourGpus() : World(NodeBuilder("n1").gpus(kA100, 4, 80000)) {
    add(cluster, PodBuilder("whole").gpus(1).on("n1", {{0, 0, -1}}));
    add(cluster, PodBuilder("share").gpu_milli(700).on("n1", {{1, 700, -1}}));
  }
};

TEST(GpuDevices, WholeGpusNeedDevicesThatNobodyIsOn) {
  FourGpus world;
  EXPECT_EQ(world.ask(PodBuilder("p").gpus(2)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").gpus(3), kWhole), kNotNow);
  EXPECT_EQ(world.ask(PodBuilder("p").gpus(5), kWhole), kNever);
}

TEST(GpuDevices, SharesNeedDifferentDevices) {
  FourGpus world;
  EXPECT_EQ(world.ask(PodBuilder("p").gpu_milli(300, 3)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").gpu_milli(301, 3), kShare), kNotNow);
  EXPECT_EQ(world.ask(PodBuilder("p").gpu_milli(301, 2)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").gpu_milli(1, 5), kShare), kNever);
}

TEST(GpuDevices, MemorySharesAreExactBesideThousandths) {
  FourGpus world;  // GPU 1 has 24,000 MiB left
  EXPECT_EQ(world.ask(PodBuilder("p").gpu_mib(24000, 3)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").gpu_mib(24001, 3), kMemory), kNotNow);
  EXPECT_EQ(world.ask(PodBuilder("p").gpu_mib(80001), kMemory), kNever);
}

TEST(GpuDevices, UnknownMemoryServesThousandthsOnly) {
  World world(NodeBuilder("n1").gpus(kA100, 1, 0));
  EXPECT_EQ(world.ask(PodBuilder("p").gpu_milli(999)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").gpu_mib(1), kMemory), kNever);
}

TEST(GpuDevices, UnknownHoldersKeepDevicesBusy) {
  World world(NodeBuilder("n1").gpus(kA100, 3, 80000));
  PodBuilder unknown("unknown");
  add(world.cluster, unknown.gpus(2).on("n1"));
  EXPECT_EQ(world.ask(PodBuilder("p").gpus(1)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").gpus(2), kWhole), kNotNow);
  EXPECT_EQ(world.ask(PodBuilder("p").gpu_milli(10)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").gpu_milli(10, 2), kShare), kNotNow);
}

TEST(GpuDevices, SickAndPartitionedDevicesAreNotGivenOutWhole) {
  GpuSpec sick;
  sick.health = GpuHealth::Unhealthy;
  GpuSpec partitioned;
  partitioned.mig_enabled = true;
  partitioned.mig_dynamic = true;
  World world(NodeBuilder("n1").gpus(kA100, 1, 80000).gpu(sick).gpu(partitioned));
  EXPECT_EQ(world.ask(PodBuilder("p").gpus(1)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").gpus(2), kWhole), kNever);
  EXPECT_EQ(world.ask(PodBuilder("p").gpu_milli(1, 2), kShare), kNever);
}

TEST(GpuDevices, ModelsLimitTheNodes) {
  World world(NodeBuilder("n1").gpus(kA100, 1, 80000));
  EXPECT_EQ(world.ask(PodBuilder("p").gpus(1).gpu_model("NVIDIA-L40S").gpu_model(kA100)), kFits);
  EXPECT_EQ(
      world.ask(PodBuilder("p").gpus(1).gpu_model("NVIDIA-L40S"), "node(s) didn't match GPU model"),
      kNever);
}

TEST(GpuDevices, AModelMayBeNamedByWholeWordsOfItsName) {
  constexpr const char* kOther = "node(s) didn't match GPU model";
  World world(NodeBuilder("n1").gpus(kA100, 1, 80000));
  for (const char* name : {"A100", "a100", "A100-SXM4", "SXM4-80gb", "nvidia"}) {
    EXPECT_EQ(world.ask(PodBuilder("p").gpus(1).gpu_model(name)), kFits) << name;
  }
  for (const char* name : {"A10", "100", "A100-SXM", "H100", "NVIDIA-A100-SXM4-80GB-X"}) {
    EXPECT_EQ(world.ask(PodBuilder("p").gpus(1).gpu_model(name), kOther), kNever) << name;
  }
}

TEST(GpuDevices, WithoutDetailOnlyCountingIsLeft) {
  World world(NodeBuilder("n1").resource("nvidia.com/gpu", 8));
  constexpr std::string_view kNoDetail = "node(s) didn't report GPU devices";
  EXPECT_EQ(world.ask(PodBuilder("p").gpus(4)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").gpu_milli(500), kNoDetail), kNever);
  EXPECT_EQ(world.ask(PodBuilder("p").gpu_mib(500), kNoDetail), kNever);
  EXPECT_EQ(world.ask(PodBuilder("p").mig("1g.10gb"), kNoDetail), kNever);
  EXPECT_EQ(world.ask(PodBuilder("p").cpu(1)), kFits);
}

NodeBuilder mig_node(int count, bool dynamic, std::vector<MigInstanceSpec> instances = {}) {
  NodeBuilder node("n1");
  node.gpus(kA100, 0, 80000);
  for (int i = 0; i < count; ++i) {
    GpuSpec gpu;
    gpu.memory_mib = 80000;
    gpu.mig_enabled = true;
    gpu.mig_dynamic = dynamic;
    gpu.mig_instances = instances;
    node.gpu(gpu);
  }
  return node;
}

TEST(GpuDevices, InstancesAreCutOnDemand) {
  World world(mig_node(2, true));
  EXPECT_EQ(world.ask(PodBuilder("p").mig("1g.10gb", 14)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").mig("1g.10gb", 15), kMig), kNever);
  EXPECT_EQ(world.ask(PodBuilder("p").mig("3g.40gb", 4)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").mig("4g.40gb", 3), kMig), kNever);
  EXPECT_EQ(world.ask(PodBuilder("p").mig("9g.90gb"), kMig), kNever);
}

TEST(GpuDevices, CutsGoWhereInstancesLeaveRoom) {
  World world(mig_node(1, true));
  // Slices 0-3 and 6 are taken: a 3g needs 0-3 or 4-7, a 2g may still start at 4.
  add(world.cluster, PodBuilder("a").mig("3g.40gb").on("n1", {{0, 0, 0}}));
  add(world.cluster, PodBuilder("b").mig("1g.10gb").on("n1", {{0, 0, 6}}));
  EXPECT_EQ(world.ask(PodBuilder("p").mig("3g.40gb"), kMig), kNotNow);
  EXPECT_EQ(world.ask(PodBuilder("p").mig("2g.20gb")), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").mig("1g.10gb", 2)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").mig("1g.10gb", 3), kMig), kNotNow);
}

TEST(GpuDevices, OneInstanceWithMediaEnginesPerGpu) {
  World world(mig_node(2, true));
  EXPECT_EQ(world.ask(PodBuilder("p").mig("1g.10gb+me", 2)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").mig("1g.10gb+me", 3), kMig), kNever);
  add(world.cluster, PodBuilder("a").mig("1g.10gb+me").on("n1", {{0, 0, 0}}));
  EXPECT_EQ(world.ask(PodBuilder("p").mig("1g.10gb+me", 1)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").mig("1g.10gb+me", 2), kMig), kNotNow);
}

TEST(GpuDevices, AFixedLayoutOffersOnlyItsInstances) {
  World world(mig_node(1, false, {{"3g.40gb", 0}, {"2g.20gb", 4}, {"1g.10gb", 6}}));
  EXPECT_EQ(world.ask(PodBuilder("p").mig("2g.20gb")), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").mig("2g.20gb", 2), kMig), kNever);
  add(world.cluster, PodBuilder("a").mig("2g.20gb").on("n1", {{0, 0, 4}}));
  EXPECT_EQ(world.ask(PodBuilder("p").mig("2g.20gb"), kMig), kNotNow);
  EXPECT_EQ(world.ask(PodBuilder("p").mig("1g.10gb")), kFits);
}

TEST(GpuDevices, AnInstanceNobodyLocatedTakesASlotOfItsProfile) {
  World world(mig_node(1, false, {{"3g.40gb", 0}, {"3g.40gb", 4}}));
  add(world.cluster, PodBuilder("unknown").mig("3g.40gb").on("n1"));
  EXPECT_EQ(world.ask(PodBuilder("p").mig("3g.40gb")), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").mig("3g.40gb", 2), kMig), kNotNow);
}

TEST(GpuDevices, AnInstanceNobodyLocatedMayLieAcrossSeveralPlaces) {
  World world(mig_node(1, true));
  add(world.cluster, PodBuilder("unknown").mig("3g.40gb").on("n1"));
  // Seven places for 1g less the four slices the unknown one may cover.
  EXPECT_EQ(world.ask(PodBuilder("p").mig("1g.10gb", 3)), kFits);
  EXPECT_EQ(world.ask(PodBuilder("p").mig("1g.10gb", 4), kMig), kNotNow);
}

}  // namespace
}  // namespace jogak::core
