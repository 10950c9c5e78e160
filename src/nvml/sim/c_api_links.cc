// SPDX-License-Identifier: Apache-2.0
//
// PCIe, NVLink, topology, affinity and the NVLink fabric.
#include <charconv>

#include "nvml/abi_constants.h"
#include "nvml/sim/c_call.h"
#include "nvml/sim/names.h"
#include "nvml/sim/readings.h"
#include "nvml/sim/topology.h"

namespace jogak::nvml::abi {

namespace {

using sim::GpuState;
using sim::Machine;
using sim::on_driver;
using sim::on_gpu;
using sim::put;
using sim::Target;

constexpr std::uint32_t kPcieMbpsByGeneration[] = {0, 250, 500, 985, 1969, 3938, 7563};

// Of a link that exists; each question about another answers InvalidArgument.
template <class Work>
Return on_link(const char* function, Device device, std::uint32_t link, Work work) {
  return on_gpu(function, device, [&](Target& t) {
    if (t.gpu.spec.nvlink.count == 0) return Return::NotSupported;
    if (link >= static_cast<std::uint32_t>(t.gpu.spec.nvlink.count)) {
      return Return::InvalidArgument;
    }
    return work(t, static_cast<int>(link));
  });
}

bool is_up(const Target& t, int link) {
  return !t.gpu.mig_enabled && !t.machine.is_link_down(t.gpu.index, link) &&
         (t.gpu.spec.nvlink.to_switch || sim::link_peer(t.gpu, link) >= 0);
}

Return put_bits(std::uint32_t size, std::uint64_t* set, const std::vector<std::uint64_t>& words) {
  if (set == nullptr || size == 0) return Return::InvalidArgument;
  if (words.empty()) return Return::NotSupported;
  for (std::uint32_t i = 0; i < size; ++i) set[i] = i < words.size() ? words[i] : 0;
  return size < words.size() ? Return::InsufficientSize : Return::Success;
}

template <class Work>
Return on_pair(const char* function, Device first, Device second, Work work) {
  int other = -1;
  const Return found = on_gpu(function, second, [&](Target& t) {
    other = t.gpu.index;
    return Return::Success;
  });
  if (found != Return::Success) return found;
  return on_gpu(function, first, [&](Target& t) { return work(t, other); });
}

void put_cluster(std::uint8_t (&to)[16], const std::string& uuid) {
  std::memset(to, 0, sizeof(to));
  std::string digits;
  for (const char c : uuid) {
    if (c != '-') digits += c;
  }
  for (std::size_t i = 0; i < sizeof(to) && 2 * i + 1 < digits.size(); ++i) {
    std::from_chars(digits.data() + 2 * i, digits.data() + 2 * i + 2, to[i], 16);
  }
}

}  // namespace

Return nvmlDeviceGetPcieThroughput(Device device, Enum counter, std::uint32_t* kbps) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (counter > kPcieRx) return Return::InvalidArgument;
    if (t.gpu.mig_enabled) return Return::NotSupported;
    return put(kbps, sim::pcie_kbps(t.machine, t.gpu, counter == kPcieRx));
  });
}

Return nvmlDeviceGetPcieReplayCounter(Device device, std::uint32_t* replays) {
  return on_gpu(__func__, device,
                [&](Target& t) { return put(replays, t.gpu.spec.counters.pcie_replays); });
}

Return nvmlDeviceGetCurrPcieLinkGeneration(Device device, std::uint32_t* generation) {
  return on_gpu(__func__, device, [&](Target& t) {
    return t.gpu.spec.pcie_generation == 0 ? Return::NotSupported
                                           : put(generation, t.gpu.spec.pcie_generation);
  });
}
Return nvmlDeviceGetMaxPcieLinkGeneration(Device device, std::uint32_t* generation) {
  return nvmlDeviceGetCurrPcieLinkGeneration(device, generation);
}
Return nvmlDeviceGetGpuMaxPcieLinkGeneration(Device device, std::uint32_t* generation) {
  return nvmlDeviceGetCurrPcieLinkGeneration(device, generation);
}

