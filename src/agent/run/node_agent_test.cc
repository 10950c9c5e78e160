// SPDX-License-Identifier: Apache-2.0
//
// The agent of a node under virtual time: what it tells of a simulated machine, and when.
#include "agent/run/node_agent.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/run/testing/node_rig.h"
#include "base/file.h"
#include "base/testing/temp_folder.h"

namespace jogak::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using testing::NodeRig;

constexpr auto kTwoT4 = "identity: t\ngpus: [{model: T4, count: 2}]\n";

TEST(NodeAgent, tells_what_is_there_once) {
  NodeRig rig(kTwoT4);
  rig.start();
  rig.loop.run_for(200 * kSecondInUs);
  ASSERT_EQ(rig.offers.size(), 1U);
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), ElementsAre("healthy", "healthy"));
  ASSERT_EQ(rig.wishes.size(), 1U);
  EXPECT_THAT(rig.wishes[0].labels, Contains(Key("nvidia.com/gpu.product")));
  EXPECT_THAT(rig.wishes[0].annotations, Contains(Key(std::string(kGpusAnnotation))));
  EXPECT_EQ(rig.wishes[0].conditions.size(), 4U);
}

TEST(NodeAgent, an_xid_takes_one_gpu_off_the_offer_and_a_reset_brings_it_back) {
  NodeRig rig(std::string(kTwoT4) + R"(faults:
- {kind: xid, at: 10s, gpu: 1, code: 79}
- {kind: reset, at: 100s, gpu: 1}
)");
  rig.start();
  rig.loop.run_for(11 * kSecondInUs);
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), ElementsAre("healthy", HasSubstr("xid 79")));
  EXPECT_TRUE(rig.condition("GpuUnusable"));
  rig.loop.run_for(120 * kSecondInUs);
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), ElementsAre("healthy", "healthy"));
  EXPECT_FALSE(rig.condition("GpuUnusable"));
}

// The files that an agent writes, while the disk takes any.
struct Disk {
  Result<void> state = {};
  std::vector<CdiFile> files = {};
  Labels labels = {};
  HostView view() {
    HostView host;
    host.put_cdi = [this](const std::vector<CdiFile>& wanted) {
      if (state) files = wanted;
      return state;
    };
    host.has_cdi = [this] { return !files.empty(); };
    host.put_labels = [this](const std::string& /*path*/, const Labels& wanted) {
      if (state) labels = wanted;
      return state;
    };
    return host;
  }
};

TEST(NodeAgent, what_no_cdi_file_names_is_not_fit_for_use_until_it_is_written) {
  AgentOptions options = NodeRig::defaults();
  options.plugin.list_strategies = {ListStrategy::CdiCri};
  Disk disk;
  disk.state = fail(Errc::Unavailable, "gpu.json: no space left on device");
  NodeRig rig(kTwoT4, options, disk.view());
  rig.start();
  rig.loop.run_for(2 * kSecondInUs);
  EXPECT_THAT(rig.offered("nvidia.com/gpu"),
              ElementsAre(HasSubstr("no space left"), HasSubstr("no space left")));
  disk.state = {};
  rig.loop.run_for(6 * kSecondInUs);
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), ElementsAre("healthy", "healthy"));
  EXPECT_EQ(disk.files.size(), 1U);
  // What the files name already stays on offer.
  disk.state = fail(Errc::Unavailable, "gpu.json: read-only file system");
  rig.loop.run_for(200 * kSecondInUs);
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), ElementsAre("healthy", "healthy"));
  EXPECT_EQ(rig.logged("could not be written"), 2);
}

TEST(NodeAgent, a_features_file_that_could_not_be_written_is_written_later) {
  AgentOptions options = NodeRig::defaults();
  options.labels = LabelPlace::File;
  Disk disk;
  disk.state = fail(Errc::Unavailable, "gfd: no space left on device");
  NodeRig rig(kTwoT4, options, disk.view());
  rig.start();
  rig.loop.run_for(30 * kSecondInUs);
  EXPECT_THAT(disk.labels, IsEmpty());
  EXPECT_EQ(rig.logged("could not be written"), 1);
  disk.state = {};
  rig.loop.run_for(6 * kSecondInUs);
  EXPECT_THAT(disk.labels, Contains(Key("nvidia.com/gpu.product")));
}

