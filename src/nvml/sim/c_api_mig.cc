// SPDX-License-Identifier: Apache-2.0
//
// MIG: modes, profiles, GPU instances, compute instances. The rules are in machine_mig.cc.
#include "nvml/abi_constants.h"
#include "nvml/sim/c_call.h"

namespace jogak::nvml::abi {

namespace {

using sim::ComputeInstanceState;
using sim::GpuInstanceState;
using sim::HandleKind;
using sim::Handles;
using sim::MigProfileSpec;
using sim::on_any_device;
using sim::on_gpu;
using sim::on_handle;
using sim::PlacementSpec;
using sim::put;
using sim::Target;

template <class Work>
Return on_gi(const char* function, GpuInstance handle, Work work) {
  return on_handle(function, handle, HandleKind::GpuInstance, Handles::GpuOnly, [&](Target& t) {
    GpuInstanceState* const instance = t.machine.instance(t.gpu.index, t.gi_id);
    if (instance == nullptr) return Return::NotFound;
    const auto at = static_cast<std::size_t>(instance->profile);
    return work(t, *instance, t.gpu.spec.mig_profiles[at]);
  });
}

int profile_with_id(const Target& t, std::uint32_t id) {
  const auto& profiles = t.gpu.spec.mig_profiles;
  const auto at = std::ranges::find(profiles, static_cast<int>(id), &MigProfileSpec::id);
  return at == profiles.end() ? -1 : static_cast<int>(at - profiles.begin());
}

// By NVML's constant or by the driver's id.
const MigProfileSpec* find_profile(const Target& t, std::uint32_t key, int MigProfileSpec::* by) {
  const auto& profiles = t.gpu.spec.mig_profiles;
  const auto at = std::ranges::find(profiles, static_cast<int>(key), by);
  return at == profiles.end() ? nullptr : &*at;
}

template <class Work>
Return on_profile(const char* function, Device device, std::uint32_t id, Work work) {
  return on_gpu(function, device, [&](Target& t) {
    if (t.gpu.spec.mig_support == sim::MigSupport::None) return Return::NotSupported;
    const int profile = profile_with_id(t, id);
    return profile < 0 ? Return::InvalidArgument : work(t, profile);
  });
}

template <class Info>
void fill_profile(Info& info, const MigProfileSpec& profile) {
  const auto u32 = [](int value) { return static_cast<std::uint32_t>(value); };
  info.id = u32(profile.id);
  info.slice_count = u32(profile.slices);
  info.instance_count = u32(profile.count_max);
  info.multiprocessor_count = u32(profile.multiprocessors);
  info.copy_engine_count = u32(profile.copy_engines);
  info.decoder_count = u32(profile.decoders);
  info.encoder_count = u32(profile.encoders);
  info.jpeg_count = u32(profile.jpeg_engines);
  info.ofa_count = u32(profile.ofa_engines);
  info.memory_size_mib = static_cast<std::uint64_t>(profile.memory_mib);
}

// Both newer forms of a profile, told apart by the version that the caller wrote.
Return put_profile(GpuInstanceProfileInfoV2* info, const MigProfileSpec& profile) {
  if (info->version == version_of<GpuInstanceProfileInfoV2>(2)) {
    const std::uint32_t version = info->version;
    *info = {};
    info->version = version;
    fill_profile(*info, profile);
    sim::fill_text(info->name, "MIG " + profile.name);
    return Return::Success;
  }
  if (info->version != version_of<GpuInstanceProfileInfoV3>(3)) {
    return Return::ArgumentVersionMismatch;
  }
  GpuInstanceProfileInfoV3 newer{};
  newer.version = info->version;
  fill_profile(newer, profile);
  sim::fill_text(newer.name, "MIG " + profile.name);
  std::memcpy(info, &newer, sizeof(newer));
  return Return::Success;
}

Return profile_info(const char* function, Device device, std::uint32_t key,
                    int MigProfileSpec::* by, GpuInstanceProfileInfoV2* info) {
  return on_gpu(function, device, [&](Target& t) {
    if (info == nullptr) return Return::InvalidArgument;
    if (by == &MigProfileSpec::query_index && key >= kGpuInstanceProfiles) {
      return Return::InvalidArgument;
    }
    const MigProfileSpec* const profile = find_profile(t, key, by);
    return profile == nullptr ? Return::NotSupported : put_profile(info, *profile);
  });
}

template <class Info>
void fill_compute_profile(Info& info, const Target& t, const MigProfileSpec& profile,
                          std::uint32_t query_index) {
  const int index = static_cast<int>(query_index);
  const auto u32 = [](int value) { return static_cast<std::uint32_t>(value); };
  info.id = query_index;
  info.slice_count = u32(sim::compute_profile_slices(profile, index));
  info.instance_count = u32(sim::compute_profile_count(profile, index));
  info.multiprocessor_count = u32(sim::compute_multiprocessors(t.gpu.spec, profile, index));
  info.shared_copy_engine_count = u32(profile.copy_engines);
  info.shared_decoder_count = u32(profile.decoders);
  info.shared_encoder_count = u32(profile.encoders);
  info.shared_jpeg_count = u32(profile.jpeg_engines);
  info.shared_ofa_count = u32(profile.ofa_engines);
}

Return check_compute_profile(const MigProfileSpec& profile, std::uint32_t query_index,
                             std::uint32_t engine) {
  if (query_index >= kComputeInstanceProfiles || engine != kEngineShared) {
    return Return::InvalidArgument;
  }
  const bool is_there = sim::compute_profile_slices(profile, static_cast<int>(query_index)) > 0;
  return is_there ? Return::Success : Return::NotSupported;
}

Return create_gi(const char* function, Device device, std::uint32_t id, int start,
                 GpuInstance* made) {
  return on_profile(function, device, id, [&](Target& t, int profile) {
    if (made == nullptr) return Return::InvalidArgument;
    int gi_id = -1;
    const Return result = t.machine.create_instance(t.gpu.index, profile, start, gi_id);
    if (result != Return::Success) return result;
    *made = sim::as_handle<GpuInstance>(t.machine.instance(t.gpu.index, gi_id)->handle);
    return Return::Success;
  });
}

Return create_ci(const char* function, GpuInstance gi, std::uint32_t id, int start,
                 ComputeInstance* made) {
  return on_gi(function, gi, [&](Target& t, GpuInstanceState& instance, const MigProfileSpec&) {
    if (made == nullptr || id >= kComputeInstanceProfiles) return Return::InvalidArgument;
    int ci_id = -1;
    const int gi_id = instance.id;
    const Return result =
        t.machine.create_compute(t.gpu.index, gi_id, static_cast<int>(id), start, ci_id);
    if (result != Return::Success) return result;
    *made = sim::as_handle<ComputeInstance>(
        t.machine.compute_instance(t.gpu.index, gi_id, ci_id)->handle);
    return Return::Success;
  });
}

}  // namespace

Return nvmlDeviceGetMigMode(Device device, std::uint32_t* current, std::uint32_t* pending) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (current == nullptr || pending == nullptr) return Return::InvalidArgument;
    if (t.gpu.spec.mig_support == sim::MigSupport::None) return Return::NotSupported;
    *current = t.gpu.mig_enabled ? 1 : 0;
    *pending = t.gpu.mig_pending ? 1 : 0;
    return Return::Success;
  });
}

