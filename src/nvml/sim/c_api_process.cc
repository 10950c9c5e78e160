// SPDX-License-Identifier: Apache-2.0
//
// Processes, accounting, compute mode and capabilities.
#include "nvml/abi_constants.h"
#include "nvml/sim/c_call.h"
#include "nvml/sim/readings.h"

namespace jogak::nvml::abi {

namespace {

using sim::on_any_device;
using sim::on_gpu;
using sim::ProcessKind;
using sim::ProcessState;
using sim::put;
using sim::Target;

// On a MIG device its own; on the GPU all.
std::vector<const ProcessState*> processes_of(const Target& t, Enum mode) {
  std::vector<const ProcessState*> found;
  for (const ProcessState* process : t.machine.processes(t.gpu.index)) {
    const bool is_here = t.gi_id < 0 || (process->gi_id == t.gi_id && process->ci_id == t.ci_id);
    if (is_here && (mode == kProcessAll || static_cast<Enum>(process->spec.kind) == mode)) {
      found.push_back(process);
    }
  }
  return found;
}

std::uint32_t instance_id(int id) { return id < 0 ? kNoInstance : static_cast<std::uint32_t>(id); }

ProcessDetailV1 detail_of(const ProcessState& process) {
  ProcessDetailV1 detail{};
  detail.pid = static_cast<std::uint32_t>(process.spec.pid);
  detail.used_gpu_memory = static_cast<std::uint64_t>(process.spec.memory_mib) << 20U;
  detail.gpu_instance_id = instance_id(process.gi_id);
  detail.compute_instance_id = instance_id(process.ci_id);
  return detail;
}

// Records of 16, 24 or (a slip of some drivers) 32 bytes, one after the other.
Return running(const char* function, Device device, Enum mode, std::uint32_t* count, void* infos,
               bool is_v1) {
  return on_any_device(function, device, [&](Target& t) {
    if (count == nullptr) return Return::InvalidArgument;
    const auto found = processes_of(t, mode);
    const std::uint32_t room = *count;
    *count = static_cast<std::uint32_t>(found.size());
    if (found.empty()) return Return::Success;
    if (room < found.size()) return Return::InsufficientSize;
    if (infos == nullptr) return Return::InvalidArgument;
    const bool is_long = !is_v1 && t.machine.spec().has_long_process_records;
    const std::size_t size = is_v1     ? sizeof(ProcessInfoV1)
                             : is_long ? sizeof(ProcessDetailV1)
                                       : sizeof(ProcessInfoV2);
    auto* at = static_cast<std::byte*>(infos);
    for (const ProcessState* process : found) {
      const ProcessDetailV1 detail = detail_of(*process);
      std::memcpy(at, &detail, size);
      at += size;
    }
    return Return::Success;
  });
}

std::uint64_t time_of(const Target& t) { return static_cast<std::uint64_t>(t.machine.now()); }

}  // namespace

Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, std::uint32_t* count,
                                               ProcessInfoV2* infos) {
  return running(__func__, device, kProcessCompute, count, infos, false);
}
Return nvmlDeviceGetComputeRunningProcesses_v2(Device device, std::uint32_t* count,
                                               ProcessInfoV2* infos) {
  return running(__func__, device, kProcessCompute, count, infos, false);
}
Return nvmlDeviceGetComputeRunningProcesses(Device device, std::uint32_t* count,
                                            ProcessInfoV1* infos) {
  return running(__func__, device, kProcessCompute, count, infos, true);
}
Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, std::uint32_t* count,
                                                ProcessInfoV2* infos) {
  return running(__func__, device, kProcessGraphics, count, infos, false);
}
Return nvmlDeviceGetGraphicsRunningProcesses_v2(Device device, std::uint32_t* count,
                                                ProcessInfoV2* infos) {
  return running(__func__, device, kProcessGraphics, count, infos, false);
}
Return nvmlDeviceGetGraphicsRunningProcesses(Device device, std::uint32_t* count,
                                             ProcessInfoV1* infos) {
  return running(__func__, device, kProcessGraphics, count, infos, true);
}
Return nvmlDeviceGetMPSComputeRunningProcesses_v3(Device device, std::uint32_t* count,
                                                  ProcessInfoV2* infos) {
  return running(__func__, device, kProcessMps, count, infos, false);
}
Return nvmlDeviceGetMPSComputeRunningProcesses_v2(Device device, std::uint32_t* count,
                                                  ProcessInfoV2* infos) {
  return running(__func__, device, kProcessMps, count, infos, false);
}
Return nvmlDeviceGetMPSComputeRunningProcesses(Device device, std::uint32_t* count,
                                               ProcessInfoV1* infos) {
  return running(__func__, device, kProcessMps, count, infos, true);
}

Return nvmlDeviceGetRunningProcessDetailList(Device device, ProcessDetailListV1* list) {
  return on_any_device(__func__, device, [&](Target& t) {
    if (list == nullptr) return Return::InvalidArgument;
    if (list->version != version_of<ProcessDetailListV1>(1)) {
      return Return::ArgumentVersionMismatch;
    }
    if (list->mode >= kProcessAll) return Return::InvalidArgument;
    const auto found = processes_of(t, list->mode);
    return sim::put_list(&list->num_proc_array_entries, list->proc_array, found.size(),
                         [&](std::size_t i) { return detail_of(*found[i]); });
  });
}

