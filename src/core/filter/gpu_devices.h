// SPDX-License-Identifier: Apache-2.0
// GpuDevices, Jogak's own filter: can the node's devices, as the ledger knows them, serve the
// request? Counting nvidia.com/gpu cannot answer that for shares and MIG instances, nor for whole
// GPUs beside shared ones. A node without device detail answers only whole-GPU requests, and
// NodeResourcesFit counts those.
//
//   Whole       `count` usable devices that nobody is on
//   ShareMilli  `count` different usable devices with so many thousandths free
//   ShareMib    the same with MiB; devices whose memory is not known do not serve
//   Mig         `count` places for instances of the profile on the partitioned devices: free ones
//   of
//               the layout where it is fixed, legal cuts where the agent cuts on demand
//
// Holders whose devices nobody reported may be on any device: so many devices count as busy.
#pragma once

#include <cstdint>

#include "core/filter/pod_view.h"
#include "core/filter/verdict.h"

namespace jogak::core {

Verdict gpu_devices_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                           Reasons* reasons);

// Places for instances of the profile that `shape` asks for: how many more can be made or given out
// now (`empty` false), or could be if nobody held any (`empty` true). Counting stops at `enough`.
std::int32_t count_mig_places(const Cluster& cluster, const Shape& shape, const Node& node,
                              std::int32_t enough, bool empty);

}  // namespace jogak::core