Return nvmlDeviceSetMigMode(Device device, std::uint32_t mode, Return* activation) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (mode > 1 || activation == nullptr) return Return::InvalidArgument;
    return t.machine.set_mig_mode(t.gpu.index, mode == 1, *activation);
  });
}

Return nvmlDeviceGetMaxMigDeviceCount(Device device, std::uint32_t* count) {
  return on_gpu(__func__, device, [&](Target& t) { return put(count, t.gpu.spec.mig_slices); });
}

Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, std::uint32_t index, Device* mig) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (mig == nullptr) return Return::InvalidArgument;
    if (t.gpu.spec.mig_support == sim::MigSupport::None) return Return::NotSupported;
    if (index >= static_cast<std::uint32_t>(t.gpu.spec.mig_slices)) {
      return Return::InvalidArgument;
    }
    for (const GpuInstanceState& instance : t.gpu.instances) {
      for (const ComputeInstanceState& compute : instance.compute) {
        if (compute.mig_index != static_cast<int>(index)) continue;
        *mig = sim::as_handle<Device>(compute.device_handle);
        return Return::Success;
      }
    }
    return Return::NotFound;
  });
}

Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device mig, Device* device) {
  return on_any_device(__func__, mig, [&](Target& t) {
    if (device == nullptr || t.gi_id < 0) return Return::InvalidArgument;
    *device = sim::as_handle<Device>(t.machine.device_handle(t.gpu.index));
    return Return::Success;
  });
}

