// SPDX-License-Identifier: Apache-2.0
//
// That a layout was changed by somebody else is seen without reading everything.
#include <gtest/gtest.h>

#include "nvml/nvml_source.h"
#include "nvml/testing/made_machine.h"

namespace jogak::nvml {
namespace {

using testing::MadeMachine;

constexpr auto kCut = R"(gpus:
- model: H100-SXM5-80GB
  migEnabled: true
  migInstances: [{profile: 3g.40gb, start: 4}, {profile: 1g.10gb, start: 0}]
- {model: T4}
)";

struct Hand {
  explicit Hand(MadeMachine& made)
      : source(NvmlSource::of_machine(made.machine, [] { return TimeUs{0}; })) {
    facts = source->facts().value();
  }
  std::unique_ptr<NvmlSource> source;
  NodeFacts facts;
};

TEST(NvmlRecut, NothingIsOtherWhileNobodyChangesIt) {
  MadeMachine made(kCut);
  const NodeFacts facts = made.facts();
  for (const GpuFacts& gpu : facts.gpus)
    EXPECT_EQ(made.source->is_recut(gpu.uuid), Result<bool>(false));
  EXPECT_EQ(made.source->is_recut("GPU-none").error().code, Errc::NotFound);
}

TEST(NvmlRecut, AnInstanceThatIsGoneOrNewIsSeen) {
  MadeMachine made(kCut);
  const std::string uuid = made.facts().gpus[0].uuid;
  Hand hand(made);
  const MigInstanceFacts first = hand.facts.gpus[0].mig_instances[0];
  ASSERT_TRUE(hand.source->destroy_instance(uuid, first.gi_id));
  EXPECT_EQ(made.source->is_recut(uuid), Result<bool>(true));
  made.facts();
  EXPECT_EQ(made.source->is_recut(uuid), Result<bool>(false));
  ASSERT_TRUE(hand.source->create_instance(uuid, first.profile_id, first.placement, {}));
  EXPECT_EQ(made.source->is_recut(uuid), Result<bool>(true));
}

TEST(NvmlRecut, TheSameLayoutOfOtherInstancesIsOther) {
  MadeMachine made(kCut);
  const std::string uuid = made.facts().gpus[0].uuid;
  Hand hand(made);
  const MigInstanceFacts first = hand.facts.gpus[0].mig_instances[0];
  ASSERT_TRUE(hand.source->destroy_instance(uuid, first.gi_id));
  ASSERT_TRUE(hand.source->create_instance(uuid, first.profile_id, first.placement, {}));
  EXPECT_EQ(made.source->is_recut(uuid), Result<bool>(true)) << "their UUIDs are new";
}

TEST(NvmlRecut, AResetIsSeen) {
  MadeMachine made(kCut);
  const std::string uuid = made.facts().gpus[0].uuid;
  made.machine->reset_gpu(0);
  EXPECT_EQ(made.source->is_recut(uuid), Result<bool>(true));
}

// Of B200 not every number was seen (sim/models.cc): a recording of a real one decides.
TEST(NvmlMigProfiles, WhatAFileSaysGoesBeforeTheTable) {
  MadeMachine made(R"(gpus:
- model: B200-180GB
  migEnabled: true
  migProfiles:
  - {queryIndex: 2, id: 9, name: 3g.90gb, slices: 3, memoryMib: 90000, countMax: 2,
     multiprocessors: 70, placements: [{start: 0, size: 4}, {start: 4, size: 4}]}
  migInstances: [{profile: 3g.90gb, start: 4}]
)");
  const GpuFacts gpu = made.facts().gpus[0];
  ASSERT_EQ(gpu.mig_profiles.size(), 1U);
  EXPECT_EQ(gpu.mig_profiles[0].multiprocessors, 70);
  ASSERT_EQ(gpu.mig_instances.size(), 1U);
  EXPECT_EQ(gpu.mig_instances[0].multiprocessors, 70);
}

}  // namespace
}  // namespace jogak::nvml
