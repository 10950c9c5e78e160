// SPDX-License-Identifier: Apache-2.0
// See balanced_allocation.h. kube-scheduler computes the balance in float64 and truncates; to take
// the same integer at every boundary the same operations are done here in the same order.
#include "core/score/balanced_allocation.h"

#include <algorithm>
#include <cmath>

namespace jogak::core {
namespace {

// How full one resource is, 0..1.
using Fraction = double;  // tidy: kube-float: the original's float64 operations define the score

Fraction fraction(std::int64_t used, std::int64_t capacity) {
  return std::min(static_cast<Fraction>(used) / static_cast<Fraction>(capacity), Fraction{1});
}

// 100 minus the standard deviation in percent.
class Balance {
 public:
  void add(std::int64_t used, std::int64_t capacity) {
    const Fraction f = fraction(used, capacity);
    if (count_ < 2) first_[count_] = f;
    ++count_;
    sum_ += f;
  }
  std::size_t count() const { return count_; }
  Fraction mean() const { return sum_ / static_cast<Fraction>(count_); }
  // The shortcut that the original takes for two resources.
  Fraction half_distance() const { return std::abs((first_[0] - first_[1]) / Fraction{2}); }

 private:
  std::size_t count_ = 0;
  Fraction first_[2] = {0, 0};
  Fraction sum_ = 0;
};

std::int64_t balance(const Node& node, std::span<const ScoredResource> resources, bool with_pod) {
  const auto each = [&](const auto& visit) {
    for (const ScoredResource& resource : resources) {
      const ResourceUse use = resource_use(node, resource, Usage::Requested);
      if (use.capacity != 0) visit(use.used + (with_pod ? resource.ask : 0), use.capacity);
    }
  };
  Balance sums;
  each([&](std::int64_t used, std::int64_t capacity) { sums.add(used, capacity); });
  Fraction deviation = 0;
  if (sums.count() == 2) {
    deviation = sums.half_distance();
  } else if (sums.count() > 2) {
    const Fraction mean = sums.mean();
    Fraction squares = 0;
    each([&](std::int64_t used, std::int64_t capacity) {
      const Fraction distance = fraction(used, capacity) - mean;
      squares += distance * distance;
    });
    deviation = std::sqrt(squares / static_cast<Fraction>(sums.count()));
  }
  return static_cast<std::int64_t>((Fraction{1} - deviation) * Fraction{100});
}

}  // namespace

std::int64_t balanced_allocation_score(const Node& node,
                                       std::span<const ScoredResource> resources) {
  const std::int64_t with = balance(node, resources, true);
  const std::int64_t without = balance(node, resources, false);
  return 50 + (50 + with - without) / 2;
}

std::optional<std::vector<std::int64_t>> balanced_allocation_scores(
    const Cluster& cluster, const PodView& pod, std::span<const NodeId> feasible,
    const ScoreConfig& config) {
  const auto resources =
      scored_resources(cluster, *pod.shape, config.balanced_resources, Usage::Requested);
  const auto asks = [](const ScoredResource& resource) { return resource.ask != 0; };
  if (std::ranges::none_of(resources, asks)) return std::nullopt;
  std::vector<std::int64_t> scores;
  scores.reserve(feasible.size());
  for (const NodeId id : feasible) {
    scores.push_back(balanced_allocation_score(cluster.node(id), resources));
  }
  return scores;
}

}  // namespace jogak::core
