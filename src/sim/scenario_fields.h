// SPDX-License-Identifier: Apache-2.0
// The parts of a scenario file that describe one node and one pod.
#pragma once

#include "core/model/spec.h"
#include "yaml/yaml_fields.h"

namespace jogak::sim {

inline constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";

// Everything of a node entry but `count`.
core::NodeSpec read_node_spec(YamlFields& fields);
// Everything of a pod entry but `count` and its times.
core::PodSpec read_pod_spec(YamlFields& fields);
// `gpu: 2`, or a map with one of whole, share, memory, mig; kind None where the field is absent.
core::GpuRequest read_gpu_request(YamlFields& fields, std::string_view name);

}  // namespace jogak::sim
