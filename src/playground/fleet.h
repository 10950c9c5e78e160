// SPDX-License-Identifier: Apache-2.0
//
// The objects a playground starts with: made-up nodes, or a cluster from a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/result.h"

namespace jogak::playground {

// Two racks of training nodes (8 x A100-80 each, tainted nvidia.com/gpu=true:NoSchedule), two nodes
// whose A100s are cut into MIG slices, two without GPUs.
std::vector<Doc> default_fleet();

// `groups` as `jogak gen cluster --nodes` reads them ("500x8xH100-80,4xCPU"); a model may be named
// by a part that only one has ("H100"). `topology` is "racks=20" or "": nodes are spread over so
// many racks in turn.
Result<std::vector<Doc>> fleet_of(std::string_view groups, std::string_view topology,
                                  std::uint64_t seed);

// A v1 List as kubectl prints it, any objects as documents of YAML, or a scenario file of
// `jogak gen cluster`. `name` is for messages.
Result<std::vector<Doc>> objects_of_file(std::string_view text, std::string_view name);

// Documents of a YAML text ("---" between them) or one JSON text.
Result<std::vector<Doc>> read_manifests(std::string_view text, std::string_view name);

}  // namespace jogak::playground
