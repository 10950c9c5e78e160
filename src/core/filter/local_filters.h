// SPDX-License-Identifier: Apache-2.0
// The filters that look at one node alone, in two groups for the incremental index: what depends on
// facts (Node::static_version) and what depends on usage (Node::version). FilterCycle runs the same
// functions in the configured order.
#pragma once

#include "core/filter/pod_view.h"
#include "core/filter/verdict.h"

namespace jogak::core {

// NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodeDeclaredFeatures.
Verdict static_filters(const Cluster& cluster, const PodView& pod, const Node& node);

// NodePorts, NodeResourcesFit, GpuDevices. Allocates nothing.
Verdict dynamic_local_filters(const Cluster& cluster, const PodView& pod, const Node& node);

// Of two verdicts on one node, that of the plugin which runs first.
inline Verdict first_refusal(Verdict a, Verdict b) {
  if (a.fits()) return b;
  if (b.fits()) return a;
  return b.plugin < a.plugin ? b : a;
}

}  // namespace jogak::core
