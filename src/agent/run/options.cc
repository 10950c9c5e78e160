// SPDX-License-Identifier: Apache-2.0
//
// Reads what comes as text: the words of flags and the variables of the programs that the agent
// replaces.
#include "agent/run/options.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/parse_number.h"

namespace jogak::agent {

namespace {

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

// "all" or "xids", in letters of either case.
bool is_all_xids(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower == "all" || lower == "xids";
}

class Variables {
 public:
  explicit Variables(const EnvLookup& env) : env_(env) {}

  // Empty is as good as not set, as it is for the programs whose names these are.
  std::optional<std::string> text(std::string_view name) const {
    if (!env_) return std::nullopt;
    auto value = env_(name);
    if (value && value->empty()) return std::nullopt;
    return value;
  }

  Result<void> flag(std::string_view name, bool& value) const {
    const auto given = text(name);
    if (!given) return {};
    if (*given == "true" || *given == "1") {
      value = true;
    } else if (*given == "false" || *given == "0") {
      value = false;
    } else {
      return invalid("{}: \"{}\" is neither true nor false", name, *given);
    }
    return {};
  }

  Result<void> milliseconds(std::string_view name, TimeUs& value) const {
    const auto given = text(name);
    if (!given) return {};
    const auto number = parse_int(*given, 1, 86'400'000);
    if (!number) return in_context(name, number.error());
    value = *number * kMsInUs;
    return {};
  }

 private:
  const EnvLookup& env_;
};

}  // namespace

Result<LabelPlace> parse_label_place(std::string_view text) {
  if (text == "auto") return LabelPlace::Auto;
  if (text == "off") return LabelPlace::Off;
  if (text == "file") return LabelPlace::File;
  if (text == "node") return LabelPlace::Node;
  return invalid("\"{}\" is not one of auto, off, file, node", text);
}

Result<MpsMode> parse_mps_mode(std::string_view text) {
  if (text == "own") return MpsMode::Own;
  if (text == "external") return MpsMode::External;
  if (text == "off") return MpsMode::Off;
  return invalid("\"{}\" is not one of own, external, off", text);
}

Result<ListenAddress> parse_listen_address(std::string_view text) {
  ListenAddress address;
  if (text == "off") {
    address.is_on = false;
    return address;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return invalid("expected IP:PORT, :PORT or off, got \"{}\"", text);
  }
  std::string_view ip = text.substr(0, colon);
  if (ip.starts_with('[') && ip.ends_with(']')) ip = ip.substr(1, ip.size() - 2);
  if (!ip.empty()) address.ip = ip;
  const auto port = parse_int(text.substr(colon + 1), 0, 65'535);
  if (!port) return in_context("port", port.error());
  address.port = static_cast<std::uint16_t>(*port);
  return address;
}

Result<ExporterEnvironment> read_exporter_environment(const EnvLookup& env) {
  const Variables variables(env);
  ExporterEnvironment result;
  if (const auto listen = variables.text("DCGM_EXPORTER_LISTEN")) {
    auto address = parse_listen_address(*listen);
    if (!address) return in_context("DCGM_EXPORTER_LISTEN", std::move(address).error());
    result.listen = *std::move(address);
  }
  if (const auto devices = variables.text("DCGM_EXPORTER_DEVICES_STR")) {
    auto choice = parse_device_choice(*devices);
    if (!choice) return in_context("DCGM_EXPORTER_DEVICES_STR", std::move(choice).error());
    result.render.devices = *std::move(choice);
  }
  result.collectors = variables.text("DCGM_EXPORTER_COLLECTORS").value_or("");
  result.pod_resources_socket = variables.text("DCGM_POD_RESOURCES_KUBELET_SOCKET").value_or("");
  result.web_config = variables.text("DCGM_EXPORTER_WEB_CONFIG_FILE").value_or("");
  result.job_folder = variables.text("DCGM_HPC_JOB_MAPPING_DIR").value_or("");
  RenderOptions& render = result.render;
  JOGAK_TRY_VOID(
      variables.flag("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS", render.pod_k8s_labels));
  constexpr std::string_view kAllowlist = "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX";
  const std::string allowlist = variables.text(kAllowlist).value_or("");
  for (const std::string_view part : parts_of(allowlist)) {
    render.pod_label_allowlist.emplace_back(part);
  }
  if (const auto fine = check_label_allowlist(render.pod_label_allowlist); !fine) {
    return in_context(kAllowlist, fine.error());
  }
  JOGAK_TRY_VOID(variables.flag("DCGM_EXPORTER_KUBERNETES", render.pod_labels));
  JOGAK_TRY_VOID(variables.flag("DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID", render.pod_uid));
  JOGAK_TRY_VOID(variables.flag("DCGM_EXPORTER_USE_OLD_NAMESPACE", render.old_names));
  JOGAK_TRY_VOID(
      variables.flag("DCGM_EXPORTER_REPLACE_BLANKS_IN_MODEL_NAME", render.blanks_to_dashes));
  JOGAK_TRY_VOID(variables.flag("KUBERNETES_VIRTUAL_GPUS", render.virtual_gpus));
  JOGAK_TRY_VOID(variables.milliseconds("DCGM_EXPORTER_INTERVAL", result.interval));
  JOGAK_TRY_VOID(variables.milliseconds("DCGM_EXPORTER_XID_COUNT_WINDOW_SIZE", render.xid_window));
  JOGAK_TRY_VOID(variables.milliseconds("DCGM_EXPORTER_CLOCK_EVENTS_COUNT_WINDOW_SIZE",
                                        render.clock_event_window));
  return result;
}

Result<HealthOptions> health_options(const PluginConfig& config) {
  HealthOptions options;
  for (const std::string_view part : parts_of(config.disabled_health_checks)) {
    if (is_all_xids(part)) {
      options.watches_xids = false;
      continue;
    }
    const auto xid = parse_int(part, 0, 1'000'000);
    if (!xid) return in_context("DP_DISABLE_HEALTHCHECKS", xid.error());
    options.ignored_xids.insert(static_cast<std::uint64_t>(*xid));
  }
  for (const std::string_view part : parts_of(config.enabled_health_checks)) {
    if (is_all_xids(part)) {
      options.enforces_all_xids = true;
      continue;
    }
    const auto xid = parse_int(part, 0, 1'000'000);
    if (!xid) return in_context("DP_ENABLE_HEALTHCHECKS", xid.error());
    options.enforced_xids.insert(static_cast<std::uint64_t>(*xid));
  }
  return options;
}

}  // namespace jogak::agent
