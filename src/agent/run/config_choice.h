// SPDX-License-Identifier: Apache-2.0
//
// The configuration of the device plugin as this node's label chooses it among the files of a
// folder (nvidia.com/device-plugin.config), or the one file that there is. The edge of
// plugin/config.h: it reads folders and files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/plugin/config.h"
#include "base/result.h"

namespace jogak::agent {

struct ConfigPlace {
  PluginFlags flags = {};
  EnvLookup env = nullptr;
  std::string folder = {};  // "": there is at most the one file that flags or environment name
  std::string default_config = {};
  std::vector<ConfigFallback> fallbacks = ConfigChoice().fallbacks;
};

// "named,single,empty", each at most once. Invalid lists them.
Result<std::vector<ConfigFallback>> parse_config_fallbacks(std::string_view text);

// A folder, by `flag` ("" not given) or the variables of the incumbent's config manager:
// CONFIG_FILE_SRCDIR, DEFAULT_CONFIG, FALLBACK_STRATEGIES.
Result<ConfigPlace> find_config_place(PluginFlags flags, EnvLookup env, const std::string& flag);

// Errors name the file, the field and the cure.
Result<ReadConfig> read_config(const ConfigPlace& place, const std::optional<std::string>& label);

}  // namespace jogak::agent
