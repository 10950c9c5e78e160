// SPDX-License-Identifier: Apache-2.0
//
// The agent as users run it, on a simulated machine, between a stand-in for the kubelet and
// whoever scrapes it: what a pod gets, what is measured, a GPU that fails and is well again, the
// end.
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/testing/temp_folder.h"
#include "test/agent/agent_process.h"
#include "test/kubelet/kubelet.h"

namespace jogak::agent {
namespace {

namespace fs = std::filesystem;
using kubelet::Kubelet;
using kubelet::NodeCounts;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kGpu = "nvidia.com/gpu";
constexpr auto kEightGpus = R"(apiVersion: jogak.io/v1
kind: NvmlSimulation
identity: agent-run-test
driver: {driverVersion: 550.90.07, driverBranch: r550_00, cudaMajor: 12, cudaMinor: 4}
gpus:
- {model: A100-SXM4-40GB, count: 8}
)";

class AgentRun : public ::testing::Test {
 protected:
  AgentRun() : kubelet_(folder_.path(), 1) { kubelet_.start(); }

  std::vector<std::string> flags(const std::string& machine) {
    const std::string file = folder_.path("machine.yaml");
    EXPECT_TRUE(write_file(file, machine));
    return {"--nvml",       "sim:" + file, "--kubelet-dir", folder_.path(),
            "--kubeconfig", "off",         "--mig-journal", folder_.path("journal.json"),
            "--node-name",  "n1"};
  }
  bool wait_for(const std::string& resource, NodeCounts counts) {
    return kubelet_.wait([&] { return kubelet_.counts(resource) == counts; });
  }
  // The kubelet's wait also looks when nothing changed there.
  bool wait_for_page(const AgentProcess& agent, const std::string& part) {
    return kubelet_.wait([&] {
      const auto page = agent.get("/metrics");
      return page && page->body.find(part) != std::string::npos;
    });
  }
  std::vector<std::string> sockets() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path("device-plugins"))) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("jogak-")) names.push_back(name);
    }
    return names;
  }

  TempFolder folder_;
  Kubelet kubelet_;
};

TEST_F(AgentRun, a_pod_gets_two_and_is_seen_in_the_metrics) {
  AgentProcess agent(jogak_binary(), flags(kEightGpus));
  ASSERT_TRUE(wait_for(kGpu, {8, 8}));
  const auto run = kubelet_.run(
      {.ns = "ml", .name = "train-0", .containers = {{.name = "main", .devices = {{kGpu, 2}}}}});
  ASSERT_TRUE(run) << run.error().what;
  const std::string visible = run->at("main").env.at("NVIDIA_VISIBLE_DEVICES");
  EXPECT_EQ(count_of(visible, "GPU-"), 2U) << visible;
  ASSERT_TRUE(wait_for_page(agent, "pod=\"train-0\""));
  const std::string metrics = agent.get("/metrics")->body;
  EXPECT_EQ(count_of(metrics, "\nDCGM_FI_DEV_GPU_TEMP{"), 8U);
  EXPECT_EQ(agent.get("/readyz")->status, 200);
  EXPECT_EQ(agent.get("/livez")->status, 200);
  EXPECT_EQ(agent.get("/healthz")->status, 200);
  EXPECT_EQ(agent.get("/nothing")->status, 404);
  EXPECT_EQ(agent.stop(), 0) << agent.log();
  EXPECT_THAT(agent.log(), HasSubstr("stopped"));
  EXPECT_THAT(sockets(), IsEmpty());
  EXPECT_THAT(kubelet_.complaints(), IsEmpty());
}

TEST_F(AgentRun, a_kubelet_that_has_just_started_loses_nobody_a_gpu) {
  AgentProcess agent(jogak_binary(), flags(kEightGpus));
  ASSERT_TRUE(wait_for(kGpu, {8, 8}));
  const auto pod = [](const std::string& name) {
    return kubelet::PodAsk{.name = name, .containers = {{.name = "main", .devices = {{kGpu, 2}}}}};
  };
  ASSERT_TRUE(kubelet_.run(pod("before")));
  ASSERT_TRUE(wait_for_page(agent, "pod=\"before\""));
  kubelet_.stop();
  kubelet_.start(Kubelet::Age::Young);
  ASSERT_TRUE(wait_for(kGpu, {8, 8}));
  ASSERT_TRUE(kubelet_.run(pod("after")));  // makes the agent ask
  const std::uint64_t lists = kubelet_.lists();
  ASSERT_TRUE(kubelet_.wait([&] { return kubelet_.lists() >= lists + 3; }));
  EXPECT_THAT(agent.get("/metrics")->body, HasSubstr("pod=\"before\""));
  kubelet_.learn_pods();
  ASSERT_TRUE(wait_for_page(agent, "pod=\"after\""));
  EXPECT_THAT(agent.get("/metrics")->body, HasSubstr("pod=\"before\""));
  EXPECT_EQ(agent.stop(), 0);
  EXPECT_THAT(agent.log(), HasSubstr("does not know all of its pods yet"));
}

