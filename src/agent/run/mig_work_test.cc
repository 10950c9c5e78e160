// SPDX-License-Identifier: Apache-2.0
//
// How a node's GPUs are cut anew under virtual time: by the label nvidia.com/mig.config, for pods,
// and after somebody died in the middle of it.
#include "agent/run/mig_work.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/run/testing/node_rig.h"
#include "nvml/nvml_source.h"

namespace jogak::agent {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NodeRig;
using ::testing::SizeIs;

constexpr auto kConfig = "nvidia.com/mig.config";
constexpr auto kState = "nvidia.com/mig.config.state";
constexpr auto kStateOf = "jogak.io/mig.config.state-of";
constexpr auto kReason = "jogak.io/mig.config.reason";
constexpr auto kOneSlice = "nvidia.com/mig-1g.10gb";

constexpr auto kTwoH100 = "identity: t\ngpus: [{model: H100-SXM5-80GB, count: 2}]\n";
constexpr auto kCutH100 = R"(identity: t
gpus:
- model: H100-SXM5-80GB
  migEnabled: true
  migInstances: [{profile: 3g.40gb, start: 4}, {profile: 1g.10gb, start: 0}]
)";

AgentOptions mixed() {
  AgentOptions options = NodeRig::defaults();
  options.plugin.mig_strategy = MigStrategy::Mixed;
  return options;
}

AgentOptions on_demand() {
  AgentOptions options = mixed();
  options.mig.cuts_on_demand = true;
  return options;
}

struct MigRig : NodeRig {
  explicit MigRig(std::string_view text, AgentOptions options = mixed())
      : NodeRig(text, std::move(options)) {
    start();
    node->on_holdings(holdings);
    loop.run_for(kSecondInUs);
  }
  MigAsk ask(const std::string& pod, const std::string& profile, int count = 1) {
    return {.pod = {"ml", pod}, .profile = profile, .count = count, .places = {}};
  }
};

// ---- the label -------------------------------------------------------------------------------

TEST(MigLabel, IsCarriedOutAndToldStepByStep) {
  MigRig rig(kTwoH100);
  ASSERT_THAT(rig.offered("nvidia.com/gpu"), ElementsAre("healthy", "healthy"));
  rig.label(kConfig, "all-1g.10gb");
  rig.loop.run_ready();
  EXPECT_EQ(rig.node_label(kState), "pending");
  EXPECT_EQ(rig.node_annotation(kStateOf), "all-1g.10gb");
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), Each(HasSubstr("changed to all-1g.10gb")));
  EXPECT_THAT(rig.instances(0), IsEmpty()) << "the kubelet has not heard of it yet";
  rig.loop.run_for(5 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_THAT(rig.instances(0), AllOf(SizeIs(7), Each("1g.10gb")));
  EXPECT_THAT(rig.offered(kOneSlice), AllOf(SizeIs(14), Each("healthy")));
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), IsEmpty());
  EXPECT_EQ(rig.node_annotation(kReason), "");
}

TEST(MigLabel, NothingBeginsBeforeTheNodeShowsPending) {
  MigRig rig(kTwoH100);
  rig.writes_node = false;
  rig.label(kConfig, "all-1g.10gb");
  rig.loop.run_for(30 * kSecondInUs);
  EXPECT_THAT(rig.instances(0), IsEmpty());
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), Each("healthy"));
  rig.writes_node = true;
  rig.labels[kState] = "pending";
  rig.annotations[kStateOf] = "all-1g.10gb";
  rig.node->on_node(rig.labels, rig.annotations);
  rig.loop.run_for(5 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
}

TEST(MigLabel, WhatIsThereAlreadyIsASuccessAtOnce) {
  MigRig rig(kTwoH100);
  rig.label(kConfig, "all-disabled");
  rig.loop.run_ready();
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_EQ(rig.offers.size(), 1U);
}

