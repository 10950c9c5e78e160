// SPDX-License-Identifier: Apache-2.0
//
// Time for the edges: how long something took, when a deadline is. Never used in core, scale or the
// simulator's decisions, which are given the time.
#pragma once

#include <chrono>
#include <cstdint>

namespace jogak {

// Nanoseconds since some fixed moment; never goes back.
inline std::int64_t mono_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace jogak
