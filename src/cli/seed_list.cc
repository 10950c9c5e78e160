// SPDX-License-Identifier: Apache-2.0
//
// See seed_list.h.
#include "cli/seed_list.h"

#include <algorithm>

#include "base/parse_number.h"

namespace jogak::cli {

namespace {

constexpr std::int64_t kSeedMax = std::int64_t{1} << 32;
constexpr std::size_t kSeedsMax = 10'000;

}  // namespace

Result<std::vector<std::string>> parse_words(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string word(text.substr(0, comma));
    if (word.empty()) return invalid("empty name; expected names with commas between them");
    if (std::ranges::find(words, word) != words.end()) return invalid("{} given twice", word);
    words.push_back(std::move(word));
    if (comma == text.size()) return words;
    text.remove_prefix(comma + 1);
  }
}

Result<std::vector<std::int64_t>> parse_seeds(std::string_view text) {
  JOGAK_TRY(const auto words, parse_words(text));
  std::vector<std::int64_t> seeds;
  for (const std::string& word : words) {
    const std::size_t dash = word.find('-', 1);
    auto first = parse_int(std::string_view(word).substr(0, dash), 0, kSeedMax);
    if (!first) return in_context("expected seeds like 42 or 42-51", std::move(first).error());
    std::int64_t last = *first;
    if (dash != std::string::npos) {
      auto end = parse_int(std::string_view(word).substr(dash + 1), *first, kSeedMax);
      if (!end) return in_context("expected seeds like 42 or 42-51", std::move(end).error());
      last = *end;
    }
    if (static_cast<std::size_t>(last - *first) >= kSeedsMax - seeds.size()) {
      return invalid("more than {} seeds", kSeedsMax);
    }
    for (std::int64_t seed = *first; seed <= last; ++seed) {
      if (std::ranges::find(seeds, seed) != seeds.end())
        return invalid("seed {} given twice", seed);
      seeds.push_back(seed);
    }
  }
  return seeds;
}

}  // namespace jogak::cli
