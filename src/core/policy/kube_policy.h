// SPDX-License-Identifier: Apache-2.0
// "kube": places as kube-scheduler's default profile does, for comparison and as the safe choice.
// Ties go to the first node in node order where kube-scheduler would draw one.
#pragma once

#include "core/policy/policy.h"
#include "core/score/score.h"

namespace jogak::core {

class KubePolicy final : public Policy {
 public:
  explicit KubePolicy(ScoreConfig config = {}) : config_(std::move(config)) {}
  std::string_view name() const override { return "kube"; }
  ScoreScope scope() const override { return ScoreScope::Global; }
  std::int64_t score(const Cluster&, const Shape&, const Node&) override { return 0; }
  void score_all(const Cluster& cluster, const PodView& pod, std::span<const NodeId> feasible,
                 std::span<std::int64_t> out) override;
  // The lowest-numbered devices that fit, as a kubelet without any preference would take them.
  void choose(const Cluster& cluster, const Shape& shape, const Node& node,
              std::vector<GpuHold>& out) override;

 private:
  ScoreConfig config_;
};

}  // namespace jogak::core
