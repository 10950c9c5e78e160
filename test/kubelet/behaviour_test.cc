// SPDX-License-Identifier: Apache-2.0
//
// What a real kubelet was seen to do beyond handing out devices (D4 to D10): health in a pod's
// status and where it goes stale, PodResources and what is allocatable, pods admitted anew after a
// restart. The plugin must live with it, and a later reader of these answers, too.
#include <set>
#include <string>

#include <api/pod_resources.grpc.pb.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include "agent/plugin/testing/node_facts.h"
#include "base/testing/temp_folder.h"
#include "test/kubelet/agent_thread.h"
#include "test/kubelet/kubelet.h"

namespace jogak::kubelet {
namespace {

using agent::testing::a100_node;
using agent::testing::gpu_uuid;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr auto kGpu = "nvidia.com/gpu";

class KubeletBehaviour : public ::testing::Test {
 protected:
  KubeletBehaviour() : kubelet_(folder_.path(), 2) { kubelet_.start(); }
  void TearDown() override { EXPECT_THAT(kubelet_.complaints(), IsEmpty()); }

  bool wait_for(NodeCounts counts) {
    return kubelet_.wait([&] { return kubelet_.counts(kGpu) == counts; });
  }
  bool run(const std::string& name, int count) {
    return kubelet_.run({.name = name, .containers = {{.name = "c", .devices = {{kGpu, count}}}}})
        .has_value();
  }
  std::unique_ptr<::v1::PodResourcesLister::Stub> lister() {
    return ::v1::PodResourcesLister::NewStub(grpc::CreateChannel(
        "unix:" + kubelet_.pod_resources_socket(), grpc::InsecureChannelCredentials()));
  }
  std::set<std::string> allocatable() {
    const auto stub = lister();
    grpc::ClientContext context;
    ::v1::AllocatableResourcesResponse response;
    EXPECT_TRUE(stub->GetAllocatableResources(&context, {}, &response).ok());
    std::set<std::string> ids;
    for (const auto& entry : response.devices()) {
      EXPECT_EQ(entry.device_ids_size(), 1);
      EXPECT_EQ(entry.resource_name(), kGpu);
      ids.insert(entry.device_ids(0));
    }
    return ids;
  }

  TempFolder folder_;
  Kubelet kubelet_;
};

TEST_F(KubeletBehaviour, d4_one_entry_per_device_with_its_numa_node) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(2)});
  ASSERT_TRUE(wait_for({2, 2}));
  ASSERT_TRUE(run("a", 2));
  const auto stub = lister();
  grpc::ClientContext context;
  ::v1::GetPodResourcesRequest request;
  request.set_pod_namespace("default");
  request.set_pod_name("a");
  ::v1::GetPodResourcesResponse response;
  ASSERT_TRUE(stub->Get(&context, request, &response).ok());
  ASSERT_EQ(response.pod_resources().containers_size(), 1);
  std::map<std::string, std::int64_t> numa;
  for (const auto& entry : response.pod_resources().containers(0).devices()) {
    ASSERT_EQ(entry.device_ids_size(), 1);
    ASSERT_EQ(entry.topology().nodes_size(), 1);
    numa[entry.device_ids(0)] = entry.topology().nodes(0).id();
  }
  EXPECT_THAT(numa, UnorderedElementsAre(Pair(gpu_uuid(0), 0), Pair(gpu_uuid(1), 1)));
  grpc::ClientContext other;
  request.set_pod_name("nobody");
  EXPECT_FALSE(stub->Get(&other, request, &response).ok());
}

TEST_F(KubeletBehaviour, d4_allocatable_is_what_is_healthy_and_nothing_without_the_plugin) {
  {
    AgentThread agent(kubelet_.socket(), {.facts = a100_node(3)});
    ASSERT_TRUE(wait_for({3, 3}));
    ASSERT_TRUE(run("a", 1));
    EXPECT_EQ(allocatable().size(), 3U);  // what is handed out counts, too
    agent.change([](NodeState& state) { state.unhealthy[gpu_uuid(1)] = "xid 79"; });
    ASSERT_TRUE(wait_for({3, 2}));
    EXPECT_THAT(allocatable(), UnorderedElementsAre(gpu_uuid(0), gpu_uuid(2)));
  }
  ASSERT_TRUE(wait_for({3, 0}));
  EXPECT_THAT(allocatable(), IsEmpty());
}