Return nvmlDeviceIsMigDeviceHandle(Device device, std::uint32_t* is_mig) {
  return on_any_device(__func__, device,
                       [&](Target& t) { return put(is_mig, t.gi_id >= 0 ? 1 : 0); });
}

Return nvmlDeviceGetGpuInstanceId(Device device, std::uint32_t* id) {
  return on_any_device(__func__, device, [&](Target& t) {
    return t.gi_id < 0 ? Return::NotSupported : put(id, t.gi_id);
  });
}

Return nvmlDeviceGetComputeInstanceId(Device device, std::uint32_t* id) {
  return on_any_device(__func__, device, [&](Target& t) {
    return t.ci_id < 0 ? Return::NotSupported : put(id, t.ci_id);
  });
}

Return nvmlDeviceGetAttributes_v2(Device device, DeviceAttributes* attributes) {
  return on_any_device(__func__, device, [&](Target& t) {
    if (attributes == nullptr) return Return::InvalidArgument;
    if (t.gi_id < 0) return Return::NotSupported;
    const GpuInstanceState* const instance = t.machine.instance(t.gpu.index, t.gi_id);
    const auto* const compute = t.machine.compute_instance(t.gpu.index, t.gi_id, t.ci_id);
    const auto& profile = t.gpu.spec.mig_profiles[static_cast<std::size_t>(instance->profile)];
    const auto u32 = [](int value) { return static_cast<std::uint32_t>(value); };
    *attributes = {};
    attributes->multiprocessor_count =
        u32(sim::compute_multiprocessors(t.gpu.spec, profile, compute->query_index));
    attributes->shared_copy_engine_count = u32(profile.copy_engines);
    attributes->shared_decoder_count = u32(profile.decoders);
    attributes->shared_encoder_count = u32(profile.encoders);
    attributes->shared_jpeg_count = u32(profile.jpeg_engines);
    attributes->shared_ofa_count = u32(profile.ofa_engines);
    attributes->gpu_instance_slice_count = u32(profile.slices);
    attributes->compute_instance_slice_count = u32(compute->slices);
    attributes->memory_size_mib = static_cast<std::uint64_t>(profile.memory_mib);
    return Return::Success;
  });
}
Return nvmlDeviceGetAttributes(Device device, DeviceAttributes* attributes) {
  return nvmlDeviceGetAttributes_v2(device, attributes);
}

Return nvmlDeviceGetGpuInstanceProfileInfo(Device device, std::uint32_t query_index,
                                           GpuInstanceProfileInfo* info) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (info == nullptr || query_index >= kGpuInstanceProfiles) return Return::InvalidArgument;
    const auto* profile = find_profile(t, query_index, &MigProfileSpec::query_index);
    if (profile == nullptr) return Return::NotSupported;
    *info = {};
    fill_profile(*info, *profile);
    return Return::Success;
  });
}

