// SPDX-License-Identifier: Apache-2.0
// The device plugin over real sockets, driven as a kubelet drives it (D1 to D13 of what a real one
// was seen to do).
#include <chrono>
#include <filesystem>
#include <future>
#include <set>

#include <gtest/gtest.h>

#include "agent/plugin/testing/node_facts.h"
#include "base/testing/temp_folder.h"
#include "test/kubelet/agent_thread.h"
#include "test/kubelet/kubelet.h"

namespace jogak::kubelet {
namespace {

namespace fs = std::filesystem;
using agent::testing::a100_node;
using agent::testing::cut;
using agent::testing::gpu_uuid;
using agent::testing::link;
using agent::testing::mig_uuid;
using Strings = std::vector<std::string>;

constexpr auto kGpu = "nvidia.com/gpu";
#ifdef __SANITIZE_THREAD__
constexpr std::chrono::seconds kSoon(20);  // all is slow
#else
constexpr std::chrono::seconds kSoon(1);
#endif

PodAsk pod_with(const std::string& name, const std::string& resource, int count) {
  return {.name = name, .containers = {{.name = "main", .devices = {{resource, count}}}}};
}

std::set<std::string> visible(const StartedContainer& container) {
  std::set<std::string> result;
  std::string_view rest = container.env.at("NVIDIA_VISIBLE_DEVICES");
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    result.emplace(rest.substr(0, comma));
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  return result;
}

class DevicePluginTest : public ::testing::Test {
 protected:
  DevicePluginTest() : kubelet_(folder_.path(), 1) { kubelet_.start(); }
  void TearDown() override { EXPECT_EQ(kubelet_.complaints(), Strings()); }

  bool wait_for(const std::string& resource, NodeCounts counts) {
    return kubelet_.wait([&] { return kubelet_.counts(resource) == counts; });
  }

  TempFolder folder_;
  Kubelet kubelet_;
};

TEST_F(DevicePluginTest, registers_and_lists_devices_with_their_numa_nodes) {
  NodeState state{.facts = a100_node(8)};
  state.facts.gpus[3].numa_node = -1;  // near none
  AgentThread agent(kubelet_.socket(), state);
  ASSERT_TRUE(wait_for(kGpu, {8, 8}));
  EXPECT_TRUE(kubelet_.has_options(kGpu));
  EXPECT_EQ(kubelet_.registrations(kGpu), 1U);
  const auto numa = kubelet_.numa_nodes(kGpu);
  EXPECT_EQ(numa.at(gpu_uuid(0)), 0);
  EXPECT_EQ(numa.at(gpu_uuid(3)), -1);
  EXPECT_EQ(numa.at(gpu_uuid(7)), 1);
  EXPECT_TRUE(kubelet_.wait([&] { return agent.is_ready(); }));
}

TEST_F(DevicePluginTest, a_pod_with_two_gets_exactly_two_and_the_right_environment) {
  NodeState state{.facts = a100_node(8)};
  link(state.facts, 2, 5, 12);
  AgentThread agent(kubelet_.socket(), state);
  ASSERT_TRUE(wait_for(kGpu, {8, 8}));
  const auto run = kubelet_.run(pod_with("a", kGpu, 2));
  ASSERT_TRUE(run) << run.error().what;
  const StartedContainer& main = run->at("main");
  EXPECT_TRUE(main.was_asked_to_prefer);
  EXPECT_EQ(visible(main), (std::set{gpu_uuid(2), gpu_uuid(5)}));  // the pair with NVLinks
  EXPECT_EQ(main.env.size(), 1U);
  EXPECT_TRUE(main.device_nodes.empty());
}

TEST_F(DevicePluginTest, seven_pods_on_seven_slices_of_one_gpu_see_one_each) {
  NodeState state{.facts = a100_node(1)};
  cut(state.facts, 0, {"1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb", "1g.5gb"});
  state.config.mig_strategy = agent::MigStrategy::Mixed;
  AgentThread agent(kubelet_.socket(), state);
  constexpr auto kSlice = "nvidia.com/mig-1g.5gb";
  ASSERT_TRUE(wait_for(kSlice, {7, 7}));
  std::set<std::string> seen;
  for (int i = 0; i < 7; ++i) {
    const auto run = kubelet_.run(pod_with("pod-" + std::to_string(i), kSlice, 1));
    ASSERT_TRUE(run) << run.error().what;
    const auto one = visible(run->at("main"));
    EXPECT_EQ(one.size(), 1U);
    EXPECT_TRUE(seen.insert(*one.begin()).second) << *one.begin() << " twice";
  }
  EXPECT_EQ(*seen.begin(), mig_uuid(0, 0));
  EXPECT_FALSE(kubelet_.run(pod_with("eighth", kSlice, 1)));
}

TEST_F(DevicePluginTest, a_first_kubelet_whose_folder_comes_later_is_met_within_a_second) {
  kubelet_.stop();
  const std::string plugins = folder_.path("device-plugins");
  std::filesystem::remove_all(plugins);
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(8)});
  ASSERT_TRUE(kubelet_.wait([&] {
    const auto status = agent.status();
    return status.size() == 1 && status[0].problem.find("no such folder") != std::string::npos;
  }));
  std::filesystem::create_directories(plugins);
  kubelet_.start();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(wait_for(kGpu, {8, 8}));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST_F(DevicePluginTest, init_containers_devices_are_used_again) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(4)});
  ASSERT_TRUE(wait_for(kGpu, {4, 4}));
  const auto run =
      kubelet_.run({.name = "p",
                    .containers = {{.name = "init", .devices = {{kGpu, 3}}, .is_init = true},
                                   {.name = "one", .devices = {{kGpu, 1}}},
                                   {.name = "two", .devices = {{kGpu, 2}}}}});
  ASSERT_TRUE(run) << run.error().what;
  std::set<std::string> apps = visible(run->at("one"));
  apps.merge(visible(run->at("two")));
  EXPECT_EQ(visible(run->at("init")), apps);
  EXPECT_FALSE(run->at("two").was_asked_to_prefer);
}

