// SPDX-License-Identifier: Apache-2.0
// The highest value of an array under single changes, and the leftmost place that has it. A 16-way
// tree over flat arrays: about 8.5 bytes an element; a change touches one block of 16 a level and
// stops as soon as a level's maximum stays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/check.h"

namespace jogak::core {

class MaxTree {
 public:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();

  // n elements, all kNone.
  void reset(std::size_t n) {
    levels_.clear();
    std::size_t size = n;
    do {
      size = (size + kWidth - 1) / kWidth * kWidth;
      levels_.emplace_back(size == 0 ? kWidth : size, kNone);
      size /= kWidth;
    } while (size > 1);
    root_ = kNone;
  }

  std::int64_t value(std::size_t i) const { return levels_[0][i]; }

  // Tells the processor that set(i) will follow.
  void prefetch(std::size_t i) const {
    const std::int64_t* block = levels_[0].data() + i / kWidth * kWidth;
    __builtin_prefetch(block, 1);
    __builtin_prefetch(block + kWidth / 2, 1);
  }

  void set(std::size_t i, std::int64_t value) {
    std::int64_t old = levels_[0][i];
    if (old == value) return;
    levels_[0][i] = value;
    std::size_t at = i;
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      const std::size_t block = at / kWidth;
      std::int64_t& parent = level + 1 < levels_.size() ? levels_[level + 1][block] : root_;
      std::int64_t next = parent;
      if (value > parent) {
        next = value;
      } else if (old == parent) {
        next = block_max(level, block);
      }
      if (next == parent) return;
      old = parent;
      value = next;
      parent = next;
      at = block;
    }
  }

  // kNone if every element is.
  std::int64_t top() const { return root_; }

  // Leftmost element equal to top(); requires top() != kNone.
  std::size_t first_top() const {
    JOGAK_DCHECK(root_ != kNone);
    std::size_t block = 0;
    for (std::size_t level = levels_.size(); level-- > 0;) {
      const std::int64_t* values = levels_[level].data() + block * kWidth;
      std::size_t i = 0;
      while (values[i] != root_) ++i;
      block = block * kWidth + i;
    }
    return block;
  }

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto& level : levels_) sum += level.capacity() * sizeof(std::int64_t);
    return sum;
  }

 private:
  static constexpr std::size_t kWidth = 16;

  std::int64_t block_max(std::size_t level, std::size_t block) const {
    const std::int64_t* values = levels_[level].data() + block * kWidth;
    std::int64_t best = values[0];
    for (std::size_t i = 1; i < kWidth; ++i) best = values[i] > best ? values[i] : best;
    return best;
  }

  std::vector<std::vector<std::int64_t>> levels_;  // [0]: the elements
  std::int64_t root_ = kNone;
};

}  // namespace jogak::core
