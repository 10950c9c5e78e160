// SPDX-License-Identifier: Apache-2.0
// MIG geometry as data: profiles of a GPU family, their legal starts and sizes in memory slices,
// and the limits that disjointness alone does not give. Source of the tables: NVIDIA's MIG user
// guide and the placements printed by `nvidia-smi mig -lgipp`. The agent asks NVML; these tables
// serve the scheduler's search, the simulator and the tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace jogak::core {

struct MigProfile {
  std::string_view name;     // "1g.10gb", "1g.10gb+me"
  std::int32_t size = 0;     // memory slices
  std::int32_t compute = 0;  // compute slices
  std::uint16_t starts = 0;  // bit i: may start at slice i
  std::int32_t max_count = 0;
  std::int32_t nvdec = 0;  // video decoders it takes
  std::int32_t ofa = 0;    // optical flow engines it takes
};

// Instances by profile of one model, enough for the model with the most.
inline constexpr std::size_t kMigProfilesMax = 16;
using MigCounts = std::array<std::int32_t, kMigProfilesMax>;

struct MigModel {
  std::string_view key;     // matched against the GPU model label, e.g. "A100-SXM4-80GB"
  std::int32_t slices = 0;  // memory slices
  std::span<const MigProfile> profiles;
  std::int32_t nvdec = 0;  // what the GPU has of the engines that profiles share out
  std::int32_t ofa = 0;
};

// All models, in a fixed order; Gpu::mig_model indexes it.
std::span<const MigModel> mig_models();

// Index of the model whose key the label value (nvidia.com/gpu.product, "NVIDIA-A100-SXM4-80GB")
// names; nullopt for GPUs that cannot be partitioned or are not in the table.
std::optional<std::uint8_t> find_mig_model(std::string_view gpu_model);

// Index of a profile within the model, or -1. Accepts the resource form ("1g.10gb.me") too.
std::int32_t find_mig_profile(const MigModel& model, std::string_view name);

// True if this many instances of each profile (by index, missing ones count 0) respect the counts
// and the engines of the GPU. Disjoint slices alone do not give that: "+me" profiles take engines
// of which there is one.
bool mig_counts_fit(const MigModel& model, std::span<const std::int32_t> counts);

// Where the profile may go now, given the slices in use; bit i: start i. Counts and engines are the
// caller's to check (mig_counts_fit).
std::uint16_t mig_free_starts(const MigProfile& profile, std::uint16_t used_mask);

// Mask of the slices an instance covers.
constexpr std::uint16_t mig_mask(std::int32_t start, std::int32_t size) {
  return static_cast<std::uint16_t>(((1U << size) - 1U) << start);
}

// The start that leaves the most for others: the legal start after which the largest number of
// placements (summed over all profiles of the model, weighted by compute slices) stays possible;
// smallest start on ties. nullopt if none is legal.
std::optional<std::int32_t> best_mig_start(const MigModel& model, const MigProfile& profile,
                                           std::uint16_t used_mask);

}  // namespace jogak::core
