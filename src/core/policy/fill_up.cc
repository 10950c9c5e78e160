// SPDX-License-Identifier: Apache-2.0
#include "core/policy/fill_up.h"

#include <algorithm>
#include <limits>
#include <map>

#include "base/check.h"
#include "base/rng.h"

namespace jogak::core {
namespace {

constexpr std::int64_t kUnitsMax = 32000;   // of CPU and memory on the largest node
constexpr std::int64_t kCoarse = 64;        // units: states closer than this share a value
constexpr std::int32_t kWhole = 1000;
constexpr std::size_t kMemoStart = std::size_t{1} << 14;
constexpr std::size_t kMemoMax = std::size_t{1} << 21;  // 80 MiB; beyond, it starts over
// The seed of the pods drawn. A constant: values must not depend on the run.
constexpr std::uint64_t kDeckSeed = 0x6a6f67616bULL;

std::int16_t units_up(std::int64_t amount, std::int64_t unit) {
  const std::int64_t units = (amount + unit - 1) / unit;
  return static_cast<std::int16_t>(std::min<std::int64_t>(units, INT16_MAX));
}

std::int16_t units_down(std::int64_t amount, std::int64_t unit) {
  const std::int64_t units = std::min(amount / unit, kUnitsMax);
  return static_cast<std::int16_t>(units / kCoarse * kCoarse);
}

std::uint64_t hash(const std::array<std::uint64_t, 4>& key) {
  std::uint64_t h = key[0] * 0x9e3779b97f4a7c15ULL;
  for (std::size_t i = 1; i < key.size(); ++i) {
    h ^= h >> 32;
    h = (h + key[i]) * 0xc2b2ae3d27d4eb4fULL;
  }
  return h ^ (h >> 29);
}

template <class Lanes>
bool any_set(const Lanes& lanes) {
  typedef std::uint64_t Pair __attribute__((vector_size(16)));
  const Pair pair = reinterpret_cast<Pair>(lanes);
  return (pair[0] | pair[1]) != 0;
}

template <class Lanes>
Lanes all(std::int64_t value) {
  return Lanes{} + static_cast<std::int16_t>(value);
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

void FillUp::build(std::span<const FillClass> mix, std::int64_t cpu_max,
                   std::int64_t memory_max) {
  const std::int64_t old_cpu_unit = cpu_unit_;
  const std::int64_t old_memory_unit = memory_unit_;
  const bool same_mix = std::ranges::equal(mix_, mix);
  mix_.assign(mix.begin(), mix.end());
  if (mix_.empty()) return;
  build_units(cpu_max, memory_max);
  const bool same_units = cpu_unit_ == old_cpu_unit && memory_unit_ == old_memory_unit;
  if (same_mix && same_units && !memo_.empty()) return;
  memo_.assign(kMemoStart, Entry{});
  memo_used_ = 0;
  build_groups();
  build_draws();
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

void FillUp::build_units(std::int64_t cpu_max, std::int64_t memory_max) {
  cpu_unit_ = std::max<std::int64_t>((cpu_max + kUnitsMax - 1) / kUnitsMax, 1);
  memory_unit_ = std::max<std::int64_t>((memory_max + kUnitsMax - 1) / kUnitsMax, 1);
  milli_min_ = kWhole;
  std::int64_t cpu_min = std::numeric_limits<std::int64_t>::max();
  for (const FillClass& c : mix_) {
    if (c.gpu_count == 0) continue;
    milli_min_ = std::min(milli_min_, c.gpu_milli);
    cpu_min = std::min(cpu_min, c.cpu);
  }
  const bool has_gpu_class = cpu_min != std::numeric_limits<std::int64_t>::max();
  cpu_min_ = has_gpu_class ? units_up(cpu_min, cpu_unit_) : std::int16_t{0};
}

// One deck for all fill-ups in which every class occurs as often as its weight says, shuffled: less
// noise than independent draws.
std::vector<std::size_t> FillUp::shuffled_deck() const {
  std::vector<std::int64_t> upto;
  std::int64_t total = 0;
  for (const FillClass& c : mix_) {
    total += c.weight;
    upto.push_back(total);
  }
  Rng rng(kDeckSeed, "fill-up");
  constexpr std::int64_t kCards = std::int64_t{kRolls} * kPods;
  const auto offset = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(total)));
  std::vector<std::size_t> deck;
  std::size_t at = 0;
  for (std::int64_t i = 0; i < kCards; ++i) {
    // Weights add up to a million at most (JogakPolicy scales them), so this cannot overflow.
    while (upto[at] <= (i * total + offset) / kCards && at + 1 < upto.size()) ++at;
    deck.push_back(at);
  }
  rng.shuffle(std::span(deck));
  return deck;
}

FillUp::Draw& FillUp::draw(std::size_t group, int block, int i) {
  const std::size_t row = group * kBlocks + static_cast<std::size_t>(block);
  return draws_[row * kPods + static_cast<std::size_t>(i)];
}

void FillUp::build_draws() {
  Draw never{};
  never.cpu = all<Lanes>(INT16_MAX);
  draws_.assign(groups_ * kBlocks * kPods, never);
  draw_end_.assign(groups_ * kBlocks, 0);
  std::vector<std::size_t> model_of(groups_);
  for (std::size_t model = kFillModelsMax; model-- > 0;) model_of[group_[model]] = model;
  const std::vector<std::size_t> deck = shuffled_deck();
  for (int roll = 0; roll < kRolls; ++roll) {
    for (std::size_t group = 0; group < groups_; ++group) {
      const int block = roll / kLanes;
      const int lane = roll % kLanes;
      int used = 0;
      for (int i = 0; i < kPods; ++i) {
        const FillClass& c = mix_[deck[static_cast<std::size_t>(roll * kPods + i)]];
        if (c.gpu_count > 0 && !allows_model(c.models, model_of[group])) continue;
        Draw& d = draw(group, block, used++);
        d.cpu[lane] = units_up(c.cpu, cpu_unit_);
        d.memory[lane] = units_up(c.memory, memory_unit_);
        // A pod without GPU must fit no device and need none.
        d.milli[lane] = static_cast<std::int16_t>(c.gpu_count > 0 ? c.gpu_milli : kWhole + 1);
        d.count[lane] = static_cast<std::int16_t>(c.gpu_count);
      }
      int& end = draw_end_[group * kBlocks + static_cast<std::size_t>(block)];
      end = std::max(end, used);
    }
  }
}

// ---- rolling --------------------------------------------------------------------------------

// No lane has both a device and the CPU for the smallest GPU pod.
template <std::size_t kSlots>
bool FillUp::is_done(const Lanes (&devices)[kSlots], const Lanes& cpu) const {
  Lanes room{};
  for (std::size_t j = 0; j < kSlots; ++j) room |= devices[j] >= all<Lanes>(milli_min_);
  room &= cpu >= all<Lanes>(cpu_min_);
  return !any_set(room);
}

template <std::size_t kSlots>
std::int64_t FillUp::roll_slots(const Start& start) const {
  const Lanes zero{};
  const Lanes huge = all<Lanes>(INT16_MAX);
  std::int64_t sum = 0;
  for (std::size_t block = 0; block < kBlocks; ++block) {
    const std::size_t row = start.group * kBlocks + block;
    const Draw* d = &draws_[row * kPods];
    Lanes devices[kSlots];
    for (std::size_t j = 0; j < kSlots; ++j) devices[j] = all<Lanes>(start.milli[j]);
    Lanes cpu = all<Lanes>(start.cpu);
    Lanes memory = all<Lanes>(start.memory);
    for (int i = 0; i < draw_end_[row]; ++i, ++d) {
      Lanes tightest = huge;
      Lanes fitting = zero;  // minus the number of devices with room
      for (std::size_t j = 0; j < kSlots; ++j) {
        const Lanes is_short = devices[j] < d->milli;
        fitting += ~is_short;
        const Lanes candidate = devices[j] | (is_short & huge);
        tightest = candidate < tightest ? candidate : tightest;
      }
      const Lanes ok = (d->cpu <= cpu) & (d->memory <= memory) & (fitting + d->count <= zero);
      cpu -= d->cpu & ok;
      memory -= d->memory & ok;
      Lanes need = d->count & ok;
      for (std::size_t j = 0; j < kSlots; ++j) {
        const Lanes hit = (devices[j] == tightest) & (need > zero);
        devices[j] -= d->milli & hit;
        need += hit;
      }
      if ((i & 3) == 3 && is_done(devices, cpu)) break;
    }
    Lanes left = zero;
    for (std::size_t j = 0; j < kSlots; ++j) left += devices[j];
    for (int lane = 0; lane < kLanes; ++lane) sum += left[lane];
  }
  return sum;
}

std::int64_t FillUp::roll(const Start& start) const {
  switch (start.slots) {
    case 1: return roll_slots<1>(start);
    case 2: return roll_slots<2>(start);
    case 3: return roll_slots<3>(start);
    case 4: return roll_slots<4>(start);
    case 5: return roll_slots<5>(start);
    case 6: return roll_slots<6>(start);
    case 7: return roll_slots<7>(start);
    case 8: return roll_slots<8>(start);
    default: return roll_slots<kFillGpusMax>(start);
  }
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

std::int64_t FillUp::remembered(const Start& start) {
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
    memo_[at] = {key, roll(start)};
    ++memo_used_;
  }
  return memo_[at].value;
}

std::int64_t FillUp::stranded(const FillState& state) {
  JOGAK_DCHECK(!empty() && state.gpu_count <= kFillGpusMax);
  Start start;
  start.group = group_[state.model];
  start.cpu = units_down(state.cpu, cpu_unit_);
  start.memory = units_down(state.memory, memory_unit_);
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
