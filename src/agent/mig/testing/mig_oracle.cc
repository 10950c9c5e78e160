// SPDX-License-Identifier: Apache-2.0
//
// See mig_oracle.h. Slow and obvious on purpose.
#include "agent/mig/testing/mig_oracle.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace jogak::agent::testing {

MigOracle::MigOracle(std::span<const nvml::MigProfileFacts> profiles)
    : profiles_(profiles.begin(), profiles.end()) {
  for (std::size_t p = 0; p < profiles_.size(); ++p) {
    for (const nvml::MigPlacement& at : profiles_[p].placements) {
      places_.push_back({static_cast<int>(p), at.start, at.size});
    }
  }
  JOGAK_CHECK(places_.size() <= 64);
  grow(0, 0);
  std::ranges::sort(layouts_);
  for (const Set layout : layouts_) {
    std::vector<int> counts(profiles_.size(), 0);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if ((layout >> i & 1) != 0) ++counts[static_cast<std::size_t>(places_[i].profile)];
    }
    by_counts_[counts].push_back(layout);
  }
}

void MigOracle::grow(std::size_t from, Set layout) {
  if (!is_legal(layout)) return;  // and with more in it even less
  layouts_.push_back(layout);
  for (std::size_t i = from; i < places_.size(); ++i) grow(i + 1, layout | Set{1} << i);
}

bool MigOracle::is_legal(Set layout) const {
  std::vector<int> slices(64, 0);
  std::map<int, int> counts;
  int decoders = 0, encoders = 0, jpeg = 0, ofa = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if ((layout >> i & 1) == 0) continue;
    const auto& place = places_[i];
    const auto& profile = profiles_[static_cast<std::size_t>(place.profile)];
    for (int s = place.start; s < place.start + place.size; ++s) {
      if (++slices[static_cast<std::size_t>(s)] > 1) return false;
    }
    // Kinds that differ only in their parts share the limit: they have one id.
    if (++counts[profile.id] > profile.count_max) return false;
    decoders += profile.decoders;
    encoders += profile.encoders;
    jpeg += profile.jpeg_engines;
    ofa += profile.ofa_engines;
  }
  const auto most = [&](int nvml::MigProfileFacts::* engines) {
    return std::ranges::max(profiles_, {}, engines).*engines;
  };
  return decoders <= most(&nvml::MigProfileFacts::decoders) &&
         encoders <= most(&nvml::MigProfileFacts::encoders) &&
         jpeg <= most(&nvml::MigProfileFacts::jpeg_engines) &&
         ofa <= most(&nvml::MigProfileFacts::ofa_engines);
}

int MigOracle::most_kept(const std::vector<Set>& group, Set now, Set in_use) {
  int most = -1;
  for (const Set layout : group) {
    if ((layout & in_use) == in_use) most = std::max(most, std::popcount(layout & now));
  }
  return most;
}

}  // namespace jogak::agent::testing
