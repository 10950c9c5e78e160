// SPDX-License-Identifier: Apache-2.0
//
// Initialisation, versions, enumeration and identity.
#include <cstdio>

#include <fmt/format.h>

#include "nvml/abi_constants.h"
#include "nvml/sim/c_call.h"
#include "nvml/sim/models.h"
#include "nvml/sim/names.h"

namespace jogak::nvml::abi {

namespace {

using sim::GpuState;
using sim::Machine;
using sim::on_any_device;
using sim::on_driver;
using sim::on_gpu;
using sim::put;
using sim::put_text;
using sim::Target;

Return initialise(std::uint32_t flags) {
  Machine* const machine = sim::current_machine();
  if (machine == nullptr) return Return::DriverNotLoaded;
  std::unique_lock lock(machine->mutex());
  machine->advance();
  sim::wait_if_slow(*machine, lock, "nvmlInit_v2", -1);
  if (!machine->is_driver_up()) return Return::DriverNotLoaded;
  if (const auto* fault = machine->active_call(sim::FaultKind::FailCall, "nvmlInit_v2", -1)) {
    return static_cast<Return>(fault->code);
  }
  if (machine->gpus().empty() && (flags & kInitNoGpus) == 0) return Return::NotFound;
  ++machine->init_count();
  return Return::Success;
}

// The GPU that `matches` picks, as a handle.
template <class Matches>
Return find_device(std::string_view function, Device* device, Matches matches) {
  return on_driver(function, [&](Machine& machine) {
    if (device == nullptr) return Return::InvalidArgument;
    for (const int index : machine.visible_gpus()) {
      GpuState& gpu = machine.gpus()[static_cast<std::size_t>(index)];
      if (!matches(gpu)) continue;
      if (machine.is_lost(index)) return Return::GpuIsLost;
      *device = sim::as_handle<Device>(machine.device_handle(index));
      return Return::Success;
    }
    return Return::NotFound;
  });
}

PciInfo pci_info(const GpuState& gpu) {
  const sim::BusId bus = sim::parse_bus_id(gpu.spec.bus_id).value_or(sim::BusId{});
  PciInfo info{};
  info.domain = bus.domain;
  info.bus = bus.bus;
  info.device = bus.device;
  info.pci_device_id = gpu.spec.pci_device_id;
  info.pci_sub_system_id = gpu.spec.pci_subsystem_id;
  sim::fill_text(info.bus_id_legacy, fmt::format("{:04X}:{:02X}:{:02X}.{}", bus.domain & 0xFFFFU,
                                                 bus.bus, bus.device, bus.function));
  sim::fill_text(info.bus_id, fmt::format("{:08X}:{:02X}:{:02X}.{}", bus.domain, bus.bus,
                                          bus.device, bus.function));
  return info;
}

Return put_gpu_text(const char* function, Device device, char* to, std::size_t size,
                    std::string sim::GpuSpec::* field) {
  return on_gpu(function, device, [&](Target& t) {
    const std::string& text = t.gpu.spec.*field;
    return text.empty() ? Return::NotSupported : put_text(to, size, text);
  });
}

}  // namespace

Return nvmlInit_v2() { return initialise(0); }
Return nvmlInit() { return initialise(0); }
Return nvmlInitWithFlags(std::uint32_t flags) { return initialise(flags); }

Return nvmlShutdown() {
  Machine* const machine = sim::current_machine();
  if (machine == nullptr) return Return::Uninitialized;
  const std::scoped_lock lock(machine->mutex());
  machine->advance();
  if (machine->init_count() == 0) return Return::Uninitialized;
  --machine->init_count();
  return Return::Success;
}

const char* nvmlErrorString(Return result) {
  switch (result) {
    case Return::Success:
      return "Success";
    case Return::Uninitialized:
      return "Uninitialized";
    case Return::InvalidArgument:
      return "Invalid Argument";
    case Return::NotSupported:
      return "Not Supported";
    case Return::NoPermission:
      return "Insufficient Permissions";
    case Return::NotFound:
      return "Not Found";
    case Return::InsufficientSize:
      return "Insufficient Size";
    case Return::DriverNotLoaded:
      return "Driver Not Loaded";
    case Return::Timeout:
      return "Timeout";
    case Return::FunctionNotFound:
      return "Function Not Found";
    case Return::GpuIsLost:
      return "GPU is lost";
    case Return::ResetRequired:
      return "GPU requires reset";
    case Return::LibRmVersionMismatch:
      return "Driver/library version mismatch";
    case Return::InUse:
      return "In use by another client";
    case Return::NoData:
      return "No data";
    case Return::InsufficientResources:
      return "Insufficient Resources";
    case Return::ArgumentVersionMismatch:
      return "Argument version mismatch";
    default:
      return "Unknown Error";
  }
}

Return nvmlSystemGetDriverVersion(char* version, std::uint32_t length) {
  return on_driver(__func__, [&](Machine& machine) {
    return put_text(version, length, machine.driver_version());
  });
}

Return nvmlSystemGetNVMLVersion(char* version, std::uint32_t length) {
  return on_driver(__func__, [&](Machine& machine) {
    return put_text(version, length, machine.spec().nvml_version);
  });
}

Return nvmlSystemGetCudaDriverVersion_v2(std::int32_t* version) {
  // Needs no initialisation.
  Machine* const machine = sim::current_machine();
  if (machine == nullptr) return Return::LibraryNotFound;
  if (version == nullptr) return Return::InvalidArgument;
  *version = machine->spec().cuda_major * 1000 + machine->spec().cuda_minor * 10;
  return Return::Success;
}

Return nvmlSystemGetCudaDriverVersion(std::int32_t* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

Return nvmlSystemGetDriverBranch(SystemDriverBranchInfoV1* info, std::uint32_t length) {
  return on_driver(__func__, [&](Machine& machine) {
    if (info == nullptr) return Return::InvalidArgument;
    if (info->version != version_of<SystemDriverBranchInfoV1>(1)) {
      return Return::ArgumentVersionMismatch;
    }
    return put_text(info->branch, std::min<std::size_t>(length, sizeof(info->branch)),
                    machine.spec().driver_branch);
  });
}

Return nvmlSystemGetProcessName(std::uint32_t pid, char* name, std::uint32_t length) {
  return on_driver(__func__, [&](Machine& machine) {
    if (name == nullptr || length == 0) return Return::InvalidArgument;
    for (const GpuState& gpu : machine.gpus()) {
      for (const sim::ProcessState* process : machine.processes(gpu.index)) {
        if (process->spec.pid != pid || process->spec.name.empty()) continue;
        // Cut to the room there is, as the driver does.
        return put_text(name, length, std::string_view(process->spec.name).substr(0, length - 1));
      }
    }
    return Return::NotFound;
  });
}

Return nvmlSystemGetTopologyGpuSet(std::uint32_t cpu, std::uint32_t* count, Device* devices) {
  return on_driver(__func__, [&](Machine& machine) {
    std::vector<int> near;
    for (const int index : machine.visible_gpus()) {
      const auto cpus =
          sim::parse_cpu_list(machine.gpus()[static_cast<std::size_t>(index)].spec.cpus);
      if (cpus && cpu / 64 < cpus->size() && ((*cpus)[cpu / 64] >> cpu % 64 & 1U) != 0) {
        near.push_back(index);
      }
    }
    return sim::put_list(count, devices, near.size(), [&](std::size_t i) {
      return sim::as_handle<Device>(machine.device_handle(near[i]));
    });
  });
}

Return nvmlSystemGetHicVersion(std::uint32_t* count, void*) {
  return on_driver(__func__, [&](Machine&) { return put(count, 0); });
}

Return nvmlUnitGetCount(std::uint32_t* count) {
  return on_driver(__func__, [&](Machine&) { return put(count, 0); });
}

Return nvmlDeviceGetCount_v2(std::uint32_t* count) {
  return on_driver(__func__,
                   [&](Machine& machine) { return put(count, machine.visible_gpus().size()); });
}
Return nvmlDeviceGetCount(std::uint32_t* count) { return nvmlDeviceGetCount_v2(count); }

Return nvmlDeviceGetHandleByIndex_v2(std::uint32_t index, Device* device) {
  return on_driver(__func__, [&](Machine& machine) {
    const std::vector<int> visible = machine.visible_gpus();
    if (device == nullptr || index >= visible.size()) return Return::InvalidArgument;
    if (machine.is_lost(visible[index])) return Return::GpuIsLost;
    *device = sim::as_handle<Device>(machine.device_handle(visible[index]));
    return Return::Success;
  });
}
Return nvmlDeviceGetHandleByIndex(std::uint32_t index, Device* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  if (uuid == nullptr) return Return::InvalidArgument;
  const std::string_view wanted(uuid);
  if (!wanted.starts_with("MIG-")) {
    return find_device(__func__, device,
                       [&](const GpuState& gpu) { return gpu.spec.uuid == wanted; });
  }
  return on_driver(__func__, [&](Machine& machine) {
    if (device == nullptr) return Return::InvalidArgument;
    for (const GpuState& gpu : machine.gpus()) {
      for (const sim::GpuInstanceState& instance : gpu.instances) {
        for (const sim::ComputeInstanceState& compute : instance.compute) {
          if (compute.uuid != wanted) continue;
          *device = sim::as_handle<Device>(compute.device_handle);
          return Return::Success;
        }
      }
    }
    return Return::NotFound;
  });
}

Return nvmlDeviceGetHandleByUUIDV(const UuidV1* uuid, Device* device) {
  if (uuid == nullptr) return Return::InvalidArgument;
  if (uuid->version != version_of<UuidV1>(1)) return Return::ArgumentVersionMismatch;
  if (uuid->type == kUuidAscii) {
    const std::string text(uuid->value.text, ::strnlen(uuid->value.text, sizeof(UuidValue)));
    return nvmlDeviceGetHandleByUUID(text.c_str(), device);
  }
  if (uuid->type != kUuidBinary) return Return::InvalidArgument;
  std::string text;
  for (std::size_t i = 0; i < sizeof(uuid->value.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid->value.bytes[i]);
  }
  return nvmlDeviceGetHandleByUUID(("GPU-" + text).c_str(), device);
}

Return nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Device* device) {
  if (bus_id == nullptr) return Return::InvalidArgument;
  const auto wanted = sim::parse_bus_id(bus_id);
  if (!wanted) return Return::InvalidArgument;
  return find_device(__func__, device, [&](const GpuState& gpu) {
    const auto bus = sim::parse_bus_id(gpu.spec.bus_id);
    return bus && bus->domain == wanted->domain && bus->bus == wanted->bus &&
           bus->device == wanted->device;
  });
}
Return nvmlDeviceGetHandleByPciBusId(const char* bus_id, Device* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

Return nvmlDeviceGetHandleBySerial(const char* serial, Device* device) {
  if (serial == nullptr) return Return::InvalidArgument;
  return find_device(__func__, device,
                     [&](const GpuState& gpu) { return gpu.spec.serial == serial; });
}

Return nvmlDeviceGetIndex(Device device, std::uint32_t* index) {
  return on_any_device(__func__, device, [&](Target& t) {
    const sim::ComputeInstanceState* const mig =
        t.gi_id < 0 ? nullptr : t.machine.compute_instance(t.gpu.index, t.gi_id, t.ci_id);
    if (mig != nullptr) return put(index, mig->mig_index);
    const std::vector<int> visible = t.machine.visible_gpus();
    return put(index, std::ranges::find(visible, t.gpu.index) - visible.begin());
  });
}

Return nvmlDeviceGetName(Device device, char* name, std::uint32_t length) {
  return on_any_device(__func__, device, [&](Target& t) {
    if (t.gi_id < 0) return put_text(name, length, t.gpu.spec.name);
    const auto* instance = t.machine.instance(t.gpu.index, t.gi_id);
    const auto* compute = t.machine.compute_instance(t.gpu.index, t.gi_id, t.ci_id);
    const auto& profile = t.gpu.spec.mig_profiles[static_cast<std::size_t>(instance->profile)];
    return put_text(
        name, length,
        t.gpu.spec.name + " MIG " + sim::compute_profile_name(profile, compute->query_index));
  });
}

Return nvmlDeviceGetBrand(Device device, Enum* brand) {
  return on_any_device(__func__, device,
                       [&](Target& t) { return put(brand, sim::brand_value(t.gpu.spec.brand)); });
}

Return nvmlDeviceGetArchitecture(Device device, Enum* architecture) {
  return on_any_device(__func__, device, [&](Target& t) {
    return put(architecture, sim::architecture_value(t.gpu.spec.architecture));
  });
}

Return nvmlDeviceGetCudaComputeCapability(Device device, std::int32_t* major, std::int32_t* minor) {
  return on_any_device(__func__, device, [&](Target& t) {
    if (major == nullptr || minor == nullptr) return Return::InvalidArgument;
    *major = t.gpu.spec.compute_major;
    *minor = t.gpu.spec.compute_minor;
    return Return::Success;
  });
}

Return nvmlDeviceGetUUID(Device device, char* uuid, std::uint32_t length) {
  return on_any_device(__func__, device, [&](Target& t) {
    const auto* compute = t.machine.compute_instance(t.gpu.index, t.gi_id, t.ci_id);
    return put_text(uuid, length, compute == nullptr ? t.gpu.spec.uuid : compute->uuid);
  });
}

Return nvmlDeviceGetMinorNumber(Device device, std::uint32_t* minor) {
  return on_any_device(__func__, device, [&](Target& t) {
    return t.gpu.spec.minor < 0 ? Return::NotSupported : put(minor, t.gpu.spec.minor);
  });
}

Return nvmlDeviceGetSerial(Device device, char* serial, std::uint32_t length) {
  return put_gpu_text(__func__, device, serial, length, &sim::GpuSpec::serial);
}

Return nvmlDeviceGetBoardPartNumber(Device device, char* number, std::uint32_t length) {
  return put_gpu_text(__func__, device, number, length, &sim::GpuSpec::part_number);
}

Return nvmlDeviceGetVbiosVersion(Device device, char* version, std::uint32_t length) {
  return put_gpu_text(__func__, device, version, length, &sim::GpuSpec::vbios);
}

Return nvmlDeviceGetInforomImageVersion(Device device, char* version, std::uint32_t length) {
  return put_gpu_text(__func__, device, version, length, &sim::GpuSpec::inforom);
}

Return nvmlDeviceGetInforomVersion(Device device, Enum object, char* version,
                                   std::uint32_t length) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (object > 2) return Return::InvalidArgument;
    return t.gpu.spec.inforom.empty() ? Return::NotSupported
                                      : put_text(version, length, object == 1 ? "6.16" : "2.1");
  });
}