TEST_F(DevicePluginTest, a_device_turns_unhealthy_and_well_again) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(8)});
  ASSERT_TRUE(wait_for(kGpu, {8, 8}));
  agent.change([](NodeState& state) { state.unhealthy[gpu_uuid(4)] = "xid 79"; });
  ASSERT_TRUE(wait_for(kGpu, {8, 7}));
  EXPECT_FALSE(kubelet_.healthy(kGpu).contains(gpu_uuid(4)));
  EXPECT_TRUE(kubelet_.run(pod_with("a", kGpu, 7)));
  agent.change([](NodeState& state) { state.unhealthy.clear(); });
  ASSERT_TRUE(wait_for(kGpu, {8, 8}));
}

TEST_F(DevicePluginTest, a_lost_gpu_takes_no_other_with_it) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(4)});
  ASSERT_TRUE(wait_for(kGpu, {4, 4}));
  agent.change([](NodeState& state) { state.facts.gpus[1].is_lost = true; });
  ASSERT_TRUE(wait_for(kGpu, {4, 3}));
  EXPECT_TRUE(kubelet_.run(pod_with("a", kGpu, 3)));
}

TEST_F(DevicePluginTest, mig_layouts_come_and_go_while_running) {
  NodeState state{.facts = a100_node(2)};
  state.config.mig_strategy = agent::MigStrategy::Mixed;
  AgentThread agent(kubelet_.socket(), state);
  ASSERT_TRUE(wait_for(kGpu, {2, 2}));
  agent.change([](NodeState& now) { cut(now.facts, 1, {"3g.20gb", "3g.20gb"}); });
  ASSERT_TRUE(wait_for(kGpu, {1, 1}));
  ASSERT_TRUE(wait_for("nvidia.com/mig-3g.20gb", {2, 2}));
  agent.change([](NodeState& now) { now.facts = a100_node(2); });
  ASSERT_TRUE(wait_for("nvidia.com/mig-3g.20gb", {0, 0}));
  ASSERT_TRUE(wait_for(kGpu, {2, 2}));
}

