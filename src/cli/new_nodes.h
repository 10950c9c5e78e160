// SPDX-License-Identifier: Apache-2.0
// The words of --add-nodes: copies of a node that is there, or made-up nodes as `jogak up --nodes`
// makes them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "core/model/cluster.h"
#include "sim/whatif.h"

namespace jogak::cli {

// "2xNAME" or "NAME" of a node of the cluster, else "2x8xH100" or "4xCPU", with commas between.
// Appends to the changes. Errors name the word.
Result<void> add_new_nodes(const core::Cluster& cluster, const std::vector<std::string>& words,
                           sim::WhatifChanges& changes);

}  // namespace jogak::cli
