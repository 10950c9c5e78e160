// SPDX-License-Identifier: Apache-2.0
// Specs are checked against the rules of CDI's schema as a runtime applies them, by code that
// shares nothing with the maker but the JSON library of the tests.
#include "agent/plugin/cdi.h"

#include <filesystem>
#include <set>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "agent/plugin/testing/node_facts.h"
#include "base/file.h"
#include "base/testing/temp_folder.h"

namespace jogak::agent {
namespace {

namespace fs = std::filesystem;
using testing::a100_node;
using testing::cut;
using testing::gpu_uuid;
using testing::mig_uuid;

// ---- the rules --------------------------------------------------------------------------------

using Complaints = std::vector<std::string>;

void only(const YAML::Node& map, const std::set<std::string>& known, const std::string& where,
          Complaints& out) {
  if (!map.IsMap()) {
    out.push_back(where + " is not an object");
    return;
  }
  for (const auto& entry : map) {
    const auto name = entry.first.as<std::string>();
    if (!known.contains(name)) out.push_back(where + "." + name + " is not known");
  }
}

void check_edits(const YAML::Node& edits, const std::string& where, Complaints& out) {
  only(edits, {"env", "deviceNodes", "mounts", "hooks", "netDevices", "intelRdt", "additionalGids"},
       where, out);
  for (const auto& env : edits["env"]) {
    if (env.as<std::string>().find('=') == std::string::npos) out.push_back(where + ".env");
  }
  for (const auto& node : edits["deviceNodes"]) {
    only(node,
         {"path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid"},
         where + ".deviceNodes", out);
    if (!node["path"] || node["path"].as<std::string>().front() != '/') {
      out.push_back(where + ".deviceNodes.path");
    }
  }
  for (const auto& mount : edits["mounts"]) {
    only(mount, {"hostPath", "containerPath", "options", "type"}, where + ".mounts", out);
    if (!mount["hostPath"] || !mount["containerPath"]) out.push_back(where + ".mounts");
  }
  for (const auto& hook : edits["hooks"]) {
    only(hook, {"hookName", "path", "args", "env", "timeout"}, where + ".hooks", out);
    const std::set<std::string> names = {"prestart",       "createRuntime", "createContainer",
                                         "startContainer", "poststart",     "poststop"};
    if (!names.contains(hook["hookName"].as<std::string>())) out.push_back(where + ".hookName");
    if (hook["path"].as<std::string>().front() != '/') out.push_back(where + ".hooks.path");
  }
}

Complaints check(const std::string& json) {
  Complaints out;
  const YAML::Node spec = YAML::Load(json);  // JSON is YAML
  only(spec, {"cdiVersion", "kind", "annotations", "devices", "containerEdits"}, "spec", out);
  const std::set<std::string> versions = {"0.3.0", "0.4.0", "0.5.0", "0.6.0",
                                          "0.7.0", "0.8.0", "1.0.0", "1.1.0"};
  if (!versions.contains(spec["cdiVersion"].as<std::string>())) out.push_back("cdiVersion");
  if (spec["kind"].as<std::string>().find('/') == std::string::npos) out.push_back("kind");
  if (!spec["devices"] || spec["devices"].size() == 0) out.push_back("devices");
  std::set<std::string> names;
  for (const auto& device : spec["devices"]) {
    only(device, {"name", "annotations", "containerEdits"}, "device", out);
    const auto name = device["name"].as<std::string>();
    if (!names.insert(name).second) out.push_back("device twice: " + name);
    if (!is_cdi_device_name(name)) out.push_back("name " + name);
    if (device["containerEdits"].size() == 0) out.push_back("no edits: " + name);
    check_edits(device["containerEdits"], name, out);
  }
  if (spec["containerEdits"]) check_edits(spec["containerEdits"], "spec", out);
  return out;
}

YAML::Node edits_of(const std::string& json, const std::string& name) {
  for (const auto& device : YAML::Load(json)["devices"]) {
    if (device["name"].as<std::string>() == name) return device["containerEdits"];
  }
  return {};
}

std::vector<std::string> node_paths(const YAML::Node& edits) {
  std::vector<std::string> result;
  for (const auto& node : edits["deviceNodes"]) result.push_back(node["path"].as<std::string>());
  return result;
}

HostFiles full_host() {
  HostFiles host;
  host.device_nodes = {"/dev/nvidia0",
                       "/dev/nvidia1",
                       "/dev/nvidiactl",
                       "/dev/nvidia-uvm",
                       "/dev/nvidia-caps/nvidia-cap1",
                       "/dev/nvidia-caps/nvidia-cap66",
                       "/dev/nvidia-caps/nvidia-cap67",
                       "/dev/nvidia-fs0",
                       "/dev/infiniband/rdma_cm",
                       "/dev/infiniband/uverbs0"};
  host.mig_caps = {{"gpu0/gi7/access", 66}, {"gpu0/gi7/ci0/access", 67}};
  host.libraries = {"/usr/lib64/libcuda.so.550.90.07", "/usr/lib64/libnvidia-ml.so.550.90.07"};
  host.programs = {"/usr/bin/nvidia-smi"};
  host.sockets = {"/run/nvidia-persistenced/socket"};
  host.drm_nodes = {{"0000:07:00.0", {"/dev/dri/card1", "/dev/dri/renderD128"}}};
  return host;
}

// ---- specs ------------------------------------------------------------------------------------

TEST(CdiSpec, a_node_with_known_numbers_needs_no_node_of_the_host) {
  auto facts = a100_node(1);
  cut(facts, 0, {"1g.5gb"});
  HostFiles host = full_host();
  host.device_nodes.erase("/dev/nvidia-uvm");
  host.device_nodes.erase("/dev/nvidia-caps/nvidia-cap67");
  host.numbers = {{"/dev/nvidia-uvm", {.major = 507, .minor = 0}},
                  {"/dev/nvidia0", {.major = 195, .minor = 0}},
                  {"/dev/nvidia-caps/nvidia-cap67", {.major = 508, .minor = 67, .mode = 0444}}};
  const auto files = make_cdi_files(facts, {}, host);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(check(files[0].json), Complaints());
  const YAML::Node slice = edits_of(files[0].json, "0:0")["deviceNodes"];
  ASSERT_EQ(slice.size(), 3U);
  EXPECT_FALSE(slice[1]["major"]) << "a node of the host is copied";
  EXPECT_EQ(slice[2]["path"].as<std::string>(), "/dev/nvidia-caps/nvidia-cap67");
  EXPECT_EQ(slice[2]["type"].as<std::string>(), "c");
  EXPECT_EQ(slice[2]["major"].as<int>(), 508);
  EXPECT_EQ(slice[2]["minor"].as<int>(), 67);
  EXPECT_FALSE(slice[2]["fileMode"]) << "who was given the device may use it, root or not";
  bool has_uvm = false;
  for (const auto& node : YAML::Load(files[0].json)["containerEdits"]["deviceNodes"]) {
    if (node["path"].as<std::string>() != "/dev/nvidia-uvm") continue;
    has_uvm = node["major"].as<int>() == 507 && node["minor"].as<int>() == 0;
  }
  EXPECT_TRUE(has_uvm);
}

TEST(CdiSpec, gpus_and_mig_devices_by_uuid_and_index) {
  auto facts = a100_node(2);
  cut(facts, 0, {"1g.5gb"});
  const auto files = make_cdi_files(facts, {}, full_host());
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].name, "k8s.device-plugin.nvidia.com-gpu.json");
  EXPECT_EQ(check(files[0].json), Complaints());
  using Paths = std::vector<std::string>;
  EXPECT_EQ(node_paths(edits_of(files[0].json, "1")), Paths{"/dev/nvidia1"});
  EXPECT_EQ(node_paths(edits_of(files[0].json, gpu_uuid(0))),
            (Paths{"/dev/nvidia0", "/dev/dri/card1", "/dev/dri/renderD128"}));
  const Paths slice = {"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap66",
                       "/dev/nvidia-caps/nvidia-cap67"};
  EXPECT_EQ(node_paths(edits_of(files[0].json, mig_uuid(0, 0))), slice);
  EXPECT_EQ(node_paths(edits_of(files[0].json, "0:0")), slice);
  // Nobody gets the nodes that configure or watch.
  EXPECT_EQ(files[0].json.find("nvidia-cap1\""), std::string::npos);
  EXPECT_NE(files[0].json.find("NVIDIA_VISIBLE_DEVICES=void"), std::string::npos);
}

