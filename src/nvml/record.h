// SPDX-License-Identifier: Apache-2.0
//
// A machine that was seen, as a simulation file: what `jogak agent record` writes. The simulation
// of it answers with the same facts, and with the readings of the moment.
#pragma once

#include <string>
#include <vector>

#include "nvml/gpu_source.h"
#include "nvml/sim/machine_spec.h"

namespace jogak::nvml {

// `samples` in the order of the GPUs; a lost GPU may have an empty one. Names of functions that a
// GPU does not support are kept as such.
sim::MachineSpec record_machine(const NodeFacts& node, const std::vector<GpuSample>& samples);

}  // namespace jogak::nvml
