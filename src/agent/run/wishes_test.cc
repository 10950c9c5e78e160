// SPDX-License-Identifier: Apache-2.0
//
// What a node with and without problems asks of the kubelet and of its Node object.
#include "agent/run/wishes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/model/testing/made_node.h"

namespace jogak::agent {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Key;
using testing::made_facts;
using testing::made_uuid;
using ::testing::SizeIs;

constexpr TimeUs kNow = 1'700'000'000 * kSecondInUs;

nvml::GpuEvent xid(const std::string& uuid, std::uint64_t code, int gi_id = -1) {
  return {
      .uuid = uuid, .kind = nvml::GpuEventKind::Xid, .code = code, .gi_id = gi_id, .time = kNow};
}

TEST(UnhealthyReasons, AWellNodeHasNone) {
  NodeModel model;
  model.on_facts(made_facts({.gpus = 2}), kNow);
  EXPECT_THAT(unhealthy_reasons(*model.snapshot(kNow), kNow), IsEmpty());
}

TEST(UnhealthyReasons, AnXidConcernsItsGpuAlone) {
  NodeModel model;
  model.on_facts(made_facts({.gpus = 3}), kNow);
  model.on_event(xid(made_uuid("GPU", 1), 79));
  const auto reasons = unhealthy_reasons(*model.snapshot(kNow), kNow);
  ASSERT_THAT(reasons, SizeIs(1));
  EXPECT_EQ(reasons.begin()->first, made_uuid("GPU", 1));
  EXPECT_FALSE(reasons.begin()->second.empty());
}

TEST(UnhealthyReasons, ADriverThatIsAwayIsLetPassForAWhile) {
  NodeModel model;
  model.on_facts(made_facts({.gpus = 2}), kNow);
  model.on_facts_failure({.code = Errc::Unavailable, .what = "the driver is away"}, kNow);
  EXPECT_THAT(unhealthy_reasons(*model.snapshot(kNow), kNow), IsEmpty());
  const TimeUs later = kNow + kDriverAwayMax;
  EXPECT_THAT(unhealthy_reasons(*model.snapshot(later), later), SizeIs(2));
  model.on_facts(made_facts({.gpus = 2}), later);
  EXPECT_THAT(unhealthy_reasons(*model.snapshot(later), later), IsEmpty());
}

TEST(LabelOptionsOf, FollowThePluginsConfiguration) {
  PluginConfig config;
  config.mig_strategy = MigStrategy::Mixed;
  config.sharing = {.kind = SharingKind::TimeSlicing,
                    .rename_by_default = true,
                    .fails_above_one = false,
                    .resources = {{.name = "nvidia.com/gpu", .replicas = 4}}};
  const LabelOptions options = label_options(config);
  EXPECT_EQ(options.mig, LabelMigStrategy::Mixed);
  EXPECT_EQ(options.sharing, SharingStrategy::TimeSlicing);
  ASSERT_THAT(options.shared, SizeIs(1));
  EXPECT_EQ(options.shared.front().replicas, 4);
  EXPECT_TRUE(options.shared.front().is_renamed);
}

TEST(NodeWishOf, HasWhatTheOptionsAskFor) {
  NodeModel model;
  model.on_facts(made_facts({.gpus = 2}), kNow);
  const auto node = model.snapshot(kNow);
  AgentOptions options;
  const NodeWish all = node_wish(*node, {}, options, {}, true);
  EXPECT_THAT(all.labels, Contains(Key("nvidia.com/gpu.count")));
  EXPECT_THAT(all.annotations, Contains(Key("jogak.io/gpus")));
  EXPECT_THAT(all.conditions, SizeIs(4));
  EXPECT_FALSE(all.taints.has_value());
  options.reports = false;
  options.taints = TaintRule::AnyUnusable;
  const NodeWish little = node_wish(*node, {}, options, {}, false);
  EXPECT_THAT(little.labels, IsEmpty());
  EXPECT_THAT(little.annotations, IsEmpty());
  EXPECT_THAT(little.conditions, IsEmpty());
  ASSERT_TRUE(little.taints.has_value());
  EXPECT_THAT(*little.taints, IsEmpty());
}

// The scheduler would place four pods on four GPUs that are shared by four each.
TEST(NodeWishOf, DevicesAreListedOnlyWhereAUnitIsADevice) {
  NodeModel model;
  model.on_facts(made_facts({.gpus = 2}), kNow);
  const auto node = model.snapshot(kNow);
  AgentOptions options;
  const auto is_listed = [&] {
    return node_wish(*node, {}, options, {}, true).annotations.contains("jogak.io/gpus");
  };
  options.plugin.sharing = {.kind = SharingKind::TimeSlicing,
                            .rename_by_default = false,
                            .fails_above_one = false,
                            .resources = {{.name = "nvidia.com/gpu", .replicas = 4}}};
  EXPECT_FALSE(is_listed());
  options.plugin.sharing.rename_by_default = true;
  EXPECT_TRUE(is_listed()) << "a share has a name of its own";
  options.plugin.sharing = {.kind = SharingKind::TimeSlicing,
                            .rename_by_default = false,
                            .fails_above_one = false,
                            .resources = {{.name = "nvidia.com/mig-1g.10gb", .replicas = 2}}};
  EXPECT_TRUE(is_listed());
  options.plugin.sharing = {};
  options.plugin.mig_strategy = MigStrategy::Single;
  EXPECT_TRUE(is_listed()) << "no GPU is cut";
}

TEST(NodeWishOf, InstancesThatAreCalledGpusAreNotListedAsThem) {
  NodeModel model;
  nvml::NodeFacts facts = made_facts({.gpus = 2});
  for (nvml::GpuFacts& gpu : facts.gpus) gpu.mig_enabled = true;
  model.on_facts(std::move(facts), kNow);
  AgentOptions options;
  options.plugin.mig_strategy = MigStrategy::Single;
  EXPECT_THAT(node_wish(*model.snapshot(kNow), {}, options, {}, true).annotations, IsEmpty());
  options.plugin.mig_strategy = MigStrategy::Mixed;
  EXPECT_THAT(node_wish(*model.snapshot(kNow), {}, options, {}, true).annotations,
              Contains(Key("jogak.io/gpus")));
}

TEST(MigStateOf, StaysOnTheNodeAndItsReasonGoes) {
  NodeWish wish;
  add_mig_state({.state = "failed", .state_of = "all-1g.5gb", .reason = "gpu 0: in use"}, wish);
  EXPECT_EQ(wish.lasting_labels.at("nvidia.com/mig.config.state"), "failed");
  EXPECT_EQ(wish.lasting_annotations.at("jogak.io/mig.config.state-of"), "all-1g.5gb");
  EXPECT_EQ(wish.annotations.at("jogak.io/mig.config.reason"), "gpu 0: in use");
  NodeWish well;
  add_mig_state({.state = "success", .state_of = "all-1g.5gb", .reason = ""}, well);
  EXPECT_THAT(well.annotations, IsEmpty());
}

}  // namespace
}  // namespace jogak::agent
