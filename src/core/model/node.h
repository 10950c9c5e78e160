// SPDX-License-Identifier: Apache-2.0
// A node and its devices as the core keeps them: static facts beside exact usage. Usage is the sum
// over the pods placed here and nothing else; Cluster keeps it so and a recount can prove it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/model/ids.h"
#include "core/model/spec.h"
#include "core/model/symbol.h"

namespace jogak::core {

// One physical GPU. Shares in thousandths and in MiB are booked in one exact unit: a device of M
// MiB has 1000*M units, a thousandth costs M units, a MiB costs 1000. Nothing is rounded, so
// neither kind of share can squeeze in one pod too many (M counts as 1 where the memory is not
// known).
struct Gpu {
  std::int64_t capacity_units = 0;
  std::int64_t free_units = 0;  // 0 also while a whole-GPU owner holds it
  std::int32_t memory_mib = 0;  // 0: not known
  std::int32_t numa_node = -1;
  std::uint32_t nvlink_mask = 0;
  std::uint16_t owner_count = 0;    // holds on this device, of any kind
  std::uint16_t mig_used_mask = 0;  // bit i: memory slice i belongs to an owned instance
  GpuHealth health = GpuHealth::Healthy;
  bool mig_enabled = false;
  bool mig_dynamic = false;
  std::uint8_t mig_model = 0xff;  // index into mig.h's table of models; 0xff: none

  std::int64_t units_per_milli() const { return capacity_units / 1000; }
  // What a hold of this kind takes of the device; MIG instances are booked by slices instead.
  std::int64_t units_of(GpuAsk kind, std::int32_t amount) const {
    switch (kind) {
      case GpuAsk::Whole:
        return capacity_units;
      case GpuAsk::ShareMilli:
        return amount * units_per_milli();
      case GpuAsk::ShareMib:
        return std::int64_t{amount} * 1000;
      case GpuAsk::Mig:
        // Whoever holds an instance of a device that is partitioned no more keeps all of it busy.
        return mig_enabled ? 0 : capacity_units;
      case GpuAsk::None:
        return 0;
    }
    return 0;
  }
  // Free thousandths, rounded down; 0 where observed pods took more than there is.
  std::int32_t free_milli() const {
    return free_units < 0 ? 0 : static_cast<std::int32_t>(free_units / units_per_milli());
  }
  // A device that can be given out whole: healthy, not partitioned, nobody on it.
  bool usable() const { return health == GpuHealth::Healthy && !mig_enabled; }
  bool fully_free() const { return usable() && owner_count == 0 && free_units == capacity_units; }
};

// A MIG instance that exists on a device which is not cut on demand: the only places its pods can
// go.
struct MigSlot {
  std::int16_t gpu = 0;
  std::int16_t profile = 0;  // index within the device's MigModel
  std::int16_t start = 0;
  friend bool operator==(const MigSlot&, const MigSlot&) = default;
};

struct ScalarAmount {
  ScalarId id;
  std::int64_t allocatable = 0;
  std::int64_t requested = 0;
};

struct NodeLabel {
  Symbol key;
  Symbol value;
  friend auto operator<=>(const NodeLabel&, const NodeLabel&) = default;
};

struct UsedPort {
  Symbol ip;
  Symbol protocol;
  std::int32_t port = 0;
  friend bool operator==(const UsedPort&, const UsedPort&) = default;
};

struct Node {
  Symbol name;
  Symbol gpu_model;
  bool alive = false;
  bool unschedulable = false;
  // More is booked than there is, and observation did it: pods bound by others, capacity that
  // shrank. Without the mark a node over its capacity is our mistake.
  bool observed_over = false;
  std::int32_t order = 0;  // as in NodeSpec; Cluster::node_order() sorts by (order, name)
  // Allocatable and requested. cpu in milli-CPU, memory and storage in bytes. requested may exceed
  // allocatable (devices lost, resize in place): then every non-zero ask fails.
  std::int64_t cpu_allocatable = 0, cpu_requested = 0, cpu_nonzero = 0;
  std::int64_t memory_allocatable = 0, memory_requested = 0, memory_nonzero = 0;
  std::int64_t storage_allocatable = 0, storage_requested = 0;
  std::int64_t pods_allocatable = 0;
  // Unknown holds: whole devices in use by pods whose devices nobody reported. They may be any of
  // the free ones, so that many free devices count as busy.
  std::int32_t unknown_gpus = 0;
  // Changes whenever anything a node-local filter or score reads has changed. Values are never used
  // twice for different contents, also across rollbacks.
  std::uint64_t version = 0;
  std::uint64_t spec_digest = 0;  // of the NodeSpec it was made from
  std::uint64_t static_version =
      0;                          // as above, for labels, taints, capacity, images, devices' facts
  std::vector<NodeLabel> labels;  // sorted by key symbol
  std::vector<Taint> taints;
  std::vector<ScalarAmount> scalars;  // sorted by id
  std::vector<PodId> pods;            // no meaningful order
  std::vector<UsedPort> ports;        // one entry per use
  std::vector<ImageId> images;        // sorted
  std::vector<Symbol> features;
  std::vector<Gpu> gpus;
  std::vector<MigSlot> mig_slots;  // of all devices with mig_enabled and not mig_dynamic

  std::int64_t pod_count() const { return static_cast<std::int64_t>(pods.size()); }
  const ScalarAmount* scalar(ScalarId id) const {
    for (const ScalarAmount& s : scalars) {
      if (s.id == id) return &s;
    }
    return nullptr;
  }
  // Value of a label, or nullptr.
  const Symbol* label(Symbol key) const {
    for (const NodeLabel& l : labels) {
      if (l.key == key) return &l.value;
    }
    return nullptr;
  }
};

}  // namespace jogak::core
