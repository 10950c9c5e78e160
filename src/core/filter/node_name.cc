// SPDX-License-Identifier: Apache-2.0
// See node_name.h.
#include "core/filter/node_name.h"

namespace jogak::core {

Verdict node_name_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                         Reasons* reasons) {
  const std::string& wanted = pod.shape->spec.node_name;
  if (wanted.empty() || wanted == cluster.text(node.name)) return {};
  return refuse(Plugin::NodeName, Code::Unresolvable, reasons,
                "node(s) didn't match the requested node name");
}

}  // namespace jogak::core
