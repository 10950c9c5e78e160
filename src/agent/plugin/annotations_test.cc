// SPDX-License-Identifier: Apache-2.0
// The annotations, read back by the scheduler's own parser; and leftovers of earlier pods.
#include "agent/plugin/annotations.h"

#include <gtest/gtest.h>

#include "agent/plugin/leftover.h"
#include "agent/plugin/testing/node_facts.h"
#include "kube/gpu_annotations.h"

namespace jogak::agent {
namespace {

using testing::a100_node;
using testing::cut;
using testing::gpu_uuid;
using testing::link;
using testing::mig_uuid;

Holding holding(const std::string& pod, const std::string& resource, const std::string& id) {
  return {.resource = resource,
          .device_id = id,
          .holder = {.pod_namespace = "team", .pod = pod, .container = "c", .pod_uid = ""}};
}

// What the scheduler's own parser makes of it.
TEST(GpusAnnotation, the_scheduler_reads_what_the_agent_writes) {
  auto facts = a100_node(3);
  link(facts, 0, 2, 12);
  facts.gpus[1].is_lost = true;
  cut(facts, 2, {"3g.20gb", "1g.5gb"});
  const auto devices = kube::parse_gpu_devices(gpus_annotation(facts, {}, true));
  ASSERT_TRUE(devices) << devices.error().what;
  ASSERT_EQ(devices->size(), 3U);
  EXPECT_EQ((*devices)[0].uuid, gpu_uuid(0));
  EXPECT_EQ((*devices)[0].memory_mib, 40960);
  EXPECT_EQ((*devices)[0].numa, 0);
  EXPECT_EQ((*devices)[0].nvlink, std::vector{2});
  EXPECT_EQ((*devices)[1].health, kube::GpuDevice::Health::Unhealthy);
  EXPECT_TRUE((*devices)[2].mig_enabled && (*devices)[2].mig_dynamic);
  ASSERT_EQ((*devices)[2].mig_instances.size(), 2U);
  EXPECT_EQ((*devices)[2].mig_instances[1].profile, "1g.5gb");
  EXPECT_EQ((*devices)[2].mig_instances[1].start, 4);
}

// What is given out of it: import_test.cc, AnInstanceThatIsNotListedIsNotGivenOut.
TEST(GpusAnnotation, an_instance_in_parts_is_no_whole_one) {
  auto facts = a100_node(1);
  cut(facts, 0, {"3g.20gb", "1g.5gb"});
  auto& rows = facts.gpus[0].mig_instances;
  rows[0].profile = "1c.3g.20gb";
  const std::string one_part = gpus_annotation(facts, {}, true);
  const auto devices = kube::parse_gpu_devices(one_part);
  ASSERT_TRUE(devices) << devices.error().what;
  EXPECT_FALSE((*devices)[0].mig_dynamic) << "nothing is cut from the slices of the parts";
  ASSERT_EQ((*devices)[0].mig_instances.size(), 1U);
  EXPECT_EQ((*devices)[0].mig_instances[0].profile, "1g.5gb");
  EXPECT_EQ((*devices)[0].mig_instances[0].start, 4);
  rows.insert(rows.begin() + 1, rows[0]);
  rows[1].ci_id = 1;
  rows[1].uuid += "-b";
  EXPECT_EQ(gpus_annotation(facts, {}, true), one_part);
}

TEST(GpusAnnotation, unhealthy_gpus_say_so) {
  const auto devices =
      kube::parse_gpu_devices(gpus_annotation(a100_node(2), {{gpu_uuid(1), "xid 79"}}, false));
  ASSERT_TRUE(devices);
  EXPECT_EQ((*devices)[0].health, kube::GpuDevice::Health::Healthy);
  EXPECT_EQ((*devices)[1].health, kube::GpuDevice::Health::Unhealthy);
}

TEST(GpusAnnotation, nothing_where_the_scheduler_could_not_take_it) {
  EXPECT_EQ(gpus_annotation({}, {}, false), "");
  EXPECT_EQ(gpus_annotation(a100_node(33), {}, false), "");
}

TEST(HoldsAnnotations, whole_gpus_by_index) {
  const auto holds = holds_annotations(a100_node(4), {holding("a", "nvidia.com/gpu", gpu_uuid(3)),
                                                      holding("a", "nvidia.com/gpu", gpu_uuid(1)),
                                                      holding("b", "example.com/nic", "nic0")});
  ASSERT_EQ(holds.size(), 1U);
  const auto read = kube::parse_gpu_holdings(holds.at({.ns = "team", .name = "a"}));
  ASSERT_TRUE(read) << read.error().what;
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[0].gpu, 1);
  EXPECT_EQ((*read)[1].gpu, 3);
}

TEST(HoldsAnnotations, pods_with_shares_slices_or_strangers_have_none) {
  auto facts = a100_node(2);
  cut(facts, 1, {"1g.5gb"});
  const auto holds =
      holds_annotations(facts, {holding("share", "nvidia.com/gpu", gpu_uuid(0) + "::1"),
                                holding("slice", "nvidia.com/mig-1g.5gb", mig_uuid(1, 0)),
                                holding("gone", "nvidia.com/gpu", gpu_uuid(0)),
                                holding("gone", "nvidia.com/gpu", "GPU-gone"),
                                holding("mig", "nvidia.com/gpu", gpu_uuid(1))});
  EXPECT_TRUE(holds.empty());
}

TEST(Leftovers, only_those_on_the_device_count) {
  auto facts = a100_node(1);
  cut(facts, 0, {"1g.5gb", "1g.5gb"});
  PluginConfig config;
  config.mig_strategy = MigStrategy::Mixed;
  const Inventory inventory = make_inventory(facts, config, {});
  const PluginDevice& device = inventory.resources[0].devices[0];
  nvml::ProcessFacts here;
  here.pid = 5;
  here.name = "python";
  here.gi_id = device.gi_id;
  here.ci_id = device.ci_id;
  nvml::ProcessFacts there = here;
  there.pid = 6;
  there.gi_id = device.gi_id + 1;
  nvml::ProcessFacts server = here;
  server.kind = nvml::ProcessFacts::Kind::Mps;
  const auto found = leftovers_on(device, {there, server, here});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pid, 5);
}

TEST(Leftovers, cgroups_of_pods) {
  EXPECT_TRUE(is_pod_cgroup("0::/kubepods.slice/kubepods-burstable.slice/kubepods-x.slice/cri"));
  EXPECT_TRUE(is_pod_cgroup("5:devices:/kubepods/besteffort/pod1/abc"));
  EXPECT_FALSE(is_pod_cgroup("0::/system.slice/dcgm.service"));
}

}  // namespace
}  // namespace jogak::agent
