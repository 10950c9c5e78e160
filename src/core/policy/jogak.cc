// SPDX-License-Identifier: Apache-2.0
// What to expect (mix, kinds of node, scarcity), node states, and scores made of both.
// See jogak.h.
#include "core/policy/jogak.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/checked.h"
#include "base/units.h"

namespace jogak::core {
namespace {

// Parameters, one set for every workload, tuned on seeds 42-46 (docs/policies.md).
constexpr std::int64_t kScarcityWeight = 600;  // thousandths
constexpr std::int64_t kStepMilli = 40;  // costs this close tie, and ties keep filling one node

constexpr int kTightestTried = 2;  // devices a share is tried on, tightest first
// Weights are brought to about this in all: fine enough to calibrate, small enough for products.
constexpr std::int64_t kWeightTotal = 1000000;

std::int64_t mib_up(std::int64_t bytes) { return ceil_div(bytes, kBytesPerMib); }

std::int64_t ask_milli(const GpuAmount& gpu) { return std::int64_t{gpu.count} * gpu.milli; }

}  // namespace

// ---- what to expect -------------------------------------------------------------------------

void JogakPolicy::intern_models(const Cluster& cluster, const WorkloadMix& mix) {
  models_.clear();
  const auto add = [this](Symbol model) {
    if (std::ranges::find(models_, model) != models_.end()) return;
    if (models_.size() < kFillModelsMax) models_.push_back(model);
  };
  for (const NodeId node : cluster.node_order()) add(cluster.node(node).gpu_model);
  for (const MixClass& c : mix) {
    for (const std::string& name : c.models) {
      Symbol model;
      if (cluster.symbols().find(name, model)) add(model);
    }
  }
}

// Models beyond the sixty-fourth share the last id.
std::size_t JogakPolicy::model_id(Symbol model) const {
  const auto at = static_cast<std::size_t>(std::ranges::find(models_, model) - models_.begin());
  return std::min(at, kFillModelsMax - 1);
}

std::uint64_t JogakPolicy::model_mask(const Cluster& cluster,
                                      const std::vector<std::string>& models) const {
  std::uint64_t mask = 0;
  for (const std::string& name : models) {
    Symbol model;
    if (!cluster.symbols().find(name, model)) continue;
    mask |= std::uint64_t{1} << model_id(model);
  }
  // A list of models nobody has is not "any": such pods fit nowhere and are left out of the mix.
  return mask;
}

std::vector<FillClass> JogakPolicy::fill_classes(const Cluster& cluster,
                                                 const WorkloadMix& mix) const {
  std::vector<FillClass> classes;
  std::int64_t total = 0;
  for (const MixClass& c : mix) {
    FillClass f{c.cpu, mib_up(c.memory), c.gpu_count, c.gpu_milli, 0, c.weight};
    f.models = model_mask(cluster, c.models);
    if (c.weight <= 0 || (!c.models.empty() && f.models == 0)) continue;
    if (c.gpu_count > static_cast<std::int32_t>(kFillGpusMax)) continue;
    f.weight = std::min(c.weight, kMaxAmount);
    total += f.weight;
    classes.push_back(f);
  }
  for (FillClass& f : classes) {
    f.weight = total < kWeightTotal
                   ? f.weight * (kWeightTotal / total)
                   : std::max<std::int64_t>(f.weight / (total / kWeightTotal + 1), 1);
  }
  return classes;
}

std::vector<NodeKind> JogakPolicy::node_kinds(const Cluster& cluster) {
  std::vector<NodeKind> kinds;
  for (const NodeId id : cluster.node_order()) {
    const NodeKind kind{empty_state_of(cluster.node(id)), 1};
    const auto same =
        std::ranges::find_if(kinds, [&](const NodeKind& k) { return k.same_kind(kind); });
    if (same != kinds.end()) {
      ++same->nodes;
    } else {
      kinds.push_back(kind);
    }
  }
  return kinds;
}

void JogakPolicy::prepare(const Cluster& cluster, const WorkloadMix& mix) {
  view_.prepare(cluster);
  intern_models(cluster, mix);
  const std::vector<FillClass> classes = fill_classes(cluster, mix);
  const std::vector<NodeKind> kinds = node_kinds(cluster);
  fill_.build(classes, kinds);
  build_scarcity(classes, kinds);
  room_.build(classes, kinds);
  known_.assign(cluster.nodes().size(), Known{});
  for (const NodeId id : cluster.node_order()) {
    known_[id.value].state = empty_state_of(cluster.node(id));
    node_changed(cluster, id);
  }
}

// Charge per thousandth of a model: what is asked of it by pods that name models, over what there
// is, with the mix scaled to the whole cluster. A list of several models asks of each by its
// capacity.
void JogakPolicy::build_scarcity(std::span<const FillClass> mix, std::span<const NodeKind> kinds) {
  scarcity_.fill(0);
  std::array<std::int64_t, kFillModelsMax> capacity{};  // GPUs
  std::int64_t capacity_total = 0;
  for (const NodeKind& k : kinds) {
    const std::int64_t gpus = k.nodes * static_cast<std::int64_t>(k.empty.gpu_count);
    capacity[k.empty.model] += gpus;
    capacity_total += gpus;
  }
  std::int64_t demand_total = 0;
  for (const FillClass& c : mix) demand_total += c.weight * c.gpu_count * c.gpu_milli;
  if (demand_total == 0 || capacity_total == 0) return;
  std::array<std::int64_t, kFillModelsMax> asked{};
  for (const FillClass& c : mix) {
    if (c.gpu_count == 0 || c.models == 0) continue;
    std::int64_t listed = 0;
    for (std::size_t m = 0; m < kFillModelsMax; ++m) {
      if (allows_model(c.models, m)) listed += capacity[m];
    }
    if (listed == 0) continue;
    for (std::size_t m = 0; m < kFillModelsMax; ++m) {
      if (!allows_model(c.models, m)) continue;
      asked[m] += c.weight * c.gpu_count * c.gpu_milli * capacity[m] / listed;
    }
  }
  for (std::size_t m = 0; m < kFillModelsMax; ++m) {
    if (capacity[m] > 0)
      scarcity_[m] = asked[m] * 1000 / demand_total * capacity_total / capacity[m];
  }
}

// ---- states ---------------------------------------------------------------------------------

FillState JogakPolicy::state_of(const Node& node) {
  FillState state;
  state.model = model_id(node.gpu_model);
  state.cpu = free_cpu(node);
  state.memory =
      std::max<std::int64_t>(node.memory_allocatable - node.memory_requested, 0) / kBytesPerMib;
  const FreeGpus& free = view_.look(node, GpuAsk::Whole);
  if (free.milli.size() > kFillGpusMax) return state;  // as if it had none; see can_follow()
  state.gpu_count = free.milli.size();
  for (std::size_t i = 0; i < free.milli.size(); ++i) {
    // A partitioned or sick device, and one that is overfilled, offers nothing.
    state.milli[i] = std::max(free.milli[i], 0);
  }
  return state;
}

FillState JogakPolicy::empty_state_of(const Node& node) {
  FillState state = state_of(node);
  state.cpu = node.cpu_allocatable;
  state.memory = node.memory_allocatable / kBytesPerMib;
  const FreeGpus& free = view_.look(node, GpuAsk::Whole);
  for (std::size_t i = 0; i < state.gpu_count; ++i) {
    state.milli[i] = free.milli[i] == FreeGpus::kHidden ? 0 : kWholeMilli;
  }
  return state;
}

void JogakPolicy::node_changed(const Cluster& cluster, NodeId id) {
  const Node& node = cluster.node(id);
  if (!node.alive || id.value >= known_.size()) return;  // prepare() follows
  Known& known = known_[id.value];
  if (known.version == node.version) return;  // named more than once in the log
  const FillState now = state_of(node);
  room_.node_changed(known.state, now);
  known = {now, -1, now.fully_free(), node.version};
}

// Normally what node_changed() keeps; a caller that moved pods since gets a fresh look.
JogakPolicy::Known& JogakPolicy::known_of(const Cluster& cluster, const Node& node) {
  const std::size_t slot = node_slot(cluster, node);
  if (slot < known_.size() && known_[slot].version == node.version) return known_[slot];
  const FillState now = state_of(node);
  scratch_ = {now, -1, now.fully_free(), node.version};
  return scratch_;
}

JogakPolicy::Ask JogakPolicy::ask_of(const Shape& shape, const Node& node) const {
  return {view_.ask(shape, node), shape.cpu, mib_up(shape.memory)};
}

// A fill-up knows whole devices and shares of up to kFillGpusMax devices.
bool JogakPolicy::can_follow(const Shape& shape, const Node& node) const {
  return !fill_.empty() && shape.spec.gpu.kind != GpuAsk::Mig && node.gpus.size() <= kFillGpusMax;
}

// ---- scores ---------------------------------------------------------------------------------

// Without a picture of what comes next: the fullest node, and there the tightest device.
std::int64_t JogakPolicy::fallback(const Shape& shape, const Node& node) {
  const GpuAmount gpu = view_.ask(shape, node);
  const FreeGpus& free = view_.look(node, gpu.kind == GpuAsk::Mig ? gpu.kind : GpuAsk::Whole);
  std::int64_t hole = 0;
  if (gpu.is_share()) {
    std::int32_t tightest = kWholeMilli;
    for (const std::int32_t milli : free.milli) {
      if (milli >= gpu.milli) tightest = std::min(tightest, milli);
    }
    hole = tightest - gpu.milli;
  }
  return -(hole * 2 * static_cast<std::int64_t>(kFillGpusMax) + free.total);
}

std::int64_t JogakPolicy::cost_of(const Known& before, const FillState& after, const Ask& ask) {
  const std::int64_t charge =
      before.fully_free < 2
          ? 0
          : room_.charge(before.state, before.fully_free, after.fully_free(), ask.cpu, ask.memory);
  return fill_.stranded(after) + charge * FillUp::kRolls;
}

// Devices the share fits on, one of each size (equal ones give equal results), tightest first; at
// most kTightestTried.
std::size_t JogakPolicy::tightest_devices(const Shape& shape, const Node& node,
                                          const FillState& state, DeviceOrder& order) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < state.gpu_count; ++i) {
    if (!share_fits(node.gpus[i], shape.spec.gpu)) continue;
    const auto upto = state.milli.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(state.milli.begin(), upto, state.milli[i]) != upto) continue;
    std::size_t at = n++;
    for (; at > 0 && state.milli[order[at - 1]] > state.milli[i]; --at) order[at] = order[at - 1];
    order[at] = i;
  }
  return std::min<std::size_t>(n, kTightestTried);
}

