// SPDX-License-Identifier: Apache-2.0
//
// Legality by arithmetic on the facts; see geometry.h.
#include "agent/mig/geometry.h"

#include <algorithm>
#include <functional>
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

std::string parts_text(std::span<const int> part_slices) {
  std::vector<std::string> texts;
  for (const int slices : part_slices) texts.push_back(fmt::format("{}c", slices));
  return fmt::format("{}", fmt::join(texts, "+"));
}

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
    geometry.base_.push_back(static_cast<int>(geometry.engines_.size()));
    geometry.engines_.push_back(takes);
  }
  geometry.parts_.resize(profiles.size());
  geometry.order_by_size();
  return geometry;
}

void MigGeometry::order_by_size() {
  largest_first_.resize(profiles_.size());
  std::iota(largest_first_.begin(), largest_first_.end(), 0);
  const auto size_of = [&](int profile) {
    const auto& places = profiles_[index(profile)].placements;
    return places.empty() ? 0 : places.front().size;
  };
  std::ranges::stable_sort(largest_first_, [&](int a, int b) {
    const int slices_a = profiles_[index(a)].slices;
    const int slices_b = profiles_[index(b)].slices;
    return size_of(a) != size_of(b) ? size_of(a) > size_of(b) : slices_a > slices_b;
  });
}

int MigGeometry::find_parts(int profile, std::vector<int> part_slices) const {
  std::ranges::sort(part_slices, std::greater());
  if (part_slices == std::vector<int>{profiles_[index(profile)].slices}) part_slices.clear();
  for (std::size_t p = 0; p < profiles_.size(); ++p) {
    if (base_[p] == base_[index(profile)] && parts_[p] == part_slices) return static_cast<int>(p);
  }
  return -1;
}

Result<int> MigGeometry::add_parts(int profile, std::vector<int> part_slices) {
  std::ranges::sort(part_slices, std::greater());
  const nvml::MigProfileFacts base = profiles_[index(base_[index(profile)])];
  const int sum = std::accumulate(part_slices.begin(), part_slices.end(), 0);
  if (sum > base.slices || (!part_slices.empty() && part_slices.back() < 1)) {
    return invalid("{} has {} compute slices, and the parts {} take {}", base.name, base.slices,
                   parts_text(part_slices), sum);
  }
  if (const int known = find_parts(profile, part_slices); known >= 0) return known;
  profiles_.push_back(base);
  profiles_.back().name = fmt::format("{}.{}", parts_text(part_slices), base.name);
  parts_.push_back(std::move(part_slices));
  base_.push_back(base_[index(profile)]);
  engines_.push_back(engines_[index(profile)]);
  order_by_size();
  return static_cast<int>(profiles_.size()) - 1;
}

MigCounts MigGeometry::by_base(const MigCounts& counts) const {
  MigCounts sums(profiles_.size(), 0);
  for (std::size_t p = 0; p < counts.size(); ++p) sums[index(base_[p])] += counts[p];
  return sums;
}

int MigGeometry::find(int profile_id) const {
  const auto at = std::ranges::find(profiles_, profile_id, &nvml::MigProfileFacts::id);
  return at == profiles_.end() ? -1 : static_cast<int>(at - profiles_.begin());
}

std::optional<std::string> MigGeometry::count_fault(const MigCounts& counts) const {
  JOGAK_CHECK(counts.size() == profiles_.size());
  Engines taken{};
  const MigCounts sums = by_base(counts);
  for (std::size_t p = 0; p < counts.size(); ++p) {
    if (sums[p] > profiles_[p].count_max) {
      return fmt::format("{} x {} is asked for, and the GPU takes at most {}", sums[p],
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
  const MigCounts sums = by_base(counts);
  for (std::size_t p = 0; p < counts.size(); ++p) {
    // A kind with parts lies where the plain one could: it is no further choice.
    bool fits = index(base_[p]) == p && sums[p] < profiles_[p].count_max;
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
  return parts.empty() ? "an empty layout" : fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace jogak::agent
