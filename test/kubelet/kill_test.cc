// SPDX-License-Identifier: Apache-2.0
// The agent is killed (SIGKILL) at each of its steps and started again, while pods come and go: no
// device is ever held by two, and the CDI files are whole.

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "agent/plugin/cdi.h"
#include "agent/plugin/testing/node_facts.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/testing/temp_folder.h"
#include "test/kubelet/agent_thread.h"
#include "test/kubelet/child.h"
#include "test/kubelet/held_devices.h"
#include "test/kubelet/kubelet.h"

namespace jogak::kubelet {
namespace {

namespace fs = std::filesystem;
using agent::testing::a100_node;
using jogak::testing::Child;

constexpr auto kGpu = "nvidia.com/gpu";
constexpr auto kSocketVariable = "JOGAK_TEST_KUBELET_SOCKET";
constexpr auto kCdiVariable = "JOGAK_TEST_CDI_FOLDER";
constexpr auto kStepVariable = "JOGAK_TEST_KILL_AT";

// The agent as a process of its own, which the tests below start: it ends itself, as SIGKILL does,
// when the step with this number is reached.
TEST(AgentProcess, child_of_the_tests_below) {
  const char* const socket = std::getenv(kSocketVariable);
  if (socket == nullptr) return;  // run by itself there is nothing to do
  int left = std::atoi(std::getenv(kStepVariable));
  const auto step = [&left](std::string_view) {
    if (--left == 0) ::raise(SIGKILL);
  };
  net::EpollLoop loop;
  CapturedLog sink;
  Log log(loop, sink);
  const auto facts = a100_node(8);
  const agent::PluginConfig config;
  const agent::CdiFolder cdi(std::getenv(kCdiVariable), step);
  ASSERT_TRUE(cdi.put(agent::make_cdi_files(facts, config, {})));
  agent::DevicePlugin plugin(loop, log, {.kubelet_socket = socket, .on_step = step});
  plugin.update(agent::make_snapshot(facts, config, {}, {}));
  loop.run();
}

std::vector<std::string> variables(const std::string& socket, const std::string& cdi, int kill_at) {
  return {std::string(kSocketVariable) + "=" + socket, std::string(kCdiVariable) + "=" + cdi,
          std::string(kStepVariable) + "=" + std::to_string(kill_at)};
}

TEST(KillTest, no_device_twice_and_no_torn_file_whatever_the_step) {
  constexpr std::uint64_t kSeed = 5;
  TempFolder folder;
  Kubelet kubelet(folder.path(), kSeed);
  kubelet.start();
  Rng random(kSeed, "pods");
  HeldDevices held;
  std::set<std::string> pods;
  const std::string cdi = folder.path("cdi");
  const std::string log = folder.path("log");
  const auto whole = agent::make_cdi_files(a100_node(8), {}, {});
  for (int kill_at = 1; kill_at <= 12; ++kill_at) {
    // A stale file of ours and one of somebody else's, both from before.
    fs::create_directories(cdi);
    ASSERT_TRUE(write_file(cdi + "/k8s.device-plugin.nvidia.com-old.json", "{}"));
    ASSERT_TRUE(write_file(cdi + "/other.json", "{}"));
    if (kill_at % 2 == 0) fs::remove(cdi + "/" + whole[0].name);
    {
      Child child(Child::this_test("AgentProcess.child_of_the_tests_below"),
                  variables(kubelet.socket(), cdi, kill_at), log);
      kubelet.wait([&] { return !child.is_running() || kubelet.counts(kGpu) == NodeCounts{8, 8}; });
      for (int i = 0; i < 8 && child.is_running(); ++i) {
        const std::string name = std::to_string(kill_at) + "-" + std::to_string(i);
        const auto count = static_cast<int>(random.between(1, 3));
        const auto run =
            kubelet.run({.name = name, .containers = {{.name = "c", .devices = {{kGpu, count}}}}});
        if (run) {
          held.add(name, run->at("c"));
          pods.insert(name);
        }
        if (pods.size() > 2) {
          held.remove(*pods.begin());
          kubelet.remove("default", *pods.begin());
          pods.erase(pods.begin());
        }
      }
      const auto file = read_file(cdi + "/" + whole[0].name);
      if (file) {
        EXPECT_EQ(*file, whole[0].json) << "torn at step " << kill_at;
      }
    }
    ASSERT_TRUE(kubelet.wait([&] { return kubelet.counts(kGpu).allocatable == 0; }));
  }
  // One that is let live: all is as it should be, and what runs kept its devices.
  Child child(Child::this_test("AgentProcess.child_of_the_tests_below"),
              variables(kubelet.socket(), cdi, 0), log);
  ASSERT_TRUE(kubelet.wait([&] { return kubelet.counts(kGpu) == NodeCounts{8, 8}; }));
  const auto last =
      kubelet.run({.name = "last", .containers = {{.name = "c", .devices = {{kGpu, 1}}}}});
  ASSERT_TRUE(last) << last.error().what;
  held.add("last", last->at("c"));
  EXPECT_EQ(read_file(cdi + "/" + whole[0].name).value_or(""), whole[0].json);
  EXPECT_FALSE(fs::exists(cdi + "/k8s.device-plugin.nvidia.com-old.json"));
  EXPECT_TRUE(fs::exists(cdi + "/other.json"));
  int sockets = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(kubelet.socket()).parent_path())) {
    if (entry.path().filename().string().starts_with("jogak-")) ++sockets;
  }
  EXPECT_EQ(sockets, 1) << "sockets of dead agents are left";
  EXPECT_EQ(kubelet.complaints(), std::vector<std::string>());
}

}  // namespace
}  // namespace jogak::kubelet
