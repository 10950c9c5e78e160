// SPDX-License-Identifier: Apache-2.0
// The one entry point for decisions. A decision is a proposal: it reads the cluster and changes
// nothing; the driver accepts it (which books it) or drops it. The cost of a decision follows what
// changed since the last look at the pod's class, not the size of the cluster.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/filter/verdict.h"
#include "core/model/cluster.h"
#include "core/policy/policy.h"

namespace jogak::core {

struct Decision {
  PodId pod;
  NodeId node;                 // kNoNode: fits nowhere now
  std::vector<GpuHold> holds;  // devices on the node, ascending
  std::int64_t score = 0;
  // What the search saw, over all live nodes.
  std::uint32_t feasible_nodes = 0;
  std::uint64_t class_key = 0;  // pods with equal keys get equal verdicts
};

struct SchedulerOptions {
  // Class indexes kept; the least recently used is dropped beyond that.
  std::size_t class_limit = 256;
  // True: no incremental index, every decision scans all nodes with the same filters.
  bool full_scan = false;
};

class Scheduler {
 public:
  Scheduler(Cluster& cluster, Policy& policy, SchedulerOptions options = {});
  ~Scheduler();

  // What the policy may expect of the workload.
  void set_mix(WorkloadMix mix);
  Decision decide(PodId pod);
  // Books the decision. It must have been made since the last change of its node (checked as far as
  // resources and devices go).
  void accept(const Decision& decision);
  // How many live nodes each filter refuses for this pod's class, indexed by Plugin. As fresh as
  // the last decide() for the class.
  std::vector<std::uint32_t> refusals(PodId pod);
  std::size_t cache_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::core