Return nvmlDeviceGetCurrPcieLinkWidth(Device device, std::uint32_t* width) {
  return on_gpu(__func__, device, [&](Target& t) {
    return t.gpu.spec.pcie_width == 0 ? Return::NotSupported : put(width, t.gpu.spec.pcie_width);
  });
}
Return nvmlDeviceGetMaxPcieLinkWidth(Device device, std::uint32_t* width) {
  return nvmlDeviceGetCurrPcieLinkWidth(device, width);
}

Return nvmlDeviceGetPcieSpeed(Device device, std::uint32_t* mbps) {
  return on_gpu(__func__, device, [&](Target& t) {
    const auto generation = static_cast<std::size_t>(t.gpu.spec.pcie_generation);
    if (generation == 0 || generation >= std::size(kPcieMbpsByGeneration)) {
      return Return::NotSupported;
    }
    return put(mbps, kPcieMbpsByGeneration[generation]);
  });
}

Return nvmlDeviceGetPcieLinkMaxSpeed(Device device, std::uint32_t* code) {
  return on_gpu(__func__, device, [&](Target& t) {
    return t.gpu.spec.pcie_generation == 0 ? Return::NotSupported
                                           : put(code, t.gpu.spec.pcie_generation);
  });
}

Return nvmlDeviceGetNvLinkState(Device device, std::uint32_t link, Enum* is_active) {
  return on_link(__func__, device, link,
                 [&](Target& t, int at) { return put(is_active, is_up(t, at) ? 1 : 0); });
}

Return nvmlDeviceGetNvLinkVersion(Device device, std::uint32_t link, std::uint32_t* version) {
  return on_link(__func__, device, link,
                 [&](Target& t, int) { return put(version, t.gpu.spec.nvlink.version); });
}

Return nvmlDeviceGetNvLinkCapability(Device device, std::uint32_t link, Enum capability,
                                     std::uint32_t* result) {
  return on_link(__func__, device, link, [&](Target&, int) {
    if (capability >= kNvlinkCapabilityCount) return Return::InvalidArgument;
    return put(result, capability == kNvlinkSliBridge ? 0 : 1);
  });
}

Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, std::uint32_t link, PciInfo* pci) {
  return on_link(__func__, device, link, [&](Target& t, int at) {
    if (pci == nullptr) return Return::InvalidArgument;
    if (!is_up(t, at)) return Return::NotSupported;
    const std::string bus_text = sim::link_remote_bus(t.machine, t.gpu, at);
    const sim::BusId bus = sim::parse_bus_id(bus_text).value_or(sim::BusId{});
    *pci = {};
    pci->domain = bus.domain;
    pci->bus = bus.bus;
    pci->device = bus.device;
    sim::fill_text(pci->bus_id, bus_text);
    sim::fill_text(pci->bus_id_legacy, std::string_view(bus_text).substr(4));
    return Return::Success;
  });
}
Return nvmlDeviceGetNvLinkRemotePciInfo(Device device, std::uint32_t link, PciInfo* pci) {
  PciInfo full{};
  const Return result = nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &full);
  if (result == Return::Success) {
    if (pci == nullptr) return Return::InvalidArgument;
    std::memcpy(pci, &full, offsetof(PciInfo, bus_id));
  }
  return result;
}

Return nvmlDeviceGetNvLinkRemoteDeviceType(Device device, std::uint32_t link, Enum* type) {
  return on_link(__func__, device, link, [&](Target& t, int at) {
    if (!is_up(t, at)) return put(type, kRemoteUnknown);
    return put(type, t.gpu.spec.nvlink.to_switch ? kRemoteSwitch : kRemoteGpu);
  });
}

