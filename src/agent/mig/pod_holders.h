// SPDX-License-Identifier: Apache-2.0
//
// Which MIG devices and GPUs pods hold, in the form that plans want it: from what the kubelet says
// (model/holders.h). A pod that holds an instance uses it, whether or not a process runs there yet.
#pragma once

#include "agent/mig/present.h"
#include "agent/model/holders.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

// By uuid of MIG devices, and of GPUs held whole: "pod ns/name", several joined.
MigHolders pod_holders(const nvml::NodeFacts& facts, const HolderIndex& holders);

}  // namespace jogak::agent
