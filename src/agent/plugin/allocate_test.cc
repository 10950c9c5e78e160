// SPDX-License-Identifier: Apache-2.0
// Answers by list strategy, sharing mode and kind of device.
#include "agent/plugin/allocate.h"

#include <gtest/gtest.h>

#include "agent/plugin/testing/node_facts.h"

namespace jogak::agent {
namespace {

using testing::a100_node;
using testing::cut;
using testing::gpu_uuid;
using testing::mig_uuid;

constexpr auto kGpu = "nvidia.com/gpu";
constexpr auto kVisible = "NVIDIA_VISIBLE_DEVICES";

HostFiles host_with_nodes() {
  HostFiles host;
  host.device_nodes = {"/dev/nvidia0",
                       "/dev/nvidia1",
                       "/dev/nvidiactl",
                       "/dev/nvidia-uvm",
                       "/dev/nvidia-fs0",
                       "/dev/nvidia-caps/nvidia-cap66",
                       "/dev/nvidia-caps/nvidia-cap67"};
  host.mig_caps = {{"gpu0/gi7/access", 66}, {"gpu0/gi7/ci0/access", 67}};
  return host;
}

ContainerAnswer answer(const PluginConfig& config, const std::vector<std::string>& ids,
                       const nvml::NodeFacts& facts = a100_node(2),
                       const std::string& resource = kGpu) {
  const auto snapshot = make_snapshot(facts, config, host_with_nodes(), {});
  auto result = allocate(*snapshot, resource, ids);
  EXPECT_TRUE(result) << result.error().what;
  return result.value_or(ContainerAnswer());
}

std::vector<std::string> paths(const ContainerAnswer& answer) {
  std::vector<std::string> result;
  for (const ContainerDevice& device : answer.devices) result.push_back(device.container_path);
  return result;
}

TEST(Allocate, envvar_names_the_devices_in_order) {
  const ContainerAnswer got = answer({}, {gpu_uuid(1), gpu_uuid(0)});
  EXPECT_EQ(got.env.at(kVisible), gpu_uuid(0) + "," + gpu_uuid(1));
  EXPECT_TRUE(got.devices.empty() && got.mounts.empty() && got.annotations.empty());
}

TEST(Allocate, by_index) {
  PluginConfig config;
  config.id_strategy = IdStrategy::Index;
  EXPECT_EQ(answer(config, {gpu_uuid(1)}).env.at(kVisible), "1");
  config.mig_strategy = MigStrategy::Mixed;
  auto facts = a100_node(1);
  cut(facts, 0, {"1g.5gb", "1g.5gb"});
  EXPECT_EQ(answer(config, {mig_uuid(0, 1)}, facts, "nvidia.com/mig-1g.5gb").env.at(kVisible),
            "0:1");
}

TEST(Allocate, volume_mounts) {
  PluginConfig config;
  config.list_strategies = {ListStrategy::VolumeMounts};
  const ContainerAnswer got = answer(config, {gpu_uuid(0)});
  EXPECT_EQ(got.env.at(kVisible), "/var/run/nvidia-container-devices");
  ASSERT_EQ(got.mounts.size(), 1U);
  EXPECT_EQ(got.mounts[0].host_path, "/dev/null");
  EXPECT_EQ(got.mounts[0].container_path, "/var/run/nvidia-container-devices/" + gpu_uuid(0));
}

TEST(Allocate, cdi_names_and_nothing_else) {
  PluginConfig config;
  config.list_strategies = {ListStrategy::CdiAnnotations, ListStrategy::CdiCri};
  config.pass_device_specs = true;
  config.gds = true;
  config.gdrcopy = config.mofed = true;  // not on this node, so no CDI file has them
  config.imex_channels = {0};            // the same
  const ContainerAnswer got = answer(config, {gpu_uuid(0), gpu_uuid(1)});
  const std::string first = "k8s.device-plugin.nvidia.com/gpu=" + gpu_uuid(0);
  const std::string second = "k8s.device-plugin.nvidia.com/gpu=" + gpu_uuid(1);
  const std::string gds = "k8s.device-plugin.nvidia.com/gds=all";
  EXPECT_EQ(got.cdi_devices, (std::vector{first, second, gds}));
  ASSERT_EQ(got.annotations.size(), 1U);
  const auto& [key, value] = *got.annotations.begin();
  EXPECT_TRUE(key.starts_with("cdi.k8s.io/nvidia-device-plugin_")) << key;
  EXPECT_LE(key.size() - std::string("cdi.k8s.io/").size(), 63U);
  EXPECT_EQ(value, first + "," + second + "," + gds);
  EXPECT_FALSE(got.env.contains(kVisible));
  EXPECT_EQ(got.env.at("NVIDIA_GDS"), "enabled");
  EXPECT_TRUE(got.devices.empty());
}

TEST(Allocate, an_imex_channel_that_is_there_is_given_in_every_way) {
  PluginConfig config;
  config.pass_device_specs = true;
  config.imex_channels = {0};
  config.imex_required = true;
  HostFiles host = host_with_nodes();
  const auto with = [&](ListStrategy strategy) {
    config.list_strategies = {strategy};
    const auto snapshot = make_snapshot(a100_node(1), config, host, {});
    return *allocate(*snapshot, kGpu, {gpu_uuid(0)});
  };
  host.device_nodes.insert(imex_node(0));
  const ContainerAnswer by_env = with(ListStrategy::Envvar);
  EXPECT_EQ(by_env.env.at("NVIDIA_IMEX_CHANNELS"), "0");
  EXPECT_EQ(paths(by_env).back(), "/dev/nvidia-caps-imex-channels/channel0");
  EXPECT_EQ(with(ListStrategy::VolumeMounts).mounts.back().container_path,
            "/var/run/nvidia-container-devices/imex/0");
  EXPECT_EQ(with(ListStrategy::CdiCri).cdi_devices.back(),
            "k8s.device-plugin.nvidia.com/imex-channel=0");
}

TEST(Allocate, an_imex_channel_that_is_not_there_is_left_out_or_required) {
  PluginConfig config;
  config.imex_channels = {0};
  EXPECT_FALSE(answer(config, {gpu_uuid(0)}).env.contains("NVIDIA_IMEX_CHANNELS"));
  const auto without = make_snapshot(a100_node(1), config, {}, {});
  EXPECT_TRUE(without->inventory.find(kGpu)->devices[0].is_healthy);
  EXPECT_EQ(without->inventory.problems.size(), 1U);
  config.imex_required = true;
  const auto required = make_snapshot(a100_node(1), config, {}, {});
  EXPECT_FALSE(required->inventory.find(kGpu)->devices[0].is_healthy);
  EXPECT_NE(required->inventory.problems[0].find("channel0"), std::string::npos);
}

TEST(Allocate, device_nodes_that_are_there) {
  PluginConfig config;
  config.pass_device_specs = true;
  EXPECT_EQ(paths(answer(config, {gpu_uuid(1)})),
            (std::vector<std::string>{"/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"}));
  config.dev_root = "/run/driver";
  EXPECT_EQ(answer(config, {gpu_uuid(1)}).devices[0].host_path, "/run/driver/dev/nvidia1");
}

TEST(Allocate, device_nodes_of_a_mig_device) {
  PluginConfig config;
  config.pass_device_specs = true;
  config.mig_strategy = MigStrategy::Mixed;
  auto facts = a100_node(1);
  cut(facts, 0, {"1g.5gb"});
  EXPECT_EQ(paths(answer(config, {mig_uuid(0, 0)}, facts, "nvidia.com/mig-1g.5gb")),
            (std::vector<std::string>{"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap66",
                                      "/dev/nvidia-caps/nvidia-cap67", "/dev/nvidiactl",
                                      "/dev/nvidia-uvm"}));
}

TEST(Allocate, shares_of_one_device_are_it_once) {
  PluginConfig config;
  config.sharing = {.kind = SharingKind::TimeSlicing, .resources = {{.name = kGpu, .replicas = 4}}};
  const ContainerAnswer got = answer(config, {gpu_uuid(0) + "::2", gpu_uuid(0) + "::0"});
  EXPECT_EQ(got.env.at(kVisible), gpu_uuid(0));
}

TEST(Allocate, mps_adds_its_pipe_and_memory) {
  PluginConfig config;
  config.mps_root = "/run/nvidia/mps";
  config.sharing = {.kind = SharingKind::Mps,
                    .fails_above_one = true,
                    .resources = {{.name = kGpu, .replicas = 4}}};
  const ContainerAnswer got = answer(config, {gpu_uuid(0) + "::2"});
  EXPECT_EQ(got.env.at("CUDA_MPS_PIPE_DIRECTORY"), "/mps/nvidia.com/gpu/pipe");
  ASSERT_EQ(got.mounts.size(), 2U);
  EXPECT_EQ(got.mounts[0].host_path, "/run/nvidia/mps/nvidia.com/gpu/pipe");
  EXPECT_EQ(got.mounts[1].container_path, "/dev/shm");
}

TEST(Allocate, the_same_question_has_the_same_answer) {
  PluginConfig config;
  config.list_strategies = {ListStrategy::CdiAnnotations, ListStrategy::Envvar};
  EXPECT_EQ(answer(config, {gpu_uuid(0), gpu_uuid(1)}), answer(config, {gpu_uuid(1), gpu_uuid(0)}));
}

TEST(Allocate, an_unhealthy_device_is_not_a_reason_to_fail_a_pod) {
  const auto snapshot = make_snapshot(a100_node(1), {}, {}, {{gpu_uuid(0), "xid 79"}});
  EXPECT_TRUE(allocate(*snapshot, kGpu, {gpu_uuid(0)}));
}

TEST(Allocate, unknown_ids_are_refused_by_name) {
  const auto snapshot = make_snapshot(a100_node(1), {}, {}, {});
  const auto unknown = allocate(*snapshot, kGpu, {"GPU-x"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::NotFound);
  EXPECT_NE(unknown.error().what.find("GPU-x"), std::string::npos);
  EXPECT_FALSE(allocate(*snapshot, kGpu, {}));
  EXPECT_FALSE(allocate(*snapshot, "nvidia.com/mig-1g.5gb", {"MIG-x"}));
}

}  // namespace
}  // namespace jogak::agent
