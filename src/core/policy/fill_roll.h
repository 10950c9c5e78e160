// SPDX-License-Identifier: Apache-2.0
// The inner loop of FillUp: sixteen fill-ups of one node state side by side, one per lane of plain
// vector arithmetic (g++ and clang, any machine). Where the processor has wide enough registers a
// copy compiled for them is used; the numbers are the same.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace jogak::core {

inline constexpr std::size_t kFillGpusMax = 16;  // devices of a node that a fill-up can follow
inline constexpr std::size_t kRollLanes = 16;

// The alignment is said, since g++ takes less where it compiles for narrow registers.
typedef std::int16_t RollLanes
    __attribute__((vector_size(2 * kRollLanes), aligned(2 * kRollLanes)));

// The next pod of each of the fill-ups, in the units of FillUp. A pod without GPU asks for more
// thousandths than a device has, on no device.
struct alignas(2 * kRollLanes) RollDraw {
  RollLanes cpu, memory, milli, count;
};

struct RollStart {
  std::size_t group = 0;  // of models
  std::size_t slots = 0;  // devices with room for some pod of the mix, by free amount
  std::int16_t cpu = 0;
  std::int16_t memory = 0;
  std::array<std::int16_t, kFillGpusMax> milli{};  // 0 beyond `slots`
};

// A view of the draws of one group: `blocks` rows of `pods` draws, of which ends[row] are in use.
struct RollDeck {
  const RollDraw* draws = nullptr;
  const int* ends = nullptr;
  std::size_t blocks = 0;
  std::size_t pods = 0;
  std::int16_t milli_min = 1;  // smallest ask of a GPU pod
  std::int16_t cpu_min = 0;
};

// Sum over all fill-ups of the thousandths left on the slots.
std::int64_t roll_out(const RollStart& start, const RollDeck& deck);
// The same without regard to what the processor has, for tests.
std::int64_t roll_out_portable(const RollStart& start, const RollDeck& deck);

}  // namespace jogak::core