Return nvmlDeviceGetGpuInstanceProfileInfoV(Device device, std::uint32_t query_index,
                                            GpuInstanceProfileInfoV2* info) {
  return profile_info(__func__, device, query_index, &MigProfileSpec::query_index, info);
}

Return nvmlDeviceGetGpuInstanceProfileInfoByIdV(Device device, std::uint32_t id,
                                                GpuInstanceProfileInfoV2* info) {
  return profile_info(__func__, device, id, &MigProfileSpec::id, info);
}

Return nvmlDeviceGetGpuInstanceRemainingCapacity(Device device, std::uint32_t id,
                                                 std::uint32_t* count) {
  return on_profile(__func__, device, id, [&](Target& t, int profile) {
    if (!t.gpu.mig_enabled) return Return::NotSupported;
    return put(count, t.machine.remaining_capacity(t.gpu.index, profile));
  });
}

Return nvmlDeviceGetGpuInstancePossiblePlacements_v2(Device device, std::uint32_t id,
                                                     GpuInstancePlacement* placements,
                                                     std::uint32_t* count) {
  return on_profile(__func__, device, id, [&](Target& t, int profile) {
    if (count == nullptr) return Return::InvalidArgument;
    const auto& places = t.gpu.spec.mig_profiles[static_cast<std::size_t>(profile)].placements;
    // Without an array this call only counts.
    if (placements == nullptr) return put(count, places.size());
    return sim::put_list(count, placements, places.size(), [&](std::size_t i) {
      return GpuInstancePlacement{.start = static_cast<std::uint32_t>(places[i].start),
                                  .size = static_cast<std::uint32_t>(places[i].size)};
    });
  });
}
Return nvmlDeviceGetGpuInstancePossiblePlacements(Device device, std::uint32_t id,
                                                  GpuInstancePlacement* placements,
                                                  std::uint32_t* count) {
  return nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, placements, count);
}

Return nvmlDeviceCreateGpuInstance(Device device, std::uint32_t id, GpuInstance* made) {
  return create_gi(__func__, device, id, -1, made);
}

Return nvmlDeviceCreateGpuInstanceWithPlacement(Device device, std::uint32_t id,
                                                const GpuInstancePlacement* placement,
                                                GpuInstance* made) {
  if (placement == nullptr || placement->start > 64) return Return::InvalidArgument;
  return create_gi(__func__, device, id, static_cast<int>(placement->start), made);
}

Return nvmlDeviceGetGpuInstances(Device device, std::uint32_t id, GpuInstance* instances,
                                 std::uint32_t* count) {
  return on_profile(__func__, device, id, [&](Target& t, int profile) {
    // The caller's array is as large as the profile allows: there is no size to check.
    if (instances == nullptr || count == nullptr) return Return::InvalidArgument;
    if (!t.gpu.mig_enabled) return Return::NotSupported;
    std::uint32_t found = 0;
    for (const GpuInstanceState& instance : t.gpu.instances) {
      if (instance.profile != profile) continue;
      instances[found++] = sim::as_handle<GpuInstance>(instance.handle);
    }
    return put(count, found);
  });
}

Return nvmlDeviceGetGpuInstanceById(Device device, std::uint32_t id, GpuInstance* made) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (made == nullptr) return Return::InvalidArgument;
    if (!t.gpu.mig_enabled) return Return::NotSupported;
    const auto* const instance = t.machine.instance(t.gpu.index, static_cast<int>(id));
    if (instance == nullptr) return Return::NotFound;
    *made = sim::as_handle<GpuInstance>(instance->handle);
    return Return::Success;
  });
}

Return nvmlGpuInstanceGetInfo(GpuInstance gi, GpuInstanceInfo* info) {
  return on_gi(__func__, gi,
               [&](Target& t, GpuInstanceState& instance, const MigProfileSpec& profile) {
                 if (info == nullptr) return Return::InvalidArgument;
                 info->device = sim::as_handle<Device>(t.machine.device_handle(t.gpu.index));
                 info->id = static_cast<std::uint32_t>(instance.id);
                 info->profile_id = static_cast<std::uint32_t>(profile.id);
                 info->placement.start = static_cast<std::uint32_t>(instance.placement.start);
                 info->placement.size = static_cast<std::uint32_t>(instance.placement.size);
                 return Return::Success;
               });
}