Return nvmlDeviceGetProcessUtilization(Device device, ProcessUtilizationSample* samples,
                                       std::uint32_t* count, std::uint64_t last_seen) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (count == nullptr) return Return::InvalidArgument;
    if (t.gpu.mig_enabled) return Return::NotSupported;
    const auto found = processes_of(t, kProcessAll);
    if (found.empty() || time_of(t) < last_seen) return Return::NotFound;
    return sim::put_list(count, samples, found.size(), [&](std::size_t i) {
      const sim::ProcessSpec& process = found[i]->spec;
      return ProcessUtilizationSample{
          .pid = static_cast<std::uint32_t>(process.pid),
          .timestamp = time_of(t),
          .sm_util = static_cast<std::uint32_t>(sim::sm_percent_at(process, t.machine.now())),
          .mem_util = static_cast<std::uint32_t>(process.memory_percent),
          .enc_util = static_cast<std::uint32_t>(process.encoder_percent),
          .dec_util = static_cast<std::uint32_t>(process.decoder_percent)};
    });
  });
}

Return nvmlDeviceGetProcessesUtilizationInfo(Device device, ProcessesUtilizationInfoV1* info) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (info == nullptr) return Return::InvalidArgument;
    if (info->version != version_of<ProcessesUtilizationInfoV1>(1)) {
      return Return::ArgumentVersionMismatch;
    }
    if (t.gpu.mig_enabled) return Return::NotSupported;
    const auto found = processes_of(t, kProcessAll);
    if (found.empty() || time_of(t) < info->last_seen_time_stamp) return Return::NotFound;
    return sim::put_list(
        &info->process_samples_count, info->proc_util_array, found.size(), [&](std::size_t i) {
          const sim::ProcessSpec& process = found[i]->spec;
          ProcessUtilizationInfoV1 sample{};
          sample.timestamp = time_of(t);
          sample.pid = static_cast<std::uint32_t>(process.pid);
          sample.sm_util = static_cast<std::uint32_t>(sim::sm_percent_at(process, t.machine.now()));
          sample.mem_util = static_cast<std::uint32_t>(process.memory_percent);
          sample.enc_util = static_cast<std::uint32_t>(process.encoder_percent);
          sample.dec_util = static_cast<std::uint32_t>(process.decoder_percent);
          return sample;
        });
  });
}

Return nvmlDeviceGetAccountingMode(Device device, Enum* mode) {
  return on_gpu(__func__, device, [&](Target& t) { return put(mode, t.gpu.accounting ? 1 : 0); });
}

Return nvmlDeviceSetAccountingMode(Device device, Enum mode) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (mode > 1) return Return::InvalidArgument;
    t.gpu.accounting = mode == 1;
    return Return::Success;
  });
}

Return nvmlDeviceGetAccountingBufferSize(Device device, std::uint32_t* size) {
  constexpr std::uint32_t kProcessesKept = 4000;
  return on_gpu(__func__, device, [&](Target&) { return put(size, kProcessesKept); });
}

Return nvmlDeviceGetAccountingPids(Device device, std::uint32_t* count, std::uint32_t* pids) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (!t.gpu.accounting) return Return::NotSupported;
    const auto found = processes_of(t, kProcessAll);
    return sim::put_list(count, pids, found.size(), [&](std::size_t i) {
      return static_cast<std::uint32_t>(found[i]->spec.pid);
    });
  });
}

Return nvmlDeviceGetAccountingStats(Device device, std::uint32_t pid, AccountingStats* stats) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (stats == nullptr) return Return::InvalidArgument;
    if (!t.gpu.accounting) return Return::NotSupported;
    for (const ProcessState* process : processes_of(t, kProcessAll)) {
      if (process->spec.pid != pid) continue;
      *stats = {};
      stats->gpu_utilization = static_cast<std::uint32_t>(process->spec.sm_percent);
      stats->memory_utilization = static_cast<std::uint32_t>(process->spec.memory_percent);
      stats->max_memory_usage = static_cast<std::uint64_t>(process->spec.memory_mib) << 20U;
      stats->start_time = static_cast<std::uint64_t>(process->spec.from);
      stats->is_running = 1;
      return Return::Success;
    }
    return Return::NotFound;
  });
}

Return nvmlDeviceGetComputeMode(Device device, Enum* mode) {
  return on_gpu(__func__, device, [&](Target& t) { return put(mode, t.gpu.spec.compute_mode); });
}

Return nvmlDeviceSetComputeMode(Device device, Enum mode) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (mode > kComputeExclusiveProcess) return Return::InvalidArgument;
    if (mode == kComputeExclusiveThread) return Return::NotSupported;
    t.gpu.spec.compute_mode = static_cast<int>(mode);
    return Return::Success;
  });
}

Return nvmlDeviceGetCapabilities(Device device, DeviceCapabilitiesV1* capabilities) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (capabilities == nullptr) return Return::InvalidArgument;
    if (capabilities->version != version_of<DeviceCapabilitiesV1>(1)) {
      return Return::ArgumentVersionMismatch;
    }
    return put(&capabilities->cap_mask, t.gpu.spec.compute_major >= 10 ? 1 : 0);
  });
}

Return nvmlDeviceGetAPIRestriction(Device device, Enum api, Enum* is_restricted) {
  return on_gpu(__func__, device, [&](Target&) {
    if (api > 1) return Return::InvalidArgument;
    return api == 1 ? Return::NotSupported : put(is_restricted, 1);
  });
}

}  // namespace jogak::nvml::abi
