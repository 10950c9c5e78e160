// SPDX-License-Identifier: Apache-2.0
//
// The tables of `jogak agent inspect`.
#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text_table.h"
#include "cli/agent_inspect.h"

namespace jogak::cli {

namespace {

using nvml::Reading;

constexpr std::string_view kNone = "-";

template <class T>
std::string shown(const Reading<T>& reading, std::string_view unit = "") {
  return reading ? fmt::format("{}{}", *reading, unit) : std::string(kNone);
}

std::string mib_of(const Reading<std::int64_t>& bytes) {
  return bytes ? fmt::format("{}", *bytes >> 20) : std::string(kNone);
}

std::string mig_text(const nvml::GpuFacts& gpu) {
  if (!gpu.mig_capable) return std::string(kNone);
  std::string text = gpu.mig_enabled ? "on" : "off";
  if (gpu.mig_pending != gpu.mig_enabled)
    text += gpu.mig_pending ? ", on at reset" : ", off at reset";
  return text;
}

std::string gpu_table(const NodeView& view) {
  // What says nothing takes no room: a table has to fit into 80 columns where it can.
  constexpr std::string_view kDomain = "00000000:";
  const bool has_domains = std::ranges::any_of(view.node.gpus, [&](const nvml::GpuFacts& gpu) {
    return !gpu.pci_bus_id.empty() && !gpu.pci_bus_id.starts_with(kDomain);
  });
  const bool has_minors = std::ranges::any_of(view.node.gpus, [](const nvml::GpuFacts& gpu) {
    return gpu.minor.value_or(gpu.index) != gpu.index;
  });
  const auto text_or_none = [](const std::string& text) {
    return text.empty() ? std::string(kNone) : text;
  };
  std::vector<TextTable::Column> columns = {{"GPU", Align::Right}, {"NAME"}, {"BUS"}};
  if (has_minors) columns.emplace_back("MINOR", Align::Right);
  for (const std::string_view title : {"NUMA", "MIB", "USED", "UTIL", "TEMP", "POWER"}) {
    columns.emplace_back(title, Align::Right);
  }
  columns.emplace_back("MIG");
  TextTable table(columns);
  for (std::size_t i = 0; i < view.node.gpus.size(); ++i) {
    const nvml::GpuFacts& gpu = view.node.gpus[i];
    const nvml::GpuSample& now = view.samples[i];
    const std::string power =
        now.power_mw ? fmt::format("{}W", *now.power_mw / 1000) : std::string(kNone);
    const std::size_t shown_from =
        std::min(has_domains ? 0 : kDomain.size(), gpu.pci_bus_id.size());
    std::vector<std::string> cells = {std::to_string(gpu.index), text_or_none(gpu.name),
                                      text_or_none(gpu.pci_bus_id.substr(shown_from))};
    if (has_minors) cells.push_back(shown(gpu.minor));
    // A board that was lost before it was read has no memory that anybody knows of.
    const std::string memory =
        gpu.memory_mib == 0 ? std::string(kNone) : std::to_string(gpu.memory_mib);
    cells.push_back(shown(gpu.numa_node));
    cells.push_back(memory);
    cells.push_back(mib_of(now.memory.used_bytes));
    cells.push_back(shown(now.gpu_percent, "%"));
    cells.push_back(shown(now.temperature_c, "C"));
    cells.push_back(power);
    cells.push_back(gpu.is_lost ? std::string("LOST") : mig_text(gpu));
    table.row(std::move(cells));
  }
  return table.text();
}

std::string instance_table(const NodeView& view) {
  TextTable table({{"GPU", Align::Right},
                   {"PROFILE"},
                   {"GI", Align::Right},
                   {"CI", Align::Right},
                   {"PLACE"},
                   {"MIB", Align::Right},
                   {"USED", Align::Right},
                   {"UUID"}});
  for (std::size_t i = 0; i < view.node.gpus.size(); ++i) {
    const nvml::GpuFacts& gpu = view.node.gpus[i];
    for (const nvml::MigInstanceFacts& row : gpu.mig_instances) {
      const nvml::MigInstanceSample* const now = sample_of(row, view.samples[i]);
      table.add(gpu.index, row.profile, row.gi_id,
                row.ci_id < 0 ? std::string(kNone) : std::to_string(row.ci_id),
                fmt::format("{}:{}", row.placement.start, row.placement.size), row.memory_mib,
                now == nullptr ? std::string(kNone) : mib_of(now->memory.used_bytes),
                row.uuid.empty() ? std::string(kNone) : row.uuid);
    }
  }
  return table.rows() == 0 ? "" : table.text();
}

// What the words of this matrix mean.
std::string legend(const NodeView& view) {
  using enum nvml::LinkKind;
  constexpr std::pair<nvml::LinkKind, std::string_view> kMeanings[] = {
      {SameBoard, "two GPUs of one board"},        {SingleSwitch, "one PCIe switch between"},
      {MultipleSwitches, "several PCIe switches"}, {HostBridge, "a PCIe host bridge"},
      {Node, "host bridges of one NUMA node"},     {System, "across NUMA nodes"},
  };
  bool has_nvlinks = false;
  std::set<nvml::LinkKind> kinds;
  for (const nvml::GpuFacts& gpu : view.node.gpus) {
    for (const nvml::LinkFacts& link : gpu.links) {
      has_nvlinks = has_nvlinks || link.nvlinks > 0;
      if (link.nvlinks == 0) kinds.insert(link.pcie);
    }
  }
  std::vector<std::string> parts;
  if (has_nvlinks) parts.emplace_back("NVn: n NVLinks");
  for (const auto& [kind, meaning] : kMeanings) {
    if (kinds.contains(kind)) {
      parts.push_back(fmt::format("{}: {}", nvml::link_kind_text(kind), meaning));
    }
  }
  return parts.empty() ? "" : fmt::format("{}\n", fmt::join(parts, "; "));
}

std::string topology_table(const NodeView& view) {
  std::vector<std::string> titles = {""};
  for (const nvml::GpuFacts& gpu : view.node.gpus)
    titles.push_back(fmt::format("GPU{}", gpu.index));
  titles.insert(titles.end(), {"CPU AFFINITY", "NUMA"});
  std::vector<TextTable::Column> columns(titles.begin(), titles.end());
  TextTable table(columns);
  for (const nvml::GpuFacts& gpu : view.node.gpus) {
    std::vector<std::string> cells = {fmt::format("GPU{}", gpu.index)};
    for (const nvml::LinkFacts& link : gpu.links) {
      cells.push_back(link.nvlinks > 0 ? fmt::format("NV{}", link.nvlinks)
                                       : std::string(nvml::link_kind_text(link.pcie)));
    }
    cells.push_back(gpu.cpu_affinity.empty() ? std::string(kNone) : gpu.cpu_affinity);
    cells.push_back(shown(gpu.numa_node));
    table.row(std::move(cells));
  }
  return table.text() + legend(view);
}

// One word for each step that GpuSample::recovery_action knows.
std::string recovery_text(const Reading<int>& action) {
  constexpr std::string_view kWords[] = {"none",      "reset",           "reboot node",
                                         "drain p2p", "drain and reset", "recover imex"};
  if (!action) return std::string(kNone);
  const auto at = static_cast<std::size_t>(*action);
  return at < std::size(kWords) ? std::string(kWords[at]) : std::to_string(*action);
}

std::string throttle_text(const Reading<std::uint64_t>& reasons) {
  if (!reasons) return std::string(kNone);
  constexpr std::pair<std::uint64_t, std::string_view> kWords[] = {
      {nvml::kThrottleSwPowerCap, "power cap"},     {nvml::kThrottleHwSlowdown, "hw slowdown"},
      {nvml::kThrottleSwThermal, "sw thermal"},     {nvml::kThrottleHwThermal, "hw thermal"},
      {nvml::kThrottleHwPowerBrake, "power brake"}, {nvml::kThrottleSyncBoost, "sync boost"},
  };
  std::string text;
  for (const auto& [bit, word] : kWords) {
    if ((*reasons & bit) == 0) continue;
    text.append(text.empty() ? "" : ", ").append(word);
  }
  return text.empty() ? "no" : text;
}

std::string health_table(const NodeView& view) {
  TextTable table({{"GPU", Align::Right},
                   {"ECC"},
                   {"CORRECTED", Align::Right},
                   {"UNCORRECTED", Align::Right},
                   {"ROWS", Align::Right},
                   {"REMAP"},
                   {"THROTTLED"},
                   {"RECOVERY"}});
  for (std::size_t i = 0; i < view.node.gpus.size(); ++i) {
    const nvml::GpuFacts& gpu = view.node.gpus[i];
    const nvml::GpuSample& now = view.samples[i];
    const auto& rows = now.rows;
    const std::string remapped = rows.corrected && rows.uncorrected
                                     ? std::to_string(*rows.corrected + *rows.uncorrected)
                                     : std::string(kNone);
    const std::string remap = !rows.is_pending                  ? std::string(kNone)
                              : rows.has_failed.value_or(false) ? "failed"
                              : *rows.is_pending                ? "pending"
                                                                : "ok";
    const std::string ecc =
        gpu.ecc_enabled ? std::string(*gpu.ecc_enabled ? "on" : "off") : std::string(kNone);
    table.add(gpu.index, ecc, shown(now.ecc.corrected_volatile),
              shown(now.ecc.uncorrected_volatile), remapped, remap,
              throttle_text(now.throttle_reasons), recovery_text(now.recovery_action));
  }
  return table.text();
}

std::string process_table(const NodeView& view) {
  constexpr std::string_view kTypes[] = {"compute", "graphics", "mps"};
  TextTable table({{"GPU", Align::Right},
                   {"GI", Align::Right},
                   {"CI", Align::Right},
                   {"PID", Align::Right},
                   {"TYPE"},
                   {"MIB", Align::Right},
                   {"SM", Align::Right},
                   {"NAME"}});
  for (std::size_t i = 0; i < view.node.gpus.size(); ++i) {
    if (!view.samples[i].processes) continue;
    for (const nvml::ProcessFacts& process : *view.samples[i].processes) {
      const auto id = [](int value) {
        return value < 0 ? std::string(kNone) : std::to_string(value);
      };
      table.add(view.node.gpus[i].index, id(process.gi_id), id(process.ci_id), process.pid,
                kTypes[static_cast<std::size_t>(process.kind)], mib_of(process.memory_bytes),
                shown(process.sm_percent, "%"), process.name);
    }
  }
  return table.rows() == 0 ? "" : table.text();
}

}  // namespace

std::string node_text(const NodeView& view) {
  const nvml::NodeFacts& node = view.node;
  std::string text = fmt::format("driver {}, NVML {}, CUDA {}.{}, {} GPU{}\n", node.driver_version,
                                 node.nvml_version, node.cuda_major, node.cuda_minor,
                                 node.gpus.size(), node.gpus.size() == 1 ? "" : "s");
  if (node.gpus.empty()) return text;
  text.append("\n").append(gpu_table(view));
  const auto section = [&](std::string_view title, const std::string& table) {
    if (!table.empty()) text.append("\n").append(title).append("\n").append(table);
  };
  section("MIG instances", instance_table(view));
  section("Topology", topology_table(view));
  section("Health", health_table(view));
  section("Processes", process_table(view));
  return text;
}

}  // namespace jogak::cli