Return nvmlGpuInstanceDestroy(GpuInstance gi) {
  return on_gi(__func__, gi, [](Target& t, GpuInstanceState& instance, const MigProfileSpec&) {
    return t.machine.destroy_instance(t.gpu.index, instance.id);
  });
}

Return nvmlGpuInstanceGetComputeInstanceProfileInfo(GpuInstance gi, std::uint32_t query_index,
                                                    std::uint32_t engine,
                                                    ComputeInstanceProfileInfo* info) {
  return on_gi(__func__, gi, [&](Target& t, GpuInstanceState&, const MigProfileSpec& profile) {
    if (info == nullptr) return Return::InvalidArgument;
    const Return is_there = check_compute_profile(profile, query_index, engine);
    if (is_there != Return::Success) return is_there;
    *info = {};
    fill_compute_profile(*info, t, profile, query_index);
    return Return::Success;
  });
}

Return nvmlGpuInstanceGetComputeInstanceProfileInfoV(GpuInstance gi, std::uint32_t query_index,
                                                     std::uint32_t engine,
                                                     ComputeInstanceProfileInfoV2* info) {
  return on_gi(__func__, gi, [&](Target& t, GpuInstanceState&, const MigProfileSpec& profile) {
    if (info == nullptr) return Return::InvalidArgument;
    // The newer struct has the capabilities behind all of this one.
    const bool is_v3 = info->version == version_of<ComputeInstanceProfileInfoV3>(3);
    if (!is_v3 && info->version != version_of<ComputeInstanceProfileInfoV2>(2)) {
      return Return::ArgumentVersionMismatch;
    }
    const Return is_there = check_compute_profile(profile, query_index, engine);
    if (is_there != Return::Success) return is_there;
    const std::uint32_t version = info->version;
    *info = {};
    info->version = version;
    fill_compute_profile(*info, t, profile, query_index);
    sim::fill_text(info->name,
                   "MIG " + sim::compute_profile_name(profile, static_cast<int>(query_index)));
    if (is_v3) {
      const std::uint32_t capabilities = 0;
      std::memcpy(
          reinterpret_cast<char*>(info) + offsetof(ComputeInstanceProfileInfoV3, capabilities),
          &capabilities, sizeof(capabilities));
    }
    return Return::Success;
  });
}

Return nvmlGpuInstanceGetComputeInstanceRemainingCapacity(GpuInstance gi, std::uint32_t id,
                                                          std::uint32_t* count) {
  return on_gi(
      __func__, gi, [&](Target&, GpuInstanceState& instance, const MigProfileSpec& profile) {
        const auto places = sim::compute_placements(profile, static_cast<int>(id));
        if (places.empty()) return Return::InvalidArgument;
        const auto is_free = [&](const PlacementSpec& place) {
          return std::ranges::none_of(instance.compute, [&](const ComputeInstanceState& any) {
            return any.start < place.start + place.size && place.start < any.start + any.slices;
          });
        };
        return put(count, std::ranges::count_if(places, is_free));
      });
}

Return nvmlGpuInstanceGetComputeInstancePossiblePlacements(GpuInstance gi, std::uint32_t id,
                                                           ComputeInstancePlacement* placements,
                                                           std::uint32_t* count) {
  return on_gi(__func__, gi, [&](Target&, GpuInstanceState&, const MigProfileSpec& profile) {
    if (count == nullptr) return Return::InvalidArgument;
    const auto places = sim::compute_placements(profile, static_cast<int>(id));
    if (places.empty()) return Return::InvalidArgument;
    if (placements == nullptr) return put(count, places.size());
    return sim::put_list(count, placements, places.size(), [&](std::size_t i) {
      return ComputeInstancePlacement{.start = static_cast<std::uint32_t>(places[i].start),
                                      .size = static_cast<std::uint32_t>(places[i].size)};
    });
  });
}