// A counter that costs a call of its own is measured as soon as the file names it.
TEST(NodeAgent, a_counters_file_takes_force_when_it_changes) {
  const TempFolder folder;
  AgentOptions options = NodeRig::defaults();
  options.counters_file = folder.path("counters.csv");
  ASSERT_TRUE(write_file(options.counters_file, "DCGM_FI_DEV_GPU_TEMP, gauge, t\n"));
  NodeRig rig(kTwoT4, options);
  rig.start();
  rig.loop.run_for(3 * kSecondInUs);
  EXPECT_EQ(rig.logged("the counters are those of the changed file"), 1);
  ASSERT_TRUE(write_file(options.counters_file, "DCGM_FI_DEV_PCIE_TX_THROUGHPUT, gauge, kb\n"));
  rig.loop.run_for(3 * kSecondInUs);
  EXPECT_THAT(*rig.node->exporter()->page(ExpositionFormat::Text),
              HasSubstr("\nDCGM_FI_DEV_PCIE_TX_THROUGHPUT{"));
  ASSERT_TRUE(write_file(options.counters_file, "nonsense\n"));
  rig.loop.run_for(3 * kSecondInUs);
  EXPECT_EQ(rig.logged("the counters before stay in force"), 1);
  EXPECT_THAT(*rig.node->exporter()->page(ExpositionFormat::Text),
              HasSubstr("\nDCGM_FI_DEV_PCIE_TX_THROUGHPUT{"));
}

TEST(NodeAgent, asked_only_by_look_nothing_is_left_to_do) {
  AgentOptions options = NodeRig::quiet();
  NodeRig rig(std::string(kTwoT4) + "faults: [{kind: xid, at: 10s, gpu: 0, code: 79}]\n", options);
  rig.start();
  rig.loop.run_ready();
  EXPECT_TRUE(rig.loop.idle());
  EXPECT_EQ(rig.offers.size(), 1U);
  rig.loop.run_for(3600 * kSecondInUs);
  EXPECT_EQ(rig.offers.size(), 1U);
  int looks = 0;
  rig.node->look([&] { ++looks; });
  rig.node->look([&] { ++looks; });
  rig.loop.run_ready();
  EXPECT_EQ(looks, 2);
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), ElementsAre(HasSubstr("xid 79"), "healthy"));
  EXPECT_TRUE(rig.loop.idle());
  const auto node = rig.node->snapshot();
  EXPECT_EQ(node->time, rig.loop.now());
  EXPECT_NE(node->gpus[0].sample, nullptr);
}

TEST(NodeAgent, a_look_ends_where_there_is_no_driver) {
  AgentOptions options = NodeRig::quiet();
  options.plugin.fail_on_init_error = false;
  NodeRig rig("identity: t\ndriver: {hasDriver: false}\ngpus: [{model: T4}]\n", options);
  rig.start();
  int looks = 0;
  rig.node->look([&] { ++looks; });
  rig.loop.run_for(10 * kSecondInUs);
  EXPECT_EQ(looks, 1);
  EXPECT_FALSE(rig.node->has_facts());
  EXPECT_THAT(rig.failures, IsEmpty());
}

TEST(NodeAgent, without_a_driver_it_fails_once_where_that_was_asked_for) {
  NodeRig rig("identity: t\ndriver: {hasDriver: false}\ngpus: [{model: T4}]\n");
  rig.start();
  rig.loop.run_for(10 * kSecondInUs);
  EXPECT_THAT(rig.failures, ElementsAre(HasSubstr("--fail-on-init-error=false")));
}

TEST(NodeAgent, tells_which_pod_holds_what) {
  NodeRig rig(kTwoT4);
  rig.start();
  rig.loop.run_ready();
  rig.hold("nvidia.com/gpu", rig.gpu_uuid(1), "ml/train-0");
  EXPECT_THAT(rig.holds, ElementsAre(Key(PodName{"ml", "train-0"})));
}

TEST(NodeAgent, has_a_page_of_the_last_news) {
  NodeRig rig(kTwoT4);
  rig.start();
  rig.loop.run_for(2 * kSecondInUs);
  ASSERT_NE(rig.node->exporter(), nullptr);
  EXPECT_THAT(*rig.node->exporter()->page(ExpositionFormat::Text),
              HasSubstr("DCGM_FI_DEV_GPU_TEMP{"));
}

AgentOptions shared_by_mps(int replicas) {
  AgentOptions options = NodeRig::defaults();
  options.plugin.mps_root = "/run/nvidia/mps";
  options.plugin.sharing = {.kind = SharingKind::Mps,
                            .resources = {{.name = "nvidia.com/gpu", .replicas = replicas}}};
  return options;
}

