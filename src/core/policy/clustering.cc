// SPDX-License-Identifier: Apache-2.0
// Baseline "GpuClustering" of the FGD paper (Weng et al., USENIX ATC 2023). A pod's tag is "share"
// or the number of whole devices it asks for; with b = trunc(25 * (8000 - R) / 8000):
//   the node holds this tag and no other  75 + b      no GPU pod at all    25 + b
//   this tag and others                   50 + b      only other tags           b
// Pods without GPU score 0 everywhere and so take the first feasible node.
#include "core/policy/clustering.h"

#include <algorithm>

#include "core/policy/baseline_limits.h"

namespace jogak::core {

namespace {

constexpr int kShareBit = 0;
constexpr int kMigBit = 63;
constexpr std::int32_t kCountMax = 62;  // larger requests share the last whole-device tag

std::uint64_t tag_bit(const GpuAmount& ask) {
  if (ask.count == 0) return 0;
  if (ask.kind == GpuAsk::Mig) return std::uint64_t{1} << kMigBit;
  if (ask.is_share()) return std::uint64_t{1} << kShareBit;
  return std::uint64_t{1} << std::min(ask.count, kCountMax);
}

}  // namespace

void ClusteringPolicy::prepare(const Cluster& cluster, const WorkloadMix&) {
  view_.prepare(cluster);
  tags_.assign(cluster.nodes().size(), {});
}

std::uint64_t ClusteringPolicy::tags_on(const Cluster& cluster, const Node& node) {
  const std::size_t slot = node_slot(cluster, node);
  if (slot >= tags_.size()) tags_.resize(cluster.nodes().size());
  Tags& tags = tags_[slot];
  if (tags.version == node.version && node.version != 0) return tags.mask;
  tags = {node.version, 0};
  for (const PodId pod : node.pods) {
    tags.mask |= tag_bit(view_.ask(cluster.shape_of(pod), node));
  }
  return tags.mask;
}

std::int64_t ClusteringPolicy::score(const Cluster& cluster, const Shape& shape, const Node& node) {
  const GpuAmount ask = view_.ask(shape, node);
  if (ask.count == 0) return 0;
  const std::uint64_t mine = tag_bit(ask);
  const std::uint64_t here = tags_on(cluster, node);
  const std::int64_t free = std::min(view_.look(node, ask.kind).total, kClampGpuMilli);
  const std::int64_t bonus = 25 * (kGpuMilliMax - free) / kGpuMilliMax;
  if (here == mine) return 75 + bonus;
  if ((here & mine) != 0) return 50 + bonus;
  return here == 0 ? 25 + bonus : bonus;
}

}  // namespace jogak::core
