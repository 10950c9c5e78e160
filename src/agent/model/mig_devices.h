// SPDX-License-Identifier: Apache-2.0
//
// Which MIG devices of a node can be handed out, and whether they are all of one kind: one answer
// for the device plugin and the labels, which must not disagree. Pure.
#pragma once

#include <optional>
#include <string>

#include "nvml/gpu_source.h"

namespace jogak::agent {

// Whether a MIG device can be handed out: an instance without a compute instance cannot.
bool is_usable(const nvml::MigInstanceFacts& instance);

// Why a node where some GPUs have MIG on is not fit for the MIG strategy single; nothing if it is.
// A GPU that is lost and was never seen otherwise says nothing about the layout of the others.
std::optional<std::string> single_problem(const nvml::NodeFacts& facts);

}  // namespace jogak::agent
