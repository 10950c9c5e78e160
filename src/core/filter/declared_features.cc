// SPDX-License-Identifier: Apache-2.0
// See declared_features.h.
#include "core/filter/declared_features.h"

#include <algorithm>

namespace jogak::core {

Verdict declared_features_filter(const Cluster& cluster, const PodView& pod, const Node& node,
                                 Reasons* reasons) {
  for (const std::string& feature : pod.shape->spec.required_features) {
    const bool declared = std::ranges::any_of(
        node.features, [&](Symbol symbol) { return cluster.text(symbol) == feature; });
    if (!declared) {
      return refuse(Plugin::NodeDeclaredFeatures, Code::Unresolvable, reasons,
                    "node(s) didn't match Pod's required features");
    }
  }
  return {};
}

}  // namespace jogak::core
