// SPDX-License-Identifier: Apache-2.0
// One table says where each setting may be given and how its text is read; flags, environment and
// file all go through it, so that they cannot disagree about what a value means.
#include "agent/plugin/config.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/parse_number.h"
#include "yaml/yaml_fields.h"

namespace jogak::agent {

namespace {

constexpr std::string_view kResourcePrefix = "nvidia.com/";

using Apply = Result<void> (*)(PluginConfig& config, std::string_view text);

struct Row {
  PluginSetting setting;
  Apply apply;
};

Result<bool> to_bool(std::string_view text) {
  for (const std::string_view yes : {"true", "True", "TRUE", "t", "T", "1"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"false", "False", "FALSE", "f", "F", "0"}) {
    if (text == no) return false;
  }
  return invalid("\"{}\" is neither true nor false", text);
}

template <class T>
struct Word {
  std::string_view text;
  T value;
};

template <class T, std::size_t kCount>
Result<T> to_word(std::string_view text, const Word<T> (&words)[kCount]) {
  std::string known;
  for (const Word<T>& word : words) {
    if (text == word.text) return word.value;
    known += known.empty() ? "" : ", ";
    known += word.text;
  }
  return invalid("\"{}\" is not one of {}", text, known);
}

constexpr Word<MigStrategy> kMigStrategies[] = {
    {"none", MigStrategy::None}, {"single", MigStrategy::Single}, {"mixed", MigStrategy::Mixed}};
constexpr Word<ListStrategy> kListStrategies[] = {{"envvar", ListStrategy::Envvar},
                                                  {"volume-mounts", ListStrategy::VolumeMounts},
                                                  {"cdi-annotations", ListStrategy::CdiAnnotations},
                                                  {"cdi-cri", ListStrategy::CdiCri}};
constexpr Word<IdStrategy> kIdStrategies[] = {{"uuid", IdStrategy::Uuid},
                                              {"index", IdStrategy::Index}};
constexpr Word<SharedPolicy> kSharedPolicies[] = {{"distributed", SharedPolicy::Distributed},
                                                  {"packed", SharedPolicy::Packed}};
constexpr Word<std::string_view> kDiscoveries[] = {
    {"auto", "auto"}, {"nvml", "nvml"}, {"tegra", "tegra"}};

// "a, b" as its parts, without blanks around them; none where the text is empty.
std::vector<std::string> parts(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.empty()) result.emplace_back(part);
  }
  return result;
}

template <auto kMember>
Result<void> set_bool(PluginConfig& config, std::string_view text) {
  JOGAK_TRY(config.*kMember, to_bool(text));
  return {};
}

template <auto kMember>
Result<void> set_text(PluginConfig& config, std::string_view text) {
  config.*kMember = std::string(text);
  return {};
}

template <auto kMember>
Result<void> set_parts(PluginConfig& config, std::string_view text) {
  config.*kMember = parts(text);
  return {};
}

template <auto kMember>
Result<void> set_gfd_bool(PluginConfig& config, std::string_view text) {
  JOGAK_TRY(config.gfd.*kMember, to_bool(text));
  return {};
}

template <auto kMember>
Result<void> set_gfd_text(PluginConfig& config, std::string_view text) {
  config.gfd.*kMember = std::string(text);
  return {};
}

template <auto kMember>
Result<void> set_path(PluginConfig& config, std::string_view text) {
  if (!text.starts_with('/')) return invalid("\"{}\" is not an absolute path", text);
  config.*kMember = std::string(text);
  return {};
}

// A socket or a folder that may be left empty.
template <auto kMember>
Result<void> set_path_or_none(PluginConfig& config, std::string_view text) {
  if (!text.empty()) return set_path<kMember>(config, text);
  (config.*kMember).clear();
  return {};
}

Result<void> set_mig_strategy(PluginConfig& config, std::string_view text) {
  JOGAK_TRY(config.mig_strategy, to_word(text, kMigStrategies));
  return {};
}