TEST(CdiSpec, libraries_get_their_short_names_where_no_hook_makes_links) {
  HostFiles host = full_host();
  EXPECT_NE(make_cdi_files(a100_node(1), {}, host)[0].json.find("\"/usr/lib64/libcuda.so.1\""),
            std::string::npos);
  host.has_hook = true;
  const std::string with_hook = make_cdi_files(a100_node(1), {}, host)[0].json;
  EXPECT_EQ(check(with_hook), Complaints());
  EXPECT_EQ(with_hook.find("\"/usr/lib64/libcuda.so.1\""), std::string::npos);
  EXPECT_NE(with_hook.find("update-ldcache"), std::string::npos);
  PluginConfig config;
  config.cdi_disabled_hooks = {"all"};
  EXPECT_EQ(make_cdi_files(a100_node(1), config, host)[0].json.find("hookName"), std::string::npos);
}

TEST(CdiSpec, host_paths_lie_below_the_driver_root) {
  PluginConfig config;
  config.driver_root = "/run/nvidia/driver";
  config.dev_root = "/";
  const std::string json = make_cdi_files(a100_node(1), config, full_host())[0].json;
  EXPECT_EQ(check(json), Complaints());
  EXPECT_NE(json.find("\"/run/nvidia/driver/usr/bin/nvidia-smi\""), std::string::npos);
  EXPECT_EQ(json.find("/run/nvidia/driver/dev"), std::string::npos);
}