TEST(MigLabel, AnUnknownConfigurationFailsWithASuggestion) {
  MigRig rig(kTwoH100);
  rig.label(kConfig, "all-1g.11gb");
  rig.loop.run_for(5 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "failed");
  EXPECT_THAT(rig.node_annotation(kReason), HasSubstr("all-1g.1"));
  rig.label(kConfig, "all-1g.10gb");
  rig.loop.run_for(5 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_EQ(rig.node_annotation(kReason), "");
}

TEST(MigLabel, ConfigurationsOfAFileGoBeforeTheStandardOnes) {
  AgentOptions options = mixed();
  options.mig.configs = read_mig_configs("c.yaml", R"(version: v1
mig-configs:
  half:
  - {devices: [0], mig-enabled: true, mig-devices: {3g.40gb: 2}}
)")
                            .value();
  MigRig rig(kTwoH100, options);
  rig.label(kConfig, "half");
  rig.loop.run_for(5 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_THAT(rig.instances(0), ElementsAre("3g.40gb", "3g.40gb"));
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), ElementsAre("healthy")) << "gpu 1 is as it was";
  rig.label(kConfig, "all-1g.10gb");
  rig.loop.run_for(5 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "failed");
}

TEST(MigLabel, WhatAPodHoldsIsNotTouchedAndTheChangeComesWhenItIsGone) {
  MigRig rig(kCutH100);
  rig.hold(kOneSlice, rig.offered_ids(kOneSlice).at(0), "ml/train");
  rig.label(kConfig, "all-disabled");
  rig.loop.run_for(10 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "failed");
  EXPECT_THAT(rig.node_annotation(kReason), HasSubstr("ml/train"));
  EXPECT_THAT(rig.instances(0), SizeIs(2));
  EXPECT_THAT(rig.offered(kOneSlice), Each("healthy"));
  const std::size_t offers = rig.offers.size();
  rig.node->on_holdings(rig.holdings);
  rig.loop.run_for(10 * kSecondInUs);
  EXPECT_EQ(rig.offers.size(), offers) << "nothing is withheld for what cannot be";
  rig.hold_nothing();
  rig.loop.run_for(10 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_THAT(rig.instances(0), IsEmpty());
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), ElementsAre("healthy"));
}

TEST(MigLabel, APodThatCameWhileTheKubeletWasToldKeepsItsInstance) {
  MigRig rig(kCutH100);
  const std::string id = rig.offered_ids(kOneSlice).at(0);
  rig.label(kConfig, "all-disabled");
  rig.loop.run_ready();
  ASSERT_THAT(rig.offered(kOneSlice), Each(HasSubstr("changed")));
  // The kubelet gave it away before it heard of it.
  rig.holdings.push_back(
      {.resource = kOneSlice,
       .device_id = id,
       .holder = {.pod_namespace = "ml", .pod = "quick", .container = "main", .pod_uid = ""}});
  rig.loop.run_for(10 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "failed");
  EXPECT_THAT(rig.node_annotation(kReason), HasSubstr("ml/quick"));
  EXPECT_THAT(rig.instances(0), SizeIs(2));
  EXPECT_THAT(rig.offered(kOneSlice), Each("healthy"));
}