Return nvmlDeviceGetInforomConfigurationChecksum(Device device, std::uint32_t* checksum) {
  return on_gpu(__func__, device, [&](Target& t) {
    return put(checksum, std::hash<std::string>{}(t.gpu.spec.inforom) & 0xFFFFFFFFU);
  });
}

Return nvmlDeviceValidateInforom(Device device) {
  return on_gpu(__func__, device, [](Target&) { return Return::Success; });
}

Return nvmlDeviceGetBoardId(Device device, std::uint32_t* id) {
  return on_gpu(__func__, device, [&](Target& t) {
    const int board = t.gpu.spec.board;
    return put(id, board >= 0 ? board : (pci_info(t.gpu).bus << 8U) + 0x10000U);
  });
}

Return nvmlDeviceGetMultiGpuBoard(Device device, std::uint32_t* is_multi) {
  return on_gpu(__func__, device,
                [&](Target& t) { return put(is_multi, t.gpu.spec.board >= 0 ? 1 : 0); });
}

Return nvmlDeviceOnSameBoard(Device first, Device second, std::int32_t* same) {
  int board = -1;
  int index = -1;
  const Return found = on_gpu(__func__, first, [&](Target& t) {
    board = t.gpu.spec.board;
    index = t.gpu.index;
    return Return::Success;
  });
  if (found != Return::Success) return found;
  return on_gpu(__func__, second, [&](Target& t) {
    return put(same, t.gpu.index == index || (board >= 0 && t.gpu.spec.board == board) ? 1 : 0);
  });
}

