// SPDX-License-Identifier: Apache-2.0
//
// Words, addresses and variables, in every form that users have them; errors name what was wrong.
#include "agent/run/options.h"

#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jogak::agent {
namespace {

using ::testing::HasSubstr;

EnvLookup env_of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](std::string_view name) -> std::optional<std::string> {
    const auto at = values.find(std::string(name));
    return at == values.end() ? std::nullopt : std::optional(at->second);
  };
}

TEST(ListenAddress, IsReadInEveryForm) {
  EXPECT_EQ(parse_listen_address("10.0.0.1:80")->ip, "10.0.0.1");
  EXPECT_EQ(parse_listen_address("10.0.0.1:80")->port, 80);
  EXPECT_EQ(parse_listen_address("[::1]:9400")->ip, "::1");
  EXPECT_EQ(parse_listen_address(":9401")->ip, "0.0.0.0");
  EXPECT_EQ(parse_listen_address(":9401")->port, 9401);
  EXPECT_FALSE(parse_listen_address("off")->is_on);
}

TEST(ListenAddress, RefusesWhatIsNone) {
  for (const auto* const text : {"", "9400", "1.2.3.4:", "1.2.3.4:70000", "1.2.3.4:x", "on"}) {
    EXPECT_FALSE(parse_listen_address(text)) << text;
  }
}

TEST(LabelPlaceText, IsRead) {
  EXPECT_EQ(parse_label_place("file"), LabelPlace::File);
  ASSERT_FALSE(parse_label_place("nodes"));
  EXPECT_THAT(parse_label_place("nodes").error().what, HasSubstr("auto, off, file, node"));
}

TEST(ExporterEnvironment, WithoutVariablesIsTheDefault) {
  const auto read = read_exporter_environment(nullptr);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->listen, ListenAddress());
  EXPECT_TRUE(read->render.pod_labels);
  EXPECT_EQ(read->collectors, "");
}

TEST(ExporterEnvironment, VariablesOfTheIncumbentAreUnderstood) {
  const auto read =
      read_exporter_environment(env_of({{"DCGM_EXPORTER_LISTEN", ":9500"},
                                        {"DCGM_EXPORTER_COLLECTORS", "/etc/counters.csv"},
                                        {"DCGM_EXPORTER_KUBERNETES", "false"},
                                        {"DCGM_EXPORTER_USE_OLD_NAMESPACE", "true"},
                                        {"DCGM_EXPORTER_DEVICES_STR", "g:0,2"},
                                        {"DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE", "60000"},
                                        {"DCGM_POD_RESOURCES_KUBELET_SOCKET", "/run/k.sock"},
                                        {"KUBERNETES_VIRTUAL_GPUS", ""}}));
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->listen.port, 9500);
  EXPECT_EQ(read->collectors, "/etc/counters.csv");
  EXPECT_FALSE(read->render.pod_labels);
  EXPECT_TRUE(read->render.old_names);
  EXPECT_EQ(read->render.devices.gpu_ids, (std::vector<int>{0, 2}));
  EXPECT_EQ(read->render.xid_window, 60 * kSecondInUs);
  EXPECT_EQ(read->pod_resources_socket, "/run/k.sock");
  EXPECT_FALSE(read->render.virtual_gpus);
}

TEST(ExporterEnvironment, PodLabelsJobsAndTheWebConfiguration) {
  const auto read = read_exporter_environment(
      env_of({{"DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", "true"},
              {"DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX", "^app, team$"},
              {"DCGM_HPC_JOB_MAPPING_DIR", "/jobs"},
              {"DCGM_EXPORTER_WEB_CONFIG_FILE", "/web.yaml"}}));
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_TRUE(read->render.pod_k8s_labels);
  EXPECT_EQ(read->render.pod_label_allowlist, (std::vector<std::string>{"^app", "team$"}));
  EXPECT_EQ(read->job_folder, "/jobs");
  EXPECT_EQ(read->web_config, "/web.yaml");
  EXPECT_THAT(read_exporter_environment(
                  env_of({{"DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX", "["}}))
                  .error()
                  .what,
              HasSubstr("POD_LABEL_ALLOWLIST_REGEX: \"[\" is no regular expression"));
}

TEST(ExporterEnvironment, ErrorsNameTheVariable) {
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"DCGM_EXPORTER_LISTEN", "x"},
                                          {"DCGM_EXPORTER_KUBERNETES", "yes"},
                                          {"DCGM_EXPORTER_DEVICES_STR", "q"},
                                          {"DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE", "-1"}}) {
    const auto read = read_exporter_environment(env_of({{name, value}}));
    ASSERT_FALSE(read) << name;
    EXPECT_THAT(read.error().what, HasSubstr(name));
  }
}

TEST(HealthOptionsOf, ListsOfXids) {
  PluginConfig config;
  config.disabled_health_checks = "48, 63";
  config.enabled_health_checks = "31";
  const auto options = health_options(config);
  ASSERT_TRUE(options);
  EXPECT_TRUE(options->watches_xids);
  EXPECT_TRUE(options->ignored_xids.contains(48));
  EXPECT_TRUE(options->ignored_xids.contains(63));
  EXPECT_TRUE(options->enforced_xids.contains(31));
}

TEST(HealthOptionsOf, AllMeansNoLookAtXids) {
  PluginConfig config;
  config.disabled_health_checks = "all";
  EXPECT_FALSE(health_options(config)->watches_xids);
  config.disabled_health_checks = "13,Xids";
  EXPECT_FALSE(health_options(config)->watches_xids);
  config.disabled_health_checks = "some";
  ASSERT_FALSE(health_options(config));
  EXPECT_THAT(health_options(config).error().what, HasSubstr("DP_DISABLE_HEALTHCHECKS"));
}

// The second variable goes before the first, also one XID before all.
TEST(HealthOptionsOf, WhatIsEnabledCountsThoughAllIsDisabled) {
  PluginConfig config;
  config.disabled_health_checks = "all";
  config.enabled_health_checks = "48";
  const auto one = health_options(config);
  ASSERT_TRUE(one);
  EXPECT_FALSE(one->watches_xids);
  EXPECT_TRUE(one->enforced_xids.contains(48));
  EXPECT_FALSE(one->enforces_all_xids);
  config.enabled_health_checks = "ALL";
  EXPECT_TRUE(health_options(config)->enforces_all_xids);
}

}  // namespace
}  // namespace jogak::agent