TEST(MigLabel, WithoutAnAnswerOfTheKubeletNothingIsChanged) {
  MigRig rig(kCutH100);
  rig.kubelet = fail(Errc::Unavailable, "nobody listens");
  rig.label(kConfig, "all-disabled");
  rig.loop.run_for(30 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "pending");
  EXPECT_THAT(rig.instances(0), SizeIs(2));
  rig.loop.run_for(60 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "failed");
  EXPECT_THAT(rig.node_annotation(kReason), HasSubstr("nobody listens"));
  EXPECT_THAT(rig.offered(kOneSlice), Each("healthy"));
  const std::size_t offers = rig.offers.size();
  rig.node->on_holdings(std::unexpected(rig.kubelet.error()));
  rig.loop.run_for(120 * kSecondInUs);
  EXPECT_EQ(rig.offers.size(), offers) << "not before it answers";
  rig.kubelet = {};
  rig.node->on_holdings(rig.holdings);
  rig.loop.run_for(5 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
}

TEST(MigLabel, AKubeletThatNeverAnsweredIsSaid) {
  NodeRig rig(kCutH100, mixed());
  rig.kubelet = fail(Errc::Unavailable, "nobody listens");
  rig.start();
  rig.label(kConfig, "all-disabled");
  rig.loop.run_for(5 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "") << "the first answer is on its way";
  rig.node->on_holdings(std::unexpected(rig.kubelet.error()));
  rig.loop.run_for(90 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "failed");
  EXPECT_THAT(rig.instances(0), SizeIs(2));
}

TEST(MigLabel, AnotherOneWhileAChangeIsUnderWayIsCarriedOutAfterIt) {
  MigRig rig(kTwoH100);
  rig.label(kConfig, "all-1g.10gb");
  rig.loop.run_for(kSecondInUs / 2);
  rig.label(kConfig, "all-disabled");
  rig.loop.run_for(20 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_EQ(rig.node_annotation(kStateOf), "all-disabled");
  EXPECT_THAT(rig.instances(0), IsEmpty());
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), ElementsAre("healthy", "healthy"));
}

constexpr auto kLostAtFirst = "faults: [{kind: lost, at: 0s, gpu: 1, for: 30s}]\n";

