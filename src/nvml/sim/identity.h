// SPDX-License-Identifier: Apache-2.0
//
// What a simulated machine has where nobody says it: addresses, UUIDs, NUMA nodes and versions, the
// same at every run; and whole machines of one model, without a file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nvml/sim/machine_spec.h"

namespace jogak::nvml::sim {

struct Host {
  int numa_nodes = 2;
  int cpus = 96;
  std::string identity = "node";  // UUIDs and serials are made from it
};

// The UUID of GPU `index` of the machine of that identity.
std::string gpu_uuid(const std::string& identity, int index);
// The fields of GPU `index` of `count` that are still empty.
void fill_identity(GpuSpec& gpu, int index, int count, const Host& host);
// Where all GPUs have links that lead to each other and not to switches, and nobody said which to
// which: as the boards of a DGX-1 are wired. Up to eight of them.
void join_directly(MachineSpec& machine);
void set_usual_driver(MachineSpec& machine);
void fill_versions(MachineSpec& machine);

// `count` GPUs of a model of the catalogue, idle. Nothing for an unknown model or a count that is
// not 1 to kGpusMax.
std::optional<MachineSpec> machine_of(std::string_view model, int count, const Host& host);

}  // namespace jogak::nvml::sim
