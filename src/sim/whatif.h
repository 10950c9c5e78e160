// SPDX-License-Identifier: Apache-2.0
// What would become of the pods of a cluster if it were changed: nodes removed, drained or added,
// pods created, another policy. Decisions are the scheduler's own; the cluster given is the model
// and is changed on the way.
//
// Order of events: first the changes, so that pods lose their places; pods that are being deleted
// are gone. Then all that wait are tried, higher priority first; among equals those that waited
// before by age (the order of their ids), then those that lost their place and were made anew by
// their controllers, then the new ones. A pod that preempts is promised the room, which its victims
// leave at the end of the round; after a round that changed something all that wait are tried
// again, victims too, as a live scheduler does. Pods that lost their place and have no controller
// to make them anew are tried last of all, and preempt nobody, so that they take nothing from the
// rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/model/cluster.h"

namespace jogak::sim {

struct WhatifChanges {
  std::vector<std::string> remove_nodes = {};
  // Cordoned and emptied: pods of DaemonSets and static ones stay.
  std::vector<std::string> drain_nodes = {};
  struct Copies {
    std::string of;  // a node of the cluster, which may be among those removed
    std::int64_t count = 1;
  };
  std::vector<Copies> copy_nodes = {};  // pods of DaemonSets and static ones come with them
  std::vector<core::NodeSpec> add_nodes = {};
  // Pending pods of the cluster that are only asked for, in the order of their creation.
  std::vector<core::PodId> new_pods = {};
  std::string policy = "jogak";
};

// A pod that something would become of.
struct WhatifPod {
  core::PodId id;
  std::string name;  // "ns/name"
  std::int32_t priority = 0;
  bool is_new = false;
  std::string was_on;         // it ran there and lost its place
  std::string preempted_by;   // "ns/name": that is how
  bool has_no_owner = false;  // and nobody makes it anew
  // Where it would run: on a node, holding devices; or why it would wait. One of `node` and
  // `message` is set.
  std::string node;
  core::GpuAsk ask = core::GpuAsk::None;
  std::int64_t gpus = 0;             // devices or instances asked for, however it asks
  std::vector<core::GpuHold> holds;  // where the node says which devices it has
  std::string message;
  std::vector<std::string> victims;  // running pods that it preempts, "ns/name"

  bool starts() const { return !node.empty(); }
};

struct WhatifTotals {
  std::int64_t nodes = 0;
  std::int64_t gpu_milli = 0, gpu_allocated_milli = 0;  // healthy devices, in thousandths
  std::int64_t cpu_milli = 0, cpu_requested_milli = 0;
  std::int64_t running = 0, waiting = 0;  // pods
};

struct WhatifReport {
  std::string policy;
  std::vector<WhatifPod> pods;  // in the order in which they were first tried, or lost their place
  std::vector<std::string> added_nodes, removed_nodes, drained_nodes;
  // Pods that go with their node: of DaemonSets, and static ones.
  std::vector<std::string> ended;
  std::int64_t being_deleted = 0;  // pods counted as gone
  WhatifTotals before, after;      // new pods do not count before

  std::int64_t count_waiting() const;
};

// Errors: NotFound or Invalid, naming a node or policy that is not there. The cluster may then be
// half changed.
Result<WhatifReport> whatif(core::Cluster& cluster, const WhatifChanges& changes);

}  // namespace jogak::sim
