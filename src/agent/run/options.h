// SPDX-License-Identifier: Apache-2.0
//
// What `jogak agent run` is told to do, as values. Flags and environment are read by
// read_environment() and the command; the programs that the agent replaces had names for most of
// it, and those names are understood (docs/migrate-from-nvidia.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "agent/exporter/render.h"
#include "agent/health/gpu_health.h"
#include "agent/health/node_status.h"
#include "agent/plugin/config.h"
#include "agent/run/mig_work.h"
#include "base/loop.h"
#include "base/result.h"
#include "nvml/worker.h"

namespace jogak::agent {

// Where the feature labels go. Auto: Node where there is an API server to tell, else Off.
enum class LabelPlace : std::uint8_t { Auto, Off, File, Node };
Result<LabelPlace> parse_label_place(std::string_view text);  // "auto", "off", "file", "node"

// An address to listen on.
struct ListenAddress {
  bool is_on = true;
  std::string ip = "0.0.0.0";
  std::uint16_t port = 9400;
  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};
// "0.0.0.0:9400", "[::]:9400", ":9400" (all addresses), "off".
Result<ListenAddress> parse_listen_address(std::string_view text);

// Who runs the MPS control daemons of shared GPUs. External: NVIDIA's DaemonSet, say; shares are
// offered while its daemon answers. Off: shares are offered without a look at it.
enum class MpsMode : std::uint8_t { Own, External, Off };
Result<MpsMode> parse_mps_mode(std::string_view text);  // "own", "external", "off"

struct MpsRunOptions {
  MpsMode mode = MpsMode::Own;
  // PluginConfig::mps_root as we see it; "": /mps if there is such a folder, else the same.
  std::string folder = {};
  std::string cgroup = {};       // MpsControlOptions::cgroup
  std::string search_path = {};  // where the program is looked for first
};

struct AgentOptions {
  std::string node_name;
  PluginConfig plugin = {};
  // The configuration for a value of the node's label nvidia.com/device-plugin.config. Null: it
  // never changes. Settings of the process itself (where sockets are) stay as they were at first.
  std::function<Result<ReadConfig>(const std::optional<std::string>& label)> read_config = nullptr;
  bool has_config_label = true;  // false: it is one file, whatever the label says

  bool device_plugin = true;
  std::string kubelet_socket = "/var/lib/kubelet/device-plugins/kubelet.sock";
  bool registers = true;
  std::string pod_resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";  // "": none
  std::string cdi_folder = "/var/run/cdi";
  std::string system_root = "/";   // where /proc and /sys of the driver are seen
  bool makes_device_nodes = true;  // what is missing in /dev (plugin/device_nodes.h); only as root

  ListenAddress listen = {};
  RenderOptions render = {};
  std::string counters_file = {};  // of render.counters, looked at again and again; "": none
  std::string web_config = {};  // TLS and passwords of the port (exporter/web_config.h); "": none
  std::string job_folder = {};  // of batch jobs (ExporterOptions); "": none

  LabelPlace labels = LabelPlace::Auto;
  bool reports = true;  // annotations and conditions of the node, annotations of pods
  TaintRule taints = TaintRule::Never;
  HealthOptions health = {};

  std::string mig_journal = "/var/lib/jogak/mig-journal.json";  // "": no layout is ever changed
  MigWorkOptions mig = {};
  MpsRunOptions mps = {};

  // 0: only when asked (NodeAgent::look).
  TimeUs sample_every = kSecondInUs;
  TimeUs event_every = 200 * kMsInUs;
  TimeUs facts_every = 60 * kSecondInUs;
  bool reads_gpm = false;  // although nothing listens
  nvml::Worker::Options worker = {};
  TimeUs holdings_every = 5 * kSecondInUs;
  TimeUs config_every = 60 * kSecondInUs;
  // Writes the labels once and ends; nothing else.
  bool is_oneshot = false;
};

// What the variables of dcgm-exporter say, under their names. `collectors` is set to the path of
// the counters file, which the caller reads. Errors name the variable.
struct ExporterEnvironment {
  ListenAddress listen = {};
  std::string collectors = {};
  RenderOptions render = {};
  std::string pod_resources_socket = {};  // "" not given
  std::string web_config = {};            // "" none
  std::string job_folder = {};            // "" none
  TimeUs interval = 0;                    // of samples; 0 not given
};
Result<ExporterEnvironment> read_exporter_environment(const EnvLookup& env);

// What DP_DISABLE_HEALTHCHECKS and DP_ENABLE_HEALTHCHECKS mean: XIDs that are noted only, or "all"
// or "xids" for no look at them; and XIDs, or all, that make a device unhealthy whatever the first
// says. Invalid names the variable.
Result<HealthOptions> health_options(const PluginConfig& config);

}  // namespace jogak::agent
