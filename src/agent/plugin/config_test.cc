// SPDX-License-Identifier: Apache-2.0
// Every source of a setting, their order, and what errors say.
#include "agent/plugin/config.h"

#include <map>

#include <gtest/gtest.h>

namespace jogak::agent {
namespace {

Result<ReadConfig> read(const std::string& file, PluginFlags flags = {},
                        std::map<std::string, std::string, std::less<>> env = {}) {
  ConfigSources sources;
  if (!file.empty()) sources.file = file;
  sources.flags = std::move(flags);
  sources.env = [env = std::move(env)](std::string_view name) -> std::optional<std::string> {
    const auto it = env.find(name);
    return it == env.end() ? std::nullopt : std::optional(it->second);
  };
  return read_plugin_config(sources);
}

std::string error_of(const Result<ReadConfig>& result) {
  return result ? "no error" : result.error().what;
}

TEST(PluginConfig, nothing_given_is_the_default) {
  const auto result = read("");
  ASSERT_TRUE(result) << error_of(result);
  EXPECT_EQ(result->config, PluginConfig());
}

TEST(PluginConfig, the_whole_file) {
  const auto result = read(R"(
version: v1
flags:
  migStrategy: mixed
  failOnInitError: false
  nvidiaDriverRoot: /run/nvidia/driver
  plugin:
    passDeviceSpecs: true
    deviceListStrategy: [envvar, cdi-cri]
    deviceIDStrategy: index
    sharedDevicesAllocationPolicy: packed
  gfd:
    oneshot: true
    sleepInterval: 30s
sharing:
  timeSlicing:
    renameByDefault: true
    resources:
    - name: nvidia.com/gpu
      replicas: 10
    - name: mig-1g.5gb
      replicas: 2
imex:
  channelIDs: [0]
)");
  ASSERT_TRUE(result) << error_of(result);
  const PluginConfig& config = result->config;
  EXPECT_EQ(config.mig_strategy, MigStrategy::Mixed);
  EXPECT_FALSE(config.fail_on_init_error);
  EXPECT_EQ(config.host_dev_root(), "/run/nvidia/driver");
  EXPECT_TRUE(config.pass_device_specs);
  EXPECT_EQ(config.list_strategies, (std::vector{ListStrategy::Envvar, ListStrategy::CdiCri}));
  EXPECT_EQ(config.id_strategy, IdStrategy::Index);
  EXPECT_EQ(config.shared_policy, SharedPolicy::Packed);
  EXPECT_TRUE(config.gfd.is_oneshot);
  EXPECT_EQ(config.gfd.sleep_interval, 30 * kSecondInUs);
  EXPECT_EQ(config.sharing.kind, SharingKind::TimeSlicing);
  EXPECT_FALSE(config.sharing.fails_above_one);
  EXPECT_EQ(config.sharing.replicas_of("nvidia.com/gpu"), 10);
  EXPECT_EQ(config.sharing.replicas_of("nvidia.com/mig-1g.5gb"), 2);
  EXPECT_EQ(config.imex_channels, std::vector{0});
  EXPECT_TRUE(result->warnings.empty());
}

TEST(PluginConfig, json_is_read_too) {
  const auto result =
      read(R"({"version": "v1", "flags": {"plugin": {"deviceListStrategy": "volume-mounts"}}})");
  ASSERT_TRUE(result) << error_of(result);
  EXPECT_EQ(result->config.list_strategies, std::vector{ListStrategy::VolumeMounts});
}

TEST(PluginConfig, flag_before_environment_before_file) {
  const std::string file = "version: v1\nflags: {migStrategy: single}\n";
  EXPECT_EQ(read(file)->config.mig_strategy, MigStrategy::Single);
  EXPECT_EQ(read(file, {}, {{"MIG_STRATEGY", "mixed"}})->config.mig_strategy, MigStrategy::Mixed);
  EXPECT_EQ(
      read(file, {{"mig-strategy", "none"}}, {{"MIG_STRATEGY", "mixed"}})->config.mig_strategy,
      MigStrategy::None);
}

TEST(PluginConfig, the_newer_of_two_names_counts) {
  EXPECT_EQ(read("", {}, {{"NVIDIA_CTK_PATH", "/old"}})->config.cdi_hook_path, "/old");
  EXPECT_EQ(read("", {}, {{"NVIDIA_CTK_PATH", "/old"}, {"NVIDIA_CDI_HOOK_PATH", "/new"}})
                ->config.cdi_hook_path,
            "/new");
}

TEST(PluginConfig, mps_defaults_to_one_share_per_request) {
  const auto result = read(
      "version: v1\nflags: {mpsRoot: /run/nvidia/mps}\nsharing:\n  mps:\n    resources:\n"
      "    - {name: nvidia.com/gpu, replicas: 4}\n");
  ASSERT_TRUE(result) << error_of(result);
  EXPECT_TRUE(result->config.sharing.fails_above_one);
}

TEST(PluginConfig, errors_name_the_place_and_the_cure) {
  const auto has = [](const Result<ReadConfig>& result, std::string_view what) {
    EXPECT_NE(error_of(result).find(what), std::string::npos) << error_of(result);
  };
  has(read("version: v2\n"), "use v1");
  has(read("version: v1\nflags: {migStrategy: doubled}\n"),
      "flags.migStrategy: \"doubled\" is not");
  // Silently ignored elsewhere, and asked about ever since.
  has(read("version: v1\nflags: {renameByDefault: true}\n"), "flags.renameByDefault");
  has(read("version: v1\nsharing: {timeSlicing: {resources: []}}\n"), "names no resource");
  has(read("version: v1\nsharing: {timeSlicing: {resources: [{name: gpu}]}}\n"), "replicas");
  has(read("version: v1\nsharing: {mps: {resources: [{name: gpu, replicas: 2}]}}\n"), "mpsRoot");
  has(read("version: v1\nsharing: {mps: {}, timeSlicing: {}}\n"), "together");
  has(read("", {}, {{"MIG_STRATEGY", "x"}}), "environment variable MIG_STRATEGY");
  has(read("", {{"device-id-strategy", "x"}}), "--device-id-strategy");
  has(read("", {}, {{"IMEX_CHANNEL_IDS", "1"}}), "only channel 0");
  has(read("", {{"device-list-strategy", "cdi-cri"}, {"device-discovery-strategy", "tegra"}}),
      "need NVML");
  has(read("[1, 2]"), "map");
  has(read("version: v1\nflags: {plugin: {deviceListStrategy: {a: b}}}\n"), "deviceListStrategy");
}

// "flags.plugin.passDeviceSpecs" with that value, as a file.
std::string file_with(std::string_view key, std::string_view value) {
  std::string text = "version: v1\n";
  std::string indent;
  while (true) {
    const std::size_t dot = key.find('.');
    text += indent + std::string(key.substr(0, dot)) + ":";
    if (dot == std::string_view::npos) break;
    text += "\n";
    indent += "  ";
    key.remove_prefix(dot + 1);
  }
  return text + " " + std::string(value) + "\n";
}

TEST(PluginConfig, every_switch_refuses_what_is_neither_true_nor_false_by_its_name) {
  int switches = 0;
  for (const PluginSetting& setting : plugin_settings()) {
    if (!setting.is_switch) continue;
    ++switches;
    for (const char* const value : {"perhaps", "2", "[]", "{a: b}"}) {
      const auto refused = [&](const Result<ReadConfig>& result, std::string_view name) {
        ASSERT_FALSE(result) << name << " " << value;
        EXPECT_NE(result.error().what.find(name), std::string::npos) << result.error().what;
        EXPECT_EQ(result.error().what.find('\n'), std::string::npos) << result.error().what;
      };
      if (!setting.flag.empty()) {
        refused(read("", {{std::string(setting.flag), value}}), "--" + std::string(setting.flag));
      }
      if (!setting.env.empty()) {
        refused(read("", {}, {{std::string(setting.env), value}}), setting.env);
      }
      if (!setting.key.empty()) refused(read(file_with(setting.key, value)), setting.key);
    }
  }
  EXPECT_GT(switches, 5);
}

TEST(PluginConfig, every_setting_of_the_file_refuses_a_map_and_a_misspelt_name) {
  for (const PluginSetting& setting : plugin_settings()) {
    if (setting.key.empty()) continue;
    const auto map = read(file_with(setting.key, "{a: {b: c}}"));
    ASSERT_FALSE(map) << setting.key;
    EXPECT_NE(map.error().what.find(setting.key), std::string::npos) << map.error().what;
    const auto misspelt = read(file_with(std::string(setting.key) + "x", "true"));
    ASSERT_FALSE(misspelt) << setting.key;
    EXPECT_NE(misspelt.error().what.find(std::string(setting.key) + "x"), std::string::npos)
        << misspelt.error().what;
  }
}

TEST(PluginConfig, broken_files_are_refused_in_one_line) {
  for (const char* const text :
       {"version", "version: [", "{", "\xff\xfe", "version: v1\n\tflags: {}\n", "- version: v1\n",
        "version: v1\nversion: v1\nflags: 3\n", "version: v1\nflags: []\n",
        "version: v1\nsharing: 4\n", "version: v1\nsharing: {timeSlicing: []}\n",
        "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: "
        "-1}]}}\n",
        "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: x}]}}\n",
        "version: v1\nsharing: {timeSlicing: {resources: [{replicas: 2}]}}\n",
        "version: v1\nunknown: 1\n", "--- {version: v1}\n--- {version: v1}\n",
        "version: &a v1\nflags: *b\n"}) {
    const auto result = read(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().what.find('\n'), std::string::npos) << result.error().what;
  }
}

TEST(PluginConfig, what_has_no_effect_is_said) {
  const auto result = read(
      "version: v1\nresources: {gpus: [{pattern: '*', name: gpu}]}\nsharing:\n  timeSlicing:\n"
      "    resources:\n    - {name: gpu, replicas: 2, rename: mine, devices: [0, 1]}\n");
  ASSERT_TRUE(result) << error_of(result);
  EXPECT_EQ(result->warnings.size(), 3U);
}

TEST(PluginConfig, a_new_name_without_the_switch_is_said_to_have_no_effect) {
  const std::string resources =
      "resources: [{name: nvidia.com/gpu, replicas: 2, "
      "rename: nvidia.com/gpu.shared}]}}\n";
  const auto off = read("version: v1\nsharing: {timeSlicing: {" + resources);
  ASSERT_TRUE(off) << error_of(off);
  EXPECT_EQ(off->warnings.size(), 1U);
  const auto on = read("version: v1\nsharing: {timeSlicing: {renameByDefault: true, " + resources);
  ASSERT_TRUE(on) << error_of(on);
  EXPECT_TRUE(on->warnings.empty());
}

// Files that the programs of before took are taken.
TEST(PluginConfig, what_others_let_pass_is_no_error) {
  EXPECT_EQ(read("flags: {migStrategy: mixed}\n")->config.mig_strategy, MigStrategy::Mixed);
  for (const std::string_view span : {"infinite", "500ms", "1m30s"}) {
    const auto result =
        read(fmt::format("version: v1\nflags: {{gfd: {{sleepInterval: {}}}}}\n", span));
    EXPECT_TRUE(result) << error_of(result);
  }
  EXPECT_FALSE(read("version: v1\nflags: {gfd: {sleepInterval: often}}\n"));
}

TEST(PluginConfig, flags_are_taken_out_of_a_command_line) {
  const std::vector<std::string_view> words = {"--mig-strategy",
                                               "single",
                                               "--other",
                                               "x",
                                               "--pass-device-specs",
                                               "--fail-on-init-error=false",
                                               "--",
                                               "--mig-strategy"};
  std::vector<std::string_view> rest;
  const auto flags = take_plugin_flags(words, rest);
  ASSERT_TRUE(flags);
  EXPECT_EQ(*flags, (PluginFlags{{"mig-strategy", "single"},
                                 {"pass-device-specs", "true"},
                                 {"fail-on-init-error", "false"}}));
  EXPECT_EQ(rest, (std::vector<std::string_view>{"--other", "x", "--", "--mig-strategy"}));
  std::vector<std::string_view> none;
  EXPECT_FALSE(take_plugin_flags(std::vector<std::string_view>{"--mps-root"}, none));
}

TEST(PluginConfig, repeated_list_strategies_collect) {
  const auto result =
      read("", {{"device-list-strategy", "envvar"}, {"device-list-strategy", "cdi-cri"}});
  ASSERT_TRUE(result);
  EXPECT_EQ(result->config.list_strategies,
            (std::vector{ListStrategy::Envvar, ListStrategy::CdiCri}));
}

TEST(ChooseConfig, label_then_default_then_fallbacks) {
  const std::vector<std::string> files = {"a100", "default", "t4"};
  EXPECT_EQ(*choose_config({.label = "t4", .files = files}), "t4");
  EXPECT_EQ(*choose_config({.default_config = "a100", .files = files}), "a100");
  EXPECT_EQ(*choose_config({.files = files}), "default");
  EXPECT_EQ(*choose_config({.files = {"only"}}), "only");
  EXPECT_EQ(*choose_config({.files = {"x", "y"}}), "");
  EXPECT_FALSE(choose_config({.fallbacks = {ConfigFallback::Named}, .files = {"x", "y"}}));
  const auto missing = choose_config({.label = "h100", .files = files});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().what.find("a100, default, t4"), std::string::npos);
}

}  // namespace
}  // namespace jogak::agent
