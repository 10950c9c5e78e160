// SPDX-License-Identifier: Apache-2.0
// What a placement policy sees of requests and devices, in thousandths of a device, whatever way
// the pod asks (whole devices, shares, MIG instances, or plain nvidia.com/gpu counts) and whatever
// way the node tells (device detail or a count). The policies' formulas are written against this
// view alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/model/cluster.h"

namespace jogak::core {

inline constexpr std::int32_t kWholeMilli = 1000;

// A request: `count` devices of `milli` each. count 0: the pod asks for no device.
struct GpuAmount {
  GpuAsk kind = GpuAsk::None;
  std::int32_t count = 0;
  std::int32_t milli = 0;
  std::int64_t total() const { return std::int64_t{count} * milli; }
  bool is_share() const { return kind == GpuAsk::ShareMilli || kind == GpuAsk::ShareMib; }
};

// The devices of a node that requests of one kind can use at all. Pods that ask for MIG instances
// see the partitioned devices, all others the rest; a sick device is seen by nobody.
struct FreeGpus {
  std::vector<std::int32_t> milli;  // per device index; kHidden where not seen
  std::int64_t total = 0;           // sum over the devices seen
  std::int32_t devices = 0;         // seen
  std::int32_t fully_free = 0;
  static constexpr std::int32_t kHidden = -1;
};

class GpuView {
 public:
  // Looks up the name of the counted resource; again whenever the set of nodes has changed.
  void prepare(const Cluster& cluster);
  // `node` matters only for shares in MiB and MIG instances, whose size depends on the device.
  GpuAmount ask(const Shape& shape, const Node& node) const;
  // Valid until the next look().
  const FreeGpus& look(const Node& node, GpuAsk kind);

 private:
  std::optional<ScalarId> counted_;  // nvidia.com/gpu
  FreeGpus free_;
};

// Free milli-CPU, not below zero.
std::int64_t free_cpu(const Node& node);

// Whether a share of this request fits on the device now, exactly (in the ledger's units).
bool share_fits(const Gpu& gpu, const GpuRequest& request);

// Slot of a node in Cluster::nodes(), for memos kept beside it.
inline std::size_t node_slot(const Cluster& cluster, const Node& node) {
  return static_cast<std::size_t>(&node - cluster.nodes().data());
}

}  // namespace jogak::core
