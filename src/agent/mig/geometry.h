// SPDX-License-Identifier: Apache-2.0
//
// How one GPU can be cut, from what its driver says of its profiles: nothing here knows a model or
// a name. Slices are memory slices. A layout is legal when its instances lie at allowed places
// without overlap, no profile is there more often than the driver allows, and together they take
// no more video engines than the GPU has.
//
// A GPU instance that is to be cut into compute instances is a kind of its own beside the plain
// one: the same profile, the same places, the same limits together with it, and another list of
// parts. The planner need not know more.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

using SliceMask = std::uint32_t;  // bit i: memory slice i

constexpr SliceMask slice_mask(nvml::MigPlacement at) {
  return static_cast<SliceMask>(((std::uint64_t{1} << at.size) - 1) << at.start);
}

// An instance that is or should be: a profile (index into MigGeometry::profiles()) at a place.
struct MigPlace {
  nvml::MigPlacement at;
  int profile = 0;
  friend auto operator<=>(const MigPlace&, const MigPlace&) = default;
};

using MigLayout = std::vector<MigPlace>;  // sorted by place, then profile
using MigCounts = std::vector<int>;       // by profile index; as long as profiles()

// Decoders, encoders, JPEG and optical flow engines. Copy engines are shared out by the driver and
// bind nothing.
inline constexpr std::size_t kEngineKinds = 4;
using Engines = std::array<int, kEngineKinds>;

// "2c+1c"
std::string parts_text(std::span<const int> part_slices);

class MigGeometry {
 public:
  // Errors: Invalid, when the facts cannot be: no profiles, a place beyond 32 slices.
  static Result<MigGeometry> from_facts(std::span<const nvml::MigProfileFacts> profiles);

  // The kinds of instances: the driver's profiles in its order, then those with parts.
  const std::vector<nvml::MigProfileFacts>& profiles() const { return profiles_; }
  // The kind for `profile` in parts of so many compute slices; made if it is not there yet. Then
  // counts made before are too short. Errors: Invalid, when the parts are more than it has.
  Result<int> add_parts(int profile, std::vector<int> part_slices);
  // The same without making it; -1: not there.
  int find_parts(int profile, std::vector<int> part_slices) const;
  // Compute slices of each part, largest first; empty: one compute instance that covers it all.
  const std::vector<int>& parts_of(int profile) const { return parts_[index(profile)]; }
  // The driver's profile that it is of.
  int base_of(int profile) const { return base_[index(profile)]; }
  int slices() const { return slices_; }
  const Engines& engines_of(int profile) const { return engines_[index(profile)]; }
  const Engines& engines() const { return engines_total_; }
  // Indices of profiles, those with the largest size first: the order in which to create.
  const std::vector<int>& largest_first() const { return largest_first_; }
  // Index of the plain kind by the driver's id, or -1.
  int find(int profile_id) const;
  const std::string& name(int profile) const { return profiles_[index(profile)].name; }

  // Why so many instances of each profile can be on no layout, places aside; nullopt: counts and
  // engines allow it.
  std::optional<std::string> count_fault(const MigCounts& counts) const;
  // Why this is no legal layout; nullopt: it is one.
  std::optional<std::string> layout_fault(const MigLayout& layout) const;
  // CHECKs: every profile is of this geometry.
  MigCounts counts_of(const MigLayout& layout) const;

  // How much may still come: the places that stay free, each weighted by its compute slices, of the
  // profiles that counts and engines still allow.
  std::vector<bool> still_allowed(const MigCounts& counts) const;
  std::int64_t freedom(SliceMask used, const std::vector<bool>& allowed) const;

  // "3g.20gb at slices 0-3"
  std::string place_text(const MigPlace& place) const;
  // "2 x 3g.20gb, 1 x 1g.5gb"; "no instances"
  std::string counts_text(const MigCounts& counts) const;

 private:
  static std::size_t index(int profile) { return static_cast<std::size_t>(profile); }
  void order_by_size();
  // How many there are of each of the driver's profiles, whatever their parts.
  MigCounts by_base(const MigCounts& counts) const;

  std::vector<nvml::MigProfileFacts> profiles_;
  std::vector<std::vector<int>> parts_;  // as profiles_
  std::vector<int> base_;                // as profiles_
  std::vector<Engines> engines_;
  Engines engines_total_{};
  std::vector<int> largest_first_;
  int slices_ = 0;
};

}  // namespace jogak::agent
