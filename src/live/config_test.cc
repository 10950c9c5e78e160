// SPDX-License-Identifier: Apache-2.0
//
// The configuration file: what it may say, and what is said about what it may not.
#include "live/config.h"

#include <gtest/gtest.h>

namespace jogak::live {
namespace {

constexpr std::string_view kHead = "apiVersion: jogak.io/v1\nkind: SchedulerConfiguration\n";

Result<SchedulerConfig> read(std::string_view rest) {
  return read_config("c.yaml", std::string(kHead).append(rest));
}

std::string error_of(std::string_view rest) {
  const auto config = read(rest);
  return config ? "" : config.error().what;
}

TEST(Config, TheDefaultsNeedNothing) {
  const auto config = read("");
  ASSERT_TRUE(config.has_value()) << config.error().what;
  EXPECT_EQ(*config, SchedulerConfig{});
  ASSERT_EQ(config->profiles.size(), 1U);
  EXPECT_EQ(config->profiles[0].scheduler_name, "jogak");
  EXPECT_TRUE(check_config(SchedulerConfig{}).has_value());
}

TEST(Config, EveryFieldIsReadAndWritten) {
  const auto config = read(R"(
profiles:
- {schedulerName: default-scheduler, policy: kube}
- {schedulerName: gpu}
seed: 7
podInitialBackoffSeconds: 2
podMaxBackoffSeconds: 20
leaderElection:
  leaderElect: false
  resourceNamespace: sched
  resourceName: mine
  leaseDuration: 30s
  renewDeadline: 20s
  retryPeriod: 1500ms
clientConnection: {kubeconfig: /k, context: c, requestTimeout: 1m}
server:
  enabled: false
  bindAddress: "::1"
  port: 1
  tlsCertFile: /c
  tlsPrivateKeyFile: /p
  debug: false
  debugPort: 2
volumeBindTimeout: 5m
preemption: {enabled: false, deadline: 90s}
bindingsInFlightMax: 8
logging: {level: debug, format: json}
)");
  ASSERT_TRUE(config.has_value()) << config.error().what;
  EXPECT_EQ(config->profiles,
            (std::vector<ProfileConfig>{{"default-scheduler", "kube"}, {"gpu", "jogak"}}));
  EXPECT_EQ(config->seed, 7U);
  EXPECT_EQ(config->pod_initial_backoff_s, 2);
  EXPECT_EQ(config->pod_max_backoff_s, 20);
  EXPECT_EQ(config->leader_election, (LeaderElectionConfig{false, "sched", "mine", 30 * kSecondInUs,
                                                           20 * kSecondInUs, 1500 * kMsInUs}));
  EXPECT_EQ(config->client, (ClientConfig{"/k", "c", 60 * kSecondInUs}));
  EXPECT_EQ(config->server, (ServerConfig{false, "::1", 1, "/c", "/p", false, 2}));
  EXPECT_EQ(config->volume_bind_timeout, 300 * kSecondInUs);
  EXPECT_EQ(config->preemption, (PreemptionConfig{false, 90 * kSecondInUs}));
  EXPECT_EQ(config->bindings_in_flight_max, 8);
  EXPECT_EQ(config->logging, (LoggingConfig{LogLevel::Debug, LogFormat::Json}));

  const auto again = read_config("again", config_doc(*config).yaml());
  ASSERT_TRUE(again.has_value()) << again.error().what;
  EXPECT_EQ(*again, *config);
}

TEST(Config, WhatIsPrintedReadsBack) {
  const std::string text = config_doc(SchedulerConfig{}).yaml();
  const auto again = read_config("printed", text);
  ASSERT_TRUE(again.has_value()) << again.error().what << "\n" << text;
  EXPECT_EQ(*again, SchedulerConfig{});
}

TEST(Config, UnknownFieldsAreRefusedWithTheNearest) {
  EXPECT_EQ(error_of("leaderElections: {}"),
            "c.yaml:3: leaderElections: unknown field; did you mean leaderElection?");
  EXPECT_EQ(error_of("leaderElection:\n  leaseDurations: 15s"),
            "c.yaml:4: leaderElection.leaseDurations: unknown field; did you mean leaseDuration?");
  EXPECT_EQ(error_of("profiles:\n- schedulerName: a\n  polcy: kube"),
            "c.yaml:5: profiles[0].polcy: unknown field; did you mean policy?");
  EXPECT_EQ(error_of("profile: []"), "c.yaml:3: profile: unknown field; did you mean profiles?");
  EXPECT_EQ(error_of("parallelism: 16"), "c.yaml:3: parallelism: unknown field");
}

TEST(Config, TheHeaderIsRequired) {
  const auto error = [](std::string_view text) {
    const auto config = read_config("c", text);
    return config ? "" : config.error().what;
  };
  EXPECT_EQ(error("seed: 1"), "c:1: apiVersion: is required");
  EXPECT_EQ(error("apiVersion: jogak.io/v1"), "c:1: kind: is required");
  EXPECT_EQ(error("apiVersion: kubescheduler.config.k8s.io/v1\nkind: X"),
            "c:1: apiVersion: expected jogak.io/v1, got kubescheduler.config.k8s.io/v1; a "
            "configuration of kube-scheduler says other things");
  EXPECT_EQ(error("apiVersion: jogak.io/v1\nkind: Scheduler"),
            "c:2: kind: expected SchedulerConfiguration, got Scheduler");
  EXPECT_EQ(error(""),
            "c: expected one YAML document, a map that begins with apiVersion: jogak.io/v1");
}

TEST(Config, ValuesAreChecked) {
  EXPECT_EQ(error_of("profiles: []"),
            "c.yaml:3: profiles: needs at least one; leave it out for the default");
  EXPECT_EQ(error_of("profiles: [{schedulerName: A b}]"),
            "c.yaml: profiles[0].schedulerName: \"A b\" is not a name that a pod can ask for; use "
            "lower-case letters, digits and -");
  EXPECT_EQ(error_of("profiles: [{schedulerName: a}, {schedulerName: a}]"),
            "c.yaml: profiles[1].schedulerName: a is taken by another profile");
  EXPECT_NE(error_of("profiles: [{schedulerName: a, policy: joga}]").find("did you mean jogak?"),
            std::string::npos);
  EXPECT_EQ(error_of("podMaxBackoffSeconds: 2\npodInitialBackoffSeconds: 3"),
            "c.yaml: podMaxBackoffSeconds: 2 is less than podInitialBackoffSeconds 3");
  EXPECT_EQ(error_of("podMaxBackoffSeconds: 0"), "");
  EXPECT_EQ(error_of("leaderElection: {leaseDuration: 10s}"),
            "c.yaml: leaderElection.leaseDuration: 10s must be longer than renewDeadline 10s, or "
            "two could lead at once");
  EXPECT_EQ(error_of("leaderElection: {leaseDuration: 12500ms}"),
            "c.yaml: leaderElection.leaseDuration: 12s500ms must be whole seconds, as a Lease has "
            "them");
  EXPECT_EQ(error_of("leaderElection: {retryPeriod: 9s}"),
            "c.yaml: leaderElection.renewDeadline: 10s must be longer than 1.2 times retryPeriod "
            "9s");
  EXPECT_EQ(error_of("leaderElection: {retryPeriod: 5}"),
            "c.yaml:3: leaderElection.retryPeriod: expected a time like 15s or 1m30s, got 5");
  EXPECT_EQ(error_of("server: {bindAddress: localhost}"),
            "c.yaml: server.bindAddress: expected an IP address like 0.0.0.0, got localhost");
  EXPECT_EQ(error_of("server: {tlsCertFile: a}"),
            "c.yaml: server.tlsPrivateKeyFile: give tlsCertFile and tlsPrivateKeyFile, or neither");
  EXPECT_EQ(error_of("server: {port: 10270}"),
            "c.yaml: server.debugPort: 10270 is the port of the metrics too");
  EXPECT_NE(error_of("server: {port: 70000}").find("c.yaml:3: server.port: "), std::string::npos);
  EXPECT_EQ(error_of("logging: {level: verbose}"),
            "c.yaml:3: logging.level: no log level verbose; there are error, warn, info and debug");
  EXPECT_EQ(error_of("logging: {format: xml}"),
            "c.yaml:3: logging.format: expected auto, json or text, got xml");
  EXPECT_NE(error_of("bindingsInFlightMax: 0"), "");
  EXPECT_EQ(error_of("clientConnection: {kubeconfig: \"\xda\"}"), "c.yaml: is not UTF-8 text");
}

}  // namespace
}  // namespace jogak::live