Result<void> set_list_strategy(PluginConfig& config, std::string_view text) {
  std::vector<ListStrategy> strategies;
  for (const std::string& part : parts(text)) {
    JOGAK_TRY(const ListStrategy strategy, to_word(part, kListStrategies));
    if (std::ranges::find(strategies, strategy) == strategies.end()) strategies.push_back(strategy);
  }
  if (strategies.empty()) return invalid("names no strategy; use e.g. \"envvar\"");
  config.list_strategies = std::move(strategies);
  return {};
}

Result<void> set_id_strategy(PluginConfig& config, std::string_view text) {
  JOGAK_TRY(config.id_strategy, to_word(text, kIdStrategies));
  return {};
}

Result<void> set_shared_policy(PluginConfig& config, std::string_view text) {
  JOGAK_TRY(config.shared_policy, to_word(text, kSharedPolicies));
  return {};
}

Result<void> set_discovery(PluginConfig& config, std::string_view text) {
  JOGAK_TRY(config.discovery, to_word(text, kDiscoveries));
  return {};
}

Result<void> set_imex_channels(PluginConfig& config, std::string_view text) {
  const std::vector<std::string> ids = parts(text);
  if (ids.size() > 1 || (ids.size() == 1 && ids.front() != "0")) {
    return invalid("\"{}\": only channel 0 can be given, or none", text);
  }
  config.imex_channels.assign(ids.size(), 0);
  return {};
}

// It changes nothing here, so all that was right elsewhere is, and nothing but that.
Result<void> set_sleep_interval(PluginConfig& config, std::string_view text) {
  if (text == "infinite") return {};
  const auto span = parse_span(text);
  if (!span) return invalid("\"{}\" is not a span; use e.g. \"60s\", or \"infinite\"", text);
  config.gfd.sleep_interval = *span;
  return {};
}

using C = PluginConfig;
using G = GfdConfig;