TEST(MigLabel, AGpuThatWasLostBeforeItHadANameIsCutWhenItIsBack) {
  MigRig rig(std::string(kTwoH100) + kLostAtFirst);
  rig.label(kConfig, "all-1g.10gb");
  rig.loop.run_for(10 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_THAT(rig.instances(0), SizeIs(7)) << "the other does not wait for it";
  rig.loop.run_for(120 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_THAT(rig.instances(1), SizeIs(7));
}

TEST(MigLabel, AConfigurationThatNamesALostGpuIsTriedAgainWhenItIsBack) {
  AgentOptions options = mixed();
  options.mig.configs = read_mig_configs("c.yaml", R"(version: v1
mig-configs:
  second:
  - {devices: [1], mig-enabled: true, mig-devices: {3g.40gb: 2}}
)")
                            .value();
  MigRig rig(std::string(kTwoH100) + kLostAtFirst, options);
  rig.label(kConfig, "second");
  rig.loop.run_for(10 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "failed");
  EXPECT_THAT(rig.node_annotation(kReason), HasSubstr("gpu 1 is lost"));
  rig.loop.run_for(120 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_THAT(rig.instances(1), ElementsAre("3g.40gb", "3g.40gb"));
}

TEST(MigLabel, TakenAwayTheLayoutStays) {
  MigRig rig(kTwoH100);
  rig.label(kConfig, "all-1g.10gb");
  rig.loop.run_for(5 * kSecondInUs);
  rig.label(kConfig, "");
  rig.loop.run_for(60 * kSecondInUs);
  EXPECT_THAT(rig.instances(0), SizeIs(7));
}

TEST(MigLabel, AModeThatWantsAResetFailsAndSaysSo) {
  MigRig rig("identity: t\ngpus: [{model: A100-SXM4-40GB}]\n");
  rig.label(kConfig, "all-1g.5gb");
  rig.loop.run_for(5 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "failed");
  EXPECT_THAT(rig.node_annotation(kReason), HasSubstr("reset"));
}

TEST(MigLabel, WhereSomebodyRebootsTheChangeGoesOnAfterIt) {
  AgentOptions options = mixed();
  options.mig.may_reboot = true;
  NodeRig rig("identity: t\ngpus: [{model: A100-SXM4-40GB}]\n", options);
  rig.start();
  rig.node->on_holdings(rig.holdings);
  rig.label(kConfig, "all-1g.5gb");
  rig.loop.run_for(5 * kSecondInUs);
  ASSERT_EQ(rig.node_label(kState), "rebooting");
  rig.machine->reset_gpu(0);
  rig.restart();
  rig.node->on_holdings(rig.holdings);
  rig.loop.run_for(5 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_THAT(rig.instances(0), AllOf(SizeIs(7), Each("1g.5gb")));
}

TEST(MigLabel, ARebootThatChangedNothingFails) {
  AgentOptions options = mixed();
  options.mig.may_reboot = true;
  NodeRig rig("identity: t\ngpus: [{model: A100-SXM4-40GB}]\n", options);
  rig.start();
  rig.node->on_holdings(rig.holdings);
  rig.label(kConfig, "all-1g.5gb");
  rig.loop.run_for(5 * kSecondInUs);
  ASSERT_EQ(rig.node_label(kState), "rebooting");
  rig.restart();
  rig.node->on_holdings(rig.holdings);
  rig.loop.run_for(5 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "failed");
}

TEST(MigLabel, AProcessOfNoPodStandsInTheWay) {
  MigRig rig(R"(identity: t
gpus:
- model: H100-SXM5-80GB
  processes: [{pid: 4711, name: python}]
)");
  rig.label(kConfig, "all-1g.10gb");
  rig.loop.run_for(5 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "failed");
  EXPECT_THAT(rig.node_annotation(kReason), HasSubstr("4711"));
}

TEST(MigLabel, ADriverThatCameBackEmptyIsCutAgain) {
  MigRig rig(std::string(kTwoH100) + R"(faults:
- {kind: reset, at: 20s, gpu: 0}
- {kind: reset, at: 20s, gpu: 1}
- {kind: driverReload, at: 20s, for: 2s}
)");
  rig.label(kConfig, "all-1g.10gb");
  rig.loop.run_for(5 * kSecondInUs);
  ASSERT_EQ(rig.node_label(kState), "success");
  rig.loop.run_for(100 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_THAT(rig.instances(0), SizeIs(7));
  EXPECT_THAT(rig.offered(kOneSlice), AllOf(SizeIs(14), Each("healthy")));
}

// ---- a layout that is kept -------------------------------------------------------------------

std::vector<std::string> reasons(const NodeRig& rig) {
  std::vector<std::string> result;
  for (const NodeNote& note : rig.notes) result.push_back(note.reason);
  return result;
}

// Cut by the label, and told so.
struct KeptRig : MigRig {
  explicit KeptRig(AgentOptions options = mixed(), std::string_view more = "")
      : MigRig(std::string(kTwoH100) + std::string(more), std::move(options)) {
    label(kConfig, "all-1g.10gb");
    loop.run_for(5 * kSecondInUs);
    EXPECT_EQ(node_label(kState), "success");
    notes.clear();
  }
  // As nvidia-smi does it, in another process.
  void destroy(int gpu, int count) {
    const auto source = nvml::NvmlSource::of_machine(machine, [this] { return loop.now(); });
    const auto facts = source->facts();
    ASSERT_TRUE(facts);
    const nvml::GpuFacts& of = facts->gpus[static_cast<std::size_t>(gpu)];
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(
          source->destroy_instance(of.uuid, of.mig_instances[static_cast<std::size_t>(i)].gi_id));
    }
  }
};

TEST(MigKeeping, AGpuThatWasResetIsCutAgain) {
  KeptRig rig;
  rig.machine->reset_gpu(0);
  rig.loop.run_for(8 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "pending") << "it is no success any more";
  EXPECT_THAT(rig.node_annotation(kReason), HasSubstr("gpu 0 has"));
  EXPECT_THAT(rig.offered(kOneSlice), AllOf(SizeIs(7), Each("healthy"))) << "of the other GPU";
  rig.loop.run_for(20 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_EQ(rig.node_annotation(kReason), "");
  EXPECT_THAT(rig.instances(0), SizeIs(7));
  EXPECT_THAT(rig.offered(kOneSlice), AllOf(SizeIs(14), Each("healthy")));
  EXPECT_THAT(reasons(rig), ElementsAre("MigLayoutLost", "MigConfigApplied"));
  EXPECT_TRUE(rig.notes[0].is_warning);
  EXPECT_THAT(rig.notes[0].text, HasSubstr("all-1g.10gb"));
}

TEST(MigKeeping, InstancesThatSomebodyDestroyedComeBackWhenTheHandRests) {
  KeptRig rig;
  rig.destroy(1, 3);
  rig.loop.run_for(7 * kSecondInUs);
  ASSERT_EQ(rig.node_label(kState), "pending");
  EXPECT_THAT(rig.node_annotation(kReason), HasSubstr("gpu 1 has 4 x 1g.10gb"));
  rig.destroy(1, 2);
  rig.loop.run_for(9 * kSecondInUs);
  EXPECT_THAT(rig.instances(1), SizeIs(2)) << "it was changed a moment ago";
  rig.loop.run_for(20 * kSecondInUs);
  EXPECT_THAT(rig.instances(1), SizeIs(7));
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_THAT(reasons(rig), ElementsAre("MigLayoutLost", "MigConfigApplied"));
}

TEST(MigKeeping, WhatIsInUseIsWaitedFor) {
  KeptRig rig;
  const auto source = nvml::NvmlSource::of_machine(rig.machine, [&] { return rig.loop.now(); });
  rig.destroy(0, 7);
  const auto facts = source->facts();
  ASSERT_TRUE(facts);
  const auto& profiles = facts->gpus[0].mig_profiles;
  const auto at = std::ranges::find(profiles, "7g.80gb", &nvml::MigProfileFacts::name);
  ASSERT_NE(at, profiles.end());
  const auto made =
      source->create_instance(facts->gpus[0].uuid, at->id, at->placements.front(), {});
  ASSERT_TRUE(made) << made.error().what;
  rig.loop.run_for(6 * kSecondInUs);
  rig.hold("nvidia.com/mig-7g.80gb", made->front().uuid, "ml/quick");
  rig.loop.run_for(60 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "failed");
  EXPECT_THAT(rig.node_annotation(kReason), HasSubstr("ml/quick"));
  EXPECT_THAT(rig.instances(0), ElementsAre("7g.80gb"));
  EXPECT_THAT(reasons(rig), ElementsAre("MigLayoutLost", "MigConfigFailed")) << "each told once";
  rig.hold_nothing();
  rig.loop.run_for(10 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_THAT(rig.instances(0), SizeIs(7));
}

TEST(MigKeeping, WhoPutsItRightAgainIsBelieved) {
  KeptRig rig;
  const auto source = nvml::NvmlSource::of_machine(rig.machine, [&] { return rig.loop.now(); });
  const auto facts = source->facts();
  ASSERT_TRUE(facts);
  const nvml::MigInstanceFacts& first = facts->gpus[0].mig_instances[0];
  rig.destroy(0, 1);
  rig.loop.run_for(6 * kSecondInUs);
  ASSERT_EQ(rig.node_label(kState), "pending");
  ASSERT_TRUE(source->create_instance(facts->gpus[0].uuid, first.profile_id, first.placement, {}));
  rig.loop.run_for(6 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
  const std::size_t offers = rig.offers.size();
  rig.loop.run_for(120 * kSecondInUs);
  EXPECT_EQ(rig.offers.size(), offers) << "nothing is withheld for it";
  EXPECT_THAT(reasons(rig), ElementsAre("MigLayoutLost"));
}

TEST(MigKeeping, WhoUndoesItEachTimeIsFoughtMoreAndMoreSlowly) {
  KeptRig rig;
  for (int second = 0; second < 1200; second += 5) {
    if (rig.node_label(kState) == "success") rig.destroy(0, 1);
    rig.loop.run_for(5 * kSecondInUs);
  }
  // 10, 20, 40, ... 640 s, each with the change itself.
  EXPECT_LE(reasons(rig).size(), 15U);
  EXPECT_GE(reasons(rig).size(), 8U);
}

TEST(MigKeeping, WhereItIsSwitchedOffItIsToldAndLetBe) {
  AgentOptions options = mixed();
  options.mig.keeps_layout = false;
  KeptRig rig(options);
  rig.machine->reset_gpu(0);
  rig.loop.run_for(120 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "failed");
  EXPECT_THAT(rig.node_annotation(kReason), HasSubstr("not there any more"));
  EXPECT_THAT(rig.instances(0), IsEmpty());
  EXPECT_THAT(reasons(rig), ElementsAre("MigLayoutLost"));
}

TEST(MigKeeping, WithoutTheLabelEveryHandIsFree) {
  KeptRig rig;
  rig.label(kConfig, "");
  rig.destroy(0, 7);
  rig.loop.run_for(120 * kSecondInUs);
  EXPECT_THAT(rig.instances(0), IsEmpty());
  EXPECT_THAT(rig.offered(kOneSlice), SizeIs(7)) << "what is gone is not offered";
  EXPECT_THAT(rig.notes, IsEmpty());
}

TEST(MigKeeping, AnAgentThatStartsAgainKeepsItToo) {
  KeptRig rig;
  rig.restart();
  rig.node->on_holdings(rig.holdings);
  rig.loop.run_for(5 * kSecondInUs);
  rig.destroy(0, 7);
  rig.loop.run_for(30 * kSecondInUs);
  EXPECT_THAT(rig.instances(0), SizeIs(7));
}

TEST(MigKeeping, AModeThatWantedAResetGoesOnAfterIt) {
  MigRig rig("identity: t\ngpus: [{model: A100-SXM4-40GB}]\n");
  rig.label(kConfig, "all-1g.5gb");
  rig.loop.run_for(5 * kSecondInUs);
  ASSERT_EQ(rig.node_label(kState), "failed");
  EXPECT_THAT(reasons(rig), ElementsAre("MigConfigFailed"));
  rig.machine->reset_gpu(0);
  rig.loop.run_for(15 * kSecondInUs);
  EXPECT_EQ(rig.node_label(kState), "success");
  EXPECT_THAT(rig.instances(0), AllOf(SizeIs(7), Each("1g.5gb")));
  EXPECT_TRUE(rig.journal->load()->empty());
}

TEST(MigLabel, AnAgentThatStartsAgainLeavesASuccessAlone) {
  MigRig rig(kCutH100);
  rig.labels = {{kConfig, "cut"}, {kState, "success"}};
  rig.annotations = {{kStateOf, "cut"}};
  rig.label(kConfig, "all-balanced");
  rig.loop.run_for(10 * kSecondInUs);
  ASSERT_EQ(rig.node_label(kState), "success");
  const std::size_t offers = rig.offers.size();
  rig.node->on_node(rig.labels, rig.annotations);
  rig.loop.run_for(600 * kSecondInUs);
  EXPECT_EQ(rig.offers.size(), offers);
}

// ---- the start -------------------------------------------------------------------------------

MigJournal half_a_change(const NodeRig& rig) {
  MigJournalEntry entry;
  entry.goal = {.uuid = rig.gpu_uuid(0), .is_enabled = true, .wanted = {{"1g.10gb", 7}}};
  entry.before = {.is_enabled = true, .instances = {}};
  return {entry};
}

TEST(MigRecovery, NothingIsOfferedOrToldBeforeACutShortChangeIsEnded) {
  NodeRig rig(kCutH100, mixed());
  ASSERT_TRUE(rig.journal->save(half_a_change(rig)));
  rig.kubelet = fail(Errc::Unavailable, "nobody listens");
  rig.start();
  rig.loop.run_for(20 * kSecondInUs);
  EXPECT_THAT(rig.offers, IsEmpty());
  EXPECT_THAT(rig.wishes, IsEmpty());
  EXPECT_FALSE(rig.node->has_facts());
  EXPECT_THAT(rig.instances(0), SizeIs(2)) << "who holds them is not known";
  rig.node->on_holdings(rig.holdings);
  rig.loop.run_for(2 * kSecondInUs);
  EXPECT_THAT(rig.instances(0), AllOf(SizeIs(7), Each("1g.10gb")));
  EXPECT_THAT(rig.offered(kOneSlice), AllOf(SizeIs(7), Each("healthy")));
  EXPECT_TRUE(rig.journal->load()->empty());
  EXPECT_EQ(rig.offers.size(), 1U);
}

TEST(MigRecovery, WhatWasThereBeforeIsNotOfferedInPassing) {
  NodeRig rig(kCutH100, mixed());
  ASSERT_TRUE(rig.journal->save(half_a_change(rig)));
  rig.start();
  rig.node->on_holdings(rig.holdings);
  PluginConfig config = rig.node->options().plugin;
  for (int i = 0; i < 100 && rig.offers.empty(); ++i) {
    rig.loop.step();
    // Whatever makes the agent tell what it knows, at any moment.
    config.driver_root = i % 2 == 0 ? "/a" : "/b";
    rig.node->set_config(config);
  }
  ASSERT_FALSE(rig.offers.empty());
  for (const PluginSnapshotPtr& offer : rig.offers) {
    EXPECT_EQ(offer->inventory.find("nvidia.com/mig-3g.40gb"), nullptr);
  }
}

TEST(MigRecovery, WhatWaitedForAResetGoesOnAfterItWhoeverBeganIt) {
  MigRig rig("identity: t\ngpus: [{model: A100-SXM4-40GB, count: 2}]\n");
  // As `jogak agent mig apply` does it, in another process.
  const auto source = nvml::NvmlSource::of_machine(rig.machine, [&] { return rig.loop.now(); });
  const MigGoal goal = {.uuid = rig.gpu_uuid(1), .is_enabled = true, .wanted = {{"1g.5gb", 7}}};
  const auto reports = MigManager(*source, *rig.journal).apply(std::span(&goal, 1), {});
  ASSERT_TRUE(reports);
  ASSERT_EQ(reports->front().state, MigState::NeedsReset);
  rig.loop.run_for(120 * kSecondInUs);
  EXPECT_FALSE(rig.journal->load()->empty());
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), ElementsAre("healthy", "healthy"));
  rig.machine->reset_gpu(1);
  rig.loop.run_for(10 * kSecondInUs);
  EXPECT_THAT(rig.instances(1), AllOf(SizeIs(7), Each("1g.5gb")));
  EXPECT_TRUE(rig.journal->load()->empty());
  EXPECT_THAT(rig.offered("nvidia.com/mig-1g.5gb"), AllOf(SizeIs(7), Each("healthy")));
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), ElementsAre("healthy"));
}

TEST(MigRecovery, AKubeletThatDoesNotServeTheQuestionIsNoReasonToWait) {
  NodeRig rig(kCutH100, mixed());
  ASSERT_TRUE(rig.journal->save(half_a_change(rig)));
  rig.kubelet = fail(Errc::NotFound, "no such service");
  rig.start();
  rig.loop.run_for(2 * kSecondInUs);
  EXPECT_THAT(rig.offered(kOneSlice), SizeIs(7));
}

// ---- pods ------------------------------------------------------------------------------------

TEST(MigOnDemand, APodGetsAnInstanceThatWasNotThere) {
  MigRig rig(kCutH100, on_demand());
  ASSERT_THAT(rig.instances(0), ElementsAre("1g.10gb", "3g.40gb"));
  rig.node->on_asks({rig.ask("train", "2g.20gb")});
  rig.loop.run_for(kSecondInUs / 10);
  EXPECT_THAT(rig.instances(0), ElementsAre("1g.10gb", "2g.20gb", "3g.40gb"));
  EXPECT_THAT(rig.offered("nvidia.com/mig-2g.20gb"), ElementsAre("healthy"));
  const std::size_t offers = rig.offers.size();
  rig.loop.run_for(60 * kSecondInUs);
  EXPECT_EQ(rig.offers.size(), offers) << "one is enough";
}

TEST(MigOnDemand, AnIdleOneIsUsedAndTwoAreWantedByTwoPods) {
  MigRig rig(kCutH100, on_demand());
  rig.node->on_asks({rig.ask("a", "1g.10gb")});
  rig.loop.run_for(kSecondInUs);
  EXPECT_THAT(rig.instances(0), SizeIs(2));
  rig.node->on_asks({rig.ask("a", "1g.10gb"), rig.ask("b", "1g.10gb")});
  rig.loop.run_for(kSecondInUs);
  EXPECT_THAT(rig.instances(0), ElementsAre("1g.10gb", "1g.10gb", "3g.40gb"));
}

TEST(MigOnDemand, IdleOnesMakeRoomOnceTheKubeletHasHeardOfIt) {
  MigRig rig(kCutH100, on_demand());
  rig.node->on_asks({rig.ask("big", "7g.80gb")});
  rig.loop.run_ready();
  EXPECT_THAT(rig.instances(0), SizeIs(2));
  EXPECT_THAT(rig.offered(kOneSlice), Each(HasSubstr("makes room for pod ml/big")));
  rig.loop.run_for(3 * kSecondInUs);
  EXPECT_THAT(rig.instances(0), ElementsAre("7g.80gb"));
}

TEST(MigOnDemand, WhatIsHeldStaysAndTheReasonIsToldOnce) {
  MigRig rig(kCutH100, on_demand());
  rig.hold(kOneSlice, rig.offered_ids(kOneSlice).at(0), "ml/train");
  rig.node->on_asks({rig.ask("big", "7g.80gb")});
  for (int i = 0; i < 5; ++i) {
    rig.loop.run_for(5 * kSecondInUs);
    rig.node->on_holdings(rig.holdings);
  }
  EXPECT_THAT(rig.instances(0), SizeIs(2));
  EXPECT_EQ(rig.logged("a pod waits for a MIG instance"), 1);
  rig.hold_nothing();
  rig.loop.run_for(3 * kSecondInUs);
  EXPECT_THAT(rig.instances(0), ElementsAre("7g.80gb"));
}

TEST(MigOnDemand, APodThatHoldsItsInstanceAsksNoMore) {
  MigRig rig(kCutH100, on_demand());
  rig.hold(kOneSlice, rig.offered_ids(kOneSlice).at(0), "ml/train");
  rig.node->on_asks({rig.ask("train", "1g.10gb")});
  rig.loop.run_for(5 * kSecondInUs);
  EXPECT_THAT(rig.instances(0), SizeIs(2));
}

TEST(MigOnDemand, ThePlaceThatTheSchedulerChoseIsTaken) {
  MigRig rig(kCutH100, on_demand());
  MigAsk ask = rig.ask("train", "1g.10gb");
  ask.places = {{0, 3}};
  rig.node->on_asks({ask});
  rig.loop.run_for(kSecondInUs);
  const auto source = nvml::NvmlSource::of_machine(rig.machine);
  const nvml::NodeFacts facts = source->facts().value();
  std::vector<int> starts;
  for (const auto& row : facts.gpus[0].mig_instances) starts.push_back(row.placement.start);
  EXPECT_THAT(starts, ::testing::UnorderedElementsAre(0, 3, 4));
}

TEST(MigOnDemand, TheNodeSaysThatItsGpusAreCutOnDemand) {
  MigRig rig(kCutH100, on_demand());
  EXPECT_THAT(rig.wishes.back().annotations.at(std::string(kGpusAnnotation)),
              HasSubstr("\"dynamic\":true"));
}

TEST(MigOnDemand, WithoutItPodsAreLetBe) {
  MigRig rig(kCutH100);
  rig.node->on_asks({rig.ask("train", "2g.20gb")});
  rig.loop.run_for(10 * kSecondInUs);
  EXPECT_THAT(rig.instances(0), SizeIs(2));
}

}  // namespace
}  // namespace jogak::agent
