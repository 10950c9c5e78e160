// SPDX-License-Identifier: Apache-2.0
// Baseline "Random" of the FGD paper (Weng et al., USENIX ATC 2023).
#include "core/policy/random.h"

#include <algorithm>

#include "core/policy/gpu_view.h"

namespace jogak::core {

void RandomPolicy::score_all(const Cluster&, const PodView&, std::span<const NodeId> feasible,
                             std::span<std::int64_t> out) {
  std::ranges::fill(out, 0);
  if (feasible.empty()) return;
  out[nodes_.below(feasible.size())] = 1;
}

void RandomPolicy::choose(const Cluster& cluster, const Shape& shape, const Node& node,
                          std::vector<GpuHold>& out) {
  const GpuRequest& request = shape.spec.gpu;
  const bool is_share = request.kind == GpuAsk::ShareMilli || request.kind == GpuAsk::ShareMib;
  if (!is_share || node.gpus.empty()) return Policy::choose(cluster, shape, node, out);
  fitting_.clear();
  for (std::size_t i = 0; i < node.gpus.size(); ++i) {
    if (share_fits(node.gpus[i], request)) fitting_.push_back(static_cast<std::int32_t>(i));
  }
  // A partial Fisher-Yates draw: `count` different devices, every set equally likely.
  const std::size_t first = out.size();
  for (std::int32_t n = 0; n < request.count && !fitting_.empty(); ++n) {
    const std::size_t at = devices_.below(fitting_.size());
    out.push_back({.gpu = fitting_[at], .amount = request.amount});
    fitting_.erase(fitting_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::sort(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
            [](const GpuHold& a, const GpuHold& b) { return a.gpu < b.gpu; });
}

}  // namespace jogak::core
