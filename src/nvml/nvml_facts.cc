// SPDX-License-Identifier: Apache-2.0
//
// What a GPU is: NvmlSource::facts(). Every value is read by itself, and one that cannot be had
// leaves the others alone.
#include <algorithm>

#include <fmt/format.h>

#include "nvml/abi_constants.h"
#include "nvml/nvml_source.h"
#include "nvml/sim/c_api.h"
#include "nvml/sim/models.h"
#include "nvml/sim/names.h"

namespace jogak::nvml {

namespace {

using abi::Return;

constexpr std::size_t kCpuWords = 64;

std::string text_of(const char* text, std::size_t size) {
  const std::string_view all(text, size);
  return std::string(all.substr(0, all.find('\0')));
}

LinkKind link_kind(abi::Enum level) {
  switch (level) {
    case abi::kTopologyInternal:
      return LinkKind::SameBoard;
    case abi::kTopologySingle:
      return LinkKind::SingleSwitch;
    case abi::kTopologyMultiple:
      return LinkKind::MultipleSwitches;
    case abi::kTopologyHostBridge:
      return LinkKind::HostBridge;
    case abi::kTopologyNode:
      return LinkKind::Node;
    case abi::kTopologySystem:
      return LinkKind::System;
    default:
      return LinkKind::Unknown;
  }
}

std::string cluster_text(const std::uint8_t (&bytes)[16]) {
  if (std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; })) return "";
  std::string text;
  for (std::size_t i = 0; i < std::size(bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", bytes[i]);
  }
  return text;
}

}  // namespace

void NvmlSource::read_identity(Gpu& gpu) {
  const auto uuid = read_text(gpu, f_.uuid, abi::kUuidV2Size);
  if (uuid) gpu.facts.uuid = *uuid;
  abi::PciInfo pci{};
  if (call(f_.pci_info, gpu.handle, &pci) == Return::Success) {
    gpu.facts.pci_bus_id = text_of(pci.bus_id, sizeof(pci.bus_id));
    gpu.facts.pci_device_id = pci.pci_device_id;
    gpu.facts.pci_subsystem_id = pci.pci_sub_system_id;
  }
}

void NvmlSource::read_board(Gpu& gpu) {
  GpuFacts& facts = gpu.facts;
  facts.name = read_text(gpu, f_.name, abi::kNameV2Size).value_or(facts.name);
  facts.serial = read_text(gpu, f_.serial, abi::kSerialSize);
  facts.vbios = read_text(gpu, f_.vbios, abi::kVbiosSize);
  facts.board_part_number = read_text(gpu, f_.part_number, abi::kPartNumberSize);
  facts.inforom_version = read_text(gpu, f_.inforom, abi::kInforomSize);
  const auto object = [&](abi::Enum which) -> Reading<std::string> {
    std::string text(abi::kInforomSize, '\0');
    const Return got = call(f_.inforom_object, gpu.handle, which, text.data(),
                            static_cast<std::uint32_t>(text.size()));
    return got == Return::Success ? Reading<std::string>(text_of(text.data(), text.size()))
                                  : missed(got, &gpu);
  };
  facts.inforom_oem = object(abi::kInforomOem);
  facts.inforom_ecc = object(abi::kInforomEcc);
  facts.inforom_power = object(abi::kInforomPower);
  facts.minor = read<int, std::uint32_t>(gpu, f_.minor);
  facts.module_id = read<int, std::uint32_t>(gpu, f_.module_id);
  const auto brand = read<std::uint32_t, abi::Enum>(gpu, f_.brand);
  if (brand) facts.brand = sim::brand_name(*brand);
  const auto architecture = read<std::uint32_t, abi::Enum>(gpu, f_.architecture);
  if (architecture) facts.architecture = sim::architecture_name(*architecture);
  std::int32_t major = 0;
  std::int32_t minor = 0;
  if (call(f_.compute_capability, gpu.handle, &major, &minor) == Return::Success) {
    facts.compute_major = major;
    facts.compute_minor = minor;
  }
  abi::Memory memory{};
  if (call(f_.memory, gpu.handle, &memory) == Return::Success) {
    facts.memory_mib = static_cast<std::int64_t>(memory.total >> 20U);
  }
  abi::Bar1Memory bar1{};
  if (call(f_.bar1, gpu.handle, &bar1) == Return::Success) {
    facts.bar1_mib = static_cast<std::int64_t>(bar1.total >> 20U);
  }
  std::vector<std::uint64_t> words(kCpuWords);
  if (call(f_.cpu_affinity, gpu.handle, static_cast<std::uint32_t>(kCpuWords), words.data()) ==
      Return::Success) {
    facts.cpu_affinity = sim::cpu_list_text(words);
  }
  std::uint64_t nodes = 0;
  const Return near = call(f_.memory_affinity, gpu.handle, 1U, &nodes, 0U);
  if (near == Return::Success && nodes != 0) {
    facts.numa_node = std::countr_zero(nodes);
  } else {
    facts.numa_node = near == Return::Success ? Missing::NoData : missed(near, &gpu);
  }
}

