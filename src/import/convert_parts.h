// SPDX-License-Identifier: Apache-2.0
// Pieces that the converters of nodes, pods and volumes share; between the .cc files of this
// folder.
#pragma once

#include <vector>

#include "core/model/spec.h"
#include "kube/objects.h"

namespace jogak::importer {

std::vector<core::Requirement> to_requirements(std::vector<kube::SelectorRequirement>&& from);
core::NodeSelectorTerm to_term(kube::NodeSelectorTerm&& from);
std::vector<core::NodeSelectorTerm> to_terms(std::vector<kube::NodeSelectorTerm>&& from);
core::TaintEffect to_effect(kube::TaintEffect from);
// "busybox" is "busybox:latest".
std::string image_with_tag(std::string name);

}  // namespace jogak::importer
