// SPDX-License-Identifier: Apache-2.0
//
// `jogak agent run` with GPUs shared by MPS: between a stand-in for the kubelet and a stand-in for
// nvidia-cuda-mps-control, over the real sockets and processes.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include "agent/mps/folder.h"
#include "base/file.h"
#include "base/testing/temp_folder.h"
#include "test/agent/agent_process.h"
#include "test/kubelet/kubelet.h"

namespace jogak::agent {
namespace {

namespace fs = std::filesystem;
using kubelet::Kubelet;
using kubelet::NodeCounts;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr auto kGpu = "nvidia.com/gpu";
constexpr auto kTwoGpus = R"(apiVersion: jogak.io/v1
kind: NvmlSimulation
identity: mps-run-test
gpus:
- {model: A100-SXM4-40GB, count: 2}
)";

std::string text_of(const std::string& path) { return read_file(path).value_or(""); }

class MpsRun : public ::testing::Test {
 protected:
  MpsRun() : kubelet_(folder_.path(), 1) {
    fs::create_directory(folder_.path("bin"));
    fs::copy(JOGAK_MPS_STANDIN, folder_.path("bin/nvidia-cuda-mps-control"));
    old_path_ = std::getenv("PATH") == nullptr ? "" : std::getenv("PATH");
    ::setenv("PATH", (folder_.path("bin") + ":" + old_path_).c_str(), 1);
    EXPECT_TRUE(write_file(folder_.path("machine.yaml"), kTwoGpus));
    kubelet_.start();
  }
  ~MpsRun() override {
    agent_.reset();
    if (const auto pid = daemon()) ::kill(*pid, SIGKILL);
    // Of the agent, where it may mount.
    ::umount2(folder_.path("mps/shm").c_str(), MNT_DETACH);
    ::setenv("PATH", old_path_.c_str(), 1);
  }

  void start(const std::string& sharing, const std::vector<std::string>& more = {}) {
    EXPECT_TRUE(write_file(folder_.path("config.yaml"), "version: v1\nflags: {mpsRoot: " +
                                                            folder_.path("mps") + "}\n" + sharing));
    std::vector<std::string> flags = {"--nvml",        "sim:" + folder_.path("machine.yaml"),
                                      "--kubelet-dir", folder_.path(),
                                      "--kubeconfig",  "off",
                                      "--mig-journal", folder_.path("journal.json"),
                                      "--node-name",   "n1",
                                      "--config-file", folder_.path("config.yaml"),
                                      "--mps-dir",     folder_.path("mps"),
                                      "--mps-cgroup",  ""};
    flags.insert(flags.end(), more.begin(), more.end());
    agent_.reset();
    agent_ = std::make_unique<AgentProcess>(jogak_binary(), flags);
  }
  void start_shared(const std::vector<std::string>& more = {}) {
    start("sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n", more);
  }
  bool wait_for(NodeCounts counts) {
    return kubelet_.wait([&] { return kubelet_.counts(kGpu) == counts; });
  }
  std::optional<pid_t> daemon() const { return MpsFolder(folder_.path("mps")).pid(kGpu); }
  std::string told() const { return text_of(folder_.path("mps/nvidia.com/gpu/log/told")); }
  std::string page(const std::string& path) const {
    const auto page = agent_->get(path);
    return page ? page->body : "";
  }

