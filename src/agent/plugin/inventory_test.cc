// SPDX-License-Identifier: Apache-2.0
// Device lists by MIG strategy, health and sharing.
#include "agent/plugin/inventory.h"

#include <gtest/gtest.h>

#include "agent/plugin/testing/node_facts.h"

namespace jogak::agent {
namespace {

using testing::a100_node;
using testing::cut;
using testing::gpu_uuid;
using testing::mig_uuid;

constexpr auto kGpu = "nvidia.com/gpu";

std::vector<std::string> ids(const Inventory& inventory, const std::string& name) {
  std::vector<std::string> result;
  const PluginResource* const resource = inventory.find(name);
  if (resource == nullptr) return {"no such resource"};
  for (const PluginDevice& device : resource->devices) result.push_back(device.id);
  return result;
}

PluginConfig with(MigStrategy strategy) {
  PluginConfig config;
  config.mig_strategy = strategy;
  return config;
}

using Ids = std::vector<std::string>;

TEST(Inventory, none_offers_each_gpu_whatever_its_mig_state) {
  auto facts = a100_node(2);
  cut(facts, 1, {"1g.5gb"});
  const Inventory inventory = make_inventory(facts, with(MigStrategy::None), {});
  EXPECT_EQ(ids(inventory, kGpu), (Ids{gpu_uuid(0), gpu_uuid(1)}));
  EXPECT_EQ(inventory.resources.size(), 1U);
}

TEST(Inventory, mixed_names_profiles_and_keeps_whole_gpus) {
  auto facts = a100_node(2);
  cut(facts, 1, {"3g.20gb", "1g.5gb+me", "1g.5gb"});
  const Inventory inventory = make_inventory(facts, with(MigStrategy::Mixed), {});
  EXPECT_EQ(ids(inventory, kGpu), Ids{gpu_uuid(0)});
  EXPECT_EQ(ids(inventory, "nvidia.com/mig-3g.20gb"), Ids{mig_uuid(1, 0)});
  EXPECT_EQ(ids(inventory, "nvidia.com/mig-1g.5gb.me"), Ids{mig_uuid(1, 1)});
  EXPECT_EQ(ids(inventory, "nvidia.com/mig-1g.5gb"), Ids{mig_uuid(1, 2)});
  EXPECT_TRUE(inventory.problems.empty());
  EXPECT_EQ(inventory.find("nvidia.com/mig-1g.5gb")->devices[0].index, "1:2");
}

TEST(Inventory, mixed_names_parts_of_instances_too) {
  auto facts = a100_node(3);
  cut(facts, 0, {"3g.20gb", "1g.5gb"});
  facts.gpus[0].mig_instances[0].profile = "1c.3g.20gb";
  cut(facts, 1, {});
  const Inventory inventory = make_inventory(facts, with(MigStrategy::Mixed), {});
  EXPECT_EQ(ids(inventory, "nvidia.com/mig-1c.3g.20gb"), Ids{mig_uuid(0, 0)});
  EXPECT_EQ(ids(inventory, "nvidia.com/mig-1g.5gb"), Ids{mig_uuid(0, 1)});
  EXPECT_EQ(ids(inventory, kGpu), Ids{gpu_uuid(2)});
  EXPECT_EQ(inventory.problems.size(), 1U) << "gpu 1 has no instance";
}

TEST(Inventory, single_offers_mig_devices_as_gpus) {
  auto facts = a100_node(2);
  for (const int gpu : {0, 1}) cut(facts, gpu, {"3g.20gb", "3g.20gb"});
  const Inventory inventory = make_inventory(facts, with(MigStrategy::Single), {});
  EXPECT_EQ(ids(inventory, kGpu),
            (Ids{mig_uuid(0, 0), mig_uuid(0, 1), mig_uuid(1, 0), mig_uuid(1, 1)}));
  EXPECT_EQ(inventory.find(kGpu)->profile, "3g.20gb");
}

TEST(Inventory, single_offers_whole_gpus_where_mig_is_off) {
  const Inventory inventory = make_inventory(a100_node(2), with(MigStrategy::Single), {});
  EXPECT_EQ(ids(inventory, kGpu), (Ids{gpu_uuid(0), gpu_uuid(1)}));
}

TEST(Inventory, single_refuses_mixtures_with_an_empty_list) {
  auto partly = a100_node(2);
  cut(partly, 0, {"3g.20gb"});
  auto bare = a100_node(1);
  cut(bare, 0, {});
  auto uneven = a100_node(1);
  cut(uneven, 0, {"3g.20gb", "1g.5gb"});
  for (const auto& facts : {partly, bare, uneven}) {
    const Inventory inventory = make_inventory(facts, with(MigStrategy::Single), {});
    EXPECT_EQ(ids(inventory, kGpu), Ids());
    EXPECT_EQ(inventory.problems.size(), 1U);
  }
}

// An agent that starts while a GPU is off the bus sees neither its name nor its MIG mode.
TEST(Inventory, single_goes_by_the_gpus_that_are_known) {
  auto facts = a100_node(3);
  cut(facts, 0, {"3g.20gb"});
  cut(facts, 2, {"3g.20gb"});
  facts.gpus[1].is_lost = true;
  facts.gpus[1].uuid.clear();
  const Inventory inventory = make_inventory(facts, with(MigStrategy::Single), {});
  EXPECT_EQ(ids(inventory, kGpu), (Ids{mig_uuid(0, 0), mig_uuid(2, 0)}));
  // One that was lost later is still part of the layout.
  cut(facts, 1, {"3g.20gb"});
  facts.gpus[1].uuid = gpu_uuid(1);
  const Inventory later = make_inventory(facts, with(MigStrategy::Single), {});
  EXPECT_EQ(ids(later, kGpu), (Ids{mig_uuid(0, 0), mig_uuid(1, 0), mig_uuid(2, 0)}));
  EXPECT_FALSE(later.find(kGpu)->devices[1].is_healthy);
}

TEST(Inventory, single_says_how_devices_of_one_name_differ) {
  auto facts = a100_node(2);
  cut(facts, 0, {"1g.5gb"});
  cut(facts, 1, {"1g.5gb"});
  facts.gpus[1].mig_instances[0].multiprocessors = 16;
  const Inventory inventory = make_inventory(facts, with(MigStrategy::Single), {});
  ASSERT_EQ(inventory.problems.size(), 1U);
  EXPECT_NE(inventory.problems[0].find("16 multiprocessors"), std::string::npos)
      << inventory.problems[0];
}

TEST(Inventory, a_gpu_in_trouble_marks_all_its_mig_devices_and_shares) {
  auto facts = a100_node(1);
  cut(facts, 0, {"1g.5gb", "1g.5gb"});
  PluginConfig config = with(MigStrategy::Mixed);
  config.sharing = {.kind = SharingKind::TimeSlicing,
                    .resources = {{.name = "nvidia.com/mig-1g.5gb", .replicas = 2}}};
  const Inventory whole = make_inventory(facts, config, {{gpu_uuid(0), "xid 79"}});
  for (const PluginDevice& device : whole.resources.at(0).devices) {
    EXPECT_FALSE(device.is_healthy);
    EXPECT_EQ(device.reason, "xid 79");
  }
  const Inventory part = make_inventory(facts, config, {{mig_uuid(0, 1), "xid 94"}});
  const auto& devices = part.resources.at(0).devices;
  ASSERT_EQ(devices.size(), 4U);
  EXPECT_TRUE(devices[0].is_healthy && devices[1].is_healthy);
  EXPECT_FALSE(devices[2].is_healthy || devices[3].is_healthy);
}

TEST(Inventory, a_lost_gpu_stays_listed_and_one_without_a_name_does_not) {
  auto facts = a100_node(3);
  facts.gpus[0].is_lost = true;
  facts.gpus[1].is_lost = true;
  facts.gpus[1].uuid.clear();
  const Inventory inventory = make_inventory(facts, {}, {});
  EXPECT_EQ(ids(inventory, kGpu), (Ids{gpu_uuid(0), gpu_uuid(2)}));
  EXPECT_FALSE(inventory.find(kGpu)->devices[0].is_healthy);
  EXPECT_EQ(inventory.problems.size(), 1U);
}

TEST(Inventory, shares_have_ids_of_their_own_and_the_name_if_wanted) {
  PluginConfig config;
  config.sharing = {.kind = SharingKind::TimeSlicing,
                    .rename_by_default = true,
                    .resources = {{.name = kGpu, .replicas = 3}}};
  const Inventory inventory = make_inventory(a100_node(1), config, {});
  EXPECT_EQ(ids(inventory, "nvidia.com/gpu.shared"),
            (Ids{gpu_uuid(0) + "::0", gpu_uuid(0) + "::1", gpu_uuid(0) + "::2"}));
  EXPECT_EQ(inventory.find(kGpu), nullptr);
  config.sharing.resources[0].replicas = 1;  // no sharing at all
  EXPECT_EQ(ids(make_inventory(a100_node(1), config, {}), kGpu), Ids{gpu_uuid(0)});
}

TEST(Inventory, mps_is_held_to_what_gpus_can_serve) {
  PluginConfig config;
  config.sharing = {.kind = SharingKind::Mps, .resources = {{.name = kGpu, .replicas = 64}}};
  const Inventory inventory = make_inventory(a100_node(1), config, {});
  EXPECT_EQ(inventory.find(kGpu)->devices.size(), 48U);
  EXPECT_EQ(inventory.problems.size(), 1U);
}

TEST(Inventory, ids_fit_the_kubelet) {
  PluginConfig config;
  config.sharing = {.kind = SharingKind::TimeSlicing,
                    .resources = {{.name = kGpu, .replicas = 999}}};
  const Inventory inventory = make_inventory(a100_node(1), config, {});
  for (const PluginDevice& device : inventory.resources[0].devices) {
    EXPECT_LE(device.id.size(), 63U);
    EXPECT_EQ(split_share(device.id).first, device.uuid);
  }
  EXPECT_EQ(split_share("GPU-1::3").second, 3);
  EXPECT_EQ(split_share("GPU-1").second, std::nullopt);
}

}  // namespace
}  // namespace jogak::agent
