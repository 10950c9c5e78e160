// SPDX-License-Identifier: Apache-2.0
//
// All legal layouts of a GPU by brute force, from the facts alone and with no code of the planner:
// every set of places is grown one place at a time, and what overlaps, is there too often or takes
// too many engines is thrown out. A layout is a set of bits, one per (profile, place).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "nvml/gpu_source.h"

namespace jogak::agent::testing {

class MigOracle {
 public:
  using Set = std::uint64_t;

  struct Place {
    int profile = 0;
    int start = 0, size = 0;
  };

  explicit MigOracle(std::span<const nvml::MigProfileFacts> profiles);

  const std::vector<Place>& places() const { return places_; }
  const std::vector<Set>& layouts() const { return layouts_; }  // the empty one first
  // The layouts with exactly these counts, by counts.
  const std::map<std::vector<int>, std::vector<Set>>& by_counts() const { return by_counts_; }
  bool is_legal(Set layout) const;

  // Most instances of `now` that a layout of `group` with all of `in_use` keeps; -1: none has them.
  static int most_kept(const std::vector<Set>& group, Set now, Set in_use);

 private:
  void grow(std::size_t from, Set layout);

  std::vector<nvml::MigProfileFacts> profiles_;
  std::vector<Place> places_;
  std::vector<Set> layouts_;
  std::map<std::vector<int>, std::vector<Set>> by_counts_;
};

}  // namespace jogak::agent::testing
