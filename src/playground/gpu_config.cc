// SPDX-License-Identifier: Apache-2.0
//
// The file's reader is the agent's; what belongs to a process on a real node is put aside.
#include "playground/gpu_config.h"

#include <utility>

#include <fmt/format.h>

#include "apiserver/codec/codec.h"

namespace jogak::playground {

namespace {

// The reader does not tell what a file says from what it leaves out.
bool names_mig_strategy(const std::string& text) {
  const auto parsed = codec::parse_yaml(text);
  return parsed.has_value() && parsed->doc.get("flags").has("migStrategy");
}

}  // namespace

Result<agent::PluginConfig> read_gpu_config(const std::string& text) {
  agent::PluginConfig config;
  if (!text.empty()) {
    JOGAK_TRY(agent::ReadConfig read,
              agent::read_plugin_config(
                  {.flags = {{"mps-root", "/run/nvidia/mps"}},  // sharing.mps does not go without
                   .env = {},
                   .file = text,
                   .file_name = std::string(kPluginConfig)}));
    config = std::move(read.config);
  }
  if (!names_mig_strategy(text)) config.mig_strategy = agent::MigStrategy::Mixed;
  config.kubelet_socket.clear();
  config.list_strategies = {agent::ListStrategy::Envvar};
  return config;
}

std::string config_text(const ManifestSharing& sharing) {
  if (sharing.replicas < 2) return {};
  return fmt::format(
      "version: v1\n"
      "sharing:\n"
      "  {}:\n"
      "    renameByDefault: {}\n"
      "    resources:\n"
      "    - name: nvidia.com/gpu\n"
      "      replicas: {}\n",
      sharing.is_mps ? "mps" : "timeSlicing", sharing.is_renamed, sharing.replicas);
}

}  // namespace jogak::playground
