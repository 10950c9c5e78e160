// SPDX-License-Identifier: Apache-2.0
//
// How far apart two words are (Levenshtein with swaps of neighbours), and the nearest of several,
// for "did you mean". Meant for short words: time and memory are the product of the lengths.
#pragma once

#include <optional>
#include <ranges>
#include <string>
#include <string_view>

namespace jogak {

// Number of single-character insertions, deletions, changes and neighbour swaps from a to b.
std::size_t edit_distance(std::string_view a, std::string_view b);

// Whether `candidate` at this distance is near enough to `word` to be worth suggesting.
inline bool is_plausible_typo(std::string_view word, std::size_t distance) {
  return distance <= (word.size() <= 3 ? 1U : word.size() / 3 + 1);
}

// The candidate nearest to `word` (the first of equals), or nothing when none is near. Candidates
// are any range of things convertible to string_view.
template <std::ranges::input_range Range>
std::optional<std::string> nearest(std::string_view word, const Range& candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const auto& item : candidates) {
    const std::string_view candidate = item;
    const std::size_t distance = edit_distance(word, candidate);
    if (!is_plausible_typo(word, distance)) continue;
    if (!best || distance < best_distance) {
      best = std::string(candidate);
      best_distance = distance;
    }
  }
  return best;
}

// "; did you mean X?" or nothing: ready to append to a message.
template <std::ranges::input_range Range>
std::string did_you_mean(std::string_view word, const Range& candidates) {
  const auto best = nearest(word, candidates);
  return best ? "; did you mean " + *best + "?" : std::string();
}

}  // namespace jogak
