// SPDX-License-Identifier: Apache-2.0
// See fill_roll.h. Everything is inlined into the two entries, so that each is compiled whole for
// its processor and no vector crosses a call.
#include "core/policy/fill_roll.h"

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 loses sight of the initialisation of vectors in an aggregate once all is inlined.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define JOGAK_INLINE [[gnu::always_inline]] inline

namespace jogak::core {
namespace {

template <std::size_t kSlots>
struct Rolls {
  RollLanes devices[kSlots];
  RollLanes cpu;
  RollLanes memory;
};

template <std::size_t kSlots>
JOGAK_INLINE void start_rolls(const RollStart& start, Rolls<kSlots>& r) {
  const RollLanes zero{};
  for (std::size_t j = 0; j < kSlots; ++j) r.devices[j] = zero + start.milli[j];
  r.cpu = zero + start.cpu;
  r.memory = zero + start.memory;
}

// Offers one pod to every fill-up: where it fits, the tightest devices take it.
template <std::size_t kSlots>
JOGAK_INLINE void offer(const RollDraw& d, Rolls<kSlots>& r) {
  const RollLanes zero{};
  const RollLanes huge = zero + std::int16_t{INT16_MAX};
  RollLanes tightest = huge;
  RollLanes fitting = zero;  // minus the number of devices with room
  for (std::size_t j = 0; j < kSlots; ++j) {
    const RollLanes is_short = r.devices[j] < d.milli;
    fitting += ~is_short;
    const RollLanes candidate = r.devices[j] | (is_short & huge);
    tightest = candidate < tightest ? candidate : tightest;
  }
  const RollLanes ok = (d.cpu <= r.cpu) & (d.memory <= r.memory) & (fitting + d.count <= zero);
  r.cpu -= d.cpu & ok;
  r.memory -= d.memory & ok;
  RollLanes need = d.count & ok;
  for (std::size_t j = 0; j < kSlots; ++j) {
    const RollLanes hit = (r.devices[j] == tightest) & (need > zero);
    r.devices[j] -= d.milli & hit;
    need += hit;
  }
}

// No lane has both a device and the CPU for the smallest GPU pod.
template <std::size_t kSlots>
JOGAK_INLINE bool are_done(const Rolls<kSlots>& r, const RollDeck& deck) {
  typedef std::uint64_t Quad __attribute__((vector_size(2 * kRollLanes)));
  const RollLanes zero{};
  RollLanes room = zero;
  for (std::size_t j = 0; j < kSlots; ++j) room |= r.devices[j] >= zero + deck.milli_min;
  room &= r.cpu >= zero + deck.cpu_min;
  const Quad any = reinterpret_cast<Quad>(room);
  return (any[0] | any[1] | any[2] | any[3]) == 0;
}

template <std::size_t kSlots>
JOGAK_INLINE std::int64_t roll_slots(const RollStart& start, const RollDeck& deck) {
  std::int64_t sum = 0;
  for (std::size_t block = 0; block < deck.blocks; ++block) {
    const RollDraw* d = deck.draws + block * deck.pods;
    Rolls<kSlots> r{};
    start_rolls(start, r);
    for (int i = 0; i < deck.ends[block]; ++i, ++d) {
      offer(*d, r);
      // Looking whether all are done costs as much as an offer.
      if ((i & 3) == 3 && are_done(r, deck)) break;
    }
    RollLanes left{};
    for (std::size_t j = 0; j < kSlots; ++j) left += r.devices[j];
    for (std::size_t lane = 0; lane < kRollLanes; ++lane) sum += left[lane];
  }
  return sum;
}

JOGAK_INLINE std::int64_t roll_any(const RollStart& start, const RollDeck& deck) {
  switch (start.slots) {
    case 0:
      return 0;
    case 1:
      return roll_slots<1>(start, deck);
    case 2:
      return roll_slots<2>(start, deck);
    case 3:
      return roll_slots<3>(start, deck);
    case 4:
      return roll_slots<4>(start, deck);
    case 5:
      return roll_slots<5>(start, deck);
    case 6:
      return roll_slots<6>(start, deck);
    case 7:
      return roll_slots<7>(start, deck);
    case 8:
      return roll_slots<8>(start, deck);
    default:
      return roll_slots<kFillGpusMax>(start, deck);
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] std::int64_t roll_out_avx2(const RollStart& start, const RollDeck& deck) {
  return roll_any(start, deck);
}
#endif

}  // namespace

std::int64_t roll_out_portable(const RollStart& start, const RollDeck& deck) {
  return roll_any(start, deck);
}

std::int64_t roll_out(const RollStart& start, const RollDeck& deck) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  if (has_avx2) return roll_out_avx2(start, deck);
#endif
  return roll_out_portable(start, deck);
}

}  // namespace jogak::core
