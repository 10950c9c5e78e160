// SPDX-License-Identifier: Apache-2.0
//
// What labels of the node and pods that are placed on it make `jogak agent run` do, between a
// stand-in for the kubelet and a real API server: MIG layouts by label, instances cut for pods,
// another configuration without a restart, labels written once.
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/temp_folder.h"
#include "test/agent/agent_process.h"
#include "test/agent/test_cluster.h"
#include "test/kubelet/kubelet.h"

namespace jogak::agent {
namespace {

using kubelet::Kubelet;
using kubelet::NodeCounts;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kGpu = "nvidia.com/gpu";
constexpr auto kSlice = "nvidia.com/mig-1g.10gb";
constexpr auto kMigConfig = "nvidia.com/mig.config";
constexpr auto kMigState = "nvidia.com/mig.config.state";
constexpr auto kOneH100 = R"(apiVersion: jogak.io/v1
kind: NvmlSimulation
identity: node-label-test
gpus:
- {model: H100-SXM5-80GB}
)";
constexpr auto kCutH100 = R"(apiVersion: jogak.io/v1
kind: NvmlSimulation
identity: node-label-test
gpus:
- {model: H100-SXM5-80GB, migEnabled: true}
)";

class NodeLabel : public ::testing::Test {
 protected:
  NodeLabel() : kubelet_(folder_.path(), 1), cluster_(folder_.path("kubeconfig")) {
    kubelet_.start();
    std::filesystem::create_directory(folder_.path("configs"));
  }

  void start(const std::string& machine, const std::vector<std::string>& more) {
    const std::string file = folder_.path("machine.yaml");
    ASSERT_TRUE(write_file(file, machine));
    std::vector<std::string> words = {"--nvml",        "sim:" + file,
                                      "--kubelet-dir", folder_.path(),
                                      "--kubeconfig",  folder_.path("kubeconfig"),
                                      "--mig-journal", folder_.path("journal.json"),
                                      "--node-name",   "n1"};
    words.insert(words.end(), more.begin(), more.end());
    agent_ = std::make_unique<AgentProcess>(jogak_binary(), words);
  }
  bool wait_for(const std::string& resource, NodeCounts counts) {
    return kubelet_.wait([&] { return kubelet_.counts(resource) == counts; });
  }
  bool wait_for_state(const std::string& state, const std::string& config) {
    return kubelet_.wait([&] {
      return cluster_.label(kMigState) == state &&
             cluster_.annotation("jogak.io/mig.config.state-of") == config;
    });
  }
  kubelet::PodAsk pod(const std::string& name, const std::string& resource) {
    return {.ns = "ml", .name = name, .containers = {{.name = "main", .devices = {{resource, 1}}}}};
  }

  TempFolder folder_;
  Kubelet kubelet_;
  TestCluster cluster_;
  std::unique_ptr<AgentProcess> agent_;
};

TEST_F(NodeLabel, one_gpu_into_seven_and_back_once_no_pod_is_on_it) {
  start(kOneH100, {"--mig-strategy", "mixed"});
  ASSERT_TRUE(wait_for(kGpu, {1, 1}));
  cluster_.label(kMigConfig, "all-1g.10gb");
  ASSERT_TRUE(wait_for(kSlice, {7, 7}));
  ASSERT_TRUE(wait_for_state("success", "all-1g.10gb"));
  EXPECT_TRUE(wait_for(kGpu, {0, 0}));
  std::set<std::string> visible;
  for (int i = 0; i < 7; ++i) {
    const auto run = kubelet_.run(pod("p" + std::to_string(i), kSlice));
    ASSERT_TRUE(run) << run.error().what;
    visible.insert(run->at("main").env.at("NVIDIA_VISIBLE_DEVICES"));
  }
  EXPECT_EQ(visible.size(), 7U);

  cluster_.label(kMigConfig, "all-disabled");
  ASSERT_TRUE(wait_for_state("failed", "all-disabled"));
  EXPECT_THAT(cluster_.annotation("jogak.io/mig.config.reason"), HasSubstr("pod ml/p"));
  EXPECT_TRUE(wait_for(kSlice, {7, 7}));
  for (int i = 0; i < 7; ++i) kubelet_.remove("ml", "p" + std::to_string(i));
  ASSERT_TRUE(wait_for_state("success", "all-disabled"));
  EXPECT_TRUE(wait_for(kGpu, {1, 1}));
  EXPECT_EQ(cluster_.annotation("jogak.io/mig.config.reason"), "");
  EXPECT_EQ(agent_->stop(), 0) << agent_->log();
  EXPECT_THAT(kubelet_.complaints(), IsEmpty());
}

TEST_F(NodeLabel, a_pod_that_was_placed_here_gets_an_instance_that_was_not_there) {
  start(kCutH100, {"--mig-strategy", "mixed", "--mig-on-demand=true"});
  ASSERT_TRUE(kubelet_.wait([&] { return !cluster_.annotation("jogak.io/gpus").empty(); }));
  EXPECT_THAT(cluster_.annotation("jogak.io/gpus"), HasSubstr("\"dynamic\":true"));
  cluster_.bind_pod("train", {{"jogak.io/mig-profile", "3g.40gb"}});
  ASSERT_TRUE(wait_for("nvidia.com/mig-3g.40gb", {1, 1}));
  const auto run = kubelet_.run(pod("train", "nvidia.com/mig-3g.40gb"));
  ASSERT_TRUE(run) << run.error().what;
  cluster_.bind_pod("small", {{"jogak.io/mig-profile", "1g.10gb"}});
  ASSERT_TRUE(wait_for(kSlice, {1, 1}));
  EXPECT_TRUE(wait_for("nvidia.com/mig-3g.40gb", {1, 1}));
  EXPECT_EQ(agent_->stop(), 0);
}

TEST_F(NodeLabel, another_configuration_takes_force_and_a_bad_one_changes_nothing) {
  const auto put = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file(folder_.path("configs/" + name), text));
  };
  put("whole", "version: v1\n");
  put("shared",
      "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n");
  put("bad", "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu}]}}\n");
  cluster_.label("nvidia.com/device-plugin.config", "shared");
  start(kOneH100, {"--config-dir", folder_.path("configs")});
  ASSERT_TRUE(wait_for(kGpu, {4, 4}));
  EXPECT_EQ(kubelet_.registrations(kGpu), 1U);
  cluster_.label("nvidia.com/device-plugin.config", "whole");
  ASSERT_TRUE(wait_for(kGpu, {1, 1}));
  cluster_.label("nvidia.com/device-plugin.config", "bad");
  ASSERT_TRUE(kubelet_.wait([&] { return cluster_.label("nvidia.com/gpu.replicas") == "1"; }));
  cluster_.label("nvidia.com/device-plugin.config", "shared");
  ASSERT_TRUE(wait_for(kGpu, {4, 4}));
  ASSERT_TRUE(kubelet_.wait([&] { return cluster_.label("nvidia.com/gpu.replicas") == "4"; }));
  EXPECT_EQ(agent_->stop(), 0);
  EXPECT_THAT(agent_->log(), HasSubstr("replicas"));
  EXPECT_THAT(agent_->log(), HasSubstr("stays in force"));
}

TEST_F(NodeLabel, labels_are_written_once) {
  start(kOneH100, {"--oneshot"});
  EXPECT_EQ(agent_->wait(), 0) << agent_->log();
  EXPECT_EQ(cluster_.label("nvidia.com/gpu.count"), "1");
  EXPECT_EQ(kubelet_.registrations(kGpu), 0U);
}

}  // namespace
}  // namespace jogak::agent
