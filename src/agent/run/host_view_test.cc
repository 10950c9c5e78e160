// SPDX-License-Identifier: Apache-2.0
//
// What the agent sees of the machine it runs on, and that it looks again: files come and go while
// the GPUs stay the same.
#include "agent/run/host_view.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/run/node_agent.h"
#include "agent/run/testing/node_rig.h"
#include "base/log.h"
#include "base/sim_loop.h"
#include "base/testing/temp_folder.h"
#include "nvml/nvml_source.h"
#include "nvml/testing/made_machine.h"

namespace jogak::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

void put(const std::string& path) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << "x";
}

HostFiles files_of(const PluginConfig& config) {
  return real_host({.node_name = "n"}).files({}, config);
}

TEST(HostView, device_nodes_are_those_below_the_mounted_driver_root) {
  const TempFolder folder;
  PluginConfig config;
  config.driver_root_in_container = folder.path("inside");
  put(folder.path("inside/dev/nvidia0"));
  put(folder.path("inside/dev/nvidia-caps/nvidia-cap3"));
  put(folder.path("inside/dev/other"));
  EXPECT_THAT(files_of(config).device_nodes,
              UnorderedElementsAre("/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap3"));
}

TEST(HostView, a_driver_root_that_is_not_mounted_elsewhere_is_looked_at_itself) {
  const TempFolder folder;
  PluginConfig config;
  config.driver_root_in_container = folder.path("nothing");
  config.driver_root = folder.path("driver");
  put(folder.path("driver/dev/nvidia1"));
  EXPECT_THAT(files_of(config).device_nodes, ElementsAre("/dev/nvidia1"));
}

TEST(HostView, a_device_root_of_its_own_goes_first) {
  const TempFolder folder;
  PluginConfig config;
  config.driver_root_in_container = folder.path("inside");
  config.driver_root = folder.path("driver");
  config.dev_root = folder.path("devices");
  put(folder.path("inside/dev/nvidia0"));
  put(folder.path("devices/dev/nvidia7"));
  EXPECT_THAT(files_of(config).device_nodes, ElementsAre("/dev/nvidia7"));
}

TEST(HostView, the_hook_program_is_found_where_the_hosts_root_is_mounted) {
  const TempFolder folder;
  PluginConfig config;
  config.driver_root_in_container = folder.path("inside");
  config.cdi_hook_path = "/opt/made-up/nvidia-ctk";
  EXPECT_FALSE(files_of(config).has_hook);
  put(folder.path("inside/opt/made-up/nvidia-ctk"));
  EXPECT_TRUE(files_of(config).has_hook);
  // below another root there is the driver, not the host
  config.driver_root = "/run/nvidia/driver";
  EXPECT_FALSE(files_of(config).has_hook);
}

struct Watched {
  SimLoop loop;
  CapturedLog lines;
  Log log{loop, lines};
  HostFiles files;
  std::vector<std::vector<CdiFile>> written;
  std::vector<PluginSnapshotPtr> offers;
  bool is_full = false;  // the disk
  std::unique_ptr<NodeAgent> node;

  explicit Watched(ListStrategy strategy = ListStrategy::CdiCri) {
    AgentOptions options = testing::NodeRig::defaults();
    options.plugin.list_strategies = {strategy};
    options.mig_journal = "";
    const auto made = std::make_shared<nvml::testing::MadeMachine>(
        "identity: t\ngpus: [{model: T4, count: 2}]\n");
    machine_ = made;
    HostView host;
    host.files = [this](const nvml::NodeFacts&, const PluginConfig&) { return files; };
    host.has_cdi = [this] { return !written.empty() && !written.back().empty(); };
    host.put_cdi = [this](const std::vector<CdiFile>& put) -> Result<void> {
      if (is_full) return fail(Errc::Unavailable, "the disk is full");
      written.push_back(put);
      return {};
    };
    NodePorts ports;
    ports.offer = [this](PluginSnapshotPtr offer) { offers.push_back(std::move(offer)); };
    node = std::make_unique<NodeAgent>(loop, log, std::move(made->source), options, std::move(host),
                                       std::move(ports));
    node->start();
    loop.run_for(kSecondInUs);
  }

 private:
  std::shared_ptr<nvml::testing::MadeMachine> machine_;
};

TEST(HostView, a_node_that_appears_later_reaches_containers) {
  Watched watched;
  ASSERT_EQ(watched.offers.size(), 1U);
  EXPECT_THAT(watched.offers.back()->host.device_nodes, IsEmpty());
  watched.files.device_nodes.insert("/dev/nvidia-uvm");
  watched.loop.run_for(61 * kSecondInUs);
  ASSERT_EQ(watched.offers.size(), 2U);
  EXPECT_THAT(watched.offers.back()->host.device_nodes, ElementsAre("/dev/nvidia-uvm"));
  EXPECT_THAT(watched.written.back().at(0).json, ::testing::HasSubstr("/dev/nvidia-uvm"));
}

TEST(HostView, cdi_files_are_put_again_when_somebody_may_have_removed_them) {
  Watched watched;
  const std::size_t before = watched.written.size();
  watched.loop.run_for(61 * kSecondInUs);
  EXPECT_GT(watched.written.size(), before);
  EXPECT_EQ(watched.offers.size(), 1U);
}

TEST(HostView, cdi_files_that_could_not_be_written_are_written_later) {
  Watched watched;
  watched.is_full = true;
  watched.files.device_nodes.insert("/dev/nvidia0");
  watched.loop.run_for(61 * kSecondInUs);
  const std::size_t before = watched.written.size();
  watched.is_full = false;
  watched.loop.run_for(61 * kSecondInUs);
  ASSERT_GT(watched.written.size(), before);
  EXPECT_THAT(watched.written.back().at(0).json, ::testing::HasSubstr("/dev/nvidia0"));
}

TEST(HostView, cdi_files_stay_true_when_the_strategy_is_another) {
  Watched watched;
  PluginConfig config = watched.node->options().plugin;
  config.list_strategies = {ListStrategy::Envvar};
  watched.node->set_config(config);
  watched.files.device_nodes.insert("/dev/nvidia0");
  watched.loop.run_for(61 * kSecondInUs);
  EXPECT_THAT(watched.written.back().at(0).json, ::testing::HasSubstr("/dev/nvidia0"));
}

TEST(HostView, no_cdi_files_are_begun_under_another_strategy) {
  Watched watched(ListStrategy::Envvar);
  watched.loop.run_for(61 * kSecondInUs);
  EXPECT_THAT(watched.written, IsEmpty());
}

}  // namespace
}  // namespace jogak::agent
