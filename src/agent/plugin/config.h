// SPDX-License-Identifier: Apache-2.0
//
// What the device plugin is told to do: the flags, environment variables and the configuration file
// of NVIDIA's plugin, under their names. A command line goes before the environment, that before
// the file, that before the default. Every complaint names where the value came from and the cure.
// The file also holds the settings of the feature labels (gfd).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "base/result.h"

namespace jogak::agent {

enum class MigStrategy : std::uint8_t { None, Single, Mixed };
std::string_view mig_strategy_text(MigStrategy strategy);  // "none"

// How devices reach a container; several may be on at once.
enum class ListStrategy : std::uint8_t { Envvar, VolumeMounts, CdiAnnotations, CdiCri };
enum class IdStrategy : std::uint8_t { Uuid, Index };
// Which GPU the next share is taken from: the least used or the most used.
enum class SharedPolicy : std::uint8_t { Distributed, Packed };
enum class SharingKind : std::uint8_t { None, TimeSlicing, Mps };
std::string_view sharing_text(SharingKind kind);  // "none", "time-slicing", "mps"

struct SharedResource {
  std::string name = {};  // whole: "nvidia.com/gpu"
  int replicas = 1;
  friend bool operator==(const SharedResource&, const SharedResource&) = default;
};

struct SharingConfig {
  SharingKind kind = SharingKind::None;
  bool rename_by_default = false;  // "<name>.shared"
  bool fails_above_one = false;    // failRequestsGreaterThanOne
  std::vector<SharedResource> resources = {};

  // 1 without sharing.
  int replicas_of(std::string_view resource) const;
  friend bool operator==(const SharingConfig&, const SharingConfig&) = default;
};

struct GfdConfig {
  bool is_oneshot = false;
  bool no_timestamp = false;
  TimeUs sleep_interval = 60 * kSecondInUs;
  std::string output_file = "/etc/kubernetes/node-feature-discovery/features.d/gfd";
  std::string machine_type_file = "/sys/class/dmi/id/product_name";
  bool use_node_feature_api = false;
  friend bool operator==(const GfdConfig&, const GfdConfig&) = default;
};

struct PluginConfig {
  MigStrategy mig_strategy = MigStrategy::None;
  bool fail_on_init_error = true;
  std::string driver_root = "/";                          // on the host
  std::string dev_root;                                   // "": as driver_root
  std::string driver_root_in_container = "/driver-root";  // where we see driver_root
  std::string mps_root;
  bool gdrcopy = false, gds = false, mofed = false;
  std::string discovery = "auto";
  bool pass_device_specs = false;
  std::vector<ListStrategy> list_strategies = {ListStrategy::Envvar};
  IdStrategy id_strategy = IdStrategy::Uuid;
  std::string cdi_annotation_prefix = "cdi.k8s.io/";
  std::string cdi_hook_path = "/usr/bin/nvidia-ctk";
  std::optional<SharedPolicy> shared_policy;  // not given: distributed, and MIG fills a GPU
  std::vector<int> imex_channels;
  bool imex_required = false;
  std::string kubelet_socket = "/var/lib/kubelet/device-plugins/kubelet.sock";  // "": none
  std::string config_file;
  std::vector<std::string> cdi_feature_flags, cdi_disabled_hooks;
  std::string disabled_health_checks, enabled_health_checks;  // lists of XIDs, or "all", "xids"
  GfdConfig gfd;
  SharingConfig sharing;

  bool uses(ListStrategy strategy) const;
  bool uses_cdi() const { return uses(ListStrategy::CdiAnnotations) || uses(ListStrategy::CdiCri); }
  // CDI classes of what containers get besides GPUs: "gds", "mofed", "gdrcopy", those that are on.
  std::vector<std::string_view> extra_kinds() const;
  const std::string& host_dev_root() const { return dev_root.empty() ? driver_root : dev_root; }
  friend bool operator==(const PluginConfig&, const PluginConfig&) = default;
};

// Where a setting may be given. Names without dashes; "" where there is none. Texts are static.
struct PluginSetting {
  std::string_view flag, flag_alias;
  std::string_view env, env_alias;
  std::string_view key;    // in the file: "flags.plugin.passDeviceSpecs"
  bool is_switch = false;  // on the command line it may stand alone
  std::string_view help;
};
std::span<const PluginSetting> plugin_settings();

// A flag that was given, by either of its names.
using PluginFlags = std::vector<std::pair<std::string, std::string>>;

// Takes the flags of plugin_settings() out of the words of a command line, in the forms
// "--name value", "--name=value" and, for switches, "--name"; other words go to `rest`.
Result<PluginFlags> take_plugin_flags(std::span<const std::string_view> words,
                                      std::vector<std::string_view>& rest);

using EnvLookup = std::function<std::optional<std::string>(std::string_view name)>;

struct ConfigSources {
  PluginFlags flags;
  EnvLookup env;                          // null: no environment
  std::optional<std::string> file;        // the text of the configuration file
  std::string file_name = "config.yaml";  // for messages
};

struct ReadConfig {
  PluginConfig config;
  std::vector<std::string> warnings;  // settings that are known and have no effect
};
Result<ReadConfig> read_plugin_config(const ConfigSources& sources);

// The path of the configuration file by flag or environment; "" when neither names one.
std::string config_file_path(const PluginFlags& flags, const EnvLookup& env);

// Which of several named files a node uses (the label nvidia.com/device-plugin.config).
inline constexpr std::string_view kConfigLabel = "nvidia.com/device-plugin.config";
enum class ConfigFallback : std::uint8_t { Named, Single, Empty };
struct ConfigChoice {
  std::optional<std::string> label = {};  // value of the label, if the node has it
  std::string default_config = {};        // "": none
  std::vector<ConfigFallback> fallbacks = {ConfigFallback::Named, ConfigFallback::Single,
                                           ConfigFallback::Empty};
  std::vector<std::string> files = {};  // names in the folder
};
// The name of the file, "" for none (all defaults). NotFound: a file that was named is not there.
Result<std::string> choose_config(const ConfigChoice& choice);

}  // namespace jogak::agent
