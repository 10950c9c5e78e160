// SPDX-License-Identifier: Apache-2.0
//
// The instances of a GPU as the planner wants them: the rows that NVML gives per compute instance
// put together per GPU instance, each with who uses it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "agent/mig/plan.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

// Who holds a MIG device, by its uuid: "pod ml/train-0". From the node model (PodResources).
using MigHolders = std::map<std::string, std::string>;

// Sorted by gi_id. In use is what a process runs on, and what `holders` names. A process that does
// not say its instance (old drivers) counts for all of them.
std::vector<MigPresent> mig_present(const MigGeometry& geometry,
                                    std::span<const nvml::MigInstanceFacts> rows,
                                    std::span<const nvml::ProcessFacts> processes,
                                    const MigHolders& holders);

// "pid 4711 (python)"
std::string process_text(const nvml::ProcessFacts& process);

}  // namespace jogak::agent