Return nvmlDeviceGetModuleId(Device device, std::uint32_t* id) {
  return on_gpu(__func__, device, [&](Target& t) {
    return t.gpu.spec.module_id < 0 ? Return::NotSupported : put(id, t.gpu.spec.module_id);
  });
}

Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  return on_any_device(__func__, device, [&](Target& t) { return put(pci, pci_info(t.gpu)); });
}

Return nvmlDeviceGetPciInfo_v2(Device device, PciInfo* pci) {
  // The struct of old callers ends after the subsystem and reserved words.
  return on_any_device(__func__, device, [&](Target& t) {
    if (pci == nullptr) return Return::InvalidArgument;
    const PciInfo info = pci_info(t.gpu);
    std::memcpy(pci, &info, offsetof(PciInfo, bus_id));
    return Return::Success;
  });
}

Return nvmlDeviceGetPciInfo(Device device, PciInfo* pci) {
  return on_any_device(__func__, device, [&](Target& t) {
    if (pci == nullptr) return Return::InvalidArgument;
    const PciInfo info = pci_info(t.gpu);
    std::memcpy(pci, &info, offsetof(PciInfo, pci_sub_system_id));
    return Return::Success;
  });
}

Return nvmlDeviceGetPciInfoExt(Device device, PciInfoExtV1* pci) {
  return on_any_device(__func__, device, [&](Target& t) {
    if (pci == nullptr) return Return::InvalidArgument;
    if (pci->version != version_of<PciInfoExtV1>(1)) return Return::ArgumentVersionMismatch;
    const PciInfo info = pci_info(t.gpu);
    pci->domain = info.domain;
    pci->bus = info.bus;
    pci->device = info.device;
    pci->pci_device_id = info.pci_device_id;
    pci->pci_sub_system_id = info.pci_sub_system_id;
    pci->base_class = 0x03;
    pci->sub_class = t.gpu.spec.has_encoder ? 0x00 : 0x02;
    sim::fill_text(pci->bus_id, info.bus_id);
    return Return::Success;
  });
}

