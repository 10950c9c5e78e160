// SPDX-License-Identifier: Apache-2.0
// Sums kube-scheduler's plugin scores, and takes devices from the lowest number up.
#include "core/policy/kube_policy.h"

#include <algorithm>
#include <bit>

#include "core/policy/gpu_view.h"

namespace jogak::core {

namespace {

void choose_first_shares(const Node& node, const GpuRequest& request, std::vector<GpuHold>& out) {
  std::int32_t wanted = request.count;
  for (std::size_t i = 0; i < node.gpus.size() && wanted > 0; ++i) {
    if (!share_fits(node.gpus[i], request)) continue;
    out.push_back({.gpu = static_cast<std::int32_t>(i), .amount = request.amount});
    --wanted;
  }
}

}  // namespace

void KubePolicy::score_all(const Cluster& cluster, const PodView& pod,
                           std::span<const NodeId> feasible, std::span<std::int64_t> out) {
  std::ranges::fill(out, 0);
  if (feasible.size() < 2) return;  // kube-scheduler does not score a single node
  for (const PluginScores& plugin : kube_scores(cluster, pod, feasible, config_)) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += plugin.values[i];
  }
}

void KubePolicy::choose(const Cluster& cluster, const Shape& shape, const Node& node,
                        std::vector<GpuHold>& out) {
  const GpuRequest& request = shape.spec.gpu;
  if (node.gpus.empty()) return;
  switch (request.kind) {
    case GpuAsk::None:
      return;
    case GpuAsk::Whole:
      return choose_first_free(node, request.count, out);
    case GpuAsk::ShareMilli:
    case GpuAsk::ShareMib:
      return choose_first_shares(node, request, out);
    case GpuAsk::Mig:
      return choose_mig(cluster, node, shape, out);
  }
}

}  // namespace jogak::core