Return nvmlDeviceGetNvLinkErrorCounter(Device device, std::uint32_t link, Enum counter,
                                       std::uint64_t* value) {
  return on_link(__func__, device, link, [&](Target& t, int at) {
    if (counter >= kNvlinkErrorCount) return Return::InvalidArgument;
    return put(value, at == 0 ? sim::nvlink_errors(t.machine, t.gpu, counter) : 0);
  });
}

Return nvmlDeviceResetNvLinkErrorCounters(Device device, std::uint32_t link) {
  return on_link(__func__, device, link, [](Target&, int) { return Return::NoPermission; });
}

Return nvmlDeviceGetNvLinkUtilizationCounter(Device device, std::uint32_t link,
                                             std::uint32_t counter, std::uint64_t* rx,
                                             std::uint64_t* tx) {
  return on_link(__func__, device, link, [&](Target& t, int at) {
    if (counter > 1 || rx == nullptr || tx == nullptr) return Return::InvalidArgument;
    if (t.gpu.spec.nvlink.version > 3) return Return::NotSupported;
    *rx = *tx = static_cast<std::uint64_t>(sim::nvlink_bytes(t.machine, t.gpu, at)) / 1024;
    return Return::Success;
  });
}

Return nvmlDeviceGetTopologyCommonAncestor(Device first, Device second, Enum* level) {
  return on_pair(__func__, first, second, [&](Target& t, int other) {
    if (t.gpu.index == other) return Return::InvalidArgument;
    return put(level, sim::topology_level(t.machine, t.gpu.index, other));
  });
}

Return nvmlDeviceGetTopologyNearestGpus(Device device, Enum level, std::uint32_t* count,
                                        Device* devices) {
  return on_gpu(__func__, device, [&](Target& t) {
    std::vector<int> near;
    for (const int index : t.machine.visible_gpus()) {
      if (index != t.gpu.index && sim::topology_level(t.machine, t.gpu.index, index) == level) {
        near.push_back(index);
      }
    }
    return sim::put_list(count, devices, near.size(), [&](std::size_t i) {
      return sim::as_handle<Device>(t.machine.device_handle(near[i]));
    });
  });
}

Return nvmlDeviceGetP2PStatus(Device first, Device second, Enum index, Enum* status) {
  return on_pair(__func__, first, second, [&](Target& t, int other) {
    if (index > kP2pUnknown || t.gpu.index == other) return Return::InvalidArgument;
    const bool has_links = sim::links_between(t.machine, t.gpu.index, other) > 0;
    const bool is_far = sim::topology_level(t.machine, t.gpu.index, other) == kTopologySystem;
    if (index == kP2pNvlink) return put(status, has_links ? kP2pOk : kP2pNotSupported);
    if (index == kP2pAtomics && !has_links) return put(status, kP2pNotSupported);
    return put(status, has_links || !is_far ? kP2pOk : kP2pTopologyNotSupported);
  });
}

Return nvmlDeviceGetNumaNodeId(Device device, std::uint32_t* node) {
  // The node of the GPU's own memory: coherent systems only.
  return on_gpu(__func__, device, [&](Target& t) {
    return t.gpu.spec.addressing_mode == 2 ? put(node, t.gpu.spec.numa_node) : Return::NotSupported;
  });
}

Return nvmlDeviceGetCpuAffinity(Device device, std::uint32_t size, std::uint64_t* set) {
  return on_gpu(__func__, device, [&](Target& t) {
    return put_bits(size, set,
                    sim::parse_cpu_list(t.gpu.spec.cpus).value_or(std::vector<std::uint64_t>{}));
  });
}

Return nvmlDeviceGetCpuAffinityWithinScope(Device device, std::uint32_t size, std::uint64_t* set,
                                           Enum scope) {
  if (scope > 1) return Return::InvalidArgument;
  return nvmlDeviceGetCpuAffinity(device, size, set);
}

