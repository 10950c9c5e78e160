// SPDX-License-Identifier: Apache-2.0
//
// MIG through NVML. Ids, names, sizes and places are asked for, never assumed; indices have gaps;
// what was made halfway is taken back.
#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include "nvml/abi_constants.h"
#include "nvml/nvml_source.h"
#include "nvml/sim/c_api.h"

namespace jogak::nvml {

namespace {

using abi::Return;

// For drivers that do not give names: slices, and the share of the memory in eighths.
std::string profile_name(int query_index, int slices, std::int64_t memory_mib,
                         std::int64_t total_mib) {
  const double share =
      total_mib == 0 ? 0 : static_cast<double>(memory_mib) / static_cast<double>(total_mib);
  const double eighths = std::ceil(share * 8) / 8;
  const double total_gib = std::ceil(static_cast<double>(total_mib) / 1024);
  std::string name = fmt::format("{}g.{}gb", slices, std::lround(eighths * total_gib));
  switch (query_index) {
    case 7:
    case 8:
      return name + "+me";
    case 0xA:
    case 0xB:
    case 0xC:
    case 0x11:
      return name + "+gfx";
    case 0xD:
    case 0xE:
      return name + "-me";
    case 0xF:
    case 0x10:
      return name + "+me.all";
    default:
      return name;
  }
}

std::string stripped(std::string_view name) {
  constexpr std::string_view kPrefix = "MIG ";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  return std::string(name);
}

}  // namespace

void NvmlSource::read_mig(Gpu& gpu) {
  GpuFacts& facts = gpu.facts;
  std::uint32_t current = 0;
  std::uint32_t pending = 0;
  const Return mode = call(f_.mig_mode, gpu.handle, &current, &pending);
  facts.mig_capable = mode == Return::Success;
  facts.mig_enabled = facts.mig_capable && current == 1;
  facts.mig_pending = facts.mig_capable && pending == 1;
  facts.mig_profiles.clear();
  facts.mig_instances.clear();
  facts.mig_devices_max = 0;
  if (!facts.mig_capable) {
    missed(mode, &gpu);
    return;
  }
  facts.mig_devices_max = read<int, std::uint32_t>(gpu, f_.mig_count_max).value_or(0);
  read_mig_profiles(gpu);
  if (facts.mig_enabled) facts.mig_instances = read_mig_instances(gpu);
}

void NvmlSource::read_mig_profiles(Gpu& gpu) {
  for (std::uint32_t index = 0; index < abi::kGpuInstanceProfiles; ++index) {
    abi::GpuInstanceProfileInfo info{};
    if (call(f_.gi_profile, gpu.handle, index, &info) != Return::Success) continue;
    MigProfileFacts profile;
    profile.id = static_cast<int>(info.id);
    profile.query_index = static_cast<int>(index);
    profile.slices = static_cast<int>(info.slice_count);
    profile.memory_mib = static_cast<std::int64_t>(info.memory_size_mib);
    profile.count_max = static_cast<int>(info.instance_count);
    profile.multiprocessors = static_cast<int>(info.multiprocessor_count);
    profile.copy_engines = static_cast<int>(info.copy_engine_count);
    profile.decoders = static_cast<int>(info.decoder_count);
    profile.encoders = static_cast<int>(info.encoder_count);
    profile.jpeg_engines = static_cast<int>(info.jpeg_count);
    profile.ofa_engines = static_cast<int>(info.ofa_count);
    abi::GpuInstanceProfileInfoV2 named{};
    named.version = abi::version_of<abi::GpuInstanceProfileInfoV2>(2);
    if (call(f_.gi_profile_v, gpu.handle, index, &named) == Return::Success) {
      named.name[sizeof(named.name) - 1] = '\0';
      profile.name = stripped(named.name);
    }
    if (profile.name.empty()) {
      profile.name = profile_name(profile.query_index, profile.slices, profile.memory_mib,
                                  gpu.facts.memory_mib);
    }
    std::uint32_t count = 0;
    abi::GpuInstancePlacement* const only_count = nullptr;
    if (call(f_.gi_placements, gpu.handle, info.id, only_count, &count) == Return::Success) {
      std::vector<abi::GpuInstancePlacement> places(count);
      if (count > 0 &&
          call(f_.gi_placements, gpu.handle, info.id, places.data(), &count) == Return::Success) {
        places.resize(std::min<std::size_t>(count, places.size()));
        for (const auto& place : places) {
          profile.placements.push_back(
              {.start = static_cast<int>(place.start), .size = static_cast<int>(place.size)});
        }
      }
    }
    gpu.facts.mig_profiles.push_back(std::move(profile));
  }
}

std::map<std::pair<int, int>, MigInstanceFacts> NvmlSource::read_mig_devices(Gpu& gpu) {
  std::map<std::pair<int, int>, MigInstanceFacts> devices;
  for (int index = 0; index < gpu.facts.mig_devices_max; ++index) {
    abi::Device mig = nullptr;
    // A gap is no end.
    if (call(f_.mig_handle, gpu.handle, static_cast<std::uint32_t>(index), &mig) !=
        Return::Success) {
      continue;
    }
    std::uint32_t gi_id = 0;
    std::uint32_t ci_id = 0;
    if (call(f_.gi_id, mig, &gi_id) != Return::Success ||
        call(f_.ci_id, mig, &ci_id) != Return::Success) {
      continue;
    }
    MigInstanceFacts row;
    row.gi_id = static_cast<int>(gi_id);
    row.ci_id = static_cast<int>(ci_id);
    row.index = index;
    std::string uuid(abi::kUuidV2Size, '\0');
    if (call(f_.uuid, mig, uuid.data(), static_cast<std::uint32_t>(uuid.size())) ==
        Return::Success) {
      row.uuid = uuid.c_str();
    }
    abi::DeviceAttributes attributes{};
    if (call(f_.attributes, mig, &attributes) == Return::Success) {
      row.memory_mib = static_cast<std::int64_t>(attributes.memory_size_mib);
      row.multiprocessors = static_cast<int>(attributes.multiprocessor_count);
      row.ci_slices = static_cast<int>(attributes.compute_instance_slice_count);
    }
    devices[{row.gi_id, row.ci_id}] = std::move(row);
  }
  return devices;
}

void NvmlSource::add_instances(Gpu& gpu, const MigProfileFacts& profile, abi::GpuInstance gi,
                               const std::map<std::pair<int, int>, MigInstanceFacts>& devices,
                               std::vector<MigInstanceFacts>& rows) {
  abi::GpuInstanceInfo info{};
  if (const Return got = call(f_.gi_info, gi, &info); got != Return::Success) {
    missed(got, &gpu);
    return;
  }
  MigInstanceFacts bare;
  bare.gi_id = static_cast<int>(info.id);
  bare.profile_id = static_cast<int>(info.profile_id);
  bare.gi_profile = bare.profile = profile.name;
  bare.placement = {.start = static_cast<int>(info.placement.start),
                    .size = static_cast<int>(info.placement.size)};
  bare.memory_mib = profile.memory_mib;
  const std::size_t before = rows.size();
  for (std::uint32_t index = 0; index < abi::kComputeInstanceProfiles; ++index) {
    abi::ComputeInstanceProfileInfo kind{};
    if (call(f_.ci_profile, gi, index, abi::kEngineShared, &kind) != Return::Success) continue;
    std::vector<abi::ComputeInstance> handles(kind.instance_count);
    auto count = static_cast<std::uint32_t>(handles.size());
    if (handles.empty() ||
        call(f_.ci_list, gi, kind.id, handles.data(), &count) != Return::Success) {
      continue;
    }
    handles.resize(std::min<std::size_t>(count, handles.size()));
    for (const abi::ComputeInstance ci : handles) {
      abi::ComputeInstanceInfo compute{};
      if (call(f_.ci_info, ci, &compute) != Return::Success) continue;
      MigInstanceFacts row = bare;
      row.ci_id = static_cast<int>(compute.id);
      if (const auto at = devices.find({row.gi_id, row.ci_id}); at != devices.end()) {
        row.index = at->second.index;
        row.uuid = at->second.uuid;
        row.memory_mib = at->second.memory_mib;
        row.multiprocessors = at->second.multiprocessors;
      }
      row.ci_profile_id = static_cast<int>(kind.id);
      row.ci_slices = static_cast<int>(kind.slice_count);
      if (row.ci_slices != profile.slices) {
        row.profile = fmt::format("{}c.{}", row.ci_slices, profile.name);
      }
      rows.push_back(std::move(row));
    }
  }
  if (rows.size() == before) rows.push_back(std::move(bare));
}

std::vector<MigInstanceFacts> NvmlSource::read_mig_instances(Gpu& gpu) {
  const auto devices = read_mig_devices(gpu);
  std::vector<MigInstanceFacts> rows;
  for (const MigProfileFacts& profile : gpu.facts.mig_profiles) {
    std::vector<abi::GpuInstance> handles(
        static_cast<std::size_t>(std::max(profile.count_max, gpu.facts.mig_devices_max)));
    auto count = static_cast<std::uint32_t>(handles.size());
    const auto id = static_cast<std::uint32_t>(profile.id);
    if (call(f_.gi_list, gpu.handle, id, handles.data(), &count) != Return::Success) continue;
    handles.resize(std::min<std::size_t>(count, handles.size()));
    for (const abi::GpuInstance gi : handles) add_instances(gpu, profile, gi, devices, rows);
  }
  // Without permission to list GPU instances the MIG devices are still there.
  for (const auto& [ids, device] : devices) {
    const bool is_known = std::ranges::any_of(rows, [&](const MigInstanceFacts& row) {
      return row.gi_id == ids.first && row.ci_id == ids.second;
    });
    if (!is_known) rows.push_back(device);
  }
  std::ranges::sort(rows, {},
                    [](const MigInstanceFacts& row) { return std::pair(row.gi_id, row.ci_id); });
  return rows;
}

Result<bool> NvmlSource::is_recut(const std::string& uuid) {
  const sim::UseMachine use(options_.machine.get());
  JOGAK_TRY(Gpu* const gpu, find(uuid));
  const GpuFacts& facts = gpu->facts;
  if (gpu->handle == nullptr || !facts.mig_capable) return false;
  std::uint32_t current = 0;
  std::uint32_t pending = 0;
  JOGAK_TRY_VOID(
      check(call(f_.mig_mode, gpu->handle, &current, &pending), "nvmlDeviceGetMigMode", gpu));
  if (facts.mig_enabled != (current == 1) || facts.mig_pending != (pending == 1)) return true;
  if (!facts.mig_enabled) return false;
  std::set<std::string> known;
  for (const MigInstanceFacts& instance : facts.mig_instances) {
    if (!instance.uuid.empty()) known.insert(instance.uuid);
  }
  for (int index = 0; index < facts.mig_devices_max; ++index) {
    abi::Device mig = nullptr;
    if (call(f_.mig_handle, gpu->handle, static_cast<std::uint32_t>(index), &mig) !=
        Return::Success) {
      continue;
    }
    std::string text(abi::kUuidV2Size, '\0');
    if (call(f_.uuid, mig, text.data(), static_cast<std::uint32_t>(text.size())) !=
        Return::Success) {
      continue;
    }
    if (known.erase(text.c_str()) == 0) return true;
  }
  return !known.empty();
}

Result<bool> NvmlSource::set_mig_mode(const std::string& uuid, bool is_enabled) {
  const sim::UseMachine use(options_.machine.get());
  JOGAK_TRY(Gpu* const gpu, find(uuid));
  Return activation = Return::Success;
  const std::uint32_t mode = is_enabled ? 1 : 0;
  JOGAK_TRY_VOID(
      check(call(f_.set_mig_mode, gpu->handle, mode, &activation), "nvmlDeviceSetMigMode", gpu));
  // The call can succeed and still have done nothing.
  if (activation == Return::ResetRequired) return false;
  JOGAK_TRY_VOID(check(activation, "activation of the MIG mode", gpu));
  std::uint32_t current = 0;
  std::uint32_t pending = 0;
  JOGAK_TRY_VOID(
      check(call(f_.mig_mode, gpu->handle, &current, &pending), "nvmlDeviceGetMigMode", gpu));
  return current == mode;
}

Result<int> NvmlSource::whole_compute_profile(Gpu& gpu, abi::GpuInstance gi, int slices) {
  int found = -1;
  std::uint32_t most = 0;
  for (std::uint32_t index = 0; index < abi::kComputeInstanceProfiles; ++index) {
    abi::ComputeInstanceProfileInfo info{};
    const Return result = call(f_.ci_profile, gi, index, abi::kEngineShared, &info);
    if (result != Return::Success) {
      missed(result, &gpu);
      continue;
    }
    if (static_cast<int>(info.slice_count) == slices && info.multiprocessor_count > most) {
      found = static_cast<int>(info.id);
      most = info.multiprocessor_count;
    }
  }
  if (found < 0) return invalid("no compute instance profile covers {} slices", slices);
  return found;
}

Result<abi::GpuInstance> NvmlSource::find_instance(Gpu& gpu, int gi_id) {
  abi::GpuInstance gi = nullptr;
  JOGAK_TRY_VOID(check(call(f_.gi_by_id, gpu.handle, static_cast<std::uint32_t>(gi_id), &gi),
                       fmt::format("GPU instance {}", gi_id), &gpu));
  return gi;
}

// The plain kind of that size, which the driver lists before those with more engines.
Result<int> NvmlSource::part_compute_profile(Gpu& gpu, abi::GpuInstance gi, int slices) {
  std::string offered;
  for (std::uint32_t index = 0; index < abi::kComputeInstanceProfiles; ++index) {
    abi::ComputeInstanceProfileInfo info{};
    const Return result = call(f_.ci_profile, gi, index, abi::kEngineShared, &info);
    if (result != Return::Success) {
      missed(result, &gpu);
      continue;
    }
    if (static_cast<int>(info.slice_count) == slices) return static_cast<int>(info.id);
    offered += fmt::format("{}{}c", offered.empty() ? "" : ", ", info.slice_count);
  }
  return invalid("no compute instance of {} slices fits there; the driver offers {}", slices,
                 offered);
}

Result<std::vector<MigInstanceFacts>> NvmlSource::create_instance(
    const std::string& uuid, int profile_id, MigPlacement placement,
    const std::vector<int>& ci_profile_ids) {
  return create_with(uuid, profile_id, placement,
                     [&](Gpu& gpu, abi::GpuInstance gi, int slices) -> Result<std::vector<int>> {
                       if (!ci_profile_ids.empty()) return ci_profile_ids;
                       JOGAK_TRY(const int whole, whole_compute_profile(gpu, gi, slices));
                       return std::vector<int>{whole};
                     });
}

Result<std::vector<MigInstanceFacts>> NvmlSource::create_instance_in_parts(
    const std::string& uuid, int profile_id, MigPlacement placement,
    const std::vector<int>& part_slices) {
  return create_with(uuid, profile_id, placement,
                     [&](Gpu& gpu, abi::GpuInstance gi, int) -> Result<std::vector<int>> {
                       std::vector<int> ids;
                       for (const int slices : part_slices) {
                         JOGAK_TRY(const int id, part_compute_profile(gpu, gi, slices));
                         ids.push_back(id);
                       }
                       return ids;
                     });
}

Result<std::vector<MigInstanceFacts>> NvmlSource::create_with(const std::string& uuid,
                                                              int profile_id,
                                                              MigPlacement placement,
                                                              const ChooseParts& choose) {
  const sim::UseMachine use(options_.machine.get());
  JOGAK_TRY(Gpu* const gpu, find(uuid));
  if (gpu->facts.mig_profiles.empty()) read_mig(*gpu);
  const auto profile = std::ranges::find(gpu->facts.mig_profiles, profile_id, &MigProfileFacts::id);
  if (profile == gpu->facts.mig_profiles.end()) {
    return fail(Errc::NotFound, "GPU {} has no MIG profile {}", uuid, profile_id);
  }
  const abi::GpuInstancePlacement place{.start = static_cast<std::uint32_t>(placement.start),
                                        .size = static_cast<std::uint32_t>(placement.size)};
  const auto id = static_cast<std::uint32_t>(profile_id);
  abi::GpuInstance gi = nullptr;
  JOGAK_TRY_VOID(check(call(f_.gi_create, gpu->handle, id, &place, &gi),
                       fmt::format("creating {} at {}", profile->name, placement.start), gpu));
  std::vector<abi::ComputeInstance> made;
  Result<void> outcome = {};
  const auto parts = choose(*gpu, gi, profile->slices);
  if (!parts) outcome = std::unexpected(parts.error());
  for (const int part : parts.value_or(std::vector<int>{})) {
    if (!outcome) break;
    abi::ComputeInstance ci = nullptr;
    outcome = check(call(f_.ci_create, gi, static_cast<std::uint32_t>(part), &ci),
                    fmt::format("creating compute instance {} in {}", part, profile->name), gpu);
    if (outcome) made.push_back(ci);
  }
  if (!outcome) {
    for (const abi::ComputeInstance ci : made) call(f_.ci_destroy, ci);
    call(f_.gi_destroy, gi);
    return std::unexpected(std::move(outcome).error());
  }
  std::vector<MigInstanceFacts> rows;
  add_instances(*gpu, *profile, gi, read_mig_devices(*gpu), rows);
  return rows;
}

Result<void> NvmlSource::destroy_instance(const std::string& uuid, int gi_id) {
  const sim::UseMachine use(options_.machine.get());
  JOGAK_TRY(Gpu* const gpu, find(uuid));
  JOGAK_TRY(const abi::GpuInstance gi, find_instance(*gpu, gi_id));
  for (std::uint32_t index = 0; index < abi::kComputeInstanceProfiles; ++index) {
    abi::ComputeInstanceProfileInfo kind{};
    if (call(f_.ci_profile, gi, index, abi::kEngineShared, &kind) != Return::Success) continue;
    std::vector<abi::ComputeInstance> handles(kind.instance_count);
    auto count = static_cast<std::uint32_t>(handles.size());
    if (handles.empty()) continue;
    JOGAK_TRY_VOID(check(call(f_.ci_list, gi, kind.id, handles.data(), &count),
                         "listing compute instances", gpu));
    handles.resize(std::min<std::size_t>(count, handles.size()));
    for (const abi::ComputeInstance ci : handles) {
      JOGAK_TRY_VOID(check(call(f_.ci_destroy, ci),
                           fmt::format("destroying a compute instance of {}", gi_id), gpu));
    }
  }
  return check(call(f_.gi_destroy, gi), fmt::format("destroying GPU instance {}", gi_id), gpu);
}

Result<void> NvmlSource::destroy_compute_instance(const std::string& uuid, int gi_id, int ci_id) {
  const sim::UseMachine use(options_.machine.get());
  JOGAK_TRY(Gpu* const gpu, find(uuid));
  JOGAK_TRY(const abi::GpuInstance gi, find_instance(*gpu, gi_id));
  abi::ComputeInstance ci = nullptr;
  const std::string what = fmt::format("compute instance {}/{}", gi_id, ci_id);
  JOGAK_TRY_VOID(check(call(f_.ci_by_id, gi, static_cast<std::uint32_t>(ci_id), &ci), what, gpu));
  return check(call(f_.ci_destroy, ci), "destroying " + what, gpu);
}

Result<MigInstanceFacts> NvmlSource::create_compute_instance(const std::string& uuid, int gi_id,
                                                             int ci_profile_id) {
  const sim::UseMachine use(options_.machine.get());
  JOGAK_TRY(Gpu* const gpu, find(uuid));
  if (gpu->facts.mig_profiles.empty()) read_mig(*gpu);
  JOGAK_TRY(const abi::GpuInstance gi, find_instance(*gpu, gi_id));
  abi::ComputeInstance ci = nullptr;
  JOGAK_TRY_VOID(check(
      call(f_.ci_create, gi, static_cast<std::uint32_t>(ci_profile_id), &ci),
      fmt::format("creating compute instance {} in GPU instance {}", ci_profile_id, gi_id), gpu));
  abi::ComputeInstanceInfo info{};
  JOGAK_TRY_VOID(check(call(f_.ci_info, ci, &info), "nvmlComputeInstanceGetInfo", gpu));
  for (const MigInstanceFacts& row : read_mig_instances(*gpu)) {
    if (row.gi_id == gi_id && row.ci_id == static_cast<int>(info.id)) return row;
  }
  return fail(Errc::NotFound, "compute instance {}/{} vanished", gi_id, info.id);
}

}  // namespace jogak::nvml