  TempFolder folder_;
  std::string old_path_;
  Kubelet kubelet_;
  std::unique_ptr<AgentProcess> agent_;
};

TEST_F(MpsRun, APodGetsAShareOfARunningDaemon) {
  start_shared();
  ASSERT_TRUE(wait_for({8, 8}));
  // 40960 MiB and 100 % among four
  EXPECT_THAT(told(), HasSubstr("started\n"));
  EXPECT_THAT(told(), HasSubstr("set_default_device_pinned_mem_limit 0 10240M\n"));
  EXPECT_THAT(told(), HasSubstr("set_default_device_pinned_mem_limit 1 10240M\n"));
  EXPECT_THAT(told(), HasSubstr("set_default_active_thread_percentage 25\n"));
  const auto run =
      kubelet_.run({.name = "share", .containers = {{.name = "main", .devices = {{kGpu, 1}}}}});
  ASSERT_TRUE(run) << run.error().what;
  const auto& main = run->at("main");
  EXPECT_EQ(main.env.at("CUDA_MPS_PIPE_DIRECTORY"), "/mps/nvidia.com/gpu/pipe");
  EXPECT_THAT(main.mounts,
              Contains(Pair(folder_.path("mps/nvidia.com/gpu/pipe"), "/mps/nvidia.com/gpu/pipe")));
  EXPECT_THAT(main.mounts, Contains(Pair(folder_.path("mps/shm"), "/dev/shm")));
  EXPECT_TRUE(fs::exists(folder_.path("mps/nvidia.com/gpu/pipe/control")));
  ASSERT_TRUE(kubelet_.wait([&] { return agent_->get("/readyz")->status == 200; }));
  const std::string metrics = page("/metrics");
  EXPECT_THAT(metrics, HasSubstr("jogak_agent_mps_ready{resource=\"nvidia.com/gpu\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("jogak_agent_mps_starts_total{resource=\"nvidia.com/gpu\"} 1\n"));
  EXPECT_EQ(agent_->stop(), 0) << agent_->log();
  EXPECT_TRUE(daemon().has_value()) << "it stays for the pods that run";
}

TEST_F(MpsRun, ADaemonThatIsKilledTakesItsSharesFromTheOffer) {
  start_shared();
  ASSERT_TRUE(wait_for({8, 8}));
  std::vector<NodeCounts> seen;
  const auto pid = daemon();
  ASSERT_TRUE(pid.has_value());
  ::kill(*pid, SIGKILL);
  ASSERT_TRUE(wait_for({8, 0}));
  ASSERT_TRUE(wait_for({8, 8}));
  EXPECT_NE(daemon(), pid);
  EXPECT_EQ(count_of(told(), "set_default_active_thread_percentage 25"), 2U);
  EXPECT_EQ(agent_->stop(), 0);
  EXPECT_THAT(agent_->log(), HasSubstr("the MPS control daemon is not ready any more"));
}

TEST_F(MpsRun, AnAgentThatIsKilledLeavesTheDaemonToTheNext) {
  start_shared();
  ASSERT_TRUE(wait_for({8, 8}));
  const auto pid = daemon();
  ASSERT_TRUE(pid.has_value());
  agent_.reset();  // with SIGKILL
  EXPECT_EQ(daemon(), pid);
  start_shared();
  ASSERT_TRUE(wait_for({8, 8}));
  EXPECT_EQ(daemon(), pid);
  EXPECT_EQ(count_of(told(), "started"), 1U);
  EXPECT_THAT(page("/metrics"),
              HasSubstr("jogak_agent_mps_starts_total{resource=\"nvidia.com/gpu\"} 0\n"));
}

TEST_F(MpsRun, WithoutSharesTheDaemonGoesOnceItsPodsAreGone) {
  start_shared();
  ASSERT_TRUE(wait_for({8, 8}));
  ASSERT_TRUE(
      kubelet_.run({.name = "share", .containers = {{.name = "main", .devices = {{kGpu, 1}}}}}));
  const auto pid = daemon();
  start("");  // whole GPUs
  ASSERT_TRUE(wait_for({2, 2}));
  EXPECT_EQ(daemon(), pid);
  kubelet_.remove("default", "share");
  ASSERT_TRUE(kubelet_.wait([&] { return !daemon().has_value(); }, 20'000));
  EXPECT_THAT(told(), HasSubstr("quit\n"));
  ASSERT_TRUE(kubelet_.wait([&] { return !fs::exists(folder_.path("mps/.jogak")); }));
}

TEST_F(MpsRun, SharesWithoutADaemonAreNotOffered) {
  fs::remove(folder_.path("bin/nvidia-cuda-mps-control"));
  start_shared();
  ASSERT_TRUE(wait_for({8, 0}));
  EXPECT_EQ(agent_->get("/readyz")->status, 503);
  EXPECT_THAT(page("/readyz"), HasSubstr("nvidia-cuda-mps-control is neither in PATH"));
  EXPECT_EQ(agent_->get("/livez")->status, 200);
  EXPECT_EQ(agent_->stop(), 0);
}

TEST_F(MpsRun, TheDaemonOfSomebodyElseIsWaitedFor) {
  start_shared({"--mps-control", "external"});
  ASSERT_TRUE(wait_for({8, 0}));
  fs::create_directories(folder_.path("mps/nvidia.com/gpu/log"));
  EXPECT_FALSE(fs::exists(folder_.path("mps/nvidia.com/gpu/pipe")));
  EXPECT_EQ(agent_->stop(), 0);
  start_shared({"--mps-control", "off"});
  ASSERT_TRUE(wait_for({8, 8})) << "nobody looks";
  EXPECT_EQ(agent_->stop(), 0);
}

}  // namespace
}  // namespace jogak::agent
