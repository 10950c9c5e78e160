// SPDX-License-Identifier: Apache-2.0
// Supply and demand per class of multi-GPU pods, and the charge that follows from their ratio.
// See gang_room.h.
#include "core/policy/gang_room.h"

#include <algorithm>

#include "core/model/spec.h"

namespace jogak::core {
namespace {

constexpr std::int64_t kWhole = 1000;
// Parameters, tuned on seeds 42-46 of the published experiment (docs/policies.md).
constexpr std::int64_t kSteps = 8;  // levels of demand/supply per unit
constexpr std::int64_t kLevelsMax = 2 * kSteps;
constexpr std::int64_t kAlways = 20;    // thousandths of a GPU per GPU lost at demand/supply 1
constexpr std::int64_t kKnee = 500;     // thousandths: demand/supply from which room is defended
constexpr std::int64_t kDefend = 1000;  // thousandths of a GPU per GPU and unit above the knee
constexpr std::int64_t kWholeNodeShare = 50;  // thousandths of demand, see whole_node_prior()

std::int64_t demand_of(std::span<const FillClass> mix) {
  std::int64_t sum = 0;
  for (const FillClass& c : mix) sum += c.weight * c.gpu_count * c.gpu_milli;
  return sum;
}

// A mix can be wrong, and pods for a whole node are the first that find no room when it is. So some
// demand for the largest nodes is assumed even where the mix names less. Weight 0: it names enough.
FillClass whole_node_prior(std::span<const FillClass> mix, std::span<const NodeKind> kinds) {
  FillClass prior;
  prior.gpu_milli = static_cast<std::int32_t>(kWhole);
  prior.cpu = prior.memory = kMaxAmount;
  for (const NodeKind& kind : kinds) {
    prior.gpu_count = std::max(prior.gpu_count, static_cast<std::int32_t>(kind.empty.gpu_count));
  }
  if (prior.gpu_count < 2) return prior;
  for (const NodeKind& kind : kinds) {
    if (static_cast<std::int32_t>(kind.empty.gpu_count) < prior.gpu_count) continue;
    prior.cpu = std::min(prior.cpu, kind.empty.cpu / 2);
    prior.memory = std::min(prior.memory, kind.empty.memory / 2);
  }
  std::int64_t lacking = demand_of(mix) / 1000 * kWholeNodeShare;
  for (const FillClass& c : mix) {
    if (c.gpu_count * 2 > prior.gpu_count) lacking -= c.weight * c.gpu_count * c.gpu_milli;
  }
  prior.weight = std::max<std::int64_t>(lacking, 0) / (prior.gpu_count * kWhole);
  return prior;
}

}  // namespace

std::int64_t GangRoom::copies(const Gang& gang, std::int32_t full, std::int64_t cpu,
                              std::int64_t memory) {
  std::int64_t n = full / gang.count;
  while (n > 0 && (n * gang.cpu > cpu || n * gang.memory > memory)) --n;
  return n;
}

std::int64_t GangRoom::copies(const Gang& gang, const FillState& node) {
  if (!allows_model(gang.models, node.model)) return 0;
  return copies(gang, node.fully_free(), node.cpu, node.memory);
}

void GangRoom::build(std::span<const FillClass> mix, std::span<const NodeKind> kinds) {
  gangs_.clear();
  charged_.clear();
  ++epoch_;
  demand_milli_ = demand_of(mix);
  free_milli_ = 0;
  for (const NodeKind& k : kinds) free_milli_ += k.nodes * k.empty.total_milli();
  if (demand_milli_ == 0) return;
  std::vector<std::vector<bool>> holds;  // [gang][kind]: an empty node of the kind holds one
  std::vector<FillClass> wanted(mix.begin(), mix.end());
  wanted.push_back(whole_node_prior(mix, kinds));
  for (const FillClass& c : wanted) {
    if (c.gpu_count < 2 || c.weight <= 0) continue;
    Gang gang{c.cpu, c.memory, c.gpu_count, c.models, c.weight, 0, 0, 0, 0};
    holds.emplace_back();
    for (const NodeKind& kind : kinds) {
      const std::int64_t n = copies(gang, kind.empty);
      holds.back().push_back(n > 0);
      gang.supply += n * kind.nodes;
    }
    gangs_.push_back(gang);
  }
  add_harder_demand(holds);
  update_levels(true);
}

// Places of a class are also what harder classes will take: those that want as many GPUs or more
// and fit only on kinds of node that hold this class too.
void GangRoom::add_harder_demand(std::span<const std::vector<bool>> holds) {
  for (std::size_t i = 0; i < gangs_.size(); ++i) {
    for (std::size_t j = 0; j < gangs_.size(); ++j) {
      bool is_harder = gangs_[j].count >= gangs_[i].count;
      bool fits_somewhere = false;
      for (std::size_t k = 0; k < holds[i].size(); ++k) {
        is_harder = is_harder && (!holds[j][k] || holds[i][k]);
        fits_somewhere = fits_somewhere || holds[j][k];
      }
      if (!is_harder || !fits_somewhere) continue;
      gangs_[i].demand += gangs_[j].weight * gangs_[j].count / gangs_[i].count;
    }
  }
}

void GangRoom::node_changed(const FillState& before, const FillState& after) {
  if (gangs_.empty()) return;
  free_milli_ += after.total_milli() - before.total_milli();
  for (Gang& gang : gangs_) gang.supply += copies(gang, after) - copies(gang, before);
  update_levels(false);
}

// Charges follow demand over supply in steps, and a step is left only when the ratio is a quarter
// step outside it: every change makes all remembered scores stale.
void GangRoom::update_levels(bool force) {
  bool is_changed = false;
  for (Gang& gang : gangs_) {
    const std::int64_t wanted = free_milli_ * gang.demand;  // copies, times demand_milli_
    const std::int64_t wanted4 =
        wanted / demand_milli_ * kSteps * 4 + wanted % demand_milli_ * kSteps * 4 / demand_milli_;
    const std::int64_t ratio4 =
        std::min(wanted4 / std::max<std::int64_t>(gang.supply, 1), kLevelsMax * 4);
    if (!force && ratio4 >= gang.level * 4 - 1 && ratio4 <= gang.level * 4 + 4) continue;
    gang.level = ratio4 / 4;
    const std::int64_t ratio = gang.level * 1000 / kSteps;
    std::int64_t per_gpu = kAlways * ratio / 1000;
    if (ratio > kKnee) per_gpu += kDefend * (ratio - kKnee) / 1000;
    const std::int64_t charge =
        gang.demand > 0 ? per_gpu * gang.count * gang.weight / gang.demand : 0;
    is_changed = is_changed || charge != gang.charge;
    gang.charge = charge;
  }
  if (!is_changed) return;
  ++epoch_;
  charged_.clear();
  for (const Gang& gang : gangs_) {
    if (gang.charge > 0) charged_.push_back(gang);
  }
}

std::int64_t GangRoom::charge(const FillState& before, std::int32_t full_before,
                              std::int32_t full_after, std::int64_t cpu,
                              std::int64_t memory) const {
  if (full_before < 2) return 0;
  std::int64_t sum = 0;
  for (const Gang& gang : charged_) {
    if (full_before < gang.count || !allows_model(gang.models, before.model)) continue;
    const std::int64_t had = copies(gang, full_before, before.cpu, before.memory);
    if (had == 0) continue;
    sum += gang.charge * (had - copies(gang, full_after, before.cpu - cpu, before.memory - memory));
  }
  return sum;
}

}  // namespace jogak::core
