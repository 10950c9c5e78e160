// SPDX-License-Identifier: Apache-2.0
// Baseline "Random": any feasible node, and for a share any device with room, all equally likely.
#pragma once

#include "base/rng.h"
#include "core/policy/policy.h"

namespace jogak::core {

class RandomPolicy final : public Policy {
 public:
  explicit RandomPolicy(std::uint64_t seed)
      : nodes_(seed, "policy/random/node"), devices_(seed, "policy/random/device") {}
  std::string_view name() const override { return "random"; }
  ScoreScope scope() const override { return ScoreScope::Global; }
  std::int64_t score(const Cluster&, const Shape&, const Node&) override { return 0; }
  // One for the node drawn, zero for the others.
  void score_all(const Cluster& cluster, const PodView& pod, std::span<const NodeId> feasible,
                 std::span<std::int64_t> out) override;
  void choose(const Cluster& cluster, const Shape& shape, const Node& node,
              std::vector<GpuHold>& out) override;

 private:
  Rng nodes_;
  Rng devices_;
  std::vector<std::int32_t> fitting_;
};

}  // namespace jogak::core
