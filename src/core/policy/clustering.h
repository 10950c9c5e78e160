// SPDX-License-Identifier: Apache-2.0
// Baseline "GpuClustering": pods that ask for GPUs in the same way gather on the same nodes.
#pragma once

#include "core/policy/gpu_view.h"
#include "core/policy/policy.h"

namespace jogak::core {

class ClusteringPolicy final : public Policy {
 public:
  std::string_view name() const override { return "clustering"; }
  void prepare(const Cluster& cluster, const WorkloadMix&) override;
  std::int64_t score(const Cluster& cluster, const Shape& shape, const Node& node) override;

 private:
  // Which tags the pods on a node carry, one bit each, remembered by the node's version.
  struct Tags {
    std::uint64_t version = 0;
    std::uint64_t mask = 0;
  };
  std::uint64_t tags_on(const Cluster& cluster, const Node& node);

  GpuView view_;
  std::vector<Tags> tags_;  // by node slot
};

}  // namespace jogak::core