TEST_F(AgentRun, a_gpu_fails_and_is_well_again_after_a_reset) {
  AgentProcess agent(jogak_binary(), flags(std::string(kEightGpus) + R"(faults:
- {kind: xid, at: 2s, gpu: 4, code: 79}
- {kind: reset, at: 5s, gpu: 4}
)"));
  ASSERT_TRUE(wait_for(kGpu, {8, 8}));
  ASSERT_TRUE(wait_for(kGpu, {8, 7})) << "after the xid";
  ASSERT_TRUE(wait_for(kGpu, {8, 8})) << "after the reset";
  EXPECT_EQ(agent.stop(), 0);
  EXPECT_THAT(agent.log(), HasSubstr("xid"));
}

TEST_F(AgentRun, slices_are_offered_by_profile) {
  auto words = flags(R"(apiVersion: jogak.io/v1
kind: NvmlSimulation
identity: slices
gpus:
- model: A100-SXM4-40GB
  migEnabled: true
  migInstances: [{profile: 3g.20gb, start: 4}, {profile: 1g.5gb, start: 0}]
)");
  words.insert(words.end(), {"--mig-strategy", "mixed"});
  AgentProcess agent(jogak_binary(), words);
  ASSERT_TRUE(wait_for("nvidia.com/mig-3g.20gb", {1, 1}));
  ASSERT_TRUE(wait_for("nvidia.com/mig-1g.5gb", {1, 1}));
  EXPECT_EQ(agent.stop(), 0);
}

TEST_F(AgentRun, parts_can_be_switched_off) {
  auto words = flags(kEightGpus);
  words.insert(words.end(),
               {"--device-plugin=false", "--labels", "file", "--output-file", folder_.path("gfd")});
  AgentProcess agent(jogak_binary(), words);
  ASSERT_TRUE(wait_for_page(agent, "DCGM_FI_DEV_GPU_TEMP"));
  EXPECT_EQ(kubelet_.registrations(kGpu), 0U);
  const auto labels = read_file(folder_.path("gfd"));
  ASSERT_TRUE(labels) << labels.error().what;
  EXPECT_THAT(*labels, HasSubstr("nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB\n"));
  EXPECT_THAT(*labels, HasSubstr("nvidia.com/gpu.count=8\n"));
  EXPECT_THAT(agent.get("/readyz")->body, Not(HasSubstr("registered")));
  EXPECT_EQ(agent.stop(), 0);
}

// A node of a DaemonSet on which no driver is installed, or not yet.
TEST_F(AgentRun, a_library_that_is_not_there_is_an_error_or_waited_for) {
  auto words = flags(kEightGpus);
  words[1] = folder_.path("libnvidia-ml.so.1");
  words.emplace_back("--fail-on-init-error=false");
  {
    AgentProcess agent(jogak_binary(), words);
    EXPECT_EQ(agent.get("/livez")->status, 200);
    const auto ready = agent.get("/readyz");
    EXPECT_EQ(ready->status, 503);
    EXPECT_THAT(ready->body, HasSubstr("the GPUs are not listed yet"));
    EXPECT_EQ(agent.stop(), 0);
    EXPECT_THAT(agent.log(), HasSubstr("libnvidia-ml.so.1: cannot open"));
  }
  words.back() = "--fail-on-init-error=true";
  AgentProcess agent(jogak_binary(), words);
  EXPECT_EQ(agent.wait(), 1);
  EXPECT_THAT(agent.log(), HasSubstr("libnvidia-ml.so.1"));
}

TEST_F(AgentRun, a_hang_up_reads_the_configuration_anew) {
  const std::string file = folder_.path("config.yaml");
  ASSERT_TRUE(write_file(file, "version: v1\n"));
  auto words = flags(kEightGpus);
  words.insert(words.end(),
               {"--config-file", file, "--labels", "file", "--output-file", folder_.path("gfd")});
  AgentProcess agent(jogak_binary(), words);
  ASSERT_TRUE(wait_for(kGpu, {8, 8}));
  ASSERT_TRUE(write_file(file,
                         "version: v1\nsharing: {timeSlicing: {resources: "
                         "[{name: nvidia.com/gpu, replicas: 3}]}}\n"));
  agent.signal(SIGHUP);
  ASSERT_TRUE(wait_for(kGpu, {24, 24}));
  // One that is wrong changes nothing.
  ASSERT_TRUE(write_file(file, "version: v1\nsharing: 3\n"));
  agent.signal(SIGHUP);
  ASSERT_TRUE(wait_for_page(agent, "jogak_agent_config_error 1"));
  // Shares are served by another server than whole GPUs, so the kubelet may be between the two.
  EXPECT_TRUE(wait_for(kGpu, {24, 24}));
  EXPECT_TRUE(fs::exists(folder_.path("gfd")));
  EXPECT_EQ(agent.stop(), 0);
  EXPECT_FALSE(fs::exists(folder_.path("gfd"))) << "labels of an agent that was taken away";
}

TEST_F(AgentRun, a_machine_without_a_driver_is_an_error_or_waited_for) {
  const std::string none =
      "apiVersion: jogak.io/v1\nkind: NvmlSimulation\nidentity: none\n"
      "driver: {hasDriver: false}\ngpus: [{model: T4}]\n";
  {
    AgentProcess agent(jogak_binary(), flags(none));
    EXPECT_EQ(agent.wait(), 1) << agent.log();
    EXPECT_THAT(agent.log(), HasSubstr("--fail-on-init-error=false"));
  }
  auto words = flags(none);
  words.emplace_back("--fail-on-init-error=false");
  AgentProcess agent(jogak_binary(), words);
  const auto page = agent.get("/readyz");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 503);
  EXPECT_EQ(agent.stop(), 0);
}

}  // namespace
}  // namespace jogak::agent
