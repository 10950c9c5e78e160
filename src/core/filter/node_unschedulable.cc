// SPDX-License-Identifier: Apache-2.0
// See node_unschedulable.h.
#include "core/filter/node_unschedulable.h"

#include "core/filter/selector.h"

namespace jogak::core {

Verdict node_unschedulable_filter(const Cluster&, const PodView& pod, const Node& node,
                                  Reasons* reasons) {
  if (!node.unschedulable) return {};
  static const Taint cordon{"node.kubernetes.io/unschedulable", "", TaintEffect::NoSchedule};
  if (tolerates(pod.shape->spec.tolerations, cordon)) return {};
  return refuse(Plugin::NodeUnschedulable, Code::Unresolvable, reasons,
                "node(s) were unschedulable");
}

}  // namespace jogak::core
