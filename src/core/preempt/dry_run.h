// SPDX-License-Identifier: Apache-2.0
// Preemption tried on one node: all lower-priority pods off, then back as many as fit.
#pragma once

#include <optional>
#include <vector>

#include "core/filter/cycle.h"
#include "core/preempt/preempt.h"

namespace jogak::core {

struct DryRun {
  std::optional<PreemptionCandidate> candidate;
  NodeVerdict rejected;  // if there is no candidate: why not
};

// Touches only this node's pods, and puts everything back: cluster and cycle are as before.
DryRun dry_run(Cluster& cluster, const PodView& pod, FilterCycle& cycle, NodeId node);

}  // namespace jogak::core
