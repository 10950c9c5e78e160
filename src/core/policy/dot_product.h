// SPDX-License-Identifier: Apache-2.0
// Baseline "DotProd": the node whose free (CPU, GPU) vector has the smallest dot product with the
// pod's request wins.
#pragma once

#include "core/policy/gpu_view.h"
#include "core/policy/policy.h"

namespace jogak::core {

class DotProductPolicy final : public Policy {
 public:
  std::string_view name() const override { return "dot-product"; }
  void prepare(const Cluster& cluster, const WorkloadMix&) override { view_.prepare(cluster); }
  std::int64_t score(const Cluster& cluster, const Shape& shape, const Node& node) override;

 private:
  GpuView view_;
};

}  // namespace jogak::core
