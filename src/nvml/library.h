// SPDX-License-Identifier: Apache-2.0
//
// The functions of NVML that Jogak calls, found one by one in a library: the real one, the
// simulated one, or the simulation in this process. A function that an older library does not have
// is null; callers go through `call`, which then answers FunctionNotFound like any other refusal.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "nvml/abi.h"

namespace jogak::nvml {

// F(member, newest name, older name of the same signature or "", parameters)
#define JOGAK_NVML_API(F)                                                                          \
  F(init, "nvmlInit_v2", "nvmlInit", ())                                                           \
  F(init_with_flags, "nvmlInitWithFlags", "", (std::uint32_t))                                     \
  F(shutdown, "nvmlShutdown", "", ())                                                              \
  F(driver_version, "nvmlSystemGetDriverVersion", "", (char*, std::uint32_t))                      \
  F(nvml_version, "nvmlSystemGetNVMLVersion", "", (char*, std::uint32_t))                          \
  F(cuda_version, "nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion",           \
    (std::int32_t*))                                                                               \
  F(process_name, "nvmlSystemGetProcessName", "", (std::uint32_t, char*, std::uint32_t))           \
  F(count, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", (std::uint32_t*))                        \
  F(handle_by_index, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex",                \
    (std::uint32_t, abi::Device*))                                                                 \
  F(name, "nvmlDeviceGetName", "", (abi::Device, char*, std::uint32_t))                            \
  F(uuid, "nvmlDeviceGetUUID", "", (abi::Device, char*, std::uint32_t))                            \
  F(serial, "nvmlDeviceGetSerial", "", (abi::Device, char*, std::uint32_t))                        \
  F(part_number, "nvmlDeviceGetBoardPartNumber", "", (abi::Device, char*, std::uint32_t))          \
  F(vbios, "nvmlDeviceGetVbiosVersion", "", (abi::Device, char*, std::uint32_t))                   \
  F(inforom, "nvmlDeviceGetInforomImageVersion", "", (abi::Device, char*, std::uint32_t))          \
  F(inforom_object, "nvmlDeviceGetInforomVersion", "",                                             \
    (abi::Device, abi::Enum, char*, std::uint32_t))                                                \
  F(brand, "nvmlDeviceGetBrand", "", (abi::Device, abi::Enum*))                                    \
  F(architecture, "nvmlDeviceGetArchitecture", "", (abi::Device, abi::Enum*))                      \
  F(compute_capability, "nvmlDeviceGetCudaComputeCapability", "",                                  \
    (abi::Device, std::int32_t*, std::int32_t*))                                                   \
  F(minor, "nvmlDeviceGetMinorNumber", "", (abi::Device, std::uint32_t*))                          \
  F(module_id, "nvmlDeviceGetModuleId", "", (abi::Device, std::uint32_t*))                         \
  F(pci_info, "nvmlDeviceGetPciInfo_v3", "", (abi::Device, abi::PciInfo*))                         \
  F(addressing_mode, "nvmlDeviceGetAddressingMode", "",                                            \
    (abi::Device, abi::DeviceAddressingModeV1*))                                                   \
  F(virtualization_mode, "nvmlDeviceGetVirtualizationMode", "", (abi::Device, abi::Enum*))         \
  F(persistence_mode, "nvmlDeviceGetPersistenceMode", "", (abi::Device, abi::Enum*))               \
  F(compute_mode, "nvmlDeviceGetComputeMode", "", (abi::Device, abi::Enum*))                       \
  F(set_compute_mode, "nvmlDeviceSetComputeMode", "", (abi::Device, abi::Enum))                    \
  F(memory, "nvmlDeviceGetMemoryInfo", "", (abi::Device, abi::Memory*))                            \
  F(memory_v2, "nvmlDeviceGetMemoryInfo_v2", "", (abi::Device, abi::MemoryV2*))                    \
  F(bar1, "nvmlDeviceGetBAR1MemoryInfo", "", (abi::Device, abi::Bar1Memory*))                      \
  F(utilization, "nvmlDeviceGetUtilizationRates", "", (abi::Device, abi::Utilization*))            \
  F(encoder, "nvmlDeviceGetEncoderUtilization", "", (abi::Device, std::uint32_t*, std::uint32_t*)) \
  F(decoder, "nvmlDeviceGetDecoderUtilization", "", (abi::Device, std::uint32_t*, std::uint32_t*)) \
  F(jpeg, "nvmlDeviceGetJpgUtilization", "", (abi::Device, std::uint32_t*, std::uint32_t*))        \
  F(ofa, "nvmlDeviceGetOfaUtilization", "", (abi::Device, std::uint32_t*, std::uint32_t*))         \
  F(temperature_v, "nvmlDeviceGetTemperatureV", "", (abi::Device, abi::TemperatureV1*))            \
  F(temperature, "nvmlDeviceGetTemperature", "", (abi::Device, abi::Enum, std::uint32_t*))         \
  F(threshold, "nvmlDeviceGetTemperatureThreshold", "", (abi::Device, abi::Enum, std::uint32_t*))  \
  F(power, "nvmlDeviceGetPowerUsage", "", (abi::Device, std::uint32_t*))                           \
  F(energy, "nvmlDeviceGetTotalEnergyConsumption", "", (abi::Device, std::uint64_t*))              \
  F(power_limit, "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit",           \
    (abi::Device, std::uint32_t*))                                                                 \
  F(power_limit_requested, "nvmlDeviceGetPowerManagementLimit", "", (abi::Device, std::uint32_t*)) \
  F(power_limit_range, "nvmlDeviceGetPowerManagementLimitConstraints", "",                         \
    (abi::Device, std::uint32_t*, std::uint32_t*))                                                 \
  F(power_limit_default, "nvmlDeviceGetPowerManagementDefaultLimit", "",                           \
    (abi::Device, std::uint32_t*))                                                                 \
  F(clock, "nvmlDeviceGetClockInfo", "", (abi::Device, abi::Enum, std::uint32_t*))                 \
  F(clock_max, "nvmlDeviceGetMaxClockInfo", "", (abi::Device, abi::Enum, std::uint32_t*))          \
  F(performance_state, "nvmlDeviceGetPerformanceState", "", (abi::Device, abi::Enum*))             \
  F(throttle_reasons, "nvmlDeviceGetCurrentClocksEventReasons",                                    \
    "nvmlDeviceGetCurrentClocksThrottleReasons", (abi::Device, std::uint64_t*))                    \
  F(violation, "nvmlDeviceGetViolationStatus", "", (abi::Device, abi::Enum, abi::ViolationTime*))  \
  F(fan, "nvmlDeviceGetFanSpeed", "", (abi::Device, std::uint32_t*))                               \
  F(ecc_mode, "nvmlDeviceGetEccMode", "", (abi::Device, abi::Enum*, abi::Enum*))                   \
  F(ecc_total, "nvmlDeviceGetTotalEccErrors", "",                                                  \
    (abi::Device, abi::Enum, abi::Enum, std::uint64_t*))                                           \
  F(remapped_rows, "nvmlDeviceGetRemappedRows", "",                                                \
    (abi::Device, std::uint32_t*, std::uint32_t*, std::uint32_t*, std::uint32_t*))                 \
  F(row_histogram, "nvmlDeviceGetRowRemapperHistogram", "",                                        \
    (abi::Device, abi::RowRemapperHistogramValues*))                                               \
  F(event_set_create, "nvmlEventSetCreate", "", (abi::EventSet*))                                  \
  F(supported_events, "nvmlDeviceGetSupportedEventTypes", "", (abi::Device, std::uint64_t*))       \
  F(register_events, "nvmlDeviceRegisterEvents", "", (abi::Device, std::uint64_t, abi::EventSet))  \
  F(event_wait, "nvmlEventSetWait_v2", "", (abi::EventSet, abi::EventData*, std::uint32_t))        \
  F(event_set_free, "nvmlEventSetFree", "", (abi::EventSet))                                       \
  F(pcie_throughput, "nvmlDeviceGetPcieThroughput", "", (abi::Device, abi::Enum, std::uint32_t*))  \
  F(pcie_replays, "nvmlDeviceGetPcieReplayCounter", "", (abi::Device, std::uint32_t*))             \
  F(pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration", "", (abi::Device, std::uint32_t*))     \
  F(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth", "", (abi::Device, std::uint32_t*))               \
  F(pcie_generation_max, "nvmlDeviceGetMaxPcieLinkGeneration", "", (abi::Device, std::uint32_t*))  \
  F(pcie_width_max, "nvmlDeviceGetMaxPcieLinkWidth", "", (abi::Device, std::uint32_t*))            \
  F(fields, "nvmlDeviceGetFieldValues", "", (abi::Device, std::int32_t, abi::FieldValue*))         \
  F(nvlink_state, "nvmlDeviceGetNvLinkState", "", (abi::Device, std::uint32_t, abi::Enum*))        \
  F(nvlink_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType", "",                                 \
    (abi::Device, std::uint32_t, abi::Enum*))                                                      \
  F(nvlink_remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2", "",                                  \
    (abi::Device, std::uint32_t, abi::PciInfo*))                                                   \
  F(nvlink_errors, "nvmlDeviceGetNvLinkErrorCounter", "",                                          \
    (abi::Device, std::uint32_t, abi::Enum, std::uint64_t*))                                       \
  F(p2p_status, "nvmlDeviceGetP2PStatus", "", (abi::Device, abi::Device, abi::Enum, abi::Enum*))   \
  F(common_ancestor, "nvmlDeviceGetTopologyCommonAncestor", "",                                    \
    (abi::Device, abi::Device, abi::Enum*))                                                        \
  F(cpu_affinity, "nvmlDeviceGetCpuAffinity", "", (abi::Device, std::uint32_t, std::uint64_t*))    \
  F(memory_affinity, "nvmlDeviceGetMemoryAffinity", "",                                            \
    (abi::Device, std::uint32_t, std::uint64_t*, abi::Enum))                                       \
  F(fabric, "nvmlDeviceGetGpuFabricInfo", "", (abi::Device, abi::GpuFabricInfo*))                  \
  F(fabric_v, "nvmlDeviceGetGpuFabricInfoV", "", (abi::Device, abi::GpuFabricInfoV3*))             \
  F(compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3",                                  \
    "nvmlDeviceGetComputeRunningProcesses_v2", (abi::Device, std::uint32_t*, void*))               \
  F(graphics_processes, "nvmlDeviceGetGraphicsRunningProcesses_v3",                                \
    "nvmlDeviceGetGraphicsRunningProcesses_v2", (abi::Device, std::uint32_t*, void*))              \
  F(mps_processes, "nvmlDeviceGetMPSComputeRunningProcesses_v3",                                   \
    "nvmlDeviceGetMPSComputeRunningProcesses_v2", (abi::Device, std::uint32_t*, void*))            \
  F(process_utilization, "nvmlDeviceGetProcessUtilization", "",                                    \
    (abi::Device, abi::ProcessUtilizationSample*, std::uint32_t*, std::uint64_t))                  \
  F(mig_mode, "nvmlDeviceGetMigMode", "", (abi::Device, std::uint32_t*, std::uint32_t*))           \
  F(set_mig_mode, "nvmlDeviceSetMigMode", "", (abi::Device, std::uint32_t, abi::Return*))          \
  F(mig_count_max, "nvmlDeviceGetMaxMigDeviceCount", "", (abi::Device, std::uint32_t*))            \
  F(mig_handle, "nvmlDeviceGetMigDeviceHandleByIndex", "",                                         \
    (abi::Device, std::uint32_t, abi::Device*))                                                    \
  F(gi_id, "nvmlDeviceGetGpuInstanceId", "", (abi::Device, std::uint32_t*))                        \
  F(ci_id, "nvmlDeviceGetComputeInstanceId", "", (abi::Device, std::uint32_t*))                    \
  F(attributes, "nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes",                           \
    (abi::Device, abi::DeviceAttributes*))                                                         \
  F(gi_profile, "nvmlDeviceGetGpuInstanceProfileInfo", "",                                         \
    (abi::Device, std::uint32_t, abi::GpuInstanceProfileInfo*))                                    \
  F(gi_profile_v, "nvmlDeviceGetGpuInstanceProfileInfoV", "",                                      \
    (abi::Device, std::uint32_t, abi::GpuInstanceProfileInfoV2*))                                  \
  F(gi_placements, "nvmlDeviceGetGpuInstancePossiblePlacements_v2",                                \
    "nvmlDeviceGetGpuInstancePossiblePlacements",                                                  \
    (abi::Device, std::uint32_t, abi::GpuInstancePlacement*, std::uint32_t*))                      \
  F(gi_create, "nvmlDeviceCreateGpuInstanceWithPlacement", "",                                     \
    (abi::Device, std::uint32_t, const abi::GpuInstancePlacement*, abi::GpuInstance*))             \
  F(gi_list, "nvmlDeviceGetGpuInstances", "",                                                      \
    (abi::Device, std::uint32_t, abi::GpuInstance*, std::uint32_t*))                               \
  F(gi_by_id, "nvmlDeviceGetGpuInstanceById", "", (abi::Device, std::uint32_t, abi::GpuInstance*)) \
  F(gi_info, "nvmlGpuInstanceGetInfo", "", (abi::GpuInstance, abi::GpuInstanceInfo*))              \
  F(gi_destroy, "nvmlGpuInstanceDestroy", "", (abi::GpuInstance))                                  \
  F(ci_profile, "nvmlGpuInstanceGetComputeInstanceProfileInfo", "",                                \
    (abi::GpuInstance, std::uint32_t, std::uint32_t, abi::ComputeInstanceProfileInfo*))            \
  F(ci_create, "nvmlGpuInstanceCreateComputeInstance", "",                                         \
    (abi::GpuInstance, std::uint32_t, abi::ComputeInstance*))                                      \
  F(ci_list, "nvmlGpuInstanceGetComputeInstances", "",                                             \
    (abi::GpuInstance, std::uint32_t, abi::ComputeInstance*, std::uint32_t*))                      \
  F(ci_by_id, "nvmlGpuInstanceGetComputeInstanceById", "",                                         \
    (abi::GpuInstance, std::uint32_t, abi::ComputeInstance*))                                      \
  F(ci_info, "nvmlComputeInstanceGetInfo_v2", "",                                                  \
    (abi::ComputeInstance, abi::ComputeInstanceInfo*))                                             \
  F(ci_destroy, "nvmlComputeInstanceDestroy", "", (abi::ComputeInstance))                          \
  F(gpm_support, "nvmlGpmQueryDeviceSupport", "", (abi::Device, abi::GpmSupport*))                 \
  F(gpm_alloc, "nvmlGpmSampleAlloc", "", (abi::GpmSample*))                                        \
  F(gpm_free, "nvmlGpmSampleFree", "", (abi::GpmSample))                                           \
  F(gpm_get, "nvmlGpmSampleGet", "", (abi::Device, abi::GpmSample))                                \
  F(gpm_get_mig, "nvmlGpmMigSampleGet", "", (abi::Device, std::uint32_t, abi::GpmSample))          \
  F(gpm_metrics, "nvmlGpmMetricsGet", "", (abi::GpmMetricsGet*))

struct Functions {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declarator and its parameters take none
#define F(member, newest, older, parameters) abi::Return(*member) parameters = nullptr;
  JOGAK_NVML_API(F)
#undef F
  const char* (*error_string)(abi::Return) = nullptr;
};

class Library {
 public:
  // What dlsym does: the address of a name, or null.
  using Lookup = std::function<void*(const char* name)>;

  // An explicit path is the only candidate; "" tries the usual places below each driver root, then
  // the loader's own search. Errors: Unavailable, naming what was tried.
  static Result<std::unique_ptr<Library>> open(const std::string& path,
                                               const std::vector<std::string>& driver_roots = {});
  static std::unique_ptr<Library> from_lookup(const Lookup& lookup, std::string name);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Functions& functions() const { return functions_; }
  const std::string& name() const { return name_; }  // where it came from
  std::string error_text(abi::Return result) const;

 private:
  Library() = default;
  void resolve(const Lookup& lookup);

  Functions functions_;
  std::string name_;
  void* handle_ = nullptr;
};

// Which type a function has in the library is known by its name alone, and lists of records come
// through void*, for their size differs between drivers: clang's check of the type at each call
// would refuse that.
#ifdef __clang__
#define JOGAK_FOREIGN_FUNCTION __attribute__((no_sanitize("function")))
#else
#define JOGAK_FOREIGN_FUNCTION
#endif

// FunctionNotFound for a function that the library does not have.
template <class... Parameters, class... Arguments>
JOGAK_FOREIGN_FUNCTION abi::Return call(abi::Return (*function)(Parameters...),
                                        Arguments... arguments) {
  return function == nullptr ? abi::Return::FunctionNotFound : function(arguments...);
}

}  // namespace jogak::nvml