TEST_F(KubeletBehaviour, d5_a_pods_status_tells_of_its_unhealthy_device_at_once) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(1)});
  ASSERT_TRUE(wait_for({1, 1}));
  ASSERT_TRUE(run("a", 1));
  EXPECT_THAT(kubelet_.health_in_status("default", "a"), ElementsAre(Pair(gpu_uuid(0), "Healthy")));
  agent.change([](NodeState& state) { state.unhealthy[gpu_uuid(0)] = "xid 79"; });
  EXPECT_TRUE(kubelet_.wait(
      [&] { return kubelet_.health_in_status("default", "a")[gpu_uuid(0)] == "Unhealthy"; }));
  EXPECT_EQ(kubelet_.counts(kGpu), (NodeCounts{1, 0}));  // the pod runs on
  agent.change([](NodeState& state) { state.unhealthy.clear(); });
  EXPECT_TRUE(kubelet_.wait(
      [&] { return kubelet_.health_in_status("default", "a")[gpu_uuid(0)] == "Healthy"; }));
}

TEST_F(KubeletBehaviour, d6_a_device_that_left_the_list_stays_healthy_in_the_status) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(2)});
  ASSERT_TRUE(wait_for({2, 2}));
  ASSERT_TRUE(run("a", 2));
  agent.change([](NodeState& state) { state.facts = a100_node(1); });
  ASSERT_TRUE(wait_for({1, 1}));
  EXPECT_EQ(kubelet_.health_in_status("default", "a")[gpu_uuid(1)], "Healthy");
  // So a GPU that is gone must stay in the list as unhealthy, which is what a lost one does.
  agent.change([](NodeState& state) {
    state.facts = a100_node(2);
    state.facts.gpus[1].is_lost = true;
  });
  EXPECT_TRUE(kubelet_.wait(
      [&] { return kubelet_.health_in_status("default", "a")[gpu_uuid(1)] == "Unhealthy"; }));
}

TEST_F(KubeletBehaviour, d7_the_status_is_stale_while_the_plugin_is_away) {
  {
    AgentThread agent(kubelet_.socket(), {.facts = a100_node(1)});
    ASSERT_TRUE(wait_for({1, 1}));
    ASSERT_TRUE(run("a", 1));
  }
  ASSERT_TRUE(wait_for({1, 0}));
  EXPECT_EQ(kubelet_.health_in_status("default", "a")[gpu_uuid(0)], "Healthy");
  const auto other =
      kubelet_.run({.name = "b", .containers = {{.name = "c", .devices = {{kGpu, 1}}}}});
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().what.find("no healthy devices present"), std::string::npos);
}

TEST_F(KubeletBehaviour, d10_after_a_restart_without_plugin_init_containers_cost_a_pod_its_life) {
  const auto with_init = [](const std::string& name) {
    return PodAsk{.name = name,
                  .containers = {{.name = "init", .devices = {{kGpu, 1}}, .is_init = true},
                                 {.name = "main", .devices = {{kGpu, 1}}}}};
  };
  {
    AgentThread agent(kubelet_.socket(), {.facts = a100_node(4)});
    ASSERT_TRUE(wait_for({4, 4}));
    ASSERT_TRUE(kubelet_.run(with_init("init")));
    ASSERT_TRUE(run("plain", 1));
    // With the plugin there nobody notices.
    kubelet_.stop();
    kubelet_.start();
    ASSERT_TRUE(wait_for({4, 4}));
    EXPECT_THAT(kubelet_.readmit(), IsEmpty());
  }
  kubelet_.stop();
  kubelet_.start();
  EXPECT_EQ(kubelet_.counts(kGpu), (NodeCounts{0, 0}));
  EXPECT_THAT(kubelet_.readmit(), ElementsAre("default/init"));
  // The plain one kept its device, and the others are free again.
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(4)});
  ASSERT_TRUE(wait_for({4, 4}));
  EXPECT_TRUE(run("all the rest", 3));
  EXPECT_FALSE(run("one more", 1));
}

TEST_F(KubeletBehaviour, d2_and_d12_the_steps_come_in_a_kubelets_order) {
  std::vector<std::string> steps;
  kubelet_.stop();
  kubelet_.on_step = [&](std::string_view step, const std::string& resource) {
    steps.push_back(std::string(step));
    EXPECT_EQ(resource, kGpu);
  };
  kubelet_.start();
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(2)});
  ASSERT_TRUE(wait_for({2, 2}));
  ASSERT_TRUE(run("a", 1));
  ASSERT_TRUE(kubelet_.restart_container("default", "a", "c"));
  EXPECT_THAT(steps, ElementsAre("register", "options", "options-given", "list", "prefer",
                                 "preferred", "allocate", "allocated", "pre-start", "pre-started",
                                 "pre-start", "pre-started"));
}

}  // namespace
}  // namespace jogak::kubelet