void NvmlSource::read_limits(Gpu& gpu) {
  GpuFacts& facts = gpu.facts;
  const auto clock = [&](abi::Enum type) {
    return read<std::int64_t, std::uint32_t>(gpu, f_.clock_max, type);
  };
  facts.clocks_max = {.graphics = clock(abi::kClockGraphics),
                      .sm = clock(abi::kClockSm),
                      .memory = clock(abi::kClockMemory),
                      .video = clock(abi::kClockVideo)};
  facts.power_limit_mw = read<std::int64_t, std::uint32_t>(gpu, f_.power_limit);
  facts.power_limit_requested_mw = read<std::int64_t, std::uint32_t>(gpu, f_.power_limit_requested);
  facts.power_limit_default_mw = read<std::int64_t, std::uint32_t>(gpu, f_.power_limit_default);
  std::uint32_t least = 0;
  std::uint32_t most = 0;
  const Return range = call(f_.power_limit_range, gpu.handle, &least, &most);
  if (range == Return::Success) {
    facts.power_limit_min_mw = std::int64_t{least};
    facts.power_limit_max_mw = std::int64_t{most};
  } else {
    facts.power_limit_min_mw = facts.power_limit_max_mw = missed(range, &gpu);
  }
  facts.persistence_mode = read<bool, abi::Enum>(gpu, f_.persistence_mode);
  facts.compute_mode = read<int, abi::Enum>(gpu, f_.compute_mode);
  facts.virtualization_mode = read<int, abi::Enum>(gpu, f_.virtualization_mode);
  abi::DeviceAddressingModeV1 mode{};
  mode.version = abi::version_of<abi::DeviceAddressingModeV1>(1);
  const Return addressing = call(f_.addressing_mode, gpu.handle, &mode);
  facts.addressing_mode = addressing == Return::Success ? Reading<int>(static_cast<int>(mode.value))
                                                        : missed(addressing, &gpu);
  abi::Enum current = 0;
  abi::Enum pending = 0;
  const Return ecc = call(f_.ecc_mode, gpu.handle, &current, &pending);
  facts.ecc_enabled = ecc == Return::Success ? Reading<bool>(current == 1) : missed(ecc, &gpu);
  facts.ecc_pending = ecc == Return::Success ? Reading<bool>(pending == 1) : missed(ecc, &gpu);
  facts.pcie_generation_max = read<int, std::uint32_t>(gpu, f_.pcie_generation_max);
  facts.pcie_width_max = read<int, std::uint32_t>(gpu, f_.pcie_width_max);
  const auto threshold = [&](abi::Enum type) {
    return read<int, std::uint32_t>(gpu, f_.threshold, type);
  };
  facts.temperature_shutdown_c = threshold(abi::kThresholdShutdown);
  facts.temperature_slowdown_c = threshold(abi::kThresholdSlowdown);
  facts.temperature_memory_max_c = threshold(abi::kThresholdMemoryMax);
  facts.temperature_gpu_max_c = threshold(abi::kThresholdGpuMax);
  abi::GpmSupport gpm{.version = 1, .is_supported_device = 0};
  facts.has_gpm =
      call(f_.gpm_support, gpu.handle, &gpm) == Return::Success && gpm.is_supported_device != 0;
}

void NvmlSource::read_links(Gpu& gpu) {
  gpu.facts.nvlinks = gpu.facts.nvlinks_to_switch = gpu.facts.nvlinks_max = gpu.link_slots = 0;
  // Newer boards have more links than any header: ask until there are none.
  for (std::uint32_t link = 0; link < 2 * abi::kNvlinksMax; ++link) {
    abi::Enum is_active = 0;
    const Return result = call(f_.nvlink_state, gpu.handle, link, &is_active);
    if (result != Return::Success) {
      missed(result, &gpu);
      return;
    }
    gpu.facts.nvlinks_max = gpu.link_slots = static_cast<int>(link) + 1;
    if (is_active == 0) continue;
    ++gpu.facts.nvlinks;
    abi::Enum type = 0;
    const bool is_known = call(f_.nvlink_remote_type, gpu.handle, link, &type) == Return::Success;
    if (is_known && type == abi::kRemoteSwitch) ++gpu.facts.nvlinks_to_switch;
  }
}

int NvmlSource::direct_links(Gpu& from, const Gpu& to) {
  int links = 0;
  for (std::uint32_t link = 0; link < 2 * abi::kNvlinksMax; ++link) {
    abi::Enum is_active = 0;
    if (call(f_.nvlink_state, from.handle, link, &is_active) != Return::Success) break;
    abi::PciInfo pci{};
    if (is_active == 0 || call(f_.nvlink_remote_pci, from.handle, link, &pci) != Return::Success) {
      continue;
    }
    const auto here = sim::parse_bus_id(to.facts.pci_bus_id);
    if (here && here->domain == pci.domain && here->bus == pci.bus && here->device == pci.device) {
      ++links;
    }
  }
  return links;
}