TEST_F(DevicePluginTest, shares_of_a_gpu_are_many_ids_and_one_device) {
  NodeState state{.facts = a100_node(1)};
  state.config.sharing = {.kind = agent::SharingKind::TimeSlicing,
                          .rename_by_default = true,
                          .fails_above_one = true,
                          .resources = {{.name = kGpu, .replicas = 4}}};
  AgentThread agent(kubelet_.socket(), state);
  constexpr auto kShared = "nvidia.com/gpu.shared";
  ASSERT_TRUE(wait_for(kShared, {4, 4}));
  for (const auto* const name : {"a", "b", "c"}) {
    const auto run = kubelet_.run(pod_with(name, kShared, 1));
    ASSERT_TRUE(run);
    EXPECT_EQ(visible(run->at("main")), std::set{gpu_uuid(0)});
  }
  kubelet_.remove("default", "a");
  const auto two = kubelet_.run(pod_with("d", kShared, 2));
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().what.find("maximum request size for shared resources is 1"),
            std::string::npos);
}

TEST_F(DevicePluginTest, a_restarted_kubelet_is_registered_with_within_a_second) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(8)});
  ASSERT_TRUE(wait_for(kGpu, {8, 8}));
  const auto run = kubelet_.run(pod_with("a", kGpu, 5));
  ASSERT_TRUE(run);
  for (int i = 0; i < 3; ++i) {
    kubelet_.stop();
    kubelet_.start();
    const auto start = std::chrono::steady_clock::now();
    ASSERT_TRUE(wait_for(kGpu, {8, 8}));
    EXPECT_LT(std::chrono::steady_clock::now() - start, kSoon);
  }
  // What runs kept its devices: three are left.
  EXPECT_FALSE(kubelet_.run(pod_with("b", kGpu, 4)));
  const auto rest = kubelet_.run(pod_with("c", kGpu, 3));
  ASSERT_TRUE(rest) << rest.error().what;
  for (const std::string& id : visible(rest->at("main"))) {
    EXPECT_FALSE(visible(run->at("main")).contains(id)) << id << " was handed out twice";
  }
}

TEST_F(DevicePluginTest, a_socket_that_vanishes_alone_is_served_again) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(2)});
  ASSERT_TRUE(wait_for(kGpu, {2, 2}));
  const std::string socket = agent.status().front().socket;
  fs::remove(fs::path(kubelet_.socket()).parent_path() / socket);
  ASSERT_TRUE(kubelet_.wait(
      [&] { return kubelet_.registrations(kGpu) >= 2 && kubelet_.is_watching(kGpu); }));
  ASSERT_TRUE(wait_for(kGpu, {2, 2}));
  EXPECT_TRUE(kubelet_.run(pod_with("a", kGpu, 2)));
}

TEST_F(DevicePluginTest, a_plugin_that_ends_leaves_zero_and_comes_back) {
  {
    AgentThread agent(kubelet_.socket(), {.facts = a100_node(2)});
    ASSERT_TRUE(wait_for(kGpu, {2, 2}));
  }
  ASSERT_TRUE(wait_for(kGpu, {2, 0}));
  EXPECT_FALSE(kubelet_.run(pod_with("a", kGpu, 1)));
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(2)});
  ASSERT_TRUE(wait_for(kGpu, {2, 2}));
  // Its own old socket is not left behind.
  int sockets = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(kubelet_.socket()).parent_path())) {
    if (entry.path().filename().string().starts_with("jogak-")) ++sockets;
  }
  EXPECT_EQ(sockets, 1);
}

TEST_F(DevicePluginTest, a_kubelet_that_comes_later_is_found) {
  kubelet_.stop();
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(2)});
  EXPECT_FALSE(agent.is_ready());
  kubelet_.start();
  ASSERT_TRUE(wait_for(kGpu, {2, 2}));
}

TEST_F(DevicePluginTest, a_start_waits_for_an_earlier_owner_to_end) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(1)});
  ASSERT_TRUE(wait_for(kGpu, {1, 1}));
  agent.change([](NodeState& state) {
    state.leftovers = {{.pid = 42, .name = "python", .device = gpu_uuid(0), .is_pod = true}};
  });
  auto run = std::async(std::launch::async, [&] { return kubelet_.run(pod_with("a", kGpu, 1)); });
  ASSERT_TRUE(kubelet_.wait([&] { return agent.leftover_asks() >= 3; }));
  agent.change([](NodeState& state) { state.leftovers.clear(); });
  const auto result = run.get();
  EXPECT_TRUE(result) << result.error().what;
}