const auto kRows = std::to_array<Row>({
    {{"mig-strategy", "", "MIG_STRATEGY", "", "flags.migStrategy", false,
      "how MIG devices are offered: none, single or mixed"},
     set_mig_strategy},
    {{"fail-on-init-error", "", "FAIL_ON_INIT_ERROR", "", "flags.failOnInitError", true,
      "end when the GPUs cannot be read; else wait for them"},
     set_bool<&C::fail_on_init_error>},
    {{"nvidia-driver-root", "driver-root", "NVIDIA_DRIVER_ROOT", "", "flags.nvidiaDriverRoot",
      false, "the root of the driver's files on the host"},
     set_path<&C::driver_root>},
    {{"nvidia-dev-root", "dev-root", "NVIDIA_DEV_ROOT", "", "flags.nvidiaDevRoot", false,
      "the root of its device nodes; the driver's root if not given"},
     set_path_or_none<&C::dev_root>},
    {{"mps-root", "", "MPS_ROOT", "", "flags.mpsRoot", false,
      "folder of the MPS daemon on the host"},
     set_path_or_none<&C::mps_root>},
    {{"gdrcopy-enabled", "", "GDRCOPY_ENABLED", "", "flags.gdrcopyEnabled", true,
      "give containers GDRCopy"},
     set_bool<&C::gdrcopy>},
    {{"gds-enabled", "", "GDS_ENABLED", "", "flags.gdsEnabled", true,
      "give containers GPUDirect Storage"},
     set_bool<&C::gds>},
    {{"mofed-enabled", "", "MOFED_ENABLED", "", "flags.mofedEnabled", true,
      "give containers the Mellanox devices"},
     set_bool<&C::mofed>},
    {{"device-discovery-strategy", "", "DEVICE_DISCOVERY_STRATEGY", "",
      "flags.deviceDiscoveryStrategy", false, "auto, nvml or tegra"},
     set_discovery},
    {{"pass-device-specs", "", "PASS_DEVICE_SPECS", "", "flags.plugin.passDeviceSpecs", true,
      "pass device nodes with each allocation"},
     set_bool<&C::pass_device_specs>},
    {{"device-list-strategy", "", "DEVICE_LIST_STRATEGY", "", "flags.plugin.deviceListStrategy",
      false, "how devices are told: envvar, volume-mounts, cdi-annotations, cdi-cri"},
     set_list_strategy},
    {{"device-id-strategy", "", "DEVICE_ID_STRATEGY", "", "flags.plugin.deviceIDStrategy", false,
      "how devices are named: uuid or index"},
     set_id_strategy},
    {{"cdi-annotation-prefix", "", "CDI_ANNOTATION_PREFIX", "", "flags.plugin.cdiAnnotationPrefix",
      false, "prefix of CDI annotations"},
     set_text<&C::cdi_annotation_prefix>},
    {{"nvidia-cdi-hook-path", "nvidia-ctk-path", "NVIDIA_CDI_HOOK_PATH", "NVIDIA_CTK_PATH",
      "flags.plugin.nvidiaCTKPath", false, "the CDI hook program on the host"},
     set_path_or_none<&C::cdi_hook_path>},
    {{"driver-root-ctr-path", "container-driver-root", "DRIVER_ROOT_CTR_PATH",
      "CONTAINER_DRIVER_ROOT", "flags.plugin.containerDriverRoot", false,
      "where the driver's root is mounted in the agent's container"},
     set_path<&C::driver_root_in_container>},
    {{"shared-devices-allocation-policy", "", "SHARED_DEVICES_ALLOCATION_POLICY", "",
      "flags.plugin.sharedDevicesAllocationPolicy", false, "distributed or packed"},
     set_shared_policy},
    {{"imex-channel-ids", "", "IMEX_CHANNEL_IDS", "", "imex.channelIDs", false,
      "IMEX channels for containers: 0 or none"},
     set_imex_channels},
    {{"imex-required", "", "IMEX_REQUIRED", "", "imex.required", true,
      "refuse to start without the IMEX channels"},
     set_bool<&C::imex_required>},
    {{"kubelet-socket", "", "KUBELET_SOCKET", "", "", false,
      "the kubelet's socket; empty: do not register"},
     set_path_or_none<&C::kubelet_socket>},
    {{"config-file", "", "CONFIG_FILE", "", "", false, "file with settings"},
     set_text<&C::config_file>},
    {{"cdi-feature-flags", "", "CDI_FEATURE_FLAGS", "", "", false, "features of CDI files"},
     set_parts<&C::cdi_feature_flags>},
    {{"cdi-disable-hooks", "", "CDI_DISABLE_HOOKS", "", "", false,
      "hooks to leave out of CDI files, or all"},
     set_parts<&C::cdi_disabled_hooks>},
    {{"", "", "DP_DISABLE_HEALTHCHECKS", "", "", false, ""}, set_text<&C::disabled_health_checks>},
    {{"", "", "DP_ENABLE_HEALTHCHECKS", "", "", false, ""}, set_text<&C::enabled_health_checks>},
    {{"oneshot", "", "GFD_ONESHOT", "", "flags.gfd.oneshot", true, "write the labels once and end"},
     set_gfd_bool<&G::is_oneshot>},
    {{"no-timestamp", "", "GFD_NO_TIMESTAMP", "", "flags.gfd.noTimestamp", true,
      "leave the time out of the labels"},
     set_gfd_bool<&G::no_timestamp>},
    {{"sleep-interval", "", "GFD_SLEEP_INTERVAL", "", "flags.gfd.sleepInterval", false,
      "time between two writings of the labels"},
     set_sleep_interval},
    {{"output-file", "", "GFD_OUTPUT_FILE", "", "flags.gfd.outputFile", false,
      "file of the labels"},
     set_gfd_text<&G::output_file>},
    {{"machine-type-file", "", "GFD_MACHINE_TYPE_FILE", "", "flags.gfd.machineTypeFile", false,
      "file with the product name of the machine"},
     set_gfd_text<&G::machine_type_file>},
    {{"use-node-feature-api", "", "GFD_USE_NODE_FEATURE_API", "", "flags.useNodeFeatureAPI", true,
      "write a NodeFeature object"},
     set_gfd_bool<&G::use_node_feature_api>},
});

// A field that is one value or a list of them.
std::vector<std::string> one_or_more(YamlFields& fields, std::string_view name) {
  const std::optional<YAML::Node> node = fields.take(name);
  if (!node || node->IsNull()) return {};
  if (node->IsScalar()) return parts(node->Scalar());
  std::vector<std::string> result;
  for (const YAML::Node& item : *node) {
    if (!node->IsSequence() || !item.IsScalar()) {
      fields.bad(name, "expected a value or a list of values");
      return {};
    }
    result.push_back(item.Scalar());
  }
  return result;
}

