// SPDX-License-Identifier: Apache-2.0
//
// The configuration of `jogak scheduler`: a YAML file, `apiVersion: jogak.io/v1`, `kind:
// SchedulerConfiguration`. Defaults stand in the structs; unknown fields and values out of range
// are refused with line and path. Read once, then passed by reference and never changed. It holds
// no secrets: those stay in the kubeconfig. For users: docs/operate.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/result.h"

namespace jogak::live {

// Pods with this spec.schedulerName are ours, and this policy chooses among the nodes that fit.
struct ProfileConfig {
  std::string scheduler_name = "jogak";
  std::string policy = "jogak";  // of core/policy: jogak, kube, best-fit, ...
  friend bool operator==(const ProfileConfig&, const ProfileConfig&) = default;
};

struct LeaderElectionConfig {
  bool is_on = true;
  std::string ns = "kube-system";
  std::string name = "jogak-scheduler";
  TimeUs lease_duration = 15 * kSecondInUs;
  TimeUs renew_deadline = 10 * kSecondInUs;
  TimeUs retry_period = 2 * kSecondInUs;
  friend bool operator==(const LeaderElectionConfig&, const LeaderElectionConfig&) = default;
};

struct ClientConfig {
  std::string kubeconfig;  // "": $KUBECONFIG, else ~/.kube/config, else the pod's own account
  std::string context;     // "": the current one
  TimeUs request_timeout = 30 * kSecondInUs;  // of each request but watches
  friend bool operator==(const ClientConfig&, const ClientConfig&) = default;
};

// Metrics and health are for everybody who can reach the address; they name no pods. What names
// pods (/debug/state, /configz) is answered on a port of loopback alone, which `kubectl
// port-forward` reaches and the cluster's own authorization guards.
struct ServerConfig {
  bool is_on = true;
  std::string bind_address = "0.0.0.0";
  std::uint16_t port = 10269;               // 0: any that is free
  std::string tls_cert_file, tls_key_file;  // "": plain HTTP
  bool has_debug = true;
  std::uint16_t debug_port = 10270;  // on 127.0.0.1; 0: any that is free
  friend bool operator==(const ServerConfig&, const ServerConfig&) = default;
};

struct PreemptionConfig {
  bool is_on = true;
  // A seat that was freed for a pod is kept for it so long.
  TimeUs deadline = 300 * kSecondInUs;
  friend bool operator==(const PreemptionConfig&, const PreemptionConfig&) = default;
};

enum class LogFormat : std::uint8_t { Auto, Json, Text };  // Auto: text on a terminal, else JSON

struct LoggingConfig {
  LogLevel level = LogLevel::Info;
  LogFormat format = LogFormat::Auto;
  friend bool operator==(const LoggingConfig&, const LoggingConfig&) = default;
};

struct SchedulerConfig {
  std::vector<ProfileConfig> profiles = {ProfileConfig{}};
  std::uint64_t seed = 1;  // of policies that draw
  int pod_initial_backoff_s = 1;
  int pod_max_backoff_s = 10;  // 0: no back-off
  LeaderElectionConfig leader_election;
  ClientConfig client;
  ServerConfig server;
  TimeUs volume_bind_timeout = 600 * kSecondInUs;
  PreemptionConfig preemption;
  int bindings_in_flight_max = 64;
  LoggingConfig logging;
  friend bool operator==(const SchedulerConfig&, const SchedulerConfig&) = default;
};

// Errors: Invalid, "FILE:LINE: path: what is wrong and what would be right".
Result<SchedulerConfig> read_config(const std::string& file, std::string_view text);
// What does not fit together or has no such name ("profiles[1].policy: ..."). read_config() has
// called it; whoever changes a configuration by flags calls it again.
Result<void> check_config(const SchedulerConfig& config);

// All of it, with every field; read_config() of its yaml() gives the same again.
Doc config_doc(const SchedulerConfig& config);

}  // namespace jogak::live
