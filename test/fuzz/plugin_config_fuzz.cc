// SPDX-License-Identifier: Apache-2.0
//
// Configuration files of the device plugin. What is accepted reads the same each time, and keeps to
// the limits that the plugin relies on.
#include <cstdint>
#include <string_view>

#include "agent/plugin/config.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak::agent;
  ConfigSources sources;
  sources.file = std::string(reinterpret_cast<const char*>(data), size);
  const auto read = read_plugin_config(sources);
  if (!read) {
    JOGAK_CHECK(!read.error().what.empty());
    JOGAK_CHECK(read.error().what.find('\n') == std::string::npos, "{}", read.error().what);
    return 0;
  }
  const PluginConfig& config = read->config;
  JOGAK_CHECK(!config.list_strategies.empty());
  JOGAK_CHECK(config.driver_root.starts_with('/'));
  JOGAK_CHECK(config.sharing.kind != SharingKind::Mps || !config.mps_root.empty());
  JOGAK_CHECK((config.sharing.kind == SharingKind::None) == config.sharing.resources.empty());
  for (const SharedResource& shared : config.sharing.resources) {
    const int replicas = config.sharing.replicas_of(shared.name);
    JOGAK_CHECK(replicas >= 1 && replicas <= 1000, "{}", replicas);
    JOGAK_CHECK(shared.name.find('/') != std::string::npos, "{}", shared.name);
  }
  const auto again = read_plugin_config(sources);
  JOGAK_CHECK(again.has_value() && again->config == config, "read twice, and not the same");
  return 0;
}