// Reads every field of one map that the table knows.
void read_settings(YamlFields& fields, std::string_view path, PluginConfig& config) {
  const std::string prefix = fmt::format("{}.", path);
  for (const Row& row : kRows) {
    if (!row.setting.key.starts_with(prefix)) continue;
    const std::string_view name = row.setting.key.substr(prefix.size());
    if (name.find('.') != std::string_view::npos || !fields.has(name)) continue;
    std::string text;
    if (name == "deviceListStrategy" || name == "channelIDs") {
      text = fmt::format("{}", fmt::join(one_or_more(fields, name), ","));
    } else {
      text = fields.text(name, "");
    }
    if (fields.failed()) return;
    if (const auto applied = row.apply(config, text); !applied) {
      fields.bad(name, applied.error().what);
    }
  }
}

// ---- the file -------------------------------------------------------------------------------

class FileReader {
 public:
  FileReader(PluginConfig& config, std::vector<std::string>& warnings)
      : config_(config), warnings_(warnings) {}

  void read(YamlFields& fields) {
    const std::string version = fields.text("version", "v1");
    if (version != "v1") {
      fields.bad("version", fmt::format("\"{}\" is not known; use v1", version));
    }
    if (auto flags = fields.map("flags")) read_flags(*flags);
    if (auto resources = fields.map("resources")) read_resources(*resources);
    if (auto sharing = fields.map("sharing")) read_sharing(*sharing);
    if (auto imex = fields.map("imex")) {
      read_settings(*imex, "imex", config_);
      imex->finish();
    }
    fields.finish();
  }

 private:
  void read_flags(YamlFields& flags) {
    read_settings(flags, "flags", config_);
    for (const std::string_view name : {"plugin", "gfd"}) {
      if (auto inner = flags.map(name)) {
        read_settings(*inner, fmt::format("flags.{}", name), config_);
        inner->finish();
      }
    }
    flags.finish();
  }

  // Patterns of device names with resource names of one's own, which never had an effect.
  void read_resources(YamlFields& resources) {
    for (const std::string_view kind : {"gpus", "mig"}) {
      for (YamlFields& entry : resources.maps(kind)) {
        (void)entry.required_text("pattern");
        (void)entry.required_text("name");
        entry.finish();
      }
    }
    resources.finish();
    warnings_.push_back(fmt::format("{}: has no effect: resource names follow the MIG strategy",
                                    resources.origin()));
  }

  void read_sharing(YamlFields& sharing) {
    auto slicing = sharing.map("timeSlicing");
    auto mps = sharing.map("mps");
    if (slicing && mps) {
      sharing.bad("mps", "cannot be used together with timeSlicing; remove one");
      return;
    }
    if (slicing) read_mode(*slicing, SharingKind::TimeSlicing);
    if (mps) read_mode(*mps, SharingKind::Mps);
    sharing.finish();
  }

  void read_mode(YamlFields& mode, SharingKind kind) {
    SharingConfig sharing;
    sharing.kind = kind;
    sharing.rename_by_default = mode.flag("renameByDefault", false);
    sharing.fails_above_one = mode.flag("failRequestsGreaterThanOne", kind == SharingKind::Mps);
    for (YamlFields& entry : mode.maps("resources")) read_resource(entry, sharing);
    if (sharing.resources.empty()) {
      mode.bad("resources", "names no resource; add one, e.g. {name: nvidia.com/gpu, replicas: 4}");
    }
    mode.finish();
    config_.sharing = std::move(sharing);
  }

