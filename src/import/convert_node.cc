// SPDX-License-Identifier: Apache-2.0
// A node of the API to a NodeSpec: facts and, where annotated, its devices.
#include <algorithm>

#include "import/convert.h"
#include "import/convert_parts.h"
#include "import/gpu.h"

namespace jogak::importer {

Result<core::NodeSpec> to_node(kube::Node&& node) {
  core::NodeSpec result;
  JOGAK_TRY_VOID(add_devices(node.meta, result));
  result.name = std::move(node.meta.name);
  result.labels = std::move(node.meta.labels);
  for (kube::Taint& taint : node.taints) {
    result.taints.push_back(
        {std::move(taint.key), std::move(taint.value), to_effect(taint.effect)});
  }
  result.unschedulable = node.unschedulable;
  result.allocatable = std::move(node.allocatable);
  // What exists is rounded down, to the most the core counts with: device plugins that report
  // "unlimited" do it with huge numbers.
  for (auto& [name, amount] : result.allocatable) amount = std::min(amount, core::kMaxAmount);
  for (kube::ContainerImage& image : node.images) {
    result.images.push_back({std::move(image.names), image.size_bytes});
  }
  result.declared_features = std::move(node.declared_features);
  return result;
}

}  // namespace jogak::importer
