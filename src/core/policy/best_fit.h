// SPDX-License-Identifier: Apache-2.0
// Baseline "BestFit": the node on which least CPU and GPU would be left wins.
#pragma once

#include "core/policy/gpu_view.h"
#include "core/policy/policy.h"

namespace jogak::core {

// The score itself, which other policies use for requests that their own rule does not cover.
std::int64_t best_fit_score(GpuView& view, const Shape& shape, const Node& node);

class BestFitPolicy final : public Policy {
 public:
  std::string_view name() const override { return "best-fit"; }
  void prepare(const Cluster& cluster, const WorkloadMix&) override { view_.prepare(cluster); }
  std::int64_t score(const Cluster&, const Shape& shape, const Node& node) override {
    return best_fit_score(view_, shape, node);
  }

 private:
  GpuView view_;
};

}  // namespace jogak::core