  void read_resource(YamlFields& entry, SharingConfig& sharing) {
    SharedResource resource;
    resource.name = entry.required_text("name");
    if (!resource.name.empty() && resource.name.find('/') == std::string::npos) {
      resource.name.insert(0, kResourcePrefix);
    }
    resource.replicas = static_cast<int>(entry.integer("replicas", 0, 0, 1000));
    if (!entry.has("replicas")) entry.bad("replicas", "is missing; give a number, e.g. 4");
    const std::string rename = entry.text("rename", "");
    const bool is_usual = rename == resource.name + ".shared" ||
                          rename == resource.name.substr(resource.name.find('/') + 1) + ".shared";
    if (!rename.empty() && !(is_usual && sharing.rename_by_default)) {
      warn(entry, "rename", "only renameByDefault: true, which adds .shared, has");
    }
    if (entry.has("devices") && !is_all(entry)) {
      warn(entry, "devices", "shares are made of all devices of the resource");
    }
    entry.finish();
    for (const SharedResource& other : sharing.resources) {
      if (other.name == resource.name) {
        entry.bad("name", fmt::format("{} is there twice; remove one", resource.name));
      }
    }
    sharing.resources.push_back(std::move(resource));
  }

  // `devices` is "all", a number or a list.
  static bool is_all(YamlFields& entry) {
    const std::vector<std::string> devices = one_or_more(entry, "devices");
    return devices.size() == 1 && devices.front() == "all";
  }

  void warn(const YamlFields& entry, std::string_view name, std::string_view why) {
    warnings_.push_back(fmt::format("{}.{}: has no effect: {}", entry.origin(), name, why));
  }

  PluginConfig& config_;
  std::vector<std::string>& warnings_;
};

Result<void> check(const PluginConfig& config) {
  const bool is_mps = config.sharing.kind == SharingKind::Mps;
  if (is_mps && config.mig_strategy == MigStrategy::Mixed) {
    return invalid("sharing.mps cannot be used with mig strategy mixed; use timeSlicing, or none");
  }
  if (is_mps && config.mps_root.empty()) {
    return invalid("sharing.mps needs flags.mpsRoot (--mps-root); use e.g. /run/nvidia/mps");
  }
  if (config.uses_cdi() && config.discovery == "tegra") {
    return invalid(
        "the device list strategies cdi-annotations and cdi-cri need NVML; use envvar with the "
        "discovery strategy tegra");
  }
  return {};
}

const Row* row_of_flag(std::string_view name) {
  const auto it = std::ranges::find_if(kRows, [name](const Row& row) {
    return !name.empty() && (row.setting.flag == name || row.setting.flag_alias == name);
  });
  return it == kRows.end() ? nullptr : &*it;
}

Result<void> apply_env(const EnvLookup& env, PluginConfig& config) {
  for (const Row& row : kRows) {
    for (const std::string_view name : {row.setting.env, row.setting.env_alias}) {
      if (name.empty()) continue;
      const auto value = env(name);
      // An empty variable counts as not set, as manifests write it; the socket may be empty.
      if (!value || (value->empty() && name != "KUBELET_SOCKET")) continue;
      if (auto applied = row.apply(config, *value); !applied) {
        return in_context(fmt::format("environment variable {}", name), applied.error());
      }
      break;
    }
  }
  return {};
}

Result<void> apply_flags(const PluginFlags& flags, PluginConfig& config) {
  bool has_list = false;
  for (const auto& [name, value] : flags) {
    const Row* const row = row_of_flag(name);
    if (row == nullptr) return invalid("--{}: no such flag of the device plugin", name);
    // This one may be repeated, and then collects.
    const std::vector<ListStrategy> before = config.list_strategies;
    const bool is_list = row->setting.flag == "device-list-strategy";
    if (auto applied = row->apply(config, value); !applied) {
      return in_context(fmt::format("--{}", name), applied.error());
    }
    if (is_list && has_list) {
      std::vector<ListStrategy> all = before;
      for (const ListStrategy strategy : config.list_strategies) {
        if (std::ranges::find(all, strategy) == all.end()) all.push_back(strategy);
      }
      config.list_strategies = std::move(all);
    }
    has_list = has_list || is_list;
  }
  return {};
}

}  // namespace

std::string_view mig_strategy_text(MigStrategy strategy) {
  return kMigStrategies[static_cast<std::size_t>(strategy)].text;
}

std::string_view sharing_text(SharingKind kind) {
  constexpr std::array<std::string_view, 3> kTexts = {"none", "time-slicing", "mps"};
  return kTexts[static_cast<std::size_t>(kind)];
}

