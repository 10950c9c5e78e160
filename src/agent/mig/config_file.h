// SPDX-License-Identifier: Apache-2.0
//
// Named MIG configurations in the file format that users of mig-parted know: version v1,
// mig-configs, and per entry devices, device-filter, mig-enabled and mig-devices. Reading is
// strict; what a configuration means for the GPUs of a node is computed from their facts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/mig/journal.h"
#include "base/doc.h"
#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

struct MigConfigEntry {
  std::vector<std::uint32_t> device_filter;  // PCI device ids (0x20B010DE); empty: any
  bool is_all = true;                        // `devices: all`
  std::vector<int> devices;                  // else these GPUs, by index
  bool is_enabled = false;
  std::vector<MigGoal::Count> wanted;  // sorted by profile
  friend bool operator==(const MigConfigEntry&, const MigConfigEntry&) = default;
};

struct MigConfig {
  std::string name;
  std::vector<MigConfigEntry> entries;
  friend bool operator==(const MigConfig&, const MigConfig&) = default;
};

using MigConfigs = std::vector<MigConfig>;  // in the order of the file

// Errors: Invalid, "FILE:LINE: field: what".
Result<MigConfigs> read_mig_configs(const std::string& file, std::string_view text);

// The file again; its yaml() reads back to the same.
Doc mig_configs_doc(const MigConfigs& configs);

// Errors: NotFound, with a suggestion.
Result<MigConfig> find_config(const MigConfigs& configs, std::string_view name);

// What the configuration wants of each GPU of the node, in the order of the GPUs; later entries
// override earlier ones, and GPUs that no entry names are left alone. GPUs without MIG are passed
// over where `devices: all` or MIG off is meant. Errors: Invalid, when it names a GPU that cannot
// be cut, a profile that its GPU does not offer, or no GPU at all.
Result<std::vector<MigGoal>> config_goals(const MigConfig& config, const nvml::NodeFacts& node);

// The configurations that every node has without a file: all-disabled, all-enabled, all-balanced
// and all-<profile> with as many as fit. With GPUs of several models, each entry has its filter.
MigConfigs standard_configs(const nvml::NodeFacts& node);

// What a user types for one layout: "3g.20gb:2,1g.5gb", "7x1g.5gb", "1g=7", a name alone counts
// once; "none": MIG on without instances; "off": MIG off. The uuid stays empty. Errors: Invalid.
Result<MigGoal> parse_layout(std::string_view text);

}  // namespace jogak::agent