TEST(NodeAgent, shares_by_mps_are_offered_while_their_daemon_answers) {
  NodeRig rig(kTwoT4, shared_by_mps(2));
  rig.start();
  rig.loop.run_for(3 * kSecondInUs);
  ASSERT_EQ(rig.mps.size(), 1U);
  ASSERT_EQ(rig.mps[0].size(), 1U);
  EXPECT_EQ(rig.mps[0][0].thread_percent, 50);
  EXPECT_EQ(rig.mps[0][0].gpus.size(), 2U);
  EXPECT_THAT(rig.offers, IsEmpty()) << "nobody knows yet whether it runs";
  EXPECT_FALSE(rig.node->has_facts());
  rig.node->on_mps({{"nvidia.com/gpu", "it starts"}});
  EXPECT_THAT(rig.offered("nvidia.com/gpu"),
              ElementsAre("it starts", "it starts", "it starts", "it starts"));
  rig.node->on_mps({{"nvidia.com/gpu", ""}});
  EXPECT_THAT(rig.offered("nvidia.com/gpu"),
              ElementsAre("healthy", "healthy", "healthy", "healthy"));
  rig.node->on_mps({{"nvidia.com/gpu", "it has ended"}});
  EXPECT_THAT(rig.offered("nvidia.com/gpu")[3], "it has ended");
}

TEST(NodeAgent, a_daemon_that_runs_already_is_no_news_to_the_kubelet) {
  NodeRig rig(kTwoT4, shared_by_mps(2));
  rig.start();
  rig.loop.run_ready();
  rig.node->on_mps({{"nvidia.com/gpu", ""}});
  ASSERT_EQ(rig.offers.size(), 1U);
  EXPECT_THAT(rig.offered("nvidia.com/gpu"),
              ElementsAre("healthy", "healthy", "healthy", "healthy"));
}

TEST(NodeAgent, another_sharing_wants_other_daemons) {
  NodeRig rig(kTwoT4, shared_by_mps(2));
  rig.start();
  rig.loop.run_ready();
  rig.node->on_mps({{"nvidia.com/gpu", ""}});
  PluginConfig config = rig.node->options().plugin;
  config.sharing.rename_by_default = true;
  rig.node->set_config(config);
  ASSERT_EQ(rig.mps.size(), 2U);
  EXPECT_EQ(rig.mps[1].at(0).resource, "nvidia.com/gpu.shared");
  EXPECT_THAT(rig.offered("nvidia.com/gpu.shared")[0], HasSubstr("not asked yet"));
  config.sharing = {};
  rig.node->set_config(config);
  ASSERT_EQ(rig.mps.size(), 3U);
  EXPECT_THAT(rig.mps[2], IsEmpty());
  EXPECT_THAT(rig.offered("nvidia.com/gpu"), ElementsAre("healthy", "healthy"));
}

TEST(NodeAgent, another_configuration_takes_force_at_once) {
  NodeRig rig(kTwoT4);
  rig.start();
  rig.loop.run_for(2 * kSecondInUs);
  ASSERT_EQ(rig.offered("nvidia.com/gpu").size(), 2U);
  ASSERT_EQ(rig.wishes.back().labels.at("nvidia.com/gpu.replicas"), "1");
  PluginConfig config = rig.node->options().plugin;
  config.sharing.kind = SharingKind::TimeSlicing;
  config.sharing.resources = {{.name = "nvidia.com/gpu", .replicas = 3}};
  rig.node->set_config(config);
  EXPECT_EQ(rig.offered("nvidia.com/gpu").size(), 6U);
  EXPECT_EQ(rig.wishes.back().labels.at("nvidia.com/gpu.replicas"), "3");
  const std::size_t offers = rig.offers.size();
  rig.node->set_config(config);
  EXPECT_EQ(rig.offers.size(), offers) << "nothing is new";
}

TEST(NodeAgent, a_configuration_before_the_first_facts_is_the_one_that_counts) {
  NodeRig rig(kTwoT4);
  PluginConfig config = rig.node->options().plugin;
  config.sharing.kind = SharingKind::TimeSlicing;
  config.sharing.resources = {{.name = "nvidia.com/gpu", .replicas = 2}};
  rig.node->set_config(config);
  EXPECT_THAT(rig.offers, IsEmpty());
  rig.start();
  rig.loop.run_ready();
  EXPECT_EQ(rig.offered("nvidia.com/gpu").size(), 4U);
}

TEST(NodeAgent, two_runs_tell_the_same) {
  const auto run = [] {
    NodeRig rig(
        "identity: t\ngpus: [{model: A100-SXM4-40GB, count: 4}]\n"
        "faults: [{kind: thermal, at: 5s, gpu: 2, for: 60s}]\n");
    rig.start();
    rig.loop.run_for(300 * kSecondInUs);
    return *rig.node->exporter()->page(ExpositionFormat::Text);
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace jogak::agent
