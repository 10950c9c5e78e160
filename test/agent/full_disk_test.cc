// SPDX-License-Identifier: Apache-2.0
//
// `jogak agent run` where no file takes another byte: at the start, and in the middle of a change
// of MIG layouts. A limit on the size of its files plays the full disk: each write fails, as it
// would, and is well again when the limit goes.
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
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
constexpr auto kReason = "jogak.io/mig.config.reason";
constexpr auto kMachine = R"(apiVersion: jogak.io/v1
kind: NvmlSimulation
identity: full-disk-test
gpus:
- {model: H100-SXM5-80GB, count: 2}
)";

// Of the process `pid`, or of this one and those that it starts (0).
void set_disk_full(pid_t pid, bool is_full) {
  rlimit limit = {};
  JOGAK_CHECK(::prlimit(pid, RLIMIT_FSIZE, nullptr, &limit) == 0);
  limit.rlim_cur = is_full ? 0 : limit.rlim_max;
  JOGAK_CHECK(::prlimit(pid, RLIMIT_FSIZE, &limit, nullptr) == 0);
}

class FullDisk : public ::testing::Test {
 protected:
  FullDisk() : kubelet_(folder_.path(), 1) {
    // Ignored here, it is ignored by whom we start: a write then fails instead of killing.
    std::signal(SIGXFSZ, SIG_IGN);
    kubelet_.start();
    EXPECT_TRUE(write_file(folder_.path("machine.yaml"), kMachine));
  }
  ~FullDisk() override { std::signal(SIGXFSZ, SIG_DFL); }

  std::vector<std::string> flags(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {
        "--nvml",        "sim:" + folder_.path("machine.yaml"), "--kubelet-dir", folder_.path(),
        "--mig-journal", folder_.path("journal.json"),          "--node-name",   "n1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  bool wait_for(const std::string& resource, NodeCounts counts) {
    return kubelet_.wait([&] { return kubelet_.counts(resource) == counts; });
  }

  TempFolder folder_;
  Kubelet kubelet_;
};

TEST_F(FullDisk, what_no_cdi_file_names_is_offered_once_there_is_room) {
  const std::string cdi = folder_.path("cdi");
  set_disk_full(0, true);
  AgentProcess agent(jogak_binary(),
                     flags({"--kubeconfig", "off", "--cdi-dir", cdi, "--device-list-strategy",
                            "cdi-cri", "--labels", "file", "--output-file", folder_.path("gfd")}));
  set_disk_full(0, false);
  ASSERT_TRUE(wait_for(kGpu, {2, 0}));
  EXPECT_TRUE(std::filesystem::is_empty(cdi));
  EXPECT_FALSE(
      kubelet_.run({.name = "early", .containers = {{.name = "main", .devices = {{kGpu, 1}}}}}));
  set_disk_full(agent.pid(), false);
  ASSERT_TRUE(wait_for(kGpu, {2, 2}));
  const auto run =
      kubelet_.run({.name = "late", .containers = {{.name = "main", .devices = {{kGpu, 1}}}}});
  ASSERT_TRUE(run) << run.error().what;
  const std::string name = run->at("main").cdi_devices.at(0);
  const auto text = read_file(cdi + "/k8s.device-plugin.nvidia.com-gpu.json");
  ASSERT_TRUE(text) << text.error().what;
  EXPECT_THAT(*text, HasSubstr(name.substr(name.find('=') + 1)));
  ASSERT_TRUE(kubelet_.wait([&] { return std::filesystem::exists(folder_.path("gfd")); }));
  EXPECT_EQ(agent.stop(), 0) << agent.log();
  EXPECT_THAT(agent.log(), HasSubstr("the CDI files could not be written"));
  EXPECT_THAT(kubelet_.complaints(), IsEmpty());
}

TEST_F(FullDisk, no_layout_is_changed_without_its_journal) {
  TestCluster cluster(folder_.path("kubeconfig"));
  AgentProcess agent(jogak_binary(), flags({"--kubeconfig", folder_.path("kubeconfig"),
                                            "--mig-strategy", "mixed"}));
  ASSERT_TRUE(wait_for(kGpu, {2, 2}));
  set_disk_full(agent.pid(), true);
  cluster.label(kMigConfig, "all-1g.10gb");
  ASSERT_TRUE(kubelet_.wait([&] { return cluster.label(kMigState) == "failed"; }));
  EXPECT_THAT(cluster.annotation(kReason), HasSubstr("journal"));
  ASSERT_TRUE(wait_for(kGpu, {2, 2})) << "the GPUs are not given back";
  EXPECT_EQ(kubelet_.counts(kSlice).capacity, 0);
  set_disk_full(agent.pid(), false);
  cluster.label(kMigConfig, "");
  // It was seen to be gone; two changes at once might be none.
  ASSERT_TRUE(kubelet_.wait([&] { return cluster.annotation(kReason).empty(); }));
  cluster.label(kMigConfig, "all-1g.10gb");
  ASSERT_TRUE(wait_for(kSlice, {14, 14}));
  EXPECT_TRUE(kubelet_.wait([&] { return cluster.label(kMigState) == "success"; }));
  EXPECT_EQ(agent.stop(), 0) << agent.log();
}

}  // namespace
}  // namespace jogak::agent
