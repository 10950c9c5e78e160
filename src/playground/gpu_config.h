// SPDX-License-Identifier: Apache-2.0
//
// How a simulated node's agent offers its GPUs: the agent's own configuration file, in an
// annotation of the node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/plugin/config.h"
#include "base/doc.h"
#include "base/result.h"

namespace jogak::playground {

// On a node: the text of a configuration file of the device plugin (docs/agent.md), for its
// sharing and its MIG strategy. Sockets, CDI and the like mean nothing here.
inline constexpr std::string_view kPluginConfig = "jogak.io/plugin-config";

// The configuration of such a text; "" is the default. The MIG strategy is mixed where the text
// does not say one. Errors: Invalid, with the annotation and the field.
Result<agent::PluginConfig> read_gpu_config(const std::string& text);

// How often each GPU is handed out, by the labels and numbers of a manifest.
struct ManifestSharing {
  std::int64_t replicas = 1;
  bool is_mps = false;
  bool is_renamed = false;  // as nvidia.com/gpu.shared
};
// "" where nothing is shared.
std::string config_text(const ManifestSharing& sharing);

}  // namespace jogak::playground