int SharingConfig::replicas_of(std::string_view resource) const {
  for (const SharedResource& shared : resources) {
    if (shared.name == resource) return std::max(shared.replicas, 1);
  }
  return 1;
}

bool PluginConfig::uses(ListStrategy strategy) const {
  return std::ranges::find(list_strategies, strategy) != list_strategies.end();
}

std::vector<std::string_view> PluginConfig::extra_kinds() const {
  std::vector<std::string_view> kinds;
  if (gds) kinds.emplace_back("gds");
  if (mofed) kinds.emplace_back("mofed");
  if (gdrcopy) kinds.emplace_back("gdrcopy");
  return kinds;
}

std::span<const PluginSetting> plugin_settings() {
  static const std::vector<PluginSetting> kSettings = [] {
    std::vector<PluginSetting> result;
    for (const Row& row : kRows) result.push_back(row.setting);
    return result;
  }();
  return kSettings;
}

Result<PluginFlags> take_plugin_flags(std::span<const std::string_view> words,
                                      std::vector<std::string_view>& rest) {
  PluginFlags result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") {
      rest.insert(rest.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      break;
    }
    const std::size_t equals = word.find('=');
    const std::string_view name = word.starts_with("--") ? word.substr(2, equals - 2) : "";
    const Row* const row = row_of_flag(name);
    if (row == nullptr) {
      rest.push_back(word);
    } else if (equals != std::string_view::npos) {
      result.emplace_back(row->setting.flag, word.substr(equals + 1));
    } else if (row->setting.is_switch) {
      result.emplace_back(row->setting.flag, "true");
    } else if (i + 1 < words.size()) {
      result.emplace_back(row->setting.flag, words[++i]);
    } else {
      return invalid("--{}: needs a value ({})", name, row->setting.help);
    }
  }
  return result;
}

std::string config_file_path(const PluginFlags& flags, const EnvLookup& env) {
  std::string path;
  if (env) path = env("CONFIG_FILE").value_or("");
  for (const auto& [name, value] : flags) {
    if (name == "config-file") path = value;
  }
  return path;
}

Result<ReadConfig> read_plugin_config(const ConfigSources& sources) {
  ReadConfig result;
  if (sources.file) {
    FileReader reader(result.config, result.warnings);
    JOGAK_TRY_VOID(read_yaml_map(sources.file_name, *sources.file,
                                 "a map with version, flags and sharing",
                                 [&reader](YamlFields& fields) { reader.read(fields); }));
  }
  if (sources.env) JOGAK_TRY_VOID(apply_env(sources.env, result.config));
  JOGAK_TRY_VOID(apply_flags(sources.flags, result.config));
  JOGAK_TRY_VOID(check(result.config));
  return result;
}

Result<std::string> choose_config(const ConfigChoice& choice) {
  const auto has = [&choice](std::string_view name) {
    return std::ranges::find(choice.files, name) != choice.files.end();
  };
  const auto named = [&](std::string_view name, std::string_view by) -> Result<std::string> {
    if (has(name)) return std::string(name);
    return fail(Errc::NotFound,
                "{} names the configuration \"{}\", which is not there; there {}: {}", by, name,
                choice.files.size() == 1 ? "is" : "are", fmt::join(choice.files, ", "));
  };
  if (choice.label && !choice.label->empty()) {
    return named(*choice.label, fmt::format("the label {}", kConfigLabel));
  }
  if (!choice.default_config.empty()) return named(choice.default_config, "the default");
  for (const ConfigFallback fallback : choice.fallbacks) {
    switch (fallback) {
      case ConfigFallback::Named:
        if (has("default")) return std::string("default");
        break;
      case ConfigFallback::Single:
        if (choice.files.size() == 1) return choice.files.front();
        break;
      case ConfigFallback::Empty:
        return std::string();
    }
  }
  return fail(Errc::NotFound,
              "the node has no label {}, and none of {} configurations is the default; set the "
              "label, or name one \"default\"",
              kConfigLabel, choice.files.size());
}

}  // namespace jogak::agent
