// SPDX-License-Identifier: Apache-2.0
// The table of policies by name, and what a policy does unless it says otherwise.
#include <algorithm>
#include <array>
#include <ranges>

#include "base/edit_distance.h"
#include "core/policy/best_fit.h"
#include "core/policy/clustering.h"
#include "core/policy/dot_product.h"
#include "core/policy/fgd.h"
#include "core/policy/jogak.h"
#include "core/policy/kube_policy.h"
#include "core/policy/packing.h"
#include "core/policy/policy.h"
#include "core/policy/random.h"

namespace jogak::core {

namespace {

template <class P>
std::unique_ptr<Policy> create(std::uint64_t) {
  return std::make_unique<P>();
}

template <class P>
std::unique_ptr<Policy> create_seeded(std::uint64_t seed) {
  return std::make_unique<P>(seed);
}

constexpr auto kPolicies = std::to_array<PolicyInfo>({
    {"kube", "kube-scheduler's default scores; blind to devices", create<KubePolicy>},
    {"random", "any feasible node, uniformly", create_seeded<RandomPolicy>},
    {"dot-product", "smallest dot product of free and requested", create<DotProductPolicy>},
    {"clustering", "pods with the same kind of GPU request together", create<ClusteringPolicy>},
    {"packing", "devices in use first, then used nodes", create<PackingPolicy>},
    {"best-fit", "least CPU and GPU left on the node", create<BestFitPolicy>},
    {"fgd", "fragmentation gradient descent", create<FgdPolicy>},
    {"jogak", "least GPU stranded when the node is filled to the end", create<JogakPolicy>},
});

}  // namespace

void Policy::score_all(const Cluster& cluster, const PodView& pod, std::span<const NodeId> feasible,
                       std::span<std::int64_t> out) {
  for (std::size_t i = 0; i < feasible.size(); ++i) {
    out[i] = score(cluster, *pod.shape, cluster.node(feasible[i]));
  }
}

void Policy::choose(const Cluster& cluster, const Shape& shape, const Node& node,
                    std::vector<GpuHold>& out) {
  const GpuRequest& request = shape.spec.gpu;
  if (node.gpus.empty()) return;  // devices are only counted there
  switch (request.kind) {
    case GpuAsk::None:
      return;
    case GpuAsk::Whole:
      return choose_close(node, request.count, out);
    case GpuAsk::ShareMilli:
    case GpuAsk::ShareMib:
      return choose_tightest(node, request, out);
    case GpuAsk::Mig:
      return choose_mig(cluster, node, shape, out);
  }
}

std::span<const PolicyInfo> policies() { return kPolicies; }

Result<std::unique_ptr<Policy>> make_policy(std::string_view name, std::uint64_t seed) {
  std::string known;
  for (const PolicyInfo& info : kPolicies) {
    if (info.name == name) return info.create(seed);
    known.append(known.empty() ? "" : ", ").append(info.name);
  }
  const auto names = kPolicies | std::views::transform(&PolicyInfo::name);
  return invalid("unknown policy {}; the policies are {}{}", name, known,
                 did_you_mean(name, names));
}

}  // namespace jogak::core
