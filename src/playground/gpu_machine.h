// SPDX-License-Identifier: Apache-2.0
//
// Which GPUs a simulated node has: an annotation names them, made from labels and numbers where a
// manifest says nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/doc.h"
#include "base/result.h"
#include "nvml/sim/machine_spec.h"

namespace jogak::playground {

// On a node: the GPUs of its machine, "8xA100-SXM4-80GB" or "4xA30,2xT4", models of the
// simulation's catalogue (docs/nvml-sim.md).
inline constexpr std::string_view kSimulatedGpus = "jogak.io/simulated-gpus";

// The machine of such a text; UUIDs are made from `identity`. Errors: Invalid, with the item and
// the models there are.
Result<nvml::sim::MachineSpec> read_gpus(std::string_view text, const std::string& identity);

// The MIG mode of every GPU that has one.
void turn_mig_on(nvml::sim::MachineSpec& machine);

// The catalogue's model of the label nvidia.com/gpu.product ("NVIDIA-H100-80GB-HBM3"); "" for one
// that it does not have.
std::string model_of_product(std::string_view product);

// Gives a manifest of a node the annotation, where its labels and numbers say what GPUs it has and
// the catalogue has them: whole GPUs, shared ones (with the annotation of gpu_config.h), or MIG
// with the label nvidia.com/mig.config. MIG instances that nobody asked for by a label and other
// products stay what the manifest says.
void name_gpus(Doc& node);
// Takes out of a manifest with the annotation what the node's agent finds out: labels of the GPUs
// but nvidia.com/gpu.present, and numbers of MIG instances and shares that it has yet to make.
void leave_to_agent(Doc& node);

}  // namespace jogak::playground