void NvmlSource::read_topology() {
  for (Gpu& gpu : gpus_) {
    gpu.facts.links.assign(gpus_.size(), {});
    gpu.facts.links[static_cast<std::size_t>(gpu.facts.index)].pcie = LinkKind::Self;
    if (gpu.handle == nullptr || gpu.is_lost) continue;
    for (const Gpu& other : gpus_) {
      if (&other == &gpu || other.handle == nullptr || other.is_lost) continue;
      LinkFacts& link = gpu.facts.links[static_cast<std::size_t>(other.facts.index)];
      abi::Enum level = 0;
      if (call(f_.common_ancestor, gpu.handle, other.handle, &level) == Return::Success) {
        link.pcie = link_kind(level);
      }
      abi::Enum status = 0;
      const abi::Enum nvlink = abi::kP2pNvlink;
      const Return p2p = call(f_.p2p_status, gpu.handle, other.handle, nvlink, &status);
      link.p2p_nvlink =
          p2p == Return::Success ? Reading<int>(static_cast<int>(status)) : missing_of(p2p);
      // Where links end in switches, every such pair is joined by all of them.
      link.nvlinks = gpu.facts.nvlinks_to_switch > 0 && other.facts.nvlinks_to_switch > 0
                         ? std::min(gpu.facts.nvlinks, other.facts.nvlinks)
                     : gpu.facts.nvlinks > 0 ? direct_links(gpu, other)
                                             : 0;
    }
  }
}

void NvmlSource::read_fabric(Gpu& gpu) {
  abi::GpuFabricInfoV3 info{};
  info.version = abi::version_of<abi::GpuFabricInfoV3>(3);
  Return result = call(f_.fabric_v, gpu.handle, &info);
  if (result == Return::ArgumentVersionMismatch) {
    info.version = abi::version_of<abi::GpuFabricInfoV2>(2);
    result = call(f_.fabric_v, gpu.handle, &info);
  }
  if (result == Return::FunctionNotFound) {
    abi::GpuFabricInfo old{};
    result = call(f_.fabric, gpu.handle, &old);
    std::ranges::copy(old.cluster_uuid, info.cluster_uuid);
    info.status = old.status;
    info.clique_id = old.clique_id;
    info.state = old.state;
  }
  if (result != Return::Success) {
    gpu.facts.fabric = missed(result, &gpu);
    return;
  }
  gpu.facts.fabric = FabricFacts{
      .state = info.state <= 3 ? static_cast<FabricState>(info.state) : FabricState::NotSupported,
      .status = static_cast<int>(info.status),
      .cluster_uuid = cluster_text(info.cluster_uuid),
      .clique_id = info.clique_id,
      .health_mask = info.health_mask,
      .health_summary = info.health_summary};
}

Result<NodeFacts> NvmlSource::facts() {
  const sim::UseMachine use(options_.machine.get());
  JOGAK_TRY_VOID(ensure_session());
  NodeFacts node;
  std::string text(abi::kDriverVersionSize, '\0');
  const auto size = static_cast<std::uint32_t>(text.size());
  JOGAK_TRY_VOID(check(call(f_.driver_version, text.data(), size), "nvmlSystemGetDriverVersion"));
  node.driver_version = text.c_str();
  if (call(f_.nvml_version, text.data(), size) == Return::Success) node.nvml_version = text.c_str();
  std::int32_t cuda = 0;
  if (call(f_.cuda_version, &cuda) == Return::Success) {
    node.cuda_major = cuda / 1000;
    node.cuda_minor = cuda % 1000 / 10;
  }
  for (Gpu& gpu : gpus_) {
    if (gpu.handle == nullptr) {
      const auto index = static_cast<std::uint32_t>(gpu.facts.index);
      if (call(f_.handle_by_index, index, &gpu.handle) != Return::Success) gpu.handle = nullptr;
    }
    gpu.facts.is_lost = gpu.is_lost = gpu.handle == nullptr;
    if (gpu.is_lost) continue;
    read_identity(gpu);
    // A lost GPU answers its first question: the others would only say the same.
    if (gpu.is_lost) continue;
    gpu.facts.lost_reason.clear();
    read_board(gpu);
    read_limits(gpu);
    read_links(gpu);
    read_fabric(gpu);
    read_mig(gpu);
  }
  read_topology();
  if (is_ended_) return fail(Errc::Unavailable, "the driver went away while it was asked");
  node.generation = generation_;
  for (const Gpu& gpu : gpus_) node.gpus.push_back(gpu.facts);
  return node;
}

}  // namespace jogak::nvml
