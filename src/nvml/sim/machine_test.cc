// SPDX-License-Identifier: Apache-2.0
//
// The C interface of the simulation, held to what a driver does: codes, sizes, stale handles, MIG.
#include "nvml/sim/machine.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nvml/abi_constants.h"
#include "nvml/sim/c_api.h"
#include "nvml/testing/made_machine.h"

namespace jogak::nvml {
namespace {

using abi::Return;
using testing::MadeMachine;

constexpr std::string_view kOneA100 = "gpus:\n- {model: A100-SXM4-40GB, migEnabled: true}\n";

// The C interface on a made machine, initialised.
struct Interface {
  MadeMachine made;
  sim::UseMachine use;
  abi::Device device = nullptr;

  explicit Interface(std::string_view rest) : made(rest), use(made.machine.get()) {
    EXPECT_EQ(abi::nvmlInit_v2(), Return::Success);
    abi::nvmlDeviceGetHandleByIndex_v2(0, &device);
  }
  ~Interface() { abi::nvmlShutdown(); }

  abi::GpuInstance create(std::uint32_t profile, Return expected = Return::Success) const {
    abi::GpuInstance made_instance = nullptr;
    EXPECT_EQ(abi::nvmlDeviceCreateGpuInstance(device, profile, &made_instance), expected);
    return made_instance;
  }
};

TEST(CInterface, NothingBeforeInitAndNothingAfterTheLastShutdown) {
  const MadeMachine made("gpus:\n- {model: T4}\n");
  const sim::UseMachine use(made.machine.get());
  std::uint32_t count = 0;
  EXPECT_EQ(abi::nvmlDeviceGetCount_v2(&count), Return::Uninitialized);
  abi::nvmlInit_v2();
  abi::nvmlInit_v2();
  abi::nvmlShutdown();
  EXPECT_EQ(abi::nvmlDeviceGetCount_v2(&count), Return::Success);
  abi::nvmlShutdown();
  EXPECT_EQ(abi::nvmlDeviceGetCount_v2(&count), Return::Uninitialized);
  EXPECT_EQ(abi::nvmlShutdown(), Return::Uninitialized);
}

TEST(CInterface, BadHandlesVersionsAndBuffersAreRefused) {
  const Interface c("gpus:\n- {model: T4}\n");
  char name[4];
  EXPECT_EQ(abi::nvmlDeviceGetName(nullptr, name, 4), Return::InvalidArgument);
  EXPECT_EQ(abi::nvmlDeviceGetName(c.device, name, 4), Return::InsufficientSize);
  EXPECT_EQ(abi::nvmlDeviceGetName(c.device, nullptr, 4), Return::InvalidArgument);
  abi::MemoryV2 memory{};
  EXPECT_EQ(abi::nvmlDeviceGetMemoryInfo_v2(c.device, &memory), Return::ArgumentVersionMismatch);
  memory.version = 0x02000028;
  EXPECT_EQ(abi::nvmlDeviceGetMemoryInfo_v2(c.device, &memory), Return::Success);
  EXPECT_EQ(memory.total, memory.reserved + memory.free + memory.used);
  std::uint32_t current = 0;
  EXPECT_EQ(abi::nvmlDeviceGetMigMode(c.device, &current, &current), Return::NotSupported);
}

TEST(CInterface, ListsTellTheirSizeFirst) {
  const Interface c(R"(gpus:
- model: T4
  processes: [{pid: 5, memoryMib: 10}, {pid: 6, memoryMib: 20}]
)");
  std::uint32_t count = 0;
  EXPECT_EQ(abi::nvmlDeviceGetComputeRunningProcesses_v3(c.device, &count, nullptr),
            Return::InsufficientSize);
  ASSERT_EQ(count, 2U);
  abi::ProcessInfoV2 infos[2];
  EXPECT_EQ(abi::nvmlDeviceGetComputeRunningProcesses_v3(c.device, &count, infos), Return::Success);
  EXPECT_EQ(infos[1].pid, 6U);
  EXPECT_EQ(infos[1].used_gpu_memory, 20ULL << 20);
  EXPECT_EQ(infos[1].gpu_instance_id, abi::kNoInstance);
}

TEST(Mig, TheOrderOfCreationDecidesWhatFits) {
  const Interface first(kOneA100);
  for (const std::uint32_t id : {19U, 19U, 14U}) first.create(id);
  first.create(9, Return::InsufficientResources);
  const Interface second(kOneA100);
  for (const std::uint32_t id : {9U, 19U, 19U, 14U}) second.create(id);
}

TEST(Mig, SevenSmallInstancesAndNoEighth) {
  const Interface c(kOneA100);
  for (int i = 0; i < 7; ++i) {
    const abi::GpuInstance gi = c.create(19);
    abi::ComputeInstance ci = nullptr;
    EXPECT_EQ(abi::nvmlGpuInstanceCreateComputeInstance(gi, 0, &ci), Return::Success);
  }
  c.create(19, Return::InsufficientResources);
  std::set<std::string> uuids;
  for (std::uint32_t i = 0; i < 7; ++i) {
    abi::Device mig = nullptr;
    ASSERT_EQ(abi::nvmlDeviceGetMigDeviceHandleByIndex(c.device, i, &mig), Return::Success);
    char uuid[96];
    ASSERT_EQ(abi::nvmlDeviceGetUUID(mig, uuid, 96), Return::Success);
    uuids.insert(uuid);
  }
  EXPECT_EQ(uuids.size(), 7U);
}

TEST(Mig, OneMediaInstanceBecauseThereIsOneJpegEngine) {
  const Interface c(kOneA100);
  c.create(20);
  c.create(20, Return::InsufficientResources);
  c.create(19);
}

TEST(Mig, DestroyedHandlesAreStaleIndicesHaveGapsUuidsAreNew) {
  const Interface c(kOneA100);
  std::vector<abi::GpuInstance> gis;
  std::vector<abi::ComputeInstance> cis;
  for (int i = 0; i < 3; ++i) {
    gis.push_back(c.create(19));
    abi::nvmlGpuInstanceCreateComputeInstance(gis.back(), 0, &cis.emplace_back());
  }
  abi::Device mig = nullptr;
  ASSERT_EQ(abi::nvmlDeviceGetMigDeviceHandleByIndex(c.device, 1, &mig), Return::Success);
  char before[96];
  abi::nvmlDeviceGetUUID(mig, before, 96);
  EXPECT_EQ(abi::nvmlGpuInstanceDestroy(gis[1]), Return::InUse);
  EXPECT_EQ(abi::nvmlComputeInstanceDestroy(cis[1]), Return::Success);
  EXPECT_EQ(abi::nvmlGpuInstanceDestroy(gis[1]), Return::Success);
  char name[96];
  EXPECT_EQ(abi::nvmlDeviceGetName(mig, name, 96), Return::InvalidArgument);
  EXPECT_EQ(abi::nvmlDeviceGetMigDeviceHandleByIndex(c.device, 1, &mig), Return::NotFound);
  EXPECT_EQ(abi::nvmlDeviceGetMigDeviceHandleByIndex(c.device, 2, &mig), Return::Success);
  abi::ComputeInstance ci = nullptr;
  abi::nvmlGpuInstanceCreateComputeInstance(c.create(19), 0, &ci);
  ASSERT_EQ(abi::nvmlDeviceGetMigDeviceHandleByIndex(c.device, 1, &mig), Return::Success);
  char after[96];
  abi::nvmlDeviceGetUUID(mig, after, 96);
  EXPECT_STRNE(before, after);
}

TEST(Mig, AmpereWaitsForAResetAndHopperDoesNot) {
  const Interface ampere("gpus:\n- {model: A30}\n");
  Return activation = Return::Success;
  std::uint32_t current = 0;
  std::uint32_t pending = 0;
  EXPECT_EQ(abi::nvmlDeviceSetMigMode(ampere.device, 1, &activation), Return::Success);
  EXPECT_EQ(activation, Return::ResetRequired);
  abi::nvmlDeviceGetMigMode(ampere.device, &current, &pending);
  EXPECT_EQ(current, 0U);
  EXPECT_EQ(pending, 1U);
  ampere.made.machine->reset_gpu(0);
  abi::nvmlDeviceGetMigMode(ampere.device, &current, &pending);
  EXPECT_EQ(current, 1U);

  const Interface hopper("gpus:\n- {model: H100-SXM5-80GB}\n");
  EXPECT_EQ(abi::nvmlDeviceSetMigMode(hopper.device, 1, &activation), Return::Success);
  EXPECT_EQ(activation, Return::Success);
  abi::nvmlDeviceGetMigMode(hopper.device, &current, &pending);
  EXPECT_EQ(current, 1U);
}

TEST(Mig, AProcessKeepsItsInstance) {
  const Interface c(R"(gpus:
- model: A100-SXM4-40GB
  migEnabled: true
  migInstances: [{profile: 2g.10gb}]
  processes: [{pid: 7, memoryMib: 100, instance: 0, until: 10s}]
)");
  abi::GpuInstance gi = nullptr;
  ASSERT_EQ(abi::nvmlDeviceGetGpuInstanceById(c.device, 3, &gi), Return::Success);
  abi::ComputeInstance ci = nullptr;
  ASSERT_EQ(abi::nvmlGpuInstanceGetComputeInstanceById(gi, 0, &ci), Return::Success);
  EXPECT_EQ(abi::nvmlComputeInstanceDestroy(ci), Return::InUse);
  *c.made.clock = 10 * kSecondInUs;
  EXPECT_EQ(abi::nvmlComputeInstanceDestroy(ci), Return::Success);
}

TEST(Mig, TheDoubleMemoryProfileHasTwoKindsOfComputeInstance) {
  const Interface c("gpus:\n- {model: H100-SXM5-80GB, migEnabled: true}\n");
  const abi::GpuInstance gi = c.create(15);
  abi::ComputeInstanceProfileInfo info{};
  ASSERT_EQ(abi::nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, 0, 0, &info), Return::Success);
  EXPECT_EQ(info.multiprocessor_count, 16U);
  ASSERT_EQ(abi::nvmlGpuInstanceGetComputeInstanceProfileInfo(gi, 7, 0, &info), Return::Success);
  EXPECT_EQ(info.multiprocessor_count, 26U);
}

TEST(Gpm, MetricsBehindTheCountAreNotTouched) {
  const Interface c("gpus:\n- {model: H100-SXM5-80GB, load: {shape: constant, high: 50}}\n");
  abi::GpmMetricsGet get{};
  get.version = 1;
  abi::nvmlGpmSampleAlloc(&get.sample1);
  abi::nvmlGpmSampleAlloc(&get.sample2);
  EXPECT_EQ(abi::nvmlGpmSampleGet(c.device, get.sample1), Return::Success);
  *c.made.clock = kSecondInUs;
  EXPECT_EQ(abi::nvmlGpmSampleGet(c.device, get.sample2), Return::Success);
  get.num_metrics = 1;
  get.metrics[0].metric_id = abi::kGpmGraphics;
  get.metrics[1].metric_id = abi::kGpmSm;
  get.metrics[1].value = -1;
  ASSERT_EQ(abi::nvmlGpmMetricsGet(&get), Return::Success);
  EXPECT_NEAR(get.metrics[0].value, 50, 0.1);
  EXPECT_EQ(get.metrics[1].value, -1);
}

TEST(Symbols, OldLibrariesMissSome) {
  const MadeMachine made(
      "driver: {missingSymbols: [nvmlDeviceGetMemoryInfo_v2]}\ngpus:\n- {model: T4}\n");
  const sim::UseMachine use(made.machine.get());
  EXPECT_EQ(sim::symbol("nvmlDeviceGetMemoryInfo_v2"), nullptr);
  EXPECT_NE(sim::symbol("nvmlDeviceGetMemoryInfo"), nullptr);
  EXPECT_EQ(sim::symbol("nvmlNoSuchThing"), nullptr);
}

// What processes use costs energy, and goes on counting when they ended: a counter that falls would
// look like a reset.
TEST(Processes, CostEnergyAlsoWhenTheyEnded) {
  MadeMachine made("gpus: [{model: A100-SXM4-80GB}]\n");
  made.to(10 * kSecondInUs);
  const auto idle = made.sample().energy_mj.value_or(0);
  sim::ProcessSpec process;
  process.pid = 7;
  process.sm_percent = 80;
  process.sway_percent = 10;
  process.memory_mib = 100;
  process.from = made.machine->now();
  made.machine->start_process(0, process, -1, -1);
  std::int64_t before = idle;
  int least = 100;
  int most = 0;
  for (int second = 11; second <= 110; ++second) {
    made.to(second * kSecondInUs);
    const GpuSample sample = made.sample();
    EXPECT_GT(sample.energy_mj.value_or(0), before);
    before = sample.energy_mj.value_or(0);
    least = std::min(least, sample.gpu_percent.value_or(-1));
    most = std::max(most, sample.gpu_percent.value_or(-1));
  }
  EXPECT_GE(least, 70);
  EXPECT_LE(least, 72);
  EXPECT_LE(most, 90);
  EXPECT_GE(most, 88);
  EXPECT_GT(before - idle, 5 * idle);
  EXPECT_TRUE(made.machine->end_process(7));
  made.to(111 * kSecondInUs);
  EXPECT_GT(made.sample().energy_mj.value_or(0), before);
  EXPECT_EQ(made.sample().gpu_percent.value_or(-1), 0);
}

}  // namespace
}  // namespace jogak::nvml
