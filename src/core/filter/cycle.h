// SPDX-License-Identifier: Apache-2.0
// One scheduling cycle's filters for one pod: PreFilter work done once, then a verdict per node.
// The same object follows hypothetical moves (victims removed, nominated pods added) so that
// preemption and nominations ask the very same rules. Rules: Kubernetes 1.36 default profile.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/filter/pod_view.h"
#include "core/filter/verdict.h"

namespace jogak::core {

// What PreFilter found.
struct PreFilter {
  Verdict verdict;  // not Fits: the pod is refused as a whole
  Reasons reasons;
  // Set: only these nodes are tried (every other one is left out, Plugin::None, Unresolvable).
  std::optional<std::vector<NodeId>> only_nodes;  // sorted by id
};

// Every stateful filter (PodTopologySpread, InterPodAffinity, VolumeRestrictions, NodeVolumeLimits,
// VolumeBinding, VolumeZone) is a class of this form in its own file:
//
//   class XFilter {
//    public:
//     PreFilter build(const Cluster&, const PodView&);      // PreFilter; may be called again
//     bool active() const;                                   // false: PreFilter said Skip
//     Verdict check(const Cluster&, const PodView&, NodeId, Reasons*) const;
//     void pod_moved(const Cluster&, const PodView&, PodId moved, NodeId node, int delta);
//   };
//
// pod_moved is called with delta -1 BEFORE the pod `moved` is taken from `node` in the cluster and
// with +1 AFTER it was placed there, so both times the cluster shows it on the node. Stateless ones
// (unschedulable, name, taints, node affinity, ports, fit, features, devices) are free functions
// `Verdict x_filter(const Cluster&, const PodView&, const Node&, Reasons*)`.
class FilterCycle {
 public:
  FilterCycle(const Cluster& cluster, const PodView& pod);
  ~FilterCycle();
  FilterCycle(FilterCycle&&) noexcept;

  const PreFilter& prefilter() const;
  // All filters in order, without regard to nominated pods. Requires prefilter() to fit.
  Verdict check(NodeId node, Reasons* reasons) const;
  void pod_moved(PodId moved, NodeId node, int delta);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::core
