// SPDX-License-Identifier: Apache-2.0
//
// MIG on a simulated machine: what fits where, and the answers of a driver when it does not.
//
// Memory slices are the grid: placements may not overlap. Engines (decoders, JPEG, OFA) are a pool
// as large as that of the whole-GPU profile. The driver's own choice of a place is the highest free
// one, which is why {1g, 1g, 2g, 3g} does not fit in that order and {3g, 1g, 1g, 2g} does.
#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "nvml/abi_constants.h"
#include "nvml/sim/machine.h"
#include "nvml/sim/names.h"

namespace jogak::nvml::sim {

namespace {

using abi::Return;

constexpr std::array<int, 9> kComputeSlices = {1, 2, 3, 4, 7, 8, 6, 1, 7};

bool overlap(const PlacementSpec& a, const PlacementSpec& b) {
  return a.start < b.start + b.size && b.start < a.start + a.size;
}

const MigProfileSpec& profile_of(const GpuState& gpu, const GpuInstanceState& instance) {
  return gpu.spec.mig_profiles[static_cast<std::size_t>(instance.profile)];
}

// The pool of an engine is what the largest profile has.
bool has_engines(const GpuState& gpu, const MigProfileSpec& wanted, int MigProfileSpec::* engine) {
  int pool = 0;
  for (const MigProfileSpec& profile : gpu.spec.mig_profiles) {
    pool = std::max(pool, profile.*engine);
  }
  int used = wanted.*engine;
  for (const GpuInstanceState& instance : gpu.instances) used += profile_of(gpu, instance).*engine;
  return used <= pool;
}

bool is_free(const GpuState& gpu, const PlacementSpec& place) {
  return std::ranges::none_of(gpu.instances, [&](const GpuInstanceState& instance) {
    return overlap(instance.placement, place);
  });
}

bool may_add(const GpuState& gpu, int profile) {
  const MigProfileSpec& wanted = gpu.spec.mig_profiles[static_cast<std::size_t>(profile)];
  const auto same = std::ranges::count(gpu.instances, profile, &GpuInstanceState::profile);
  return same < wanted.count_max && has_engines(gpu, wanted, &MigProfileSpec::decoders) &&
         has_engines(gpu, wanted, &MigProfileSpec::encoders) &&
         has_engines(gpu, wanted, &MigProfileSpec::jpeg_engines) &&
         has_engines(gpu, wanted, &MigProfileSpec::ofa_engines);
}

// Ids come in ranges by size: on a GPU of seven slices 0 for 7g, 1-2 for halves, 3-6 for quarters,
// 7-14 for eighths.
int first_id(const GpuState& gpu, const MigProfileSpec& profile) {
  int grid = 1;
  for (const MigProfileSpec& any : gpu.spec.mig_profiles) {
    for (const PlacementSpec& place : any.placements) grid = std::max(grid, place.size);
  }
  int first = 0;
  int parts = 1;
  while (profile.placements.front().size * parts * 2 <= grid) {
    first += parts;
    parts *= 2;
  }
  return first;
}

int free_id(const GpuState& gpu, int first) {
  int id = first;
  while (std::ranges::find(gpu.instances, id, &GpuInstanceState::id) != gpu.instances.end()) ++id;
  return id;
}

int free_mig_index(const GpuState& gpu) {
  for (int index = 0;; ++index) {
    const bool is_taken = std::ranges::any_of(gpu.instances, [&](const GpuInstanceState& instance) {
      return std::ranges::find(instance.compute, index, &ComputeInstanceState::mig_index) !=
             instance.compute.end();
    });
    if (!is_taken) return index;
  }
}

}  // namespace

int compute_profile_slices(const MigProfileSpec& profile, int query_index) {
  if (query_index < 0 || query_index >= static_cast<int>(kComputeSlices.size())) return 0;
  const int slices = kComputeSlices[static_cast<std::size_t>(query_index)];
  // The second kind of 7 slices is listed and never there; the second kind of 1 slice is that of
  // the profiles with double memory.
  if (query_index == 8) return 0;
  if (query_index == 7) return profile.query_index == 9 ? 1 : 0;
  if (slices > profile.slices) return 0;
  if (slices == 3 && profile.slices == 4) return 0;
  return slices;
}

int compute_profile_count(const MigProfileSpec& profile, int query_index) {
  const int slices = compute_profile_slices(profile, query_index);
  return slices == 0 ? 0 : profile.slices / slices;
}

std::vector<PlacementSpec> compute_placements(const MigProfileSpec& profile, int query_index) {
  const int slices = compute_profile_slices(profile, query_index);
  std::vector<PlacementSpec> places;
  if (slices == 0) return places;
  for (int start = 0; start + slices <= profile.slices; start += slices) {
    places.push_back({.start = start, .size = slices});
  }
  return places;
}

int compute_multiprocessors(const GpuSpec& gpu, const MigProfileSpec& profile, int query_index) {
  const int slices = compute_profile_slices(profile, query_index);
  if (slices == 0) return 0;
  // With double memory the plain kind has the SMs of an ordinary slice, the other all of them.
  const bool is_double =
      profile.query_index == 9 && query_index != static_cast<int>(abi::kComputeInstanceRev1);
  for (const MigProfileSpec& plain : gpu.mig_profiles) {
    if (is_double && plain.query_index == 0) return plain.multiprocessors;
  }
  return profile.multiprocessors * slices / profile.slices;
}

int compute_query_index(const MigProfileSpec& profile, int slices) {
  int found = -1;
  for (int query_index = 0; query_index < static_cast<int>(kComputeSlices.size()); ++query_index) {
    if (compute_profile_slices(profile, query_index) == slices) found = query_index;
  }
  return found;
}

std::string compute_profile_name(const MigProfileSpec& profile, int query_index) {
  const int slices = compute_profile_slices(profile, query_index);
  return slices == profile.slices ? profile.name : fmt::format("{}c.{}", slices, profile.name);
}

bool Machine::is_in_use(int gpu, int gi_id, int ci_id) const {
  return std::ranges::any_of(processes(gpu), [&](const ProcessState* process) {
    return (gi_id < 0 || process->gi_id == gi_id) && (ci_id < 0 || process->ci_id == ci_id);
  });
}

Return Machine::set_mig_mode(int gpu, bool enabled, Return& activation) {
  GpuState& state = gpus_[static_cast<std::size_t>(gpu)];
  activation = Return::Success;
  if (state.spec.mig_support == MigSupport::None) return Return::NotSupported;
  if (enabled == state.mig_pending && enabled == state.mig_enabled) return Return::Success;
  if (is_in_use(gpu, -1, -1) || (!enabled && !state.instances.empty())) {
    activation = Return::InUse;
    return Return::Success;
  }
  state.mig_pending = enabled;
  if (state.spec.mig_support == MigSupport::AfterReset) {
    if (state.mig_enabled != enabled) activation = Return::ResetRequired;
    keep_state();
    return Return::Success;
  }
  state.mig_enabled = enabled;
  keep_state();
  log_event({.time = now(), .gpu = gpu, .type = abi::kEventMigConfig});
  return Return::Success;
}

int Machine::remaining_capacity(int gpu, int profile) const {
  // By filling a copy: the count is small and engines and places both bound it.
  GpuState copy = gpus_[static_cast<std::size_t>(gpu)];
  const MigProfileSpec& wanted = copy.spec.mig_profiles[static_cast<std::size_t>(profile)];
  int count = 0;
  for (const PlacementSpec& place : wanted.placements) {
    if (!may_add(copy, profile) || !is_free(copy, place)) continue;
    copy.instances.push_back({.profile = profile, .placement = place, .compute = {}});
    ++count;
  }
  return count;
}

Return Machine::create_instance(int gpu, int profile, int start, int& gi_id, int wanted_id) {
  GpuState& state = gpus_[static_cast<std::size_t>(gpu)];
  if (!state.mig_enabled) return Return::NotSupported;
  const MigProfileSpec& wanted = state.spec.mig_profiles[static_cast<std::size_t>(profile)];
  if (!may_add(state, profile)) return Return::InsufficientResources;
  const PlacementSpec* chosen = nullptr;
  for (const PlacementSpec& place : wanted.placements) {
    if (start >= 0 ? place.start == start : is_free(state, place)) chosen = &place;
  }
  if (chosen == nullptr) return start < 0 ? Return::InsufficientResources : Return::InvalidArgument;
  if (!is_free(state, *chosen)) return Return::InsufficientResources;
  gi_id = wanted_id >= 0 ? wanted_id : free_id(state, first_id(state, wanted));
  GpuInstanceState instance{.id = gi_id, .profile = profile, .placement = *chosen, .compute = {}};
  instance.handle = new_handle({.kind = HandleKind::GpuInstance, .gpu = gpu, .gi_id = gi_id});
  const auto place = std::ranges::lower_bound(state.instances, gi_id, {}, &GpuInstanceState::id);
  state.instances.insert(place, std::move(instance));
  keep_state();
  log_event({.time = now(), .gpu = gpu, .type = abi::kEventMigConfig});
  return Return::Success;
}

Return Machine::destroy_instance(int gpu, int gi_id) {
  GpuState& state = gpus_[static_cast<std::size_t>(gpu)];
  GpuInstanceState* const instance = this->instance(gpu, gi_id);
  if (instance == nullptr) return Return::NotFound;
  if (!instance->compute.empty()) return Return::InUse;
  drop_handle(instance->handle);
  std::erase_if(state.instances, [&](const GpuInstanceState& any) { return any.id == gi_id; });
  keep_state();
  log_event({.time = now(), .gpu = gpu, .type = abi::kEventMigConfig});
  return Return::Success;
}

Return Machine::create_compute(int gpu, int gi_id, int query_index, int start, int& ci_id,
                               int wanted_id) {
  GpuState& state = gpus_[static_cast<std::size_t>(gpu)];
  GpuInstanceState* const parent = instance(gpu, gi_id);
  if (parent == nullptr) return Return::NotFound;
  const MigProfileSpec& profile = profile_of(state, *parent);
  const auto places = compute_placements(profile, query_index);
  if (places.empty()) return Return::InvalidArgument;
  const PlacementSpec* chosen = nullptr;
  bool is_place = start < 0;
  for (const PlacementSpec& place : places) {
    if (start >= 0 && place.start != start) continue;
    is_place = true;
    const bool is_taken =
        std::ranges::any_of(parent->compute, [&](const ComputeInstanceState& any) {
          return overlap({.start = any.start, .size = any.slices}, place);
        });
    if (!is_taken && chosen == nullptr) chosen = &place;
  }
  if (!is_place) return Return::InvalidArgument;
  if (chosen == nullptr) return Return::InsufficientResources;
  ci_id = 0;
  while (std::ranges::find(parent->compute, ci_id, &ComputeInstanceState::id) !=
         parent->compute.end()) {
    ++ci_id;
  }
  if (wanted_id >= 0) ci_id = wanted_id;
  ComputeInstanceState made{.id = ci_id,
                            .query_index = query_index,
                            .slices = chosen->size,
                            .start = chosen->start,
                            .mig_index = free_mig_index(state),
                            .uuid = {}};
  made.uuid =
      "MIG-" + uuid_of(fmt::format("{}/{}/{}", state.spec.uuid, generation_, state.created++));
  made.handle =
      new_handle({.kind = HandleKind::ComputeInstance, .gpu = gpu, .gi_id = gi_id, .ci_id = ci_id});
  made.device_handle =
      new_handle({.kind = HandleKind::MigDevice, .gpu = gpu, .gi_id = gi_id, .ci_id = ci_id});
  const auto at = std::ranges::lower_bound(parent->compute, ci_id, {}, &ComputeInstanceState::id);
  parent->compute.insert(at, std::move(made));
  keep_state();
  log_event(
      {.time = now(), .gpu = gpu, .type = abi::kEventMigConfig, .gi_id = gi_id, .ci_id = ci_id});
  return Return::Success;
}

Return Machine::destroy_compute(int gpu, int gi_id, int ci_id) {
  GpuInstanceState* const parent = instance(gpu, gi_id);
  ComputeInstanceState* const compute = compute_instance(gpu, gi_id, ci_id);
  if (compute == nullptr) return Return::NotFound;
  if (is_in_use(gpu, gi_id, ci_id)) return Return::InUse;
  drop_handle(compute->handle);
  drop_handle(compute->device_handle);
  std::erase_if(parent->compute, [&](const ComputeInstanceState& any) { return any.id == ci_id; });
  keep_state();
  log_event(
      {.time = now(), .gpu = gpu, .type = abi::kEventMigConfig, .gi_id = gi_id, .ci_id = ci_id});
  return Return::Success;
}

Result<void> Machine::create_described_instances() {
  for (GpuState& gpu : gpus_) {
    std::vector<int> ids;
    for (const MigInstanceSpec& wanted : gpu.spec.mig_instances) {
      const auto at =
          std::ranges::find(gpu.spec.mig_profiles, wanted.profile, &MigProfileSpec::name);
      if (at == gpu.spec.mig_profiles.end()) {
        return invalid("gpus[{}].migInstances: no profile {}", gpu.index, wanted.profile);
      }
      int gi_id = -1;
      const auto profile = static_cast<int>(at - gpu.spec.mig_profiles.begin());
      if (create_instance(gpu.index, profile, wanted.start, gi_id) != Return::Success) {
        return invalid("gpus[{}].migInstances: {} does not fit beside those before it", gpu.index,
                       wanted.profile);
      }
      ids.push_back(gi_id);
      if (!wanted.has_compute_instances) continue;
      std::vector<int> parts = wanted.compute_slices;
      if (parts.empty()) parts.push_back(at->slices);
      for (const int slices : parts) {
        int ci_id = -1;
        const int query_index = compute_query_index(*at, slices);
        if (query_index < 0 ||
            create_compute(gpu.index, gi_id, query_index, -1, ci_id) != Return::Success) {
          return invalid("gpus[{}].migInstances: {} has no place for computeSlices {}", gpu.index,
                         wanted.profile, slices);
        }
      }
      GpuInstanceState* const made = instance(gpu.index, gi_id);
      if (!wanted.uuid.empty() && made->compute.size() == 1) {
        made->compute.front().uuid = wanted.uuid;
      }
    }
    for (const ProcessSpec& process : gpu.spec.processes) {
      ProcessState state{.spec = process};
      if (process.instance >= 0) {
        state.gi_id = ids[static_cast<std::size_t>(process.instance)];
        const GpuInstanceState* const owner = instance(gpu.index, state.gi_id);
        state.ci_id = owner->compute.empty() ? -1 : owner->compute.front().id;
      }
      gpu.processes.push_back(std::move(state));
    }
  }
  return {};
}

}  // namespace jogak::nvml::sim
