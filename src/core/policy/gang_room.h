// SPDX-License-Identifier: Apache-2.0
// Room for pods that want several whole GPUs. Shares and small pods can break up the last empty
// nodes long before the cluster is full; this keeps, per class of such pods, how many more would
// fit and how many are to be expected, and charges a placement for the places it takes away, the
// more the scarcer they are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/policy/fill_up.h"

namespace jogak::core {

class GangRoom {
 public:
  // The cluster counts as empty: node_changed() then brings in what is there.
  void build(std::span<const FillClass> mix, std::span<const NodeKind> kinds);
  // A node's free amounts changed; a node that came or went has a state with gpu_count 0.
  void node_changed(const FillState& before, const FillState& after);
  // Thousandths of a GPU charged for a placement that takes the node from `full_before` to
  // `full_after` fully free devices and uses the CPU (milli) and memory (MiB).
  std::int64_t charge(const FillState& before, std::int32_t full_before, std::int32_t full_after,
                      std::int64_t cpu, std::int64_t memory) const;
  // Bumps when a charge changed, and only then.
  std::uint64_t epoch() const { return epoch_; }

 private:
  struct Gang {
    std::int64_t cpu = 0;
    std::int64_t memory = 0;
    std::int32_t count = 0;
    std::uint64_t models = 0;
    std::int64_t weight = 0;
    std::int64_t demand =
        0;  // weight, in copies, of this and every class at least as hard to place
    std::int64_t supply = 0;  // copies that would fit now
    std::int64_t level = 0;   // of demand over supply
    std::int64_t charge = 0;  // thousandths per copy lost
  };

  static std::int64_t copies(const Gang& gang, std::int32_t full, std::int64_t cpu,
                             std::int64_t memory);
  static std::int64_t copies(const Gang& gang, const FillState& node);
  void add_harder_demand(std::span<const std::vector<bool>> holds);
  void update_levels(bool force);

  std::vector<Gang> gangs_;
  std::vector<Gang> charged_;      // those with a charge now
  std::int64_t demand_milli_ = 0;  // of the whole mix, per unit of weight
  std::int64_t free_milli_ = 0;
  std::uint64_t epoch_ = 0;
};

}  // namespace jogak::core
