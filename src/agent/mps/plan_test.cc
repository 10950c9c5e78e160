// SPDX-License-Identifier: Apache-2.0
//
// Limits as numbers that can be checked by hand, and answers in the forms that they may have.
#include "agent/mps/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jogak::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

nvml::NodeFacts two_gpus() {
  nvml::NodeFacts facts;
  for (int i = 0; i < 2; ++i) {
    nvml::GpuFacts gpu;
    gpu.index = i;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.memory_mib = 40960 + 1000 * i;
    gpu.compute_major = 8;
    gpu.compute_mode = i == 0 ? 0 : 2;
    facts.gpus.push_back(gpu);
  }
  return facts;
}

PluginConfig shared(SharingKind kind, int replicas) {
  PluginConfig config;
  config.mps_root = "/run/nvidia/mps";
  config.sharing = {.kind = kind, .resources = {{.name = "nvidia.com/gpu", .replicas = replicas}}};
  return config;
}

std::vector<MpsDaemon> daemons(const nvml::NodeFacts& facts, const PluginConfig& config) {
  return mps_daemons(make_inventory(facts, config, {}), facts);
}

TEST(MpsPlan, MemoryAndThreadsAreDividedRoundedDown) {
  const auto found = daemons(two_gpus(), shared(SharingKind::Mps, 3));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].resource, "nvidia.com/gpu");
  // 40960 / 3 = 13653.3, 41960 / 3 = 13986.7, 100 / 3 = 33.3
  EXPECT_THAT(mps_setup(found[0]), ElementsAre("set_default_active_thread_percentage 33",
                                               "set_default_device_pinned_mem_limit 0 13653M",
                                               "set_default_device_pinned_mem_limit 1 13986M"));
  EXPECT_EQ(found[0].gpus[0].compute_mode, 0);
  EXPECT_EQ(found[0].gpus[1].compute_mode, 2);
}

TEST(MpsPlan, ARenamedResourceHasAFolderOfThatName) {
  PluginConfig config = shared(SharingKind::Mps, 2);
  config.sharing.rename_by_default = true;
  EXPECT_EQ(daemons(two_gpus(), config).at(0).resource, "nvidia.com/gpu.shared");
}

TEST(MpsPlan, OnlyMpsNeedsADaemon) {
  EXPECT_THAT(daemons(two_gpus(), shared(SharingKind::TimeSlicing, 4)), IsEmpty());
  EXPECT_THAT(daemons(two_gpus(), shared(SharingKind::Mps, 1)), IsEmpty());
  EXPECT_THAT(daemons(two_gpus(), PluginConfig{}), IsEmpty());
  EXPECT_THAT(daemons({}, shared(SharingKind::Mps, 4)), IsEmpty());
}

TEST(MpsPlan, AGpuOfUnknownMemoryHasNoLimit) {
  nvml::NodeFacts facts = two_gpus();
  facts.gpus[0].memory_mib = 0;
  facts.gpus[0].compute_mode = nvml::Missing::Lost;
  const auto found = daemons(facts, shared(SharingKind::Mps, 4));
  EXPECT_THAT(mps_setup(found.at(0)), ElementsAre("set_default_active_thread_percentage 25",
                                                  "set_default_device_pinned_mem_limit 1 10490M"));
  EXPECT_EQ(found[0].gpus[0].compute_mode, std::nullopt);
}

TEST(MpsPlan, MoreSharesThanMpsServesAreCutAndSoAreTheLimits) {
  const auto found = daemons(two_gpus(), shared(SharingKind::Mps, 100));
  EXPECT_EQ(found.at(0).thread_percent, 2);  // 100 / 48
  EXPECT_EQ(found[0].gpus[0].limit_mib, 853);
}

TEST(MpsPlan, ReadsThePercentageOfAnAnswer) {
  EXPECT_EQ(mps_percent("25.0\n"), 25);
  EXPECT_EQ(mps_percent("100"), 100);
  EXPECT_EQ(mps_percent("  33 %"), 33);
  EXPECT_EQ(mps_percent("0.5"), 0);
  for (const char* const text :
       {"", "\n", "x", "MPS 25", "-5", "101", "99999999999999999999", "2x"}) {
    EXPECT_EQ(mps_percent(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace jogak::agent