TEST_F(DevicePluginTest, a_start_is_refused_while_an_earlier_owner_stays) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(1)}, /*leftover_wait=*/0);
  ASSERT_TRUE(wait_for(kGpu, {1, 1}));
  agent.change([](NodeState& state) {
    state.leftovers = {{.pid = 42, .name = "python", .device = gpu_uuid(0), .is_pod = true}};
  });
  const auto refused = kubelet_.run(pod_with("a", kGpu, 1));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("process 42 (python)"), std::string::npos);
  // A process of the node is told about and does not stop a pod.
  agent.change([](NodeState& state) { state.leftovers.front().is_pod = false; });
  EXPECT_TRUE(kubelet_.run(pod_with("a", kGpu, 1)));
  EXPECT_TRUE(kubelet_.restart_container("default", "a", "main"));
}

// Another configuration under the same resource name: pods share by design from then on, and each
// has its device for itself again once the sharing ends.
TEST_F(DevicePluginTest, shares_that_come_with_a_configuration_do_not_wait_for_each_other) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(1)}, /*leftover_wait=*/0);
  ASSERT_TRUE(wait_for(kGpu, {1, 1}));
  agent.change([](NodeState& state) {
    state.leftovers = {{.pid = 42, .name = "python", .device = gpu_uuid(0), .is_pod = true}};
    state.config.sharing = {.kind = agent::SharingKind::TimeSlicing,
                            .resources = {{.name = kGpu, .replicas = 4}}};
  });
  ASSERT_TRUE(wait_for(kGpu, {4, 4}) && kubelet_.wait([&] { return agent.is_ready(); }));
  EXPECT_TRUE(kubelet_.run(pod_with("a", kGpu, 1)));
  EXPECT_TRUE(kubelet_.run(pod_with("b", kGpu, 1)));
  EXPECT_EQ(agent.leftover_asks(), 0);
  kubelet_.remove("default", "a");
  kubelet_.remove("default", "b");
  agent.change([](NodeState& state) { state.config.sharing = {}; });
  ASSERT_TRUE(wait_for(kGpu, {1, 1}) && kubelet_.wait([&] { return agent.is_ready(); }));
  EXPECT_FALSE(kubelet_.run(pod_with("c", kGpu, 1)));
  EXPECT_EQ(agent.leftover_asks(), 1);
}

TEST_F(DevicePluginTest, pod_resources_are_read_with_one_entry_per_device) {
  AgentThread agent(kubelet_.socket(), {.facts = a100_node(4)});
  ASSERT_TRUE(wait_for(kGpu, {4, 4}));
  ASSERT_TRUE(kubelet_.run(pod_with("a", kGpu, 3)));
  net::EpollLoop loop;
  agent::KubeletClient client(loop);
  Result<std::vector<agent::Holding>> holdings;
  const auto list = [&](const std::string& socket) {
    client.list_holdings(socket, [&](auto result) {
      holdings = std::move(result);
      loop.stop();
    });
    loop.run();
  };
  list(kubelet_.pod_resources_socket());
  ASSERT_TRUE(holdings) << holdings.error().what;
  ASSERT_EQ(holdings->size(), 3U);
  EXPECT_EQ(holdings->front().holder.pod, "a");
  EXPECT_EQ(holdings->front().holder.container, "main");
  EXPECT_EQ(holdings->front().resource, kGpu);
  list(folder_.path("nobody.sock"));
  EXPECT_FALSE(holdings);
  // The connection is kept, and the kubelet at its other end may end and another begin.
  kubelet_.stop();
  kubelet_.start();
  list(kubelet_.pod_resources_socket());
  EXPECT_TRUE(holdings) << holdings.error().what;
  kubelet_.stop();
  list(kubelet_.pod_resources_socket());
  EXPECT_FALSE(holdings);
  kubelet_.start();
  list(kubelet_.pod_resources_socket());
  EXPECT_TRUE(holdings) << holdings.error().what;
}

}  // namespace
}  // namespace jogak::kubelet
