// SPDX-License-Identifier: Apache-2.0
//
// Legality by arithmetic on the facts; see geometry.h.
#include "agent/mig/geometry.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "base/check.h"

namespace jogak::agent {

namespace {

constexpr int kSlicesMax = 32;
constexpr std::array<std::string_view, kEngineKinds> kEngineNames = {
    "video decoders", "video encoders", "JPEG engines", "optical flow engines"};

Engines engines_from(const nvml::MigProfileFacts& profile) {
  return {profile.decoders, profile.encoders, profile.jpeg_engines, profile.ofa_engines};
}

}  // namespace

Result<MigGeometry> MigGeometry::from_facts(std::span<const nvml::MigProfileFacts> profiles) {
  if (profiles.empty()) return invalid("the driver lists no MIG profiles");
  MigGeometry geometry;
  geometry.profiles_.assign(profiles.begin(), profiles.end());
  for (nvml::MigProfileFacts& profile : geometry.profiles_) {
    for (const nvml::MigPlacement& at : profile.placements) {
      if (at.start < 0 || at.size < 1 || at.start + at.size > kSlicesMax) {
        return invalid("profile {}: the driver lists an impossible place, start {} size {}",
                       profile.name, at.start, at.size);
      }
      geometry.slices_ = std::max(geometry.slices_, at.start + at.size);
    }
    std::ranges::sort(profile.placements);
    // Every profile takes its share of what the GPU has, and the largest takes it all.
    const Engines takes = engines_from(profile);
    for (std::size_t kind = 0; kind < kEngineKinds; ++kind) {
      geometry.engines_total_[kind] = std::max(geometry.engines_total_[kind], takes[kind]);
    }
    geometry.engines_.push_back(takes);
  }
  geometry.largest_first_.resize(profiles.size());
  std::iota(geometry.largest_first_.begin(), geometry.largest_first_.end(), 0);
  const auto size_of = [&](int profile) {
    const auto& places = geometry.profiles_[index(profile)].placements;
    return places.empty() ? 0 : places.front().size;
  };
  std::ranges::stable_sort(geometry.largest_first_, [&](int a, int b) {
    const int slices_a = geometry.profiles_[index(a)].slices;
    const int slices_b = geometry.profiles_[index(b)].slices;
    return size_of(a) != size_of(b) ? size_of(a) > size_of(b) : slices_a > slices_b;
  });
  return geometry;
}

int MigGeometry::find(int profile_id) const {
  const auto at = std::ranges::find(profiles_, profile_id, &nvml::MigProfileFacts::id);
  return at == profiles_.end() ? -1 : static_cast<int>(at - profiles_.begin());
}

std::optional<std::string> MigGeometry::count_fault(const MigCounts& counts) const {
  JOGAK_CHECK(counts.size() == profiles_.size());
  Engines taken{};
  for (std::size_t p = 0; p < counts.size(); ++p) {
    if (counts[p] > profiles_[p].count_max) {
      return fmt::format("{} x {} is asked for, and the GPU takes at most {}", counts[p],
                         profiles_[p].name, profiles_[p].count_max);
    }
    for (std::size_t kind = 0; kind < kEngineKinds; ++kind) {
      taken[kind] += counts[p] * engines_[p][kind];
    }
  }
  for (std::size_t kind = 0; kind < kEngineKinds; ++kind) {
    if (taken[kind] > engines_total_[kind]) {
      return fmt::format("{} take {} {} together, and the GPU has {}", counts_text(counts),
                         taken[kind], kEngineNames[kind], engines_total_[kind]);
    }
  }
  return std::nullopt;
}

std::optional<std::string> MigGeometry::layout_fault(const MigLayout& layout) const {
  SliceMask used = 0;
  for (const MigPlace& place : layout) {
    if (place.profile < 0 || index(place.profile) >= profiles_.size()) {
      return fmt::format("profile {} is none of this GPU", place.profile);
    }
    const auto& allowed = profiles_[index(place.profile)].placements;
    if (std::ranges::find(allowed, place.at) == allowed.end()) {
      return fmt::format("{} may not lie there", place_text(place));
    }
    const SliceMask mask = slice_mask(place.at);
    if ((used & mask) != 0) return fmt::format("{} overlaps another", place_text(place));
    used |= mask;
  }
  return count_fault(counts_of(layout));
}

MigCounts MigGeometry::counts_of(const MigLayout& layout) const {
  MigCounts counts(profiles_.size(), 0);
  for (const MigPlace& place : layout) ++counts[index(place.profile)];
  return counts;
}

std::vector<bool> MigGeometry::still_allowed(const MigCounts& counts) const {
  Engines taken{};
  for (std::size_t p = 0; p < counts.size(); ++p) {
    for (std::size_t kind = 0; kind < kEngineKinds; ++kind) {
      taken[kind] += counts[p] * engines_[p][kind];
    }
  }
  std::vector<bool> allowed(profiles_.size(), false);
  for (std::size_t p = 0; p < counts.size(); ++p) {
    bool fits = counts[p] < profiles_[p].count_max;
    for (std::size_t kind = 0; kind < kEngineKinds; ++kind) {
      fits = fits && taken[kind] + engines_[p][kind] <= engines_total_[kind];
    }
    allowed[p] = fits;
  }
  return allowed;
}

std::int64_t MigGeometry::freedom(SliceMask used, const std::vector<bool>& allowed) const {
  std::int64_t sum = 0;
  for (std::size_t p = 0; p < profiles_.size(); ++p) {
    if (!allowed[p]) continue;
    for (const nvml::MigPlacement& at : profiles_[p].placements) {
      if ((slice_mask(at) & used) == 0) sum += profiles_[p].slices;
    }
  }
  return sum;
}

std::string MigGeometry::place_text(const MigPlace& place) const {
  if (place.at.size == 1) return fmt::format("{} at slice {}", name(place.profile), place.at.start);
  return fmt::format("{} at slices {}-{}", name(place.profile), place.at.start,
                     place.at.start + place.at.size - 1);
}

std::string MigGeometry::counts_text(const MigCounts& counts) const {
  std::vector<std::string> parts;
  for (const int p : largest_first_) {
    const int count = counts[index(p)];
    if (count > 0) parts.push_back(fmt::format("{} x {}", count, name(p)));
  }
  return parts.empty() ? "no instances" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace jogak::agent