Return nvmlDeviceGetMemoryAffinity(Device device, std::uint32_t size, std::uint64_t* set,
                                   Enum scope) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (scope > 1) return Return::InvalidArgument;
    if (t.gpu.spec.numa_node < 0) return Return::NotSupported;
    const auto node = static_cast<std::size_t>(t.gpu.spec.numa_node);
    std::vector<std::uint64_t> words(node / 64 + 1);
    words[node / 64] = std::uint64_t{1} << node % 64;
    return put_bits(size, set, words);
  });
}

Return nvmlDeviceGetGpuFabricInfo(Device device, GpuFabricInfo* info) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (info == nullptr) return Return::InvalidArgument;
    const sim::FabricSpec& fabric = t.gpu.spec.fabric;
    if (fabric.state == kFabricNotSupported) return Return::NotSupported;
    put_cluster(info->cluster_uuid, fabric.cluster_uuid);
    info->status = static_cast<Return>(fabric.status);
    info->clique_id = fabric.clique_id;
    info->state = static_cast<std::uint8_t>(fabric.state);
    return Return::Success;
  });
}

Return nvmlDeviceGetGpuFabricInfoV(Device device, GpuFabricInfoV3* info) {
  return on_gpu(__func__, device, [&](Target& t) {
    if (info == nullptr) return Return::InvalidArgument;
    const bool is_v3 = info->version == version_of<GpuFabricInfoV3>(3);
    if (!is_v3 && info->version != version_of<GpuFabricInfoV2>(2)) {
      return Return::ArgumentVersionMismatch;
    }
    // The shorter struct is a prefix of the longer one; a GPU without a fabric answers state 0.
    const sim::FabricSpec& fabric = t.gpu.spec.fabric;
    put_cluster(info->cluster_uuid, fabric.cluster_uuid);
    info->status = static_cast<Return>(fabric.status);
    info->clique_id = fabric.clique_id;
    info->state = static_cast<std::uint8_t>(fabric.state);
    info->health_mask = fabric.health_mask;
    if (is_v3) {
      info->health_summary =
          fabric.state == kFabricCompleted ? kFabricHealthy : kFabricHealthNotSupported;
    }
    return Return::Success;
  });
}

Return nvmlDeviceModifyDrainState(PciInfo* pci, Enum state) {
  return on_driver(__func__, [&](Machine& machine) {
    if (pci == nullptr || state > 1) return Return::InvalidArgument;
    GpuState* const gpu = sim::gpu_at(machine, *pci);
    if (gpu == nullptr) return Return::NotFound;
    gpu->is_draining = state == 1;
    return Return::Success;
  });
}

Return nvmlDeviceQueryDrainState(PciInfo* pci, Enum* state) {
  return on_driver(__func__, [&](Machine& machine) {
    if (pci == nullptr) return Return::InvalidArgument;
    const GpuState* const gpu = sim::gpu_at(machine, *pci);
    return gpu == nullptr ? Return::NotFound : put(state, gpu->is_draining ? 1 : 0);
  });
}

Return nvmlDeviceRemoveGpu_v2(PciInfo* pci, Enum, Enum) {
  return on_driver(__func__, [&](Machine& machine) {
    if (pci == nullptr) return Return::InvalidArgument;
    GpuState* const gpu = sim::gpu_at(machine, *pci);
    if (gpu == nullptr) return Return::NotFound;
    if (!gpu->is_draining || machine.is_in_use(gpu->index, -1, -1)) return Return::InUse;
    gpu->is_removed = true;
    return Return::Success;
  });
}
Return nvmlDeviceRemoveGpu(PciInfo* pci) { return nvmlDeviceRemoveGpu_v2(pci, 1, 0); }

Return nvmlDeviceDiscoverGpus(PciInfo* pci) {
  return on_driver(__func__, [&](Machine& machine) {
    if (pci == nullptr) return Return::InvalidArgument;
    for (GpuState& gpu : machine.gpus()) gpu.is_removed = false;
    return Return::Success;
  });
}

}  // namespace jogak::nvml::abi
