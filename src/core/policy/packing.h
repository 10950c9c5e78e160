// SPDX-License-Identifier: Apache-2.0
// Baseline "GpuPacking": devices already in use before free ones, used nodes before empty ones.
#pragma once

#include "core/policy/gpu_view.h"
#include "core/policy/policy.h"

namespace jogak::core {

class PackingPolicy final : public Policy {
 public:
  std::string_view name() const override { return "packing"; }
  void prepare(const Cluster& cluster, const WorkloadMix&) override { view_.prepare(cluster); }
  std::int64_t score(const Cluster& cluster, const Shape& shape, const Node& node) override;

 private:
  GpuView view_;
  std::vector<std::int32_t> fitting_;
};

}  // namespace jogak::core
