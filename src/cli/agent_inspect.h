// SPDX-License-Identifier: Apache-2.0
//
// What `jogak agent inspect` says: one document of everything that was read, and the tables for
// people made from it.
#pragma once

#include <string>
#include <vector>

#include "base/doc.h"
#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::cli {

struct NodeView {
  nvml::NodeFacts node;
  std::vector<nvml::GpuSample> samples;  // by GPU; of a lost one what could be read
};

// Reads all there is.
Result<NodeView> read_node(nvml::GpuSource& source, const nvml::SampleWants& wants);

// What was measured of an instance; null: nothing.
const nvml::MigInstanceSample* sample_of(const nvml::MigInstanceFacts& instance,
                                         const nvml::GpuSample& sample);

// A reading that is missing is null, and named with its reason in the GPU's "missing".
Doc node_doc(const NodeView& view);

// GPUs, MIG instances, topology, health and processes.
std::string node_text(const NodeView& view);

}  // namespace jogak::cli