Return nvmlDeviceGetPlatformInfo(Device device, PlatformInfoV2* info) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (info == nullptr) return Return::InvalidArgument;
    if (info->version != version_of<PlatformInfoV2>(2) &&
        info->version != version_of<PlatformInfoV1>(1)) {
      return Return::ArgumentVersionMismatch;
    }
    if (t.gpu.spec.fabric.cluster_uuid.empty()) return Return::NotSupported;
    const std::uint32_t version = info->version;
    *info = {};
    info->version = version;
    info->module_id = static_cast<std::uint8_t>(std::max(0, t.gpu.spec.module_id));
    return Return::Success;
  });
}

Return nvmlDeviceGetAddressingMode(Device device, DeviceAddressingModeV1* mode) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (mode == nullptr) return Return::InvalidArgument;
    if (mode->version != version_of<DeviceAddressingModeV1>(1)) {
      return Return::ArgumentVersionMismatch;
    }
    return put(&mode->value, t.gpu.spec.addressing_mode);
  });
}

Return nvmlDeviceGetVirtualizationMode(Device device, Enum* mode) {
  return on_gpu(__func__, device,
                [&](Target& t) { return put(mode, t.gpu.spec.virtualization_mode); });
}

Return nvmlDeviceGetPersistenceMode(Device device, Enum* mode) {
  return on_gpu(__func__, device, [&](Target& t) { return put(mode, t.gpu.persistence ? 1 : 0); });
}

