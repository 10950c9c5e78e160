// SPDX-License-Identifier: Apache-2.0
// Jogak's own policy: place where the node is expected to strand least afterwards. The cost of a
// placement is the growth of the node's expected leftover (FillUp), plus a charge for using a model
// that other pods have no alternative to, plus a charge for breaking up room for multi-GPU pods
// that is getting scarce (GangRoom). Without a workload mix it falls back to the fullest node and
// the tightest device. docs/policies.md has the reasons and the figures.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/policy/fill_up.h"
#include "core/policy/gang_room.h"
#include "core/policy/gpu_view.h"
#include "core/policy/policy.h"

namespace jogak::core {

class JogakPolicy final : public Policy {
 public:
  std::string_view name() const override { return "jogak"; }
  void prepare(const Cluster& cluster, const WorkloadMix& mix) override;
  std::int64_t score(const Cluster& cluster, const Shape& shape, const Node& node) override;
  void choose(const Cluster& cluster, const Shape& shape, const Node& node,
              std::vector<GpuHold>& out) override;
  std::uint64_t epoch() const override { return room_.epoch(); }
  bool follows_changes() const override { return true; }
  void node_changed(const Cluster& cluster, NodeId node) override;

 private:
  struct Ask {
    GpuAmount gpu;
    std::int64_t cpu = 0;     // milli
    std::int64_t memory = 0;  // MiB, rounded up
  };
  // A node's state as of one version; what scores of many shapes share.
  struct Known {
    FillState state;
    std::int64_t stranded = -1;  // -1: not asked yet
    std::int32_t fully_free = 0;
    std::uint64_t version = 0;
  };
  struct Best {
    std::int64_t cost = 0;     // sum over FillUp::kRolls, thousandths
    std::int32_t device = -1;  // single shares: where
  };

  void intern_models(const Cluster& cluster, const WorkloadMix& mix);
  std::uint64_t model_mask(const Cluster& cluster, const std::vector<std::string>& models) const;
  std::size_t model_id(Symbol model) const;
  std::vector<FillClass> fill_classes(const Cluster& cluster, const WorkloadMix& mix) const;
  std::vector<NodeKind> node_kinds(const Cluster& cluster);
  void build_scarcity(std::span<const FillClass> mix, std::span<const NodeKind> kinds);
  FillState state_of(const Node& node);
  FillState empty_state_of(const Node& node);
  Ask ask_of(const Shape& shape, const Node& node) const;
  bool can_follow(const Shape& shape, const Node& node) const;
  std::int64_t fallback(const Shape& shape, const Node& node);
  Known& known_of(const Cluster& cluster, const Node& node);
  std::int64_t cost_of(const Known& before, const FillState& after, const Ask& ask);
  Best best_of(const Cluster& cluster, const Shape& shape, const Node& node);
  using DeviceOrder = std::array<std::size_t, kFillGpusMax>;
  static std::size_t tightest_devices(const Shape& shape, const Node& node, const FillState& state,
                                      DeviceOrder& order);
  Best best_share(const Shape& shape, const Node& node, const Ask& ask, const Known& known);

  GpuView view_;
  FillUp fill_;
  GangRoom room_;
  std::vector<Symbol> models_;                           // id of a model: its place here
  std::array<std::int64_t, kFillModelsMax> scarcity_{};  // thousandths per thousandth used
  std::vector<Known> known_;                             // by node slot: what room_ was last told
  Known scratch_;                                        // for a node that changed since
};

}  // namespace jogak::core
