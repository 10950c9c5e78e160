// SPDX-License-Identifier: Apache-2.0
//
// Half of the kinds are on in a run; one run in eight has none, and shows what is wrong without
// them.
#include "test/livesim/faults.h"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace jogak::livesim {

namespace {

using Rate = int FaultRates::*;
struct Kind {
  std::string_view name;
  Rate rate;
  int low, high;  // thousandths, when it is on
};

constexpr std::array<Kind, 19> kKinds = {{
    {"delay", &FaultRates::delay, 20, 600},
    {"refuse", &FaultRates::refuse, 5, 150},
    {"lose", &FaultRates::lose, 5, 100},
    {"lose-answer", &FaultRates::lose_answer, 5, 150},
    {"cut-answer", &FaultRates::cut_answer, 5, 80},
    {"throttle", &FaultRates::throttle, 5, 250},
    {"unavailable", &FaultRates::unavailable, 5, 150},
    {"server-error", &FaultRates::server_error, 5, 150},
    {"gateway", &FaultRates::gateway, 5, 100},
    {"slow-list", &FaultRates::slow_list, 50, 500},
    {"expire-continue", &FaultRates::expire_continue, 50, 500},
    {"watch-cut", &FaultRates::watch_cut, 50, 500},
    {"watch-close", &FaultRates::watch_close, 20, 300},
    {"watch-silent", &FaultRates::watch_silent, 20, 250},
    {"watch-gone", &FaultRates::watch_gone, 20, 300},
    {"watch-gone-later", &FaultRates::watch_gone_later, 20, 300},
    {"watch-batch", &FaultRates::watch_batch, 50, 500},
    {"watch-replay", &FaultRates::watch_replay, 50, 500},
    {"watch-quiet", &FaultRates::watch_quiet, 100, 1000},
}};

}  // namespace

std::string FaultRates::text() const {
  std::string text;
  for (const Kind& kind : kKinds) {
    if (this->*kind.rate == 0) continue;
    if (!text.empty()) text += ' ';
    text += fmt::format("{}={}", kind.name, this->*kind.rate);
    if (kind.rate == &FaultRates::delay) text += fmt::format("/{}ms", delay_max / kMsInUs);
  }
  if (!has_watch_list) text += " no-watch-list";
  return text.empty() ? "none" : text;
}

FaultRates draw_faults(Rng& rng) {
  FaultRates rates;
  if (rng.chance(1, 8)) return rates;
  for (const Kind& kind : kKinds) {
    const bool is_on = rng.chance(1, 2);
    const auto rate = static_cast<int>(rng.between(kind.low, kind.high));
    if (is_on) rates.*kind.rate = rate;
  }
  constexpr std::array<TimeUs, 4> kDelays = {50 * kMsInUs, 500 * kMsInUs, 3 * kSecondInUs,
                                             12 * kSecondInUs};
  rates.delay_max = kDelays[rng.below(kDelays.size())];
  rates.has_watch_list = rng.chance(2, 3);
  return rates;
}

}  // namespace jogak::livesim
