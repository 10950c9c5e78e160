// SPDX-License-Identifier: Apache-2.0
// See taint_toleration.h.
#include "core/filter/taint_toleration.h"

#include "core/filter/selector.h"

namespace jogak::core {

Verdict taint_toleration_filter(const Cluster&, const PodView& pod, const Node& node,
                                Reasons* reasons) {
  if (tolerates_node(pod.shape->spec, node)) return {};
  return refuse(Plugin::TaintToleration, Code::Unresolvable, reasons,
                "node(s) had untolerated taint(s)");
}

}  // namespace jogak::core