JogakPolicy::Best JogakPolicy::best_share(const Shape& shape, const Node& node, const Ask& ask,
                                          const Known& known) {
  const FillState& before = known.state;
  FillState after = before;
  after.cpu = std::max<std::int64_t>(before.cpu - ask.cpu, 0);
  after.memory = std::max<std::int64_t>(before.memory - ask.memory, 0);
  DeviceOrder order{};
  const std::size_t n = tightest_devices(shape, node, before, order);
  JOGAK_CHECK(n > 0, "the filters let a share pass that fits no device");
  Best best{std::numeric_limits<std::int64_t>::max(), -1};
  for (std::size_t o = 0; o < n; ++o) {
    const std::size_t i = order[o];
    const auto device = static_cast<std::int32_t>(i);
    after.milli[i] = std::max(before.milli[i] - ask.gpu.milli, 0);
    const std::int64_t cost = cost_of(known, after, ask);
    after.milli[i] = before.milli[i];
    if (cost < best.cost || (cost == best.cost && device < best.device)) best = {cost, device};
  }
  return best;
}

JogakPolicy::Best JogakPolicy::best_of(const Cluster& cluster, const Shape& shape,
                                       const Node& node) {
  const Ask ask = ask_of(shape, node);
  Known& known = known_of(cluster, node);
  const FillState& before = known.state;
  Best best;
  if (ask.gpu.is_share() && ask.gpu.count == 1) {
    best = best_share(shape, node, ask, known);
  } else {
    FillState after = before;
    after.cpu = std::max<std::int64_t>(before.cpu - ask.cpu, 0);
    after.memory = std::max<std::int64_t>(before.memory - ask.memory, 0);
    if (ask.gpu.is_share()) {
      std::vector<GpuHold> holds;
      choose_tightest(node, shape.spec.gpu, holds);
      for (const GpuHold& hold : holds) {
        std::int32_t& milli = after.milli[static_cast<std::size_t>(hold.gpu)];
        milli = std::max(milli - ask.gpu.milli, 0);
      }
    } else {
      std::int32_t wanted = ask.gpu.count;  // which of the fully free ones makes no difference here
      for (std::size_t i = 0; i < after.gpu_count && wanted > 0; ++i) {
        if (after.milli[i] != kWholeMilli) continue;
        after.milli[i] = 0;
        --wanted;
      }
    }
    best.cost = cost_of(known, after, ask);
  }
  if (known.stranded < 0) known.stranded = fill_.stranded(before);
  best.cost -= known.stranded;
  best.cost += kScarcityWeight * scarcity_[before.model] * ask_milli(ask.gpu) * FillUp::kRolls /
               (1000 * 1000);
  return best;
}

std::int64_t JogakPolicy::score(const Cluster& cluster, const Shape& shape, const Node& node) {
  if (!can_follow(shape, node)) return fallback(shape, node);
  constexpr std::int64_t kStep = kStepMilli * FillUp::kRolls;
  return -floor_div(best_of(cluster, shape, node).cost + kStep / 2, kStep);
}

void JogakPolicy::choose(const Cluster& cluster, const Shape& shape, const Node& node,
                         std::vector<GpuHold>& out) {
  const GpuRequest& gpu = shape.spec.gpu;
  const bool is_share = gpu.kind == GpuAsk::ShareMilli || gpu.kind == GpuAsk::ShareMib;
  if (!is_share || gpu.count != 1 || node.gpus.empty() || !can_follow(shape, node)) {
    return Policy::choose(cluster, shape, node, out);
  }
  out.push_back({.gpu = best_of(cluster, shape, node).device, .amount = gpu.amount});
}

}  // namespace jogak::core