Return nvmlDeviceSetPersistenceMode(Device device, Enum mode) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (mode > 1) return Return::InvalidArgument;
    t.gpu.persistence = mode == 1;
    return Return::Success;
  });
}

Return nvmlGetExcludedDeviceCount(std::uint32_t* count) {
  return put(count, 0);  // needs no initialisation
}

Return nvmlGetExcludedDeviceInfoByIndex(std::uint32_t, ExcludedDeviceInfo*) {
  return Return::InvalidArgument;
}

Return nvmlDeviceGetDisplayMode(Device device, Enum* mode) {
  return on_gpu(__func__, device, [&](Target&) { return put(mode, 0); });
}
Return nvmlDeviceGetDisplayActive(Device device, Enum* mode) {
  return on_gpu(__func__, device, [&](Target&) { return put(mode, 0); });
}
Return nvmlDeviceGetNumGpuCores(Device device, std::uint32_t* cores) {
  return on_gpu(__func__, device, [&](Target& t) { return put(cores, t.gpu.spec.cores); });
}
Return nvmlDeviceGetMemoryBusWidth(Device device, std::uint32_t* bits) {
  return on_gpu(__func__, device, [&](Target& t) { return put(bits, t.gpu.spec.bus_width_bits); });
}
Return nvmlDeviceGetBusType(Device device, Enum* type) {
  constexpr Enum kPcie = 2;
  return on_gpu(__func__, device, [&](Target&) { return put(type, kPcie); });
}
Return nvmlDeviceGetIrqNum(Device device, std::uint32_t* irq) {
  return on_gpu(__func__, device, [&](Target& t) { return put(irq, 100 + t.gpu.index); });
}
Return nvmlDeviceGetGspFirmwareVersion(Device device, char* version) {
  return on_gpu(__func__, device, [&](Target& t) {
    return put_text(version, kDriverVersionSize, t.machine.driver_version());
  });
}
Return nvmlDeviceGetGspFirmwareMode(Device device, std::uint32_t* on, std::uint32_t* by_default) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (on == nullptr || by_default == nullptr) return Return::InvalidArgument;
    *on = *by_default = t.gpu.spec.compute_major >= 9 ? 1 : 0;
    return Return::Success;
  });
}
Return nvmlDeviceGetC2cModeInfoV(Device device, C2cModeInfoV1* info) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (info == nullptr) return Return::InvalidArgument;
    return put(&info->is_enabled, t.gpu.spec.addressing_mode == 2 ? 1 : 0);
  });
}

}  // namespace jogak::nvml::abi