TEST(CdiSpec, a_machine_without_nodes_still_has_valid_specs) {
  const auto files = make_cdi_files(a100_node(2), {}, {});
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(check(files[0].json), Complaints());
  EXPECT_NE(files[0].json.find("JOGAK_GPU_0=" + gpu_uuid(0)), std::string::npos);
  EXPECT_TRUE(make_cdi_files({}, {}, {}).empty());
}

TEST(CdiSpec, what_else_is_turned_on_has_a_file_where_it_is_there) {
  PluginConfig config;
  config.gds = config.mofed = config.gdrcopy = true;
  const auto files = make_cdi_files(a100_node(1), config, full_host());
  ASSERT_EQ(files.size(), 3U);  // there is no gdrdrv
  for (const CdiFile& file : files) EXPECT_EQ(check(file.json), Complaints()) << file.name;
}

TEST(CdiSpec, lost_gpus_are_not_in_it) {
  auto facts = a100_node(2);
  facts.gpus[0].is_lost = true;
  EXPECT_EQ(make_cdi_files(facts, {}, full_host())[0].json.find(gpu_uuid(0)), std::string::npos);
}

TEST(CdiSpec, device_names) {
  for (const auto* const good : {"0", "0:1", "GPU-1", "a", "a_b.c"}) {
    EXPECT_TRUE(is_cdi_device_name(good)) << good;
  }
  for (const auto* const bad : {"", "-a", "a-", "a b", "a/b", ":"}) {
    EXPECT_FALSE(is_cdi_device_name(bad)) << bad;
  }
}

// ---- files ------------------------------------------------------------------------------------

TEST(CdiFolder, holds_exactly_ours_and_leaves_the_rest) {
  TempFolder folder;
  const std::string path = folder.path("cdi");
  const CdiFolder cdi(path);
  const CdiFile gpu{.name = "k8s.device-plugin.nvidia.com-gpu.json", .json = "{}\n"};
  const CdiFile gds{.name = "k8s.device-plugin.nvidia.com-gds.json", .json = "{}\n"};
  ASSERT_TRUE(cdi.put({gpu, gds}));
  ASSERT_TRUE(write_file(path + "/nvidia.yaml", "x"));
  ASSERT_TRUE(write_file(path + "/" + gpu.name + ".writing", "half"));
  ASSERT_TRUE(cdi.put({gpu}));
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) {
    names.insert(entry.path().filename().string());
  }
  EXPECT_EQ(names, (std::set<std::string>{gpu.name, "nvidia.yaml"}));
  EXPECT_EQ(fs::status(path + "/" + gpu.name).permissions(), fs::perms(0644));
}

TEST(CdiFolder, writes_only_what_differs) {
  TempFolder folder;
  std::vector<std::string> steps;
  const CdiFolder cdi(folder.path(), [&steps](std::string_view step) { steps.emplace_back(step); });
  const std::vector<CdiFile> files = {
      {.name = "k8s.device-plugin.nvidia.com-gpu.json", .json = "1"}};
  ASSERT_TRUE(cdi.put(files));
  EXPECT_EQ(steps.size(), 2U);
  ASSERT_TRUE(cdi.put(files));
  EXPECT_EQ(steps.size(), 2U);
  ASSERT_TRUE(cdi.put({}));
  EXPECT_EQ(steps.back(), "remove k8s.device-plugin.nvidia.com-gpu.json");
}

TEST(CdiFolder, a_folder_that_cannot_be_is_an_error_with_its_name) {
  TempFolder folder;
  ASSERT_TRUE(write_file(folder.path("file"), ""));
  const auto result = CdiFolder(folder.path("file"))
                          .put({{.name = "k8s.device-plugin.nvidia.com-gpu.json", .json = "1"}});
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().what.find("file"), std::string::npos);
}

}  // namespace
}  // namespace jogak::agent
