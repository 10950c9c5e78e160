// SPDX-License-Identifier: Apache-2.0
// Normalisation of raw scores over the feasible nodes, as kube-scheduler's helper does it:
// integers, the best raw score becomes 100.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace jogak::core {

inline constexpr std::int64_t kMaxNodeScore = 100;

enum class Direction : std::uint8_t { MoreIsBetter, LessIsBetter };

// Raw scores must not be negative. If all are 0, all stay 0, or become 100 where less is better.
inline void normalize(std::span<std::int64_t> scores, Direction direction) {
  std::int64_t max = 0;
  for (const std::int64_t score : scores) max = std::max(max, score);
  const bool reverse = direction == Direction::LessIsBetter;
  for (std::int64_t& score : scores) {
    const std::int64_t share = max == 0 ? 0 : kMaxNodeScore * score / max;
    score = reverse ? kMaxNodeScore - share : share;
  }
}

}  // namespace jogak::core