Return nvmlGpuInstanceCreateComputeInstance(GpuInstance gi, std::uint32_t id,
                                            ComputeInstance* made) {
  return create_ci(__func__, gi, id, -1, made);
}

Return nvmlGpuInstanceCreateComputeInstanceWithPlacement(GpuInstance gi, std::uint32_t id,
                                                         const ComputeInstancePlacement* placement,
                                                         ComputeInstance* made) {
  if (placement == nullptr || placement->start > 64) return Return::InvalidArgument;
  return create_ci(__func__, gi, id, static_cast<int>(placement->start), made);
}

Return nvmlGpuInstanceGetComputeInstances(GpuInstance gi, std::uint32_t id,
                                          ComputeInstance* instances, std::uint32_t* count) {
  return on_gi(__func__, gi, [&](Target&, GpuInstanceState& instance, const MigProfileSpec&) {
    if (instances == nullptr || count == nullptr || id >= kComputeInstanceProfiles) {
      return Return::InvalidArgument;
    }
    std::uint32_t found = 0;
    for (const ComputeInstanceState& compute : instance.compute) {
      if (compute.query_index != static_cast<int>(id)) continue;
      instances[found++] = sim::as_handle<ComputeInstance>(compute.handle);
    }
    return put(count, found);
  });
}

Return nvmlGpuInstanceGetComputeInstanceById(GpuInstance gi, std::uint32_t id,
                                             ComputeInstance* made) {
  return on_gi(__func__, gi, [&](Target& t, GpuInstanceState& instance, const MigProfileSpec&) {
    if (made == nullptr) return Return::InvalidArgument;
    const auto* compute =
        t.machine.compute_instance(t.gpu.index, instance.id, static_cast<int>(id));
    if (compute == nullptr) return Return::NotFound;
    *made = sim::as_handle<ComputeInstance>(compute->handle);
    return Return::Success;
  });
}

Return nvmlComputeInstanceGetInfo_v2(ComputeInstance ci, ComputeInstanceInfo* info) {
  return on_handle(__func__, ci, HandleKind::ComputeInstance, Handles::GpuOnly, [&](Target& t) {
    if (info == nullptr) return Return::InvalidArgument;
    const auto* compute = t.machine.compute_instance(t.gpu.index, t.gi_id, t.ci_id);
    info->device = sim::as_handle<Device>(compute->device_handle);
    info->gpu_instance =
        sim::as_handle<GpuInstance>(t.machine.instance(t.gpu.index, t.gi_id)->handle);
    info->id = static_cast<std::uint32_t>(compute->id);
    info->profile_id = static_cast<std::uint32_t>(compute->query_index);
    info->placement.start = static_cast<std::uint32_t>(compute->start);
    info->placement.size = static_cast<std::uint32_t>(compute->slices);
    return Return::Success;
  });
}
Return nvmlComputeInstanceGetInfo(ComputeInstance ci, ComputeInstanceInfo* info) {
  ComputeInstanceInfo full{};
  const Return result = nvmlComputeInstanceGetInfo_v2(ci, &full);
  // The struct of old callers ends before the placement.
  if (result == Return::Success) {
    if (info == nullptr) return Return::InvalidArgument;
    std::memcpy(info, &full, offsetof(ComputeInstanceInfo, placement));
  }
  return result;
}

Return nvmlComputeInstanceDestroy(ComputeInstance ci) {
  return on_handle(__func__, ci, HandleKind::ComputeInstance, Handles::GpuOnly, [](Target& t) {
    return t.machine.destroy_compute(t.gpu.index, t.gi_id, t.ci_id);
  });
}

}  // namespace jogak::nvml::abi
