// SPDX-License-Identifier: Apache-2.0
// The vector loop against one fill-up at a time in plain words, on random decks and states.
#include "core/policy/fill_roll.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/rng.h"

namespace jogak::core {
namespace {

constexpr std::size_t kBlocks = 2;
constexpr std::size_t kPods = 24;

struct Deck {
  std::vector<RollDraw> draws;
  std::vector<int> ends;
  RollDeck view;
};

std::int16_t small(Rng& rng, std::uint64_t below) {
  return static_cast<std::int16_t>(rng.below(below));
}

Deck random_deck(Rng& rng) {
  Deck deck;
  deck.draws.resize(kBlocks * kPods);
  for (RollDraw& d : deck.draws) {
    for (std::size_t lane = 0; lane < kRollLanes; ++lane) {
      const std::uint64_t kind = rng.below(4);
      d.cpu[lane] = small(rng, 900);
      d.memory[lane] = small(rng, 900);
      const auto share = static_cast<std::int16_t>(50 + 50 * small(rng, 19));
      d.milli[lane] = static_cast<std::int16_t>(kind == 0 ? 1001 : kind == 1 ? 1000 : share);
      d.count[lane] = static_cast<std::int16_t>(kind == 0 ? 0 : kind == 1 ? 1 + small(rng, 8) : 1);
    }
  }
  for (std::size_t b = 0; b < kBlocks; ++b) {
    deck.ends.push_back(static_cast<int>(kPods - rng.below(6)));
  }
  deck.view = {deck.draws.data(), deck.ends.data(), kBlocks, kPods, 50, 0};
  return deck;
}

RollStart random_start(Rng& rng) {
  RollStart start;
  start.slots = rng.below(kFillGpusMax + 1);
  start.cpu = static_cast<std::int16_t>(small(rng, 6000));
  start.memory = static_cast<std::int16_t>(small(rng, 6000));
  for (std::size_t i = 0; i < start.slots; ++i) {
    start.milli[i] = static_cast<std::int16_t>(rng.below(3) == 0 ? 1000 : 50 * (1 + rng.below(20)));
  }
  std::sort(start.milli.begin(), start.milli.begin() + static_cast<std::ptrdiff_t>(start.slots));
  return start;
}

std::int64_t plain_roll(const RollStart& start, const RollDeck& deck, std::size_t block,
                        std::size_t lane) {
  std::vector<int> devices(start.milli.begin(),
                           start.milli.begin() + static_cast<std::ptrdiff_t>(start.slots));
  int cpu = start.cpu;
  int memory = start.memory;
  for (int i = 0; i < deck.ends[block]; ++i) {
    const RollDraw& d = deck.draws[block * deck.pods + static_cast<std::size_t>(i)];
    const int milli = d.milli[lane];
    if (d.cpu[lane] > cpu || d.memory[lane] > memory) continue;
    const auto fits = [milli](int free) { return free >= milli; };
    if (std::count_if(devices.begin(), devices.end(), fits) < d.count[lane]) continue;
    for (int need = d.count[lane]; need > 0; --need) {
      int* tightest = nullptr;
      for (int& free : devices) {
        if (fits(free) && (tightest == nullptr || free < *tightest)) tightest = &free;
      }
      *tightest -= milli;
    }
    cpu -= d.cpu[lane];
    memory -= d.memory[lane];
  }
  std::int64_t left = 0;
  for (const int free : devices) left += free;
  return left;
}

TEST(FillRoll, EveryLaneIsOnePlainFillUp) {
  const char* given = std::getenv("JOGAK_SEED");
  const std::uint64_t first = given != nullptr ? std::stoull(given) : 1;
  const std::uint64_t last = given != nullptr ? first : 2000;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    Rng rng(seed, "fill-roll");
    const Deck deck = random_deck(rng);
    const RollStart start = random_start(rng);
    std::int64_t expected = 0;
    for (std::size_t block = 0; block < kBlocks; ++block) {
      for (std::size_t lane = 0; lane < kRollLanes; ++lane) {
        expected += plain_roll(start, deck.view, block, lane);
      }
    }
    ASSERT_EQ(roll_out_portable(start, deck.view), expected)
        << "repeat: JOGAK_SEED=" << seed << " jogak_core_tests --gtest_filter=FillRoll.*";
    ASSERT_EQ(roll_out(start, deck.view), expected)
        << "with this processor's registers, seed " << seed;
  }
}

}  // namespace
}  // namespace jogak::core
