// SPDX-License-Identifier: Apache-2.0
// How much GPU a node is likely to strand: the mean leftover after many random fill-ups of the node
// with pods of the expected mix. Every state meets the same pods in the same order, so two states
// differ by what they are and not by luck; values are remembered by state, so equal nodes share
// them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/policy/fill_roll.h"

namespace jogak::core {

inline constexpr std::size_t kFillModelsMax = 64;

// One class of the mix in the units of a fill-up.
struct FillClass {
  std::int64_t cpu = 0;     // milli
  std::int64_t memory = 0;  // MiB
  std::int32_t gpu_count = 0;
  std::int32_t gpu_milli = 0;  // per device
  std::uint64_t models = 0;    // bit i: model i is allowed; 0: any
  std::int64_t weight = 0;     // > 0
  friend bool operator==(const FillClass&, const FillClass&) = default;
};

constexpr bool allows_model(std::uint64_t models, std::size_t model) {
  return models == 0 || ((models >> model) & 1) != 0;
}

struct FillState {
  std::size_t model = 0;
  std::size_t gpu_count = 0;                       // at most kFillGpusMax
  std::int64_t cpu = 0;                            // free milli-CPU, not negative
  std::int64_t memory = 0;                         // free MiB, not negative
  std::array<std::int32_t, kFillGpusMax> milli{};  // free thousandths per device

  std::int32_t fully_free() const;
  std::int64_t total_milli() const;
};

// Empty nodes of one kind.
struct NodeKind {
  FillState empty;
  std::int64_t nodes = 0;

  bool same_kind(const NodeKind& other) const {
    return empty.model == other.empty.model && empty.gpu_count == other.empty.gpu_count &&
           empty.cpu == other.empty.cpu && empty.memory == other.empty.memory &&
           empty.milli == other.empty.milli;
  }
};

class FillUp {
 public:
  static constexpr int kRolls = 64;  // fill-ups per state
  static constexpr int kPods = 60;   // pods offered in each

  // Keeps what it remembers if mix and kinds are as before.
  void build(std::span<const FillClass> mix, std::span<const NodeKind> kinds);
  bool empty() const { return mix_.empty(); }
  // Sum over the kRolls fill-ups of the thousandths left over; smaller is better.
  std::int64_t stranded(const FillState& state);

 private:
  static constexpr int kLanes = static_cast<int>(kRollLanes);
  static constexpr int kBlocks = kRolls / kLanes;
  struct Entry {
    std::array<std::uint64_t, 4> key{};
    std::int64_t value = -1;
  };

  void build_groups();
  void build_units(std::span<const NodeKind> kinds);
  void build_draws(std::span<const std::int64_t> weights);
  std::vector<std::size_t> shuffled_deck(std::span<const std::int64_t> weights) const;
  std::size_t row(std::size_t group, int roll) const;
  // Weights under which all nodes together use the small classes as often as they arrive.
  std::vector<std::int64_t> calibrated(std::span<const NodeKind> kinds);
  void count_uses(const NodeKind& kind, std::span<std::int64_t> used) const;
  void count_roll(const NodeKind& kind, int roll, std::span<std::int64_t> used) const;
  std::int64_t remembered(const RollStart& start);
  RollDeck deck_of(std::size_t group) const;
  std::size_t find_slot(const std::array<std::uint64_t, 4>& key) const;
  void grow();

  std::vector<FillClass> mix_;
  std::uint64_t built_for_ = 0;   // digest of mix and kinds
  std::int64_t cpu_unit_ = 1;     // milli; so that the largest node fits in 15 bits
  std::int64_t memory_unit_ = 1;  // MiB
  std::int64_t cpu_coarse_ = 1;   // units: states closer than this share a value
  std::int64_t memory_coarse_ = 1;
  std::array<std::size_t, kFillModelsMax> group_{};  // of a model
  std::size_t groups_ = 0;
  std::int32_t milli_min_ = 1;  // smallest ask of the mix: less room than this is stranded for sure
  std::int16_t cpu_min_ = 0;
  std::vector<RollDraw> draws_;          // [group][block][pod]
  std::vector<int> draw_end_;            // [group][block]: draws in use
  std::vector<std::size_t> draw_class_;  // [group][block][pod][lane]: index into the mix
  std::vector<Entry> memo_;              // open addressing; size a power of two
  std::size_t memo_used_ = 0;
};

}  // namespace jogak::core
