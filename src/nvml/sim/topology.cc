// SPDX-License-Identifier: Apache-2.0
//
// See topology.h. What the file does not say follows from boards, PCIe switches and NUMA nodes.
#include "nvml/sim/topology.h"

#include <algorithm>

#include <fmt/format.h>

#include "nvml/abi_constants.h"
#include "nvml/sim/names.h"

namespace jogak::nvml::sim {

namespace {

constexpr int kSwitches = 6;

const PeerSpec* peer_of(const GpuState& gpu, int other) {
  const auto at = std::ranges::find(gpu.spec.peers, other, &PeerSpec::gpu);
  return at == gpu.spec.peers.end() ? nullptr : &*at;
}

abi::Enum level_value(PathLevel level) {
  switch (level) {
    case PathLevel::Psb:
      return abi::kTopologyInternal;
    case PathLevel::Pix:
      return abi::kTopologySingle;
    case PathLevel::Pxb:
      return abi::kTopologyMultiple;
    case PathLevel::Phb:
      return abi::kTopologyHostBridge;
    case PathLevel::Node:
      return abi::kTopologyNode;
    case PathLevel::Sys:
    case PathLevel::Default:
      return abi::kTopologySystem;
  }
  return abi::kTopologySystem;
}

int up_links(const Machine& machine, const GpuState& gpu, int first, int count) {
  int up = 0;
  for (int link = first; link < first + count; ++link) {
    if (!machine.is_link_down(gpu.index, link)) ++up;
  }
  return up;
}

}  // namespace

abi::Enum topology_level(Machine& machine, int first, int second) {
  const GpuState& a = machine.gpus()[static_cast<std::size_t>(first)];
  const GpuState& b = machine.gpus()[static_cast<std::size_t>(second)];
  for (const PeerSpec* said : {peer_of(a, second), peer_of(b, first)}) {
    if (said != nullptr && said->level != PathLevel::Default) return level_value(said->level);
  }
  if (a.spec.board >= 0 && a.spec.board == b.spec.board) return abi::kTopologyInternal;
  if (a.spec.pcie_switch >= 0 && a.spec.pcie_switch == b.spec.pcie_switch) {
    return abi::kTopologyMultiple;
  }
  return a.spec.numa_node == b.spec.numa_node ? abi::kTopologyNode : abi::kTopologySystem;
}

int links_between(Machine& machine, int first, int second) {
  const GpuState& a = machine.gpus()[static_cast<std::size_t>(first)];
  const GpuState& b = machine.gpus()[static_cast<std::size_t>(second)];
  if (a.mig_enabled || b.mig_enabled) return 0;
  if (a.spec.nvlink.to_switch && b.spec.nvlink.to_switch) {
    return std::min(up_links(machine, a, 0, a.spec.nvlink.count),
                    up_links(machine, b, 0, b.spec.nvlink.count));
  }
  int link = 0;
  for (const PeerSpec& peer : a.spec.peers) {
    const int count = std::min(peer.nvlinks, a.spec.nvlink.count - link);
    if (peer.gpu == second) return up_links(machine, a, link, count);
    link += peer.nvlinks;
  }
  return 0;
}

int link_peer(const GpuState& gpu, int link) {
  int first = 0;
  for (const PeerSpec& peer : gpu.spec.peers) {
    if (link < first + peer.nvlinks) return peer.gpu;
    first += peer.nvlinks;
  }
  return -1;
}

std::string link_remote_bus(Machine& machine, const GpuState& gpu, int link) {
  if (gpu.spec.nvlink.to_switch)
    return fmt::format("00000000:{:02X}:00.0", 0xC4 + link % kSwitches);
  const int peer = link_peer(gpu, link);
  if (peer < 0) return "";
  return machine.gpus()[static_cast<std::size_t>(peer)].spec.bus_id;
}

std::int64_t nvlink_errors(Machine& machine, const GpuState& gpu, abi::Enum counter) {
  const CountersSpec& before = gpu.spec.counters;
  if (counter == abi::kNvlinkReplay) return before.nvlink_replay;
  if (counter == abi::kNvlinkRecovery) return before.nvlink_recovery;
  if (counter == abi::kNvlinkCrcData) return before.nvlink_crc_data;
  if (counter != abi::kNvlinkCrcFlit) return 0;
  return before.nvlink_crc_flit + machine.counted(FaultKind::NvlinkErrors, gpu.index, -1, 0);
}

GpuState* gpu_at(Machine& machine, const abi::PciInfo& pci) {
  for (GpuState& gpu : machine.gpus()) {
    const auto bus = parse_bus_id(gpu.spec.bus_id);
    if (bus && bus->domain == pci.domain && bus->bus == pci.bus && bus->device == pci.device) {
      return &gpu;
    }
  }
  return nullptr;
}

}  // namespace jogak::nvml::sim
