// SPDX-License-Identifier: Apache-2.0
//
// Lines by hand rather than base/csv.h: help texts hold commas without quotes there.
#include "agent/exporter/counters.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/edit_distance.h"
#include "base/json_writer.h"

namespace jogak::agent {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<CounterType> type_of(std::string_view text) {
  if (text == "gauge") return CounterType::Gauge;
  if (text == "counter") return CounterType::Counter;
  if (text == "label") return CounterType::Label;
  return std::nullopt;
}

// "a ""quoted"" text" without its quotes; other text as it is. Nothing: the quote does not end.
std::optional<std::string> unquoted(std::string_view text) {
  if (!text.starts_with('"')) return std::string(text);
  std::string out;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] != '"') {
      out += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '"') {
      out += '"';
      ++i;
    } else {
      // Nothing may follow the closing quote.
      return i + 1 == text.size() ? std::optional(out) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::string nearest_field(std::string_view name) {
  // Longer text is no name with a slip in it.
  if (name.size() > 100) return {};
  std::vector<std::string_view> names;
  for (const Field& field : fields()) names.push_back(field.name);
  return did_you_mean(name, names);
}

struct Line {
  std::string_view file;
  std::size_t number = 0;
  template <class... Args>
  std::unexpected<Error> bad(fmt::format_string<Args...> text, Args&&... args) const {
    return invalid("{}:{}: {}", file, number, fmt::format(text, std::forward<Args>(args)...));
  }
};

Result<CounterSpec> parse_line(const Line& line, std::string_view text) {
  const std::size_t first = text.find(',');
  const std::size_t second = first == std::string_view::npos ? first : text.find(',', first + 1);
  if (second == std::string_view::npos) {
    return line.bad("\"{}\" has not three columns; write FIELD, gauge|counter|label, help text",
                    text.substr(0, 60));
  }
  const std::string_view name = trimmed(text.substr(0, first));
  const std::string_view type_text = trimmed(text.substr(first + 1, second - first - 1));
  const auto help = unquoted(trimmed(text.substr(second + 1)));
  CounterSpec spec = {.field = find_field(name), .name = std::string(name), .type = {}, .help = {}};
  if (spec.field == nullptr && !is_known_elsewhere(name)) {
    return line.bad("no such field \"{}\"{}", name.substr(0, 100), nearest_field(name));
  }
  const auto type = type_of(type_text);
  if (!type) {
    return line.bad("type \"{}\" of {}: use gauge, counter or label", type_text.substr(0, 40),
                    name);
  }
  if (!help) return line.bad("the help text of {} begins with a quote that does not end", name);
  spec.type = *type;
  spec.help = help->empty() ? spec.name : *help;  // dcgm-exporter takes an empty column, too
  if (spec.field != nullptr && spec.field->kind == FieldKind::Label &&
      spec.type != CounterType::Label) {
    return line.bad("{} is text: its type can only be label", name);
  }
  if (spec.field != nullptr && spec.field->kind != FieldKind::Label && !spec.field->is_fact &&
      spec.type == CounterType::Label) {
    return line.bad("{} is a number that changes: its type is gauge or counter", name);
  }
  return spec;
}

constexpr std::string_view kClassic =
    R"(# What dcgm-exporter publishes by default, as far as NVML tells it.
# FIELD, gauge|counter|label, help text

# Clocks
DCGM_FI_DEV_SM_CLOCK, gauge, Clock of the multiprocessors in MHz.
DCGM_FI_DEV_MEM_CLOCK, gauge, Clock of the memory in MHz.

# Temperature
DCGM_FI_DEV_MEMORY_TEMP, gauge, Temperature of the memory in degrees Celsius.
DCGM_FI_DEV_GPU_TEMP, gauge, Temperature of the GPU in degrees Celsius.

# Power
DCGM_FI_DEV_POWER_USAGE, gauge, Power drawn by the board in watts.
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, Energy used since the driver was loaded in mJ.

# PCIe
DCGM_FI_DEV_PCIE_REPLAY_COUNTER, counter, PCIe transfers that had to be repeated.

# Utilisation: percent of the last sample period
DCGM_FI_DEV_GPU_UTIL, gauge, Time in which any kernel ran in percent.
DCGM_FI_DEV_MEM_COPY_UTIL, gauge, Time in which the memory was read or written in percent.
DCGM_FI_DEV_ENC_UTIL, gauge, Use of the video encoders in percent.
DCGM_FI_DEV_DEC_UTIL, gauge, Use of the video decoders in percent.

# Errors
DCGM_FI_DEV_XID_ERRORS, gauge, Number of the last XID; it stays until the agent restarts.

# Memory
DCGM_FI_DEV_FB_FREE, gauge, Free memory in MiB.
DCGM_FI_DEV_FB_USED, gauge, Used memory in MiB.
DCGM_FI_DEV_FB_RESERVED, gauge, Memory reserved by the driver in MiB.

# NVLink
# Called a counter there, although it is a rate; jogak_gpu_nvlink_*_bytes_total count.
DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL, counter, Rate of data over all NVLinks both ways in MB/s.

# vGPU
DCGM_FI_DEV_VGPU_LICENSE_STATUS, gauge, Whether a vGPU licence is held.

# Remapped rows
DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS, counter, Rows replaced for uncorrectable errors.
DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS, counter, Rows replaced for correctable errors.
DCGM_FI_DEV_ROW_REMAP_FAILURE, gauge, Whether replacing a row has failed.

# Labels
DCGM_FI_DRIVER_VERSION, label, Driver version

# Profiling: Hopper and newer
DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, Ratio of time in which the compute engine was active.
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE, gauge, Ratio of cycles in which the tensor pipe was active.
DCGM_FI_PROF_DRAM_ACTIVE, gauge, Ratio of cycles in which the memory moved data.
DCGM_FI_PROF_PCIE_TX_BYTES, gauge, Bytes sent over PCIe each second.
DCGM_FI_PROF_PCIE_RX_BYTES, gauge, Bytes received over PCIe each second.
)";

constexpr std::string_view kModern =
    R"(# The default set of dcgm-exporter from 4.9 on, by its names in base units.
# FIELD, gauge|counter|label, help text
DCGM_FI_DEV_SM_CLOCK_HERTZ, gauge, Clock of the multiprocessors in hertz.
DCGM_FI_DEV_MEMORY_CLOCK_HERTZ, gauge, Clock of the memory in hertz.
DCGM_FI_DEV_MEMORY_TEMP_CELSIUS, gauge, Temperature of the memory in degrees Celsius.
DCGM_FI_DEV_GPU_TEMP_CELSIUS, gauge, Temperature of the GPU in degrees Celsius.
DCGM_FI_DEV_BOARD_POWER_WATTS, gauge, Power drawn by the board in watts.
DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL, counter, Energy used since the driver was loaded in joules.
DCGM_FI_DEV_PCIE_REPLAY_TOTAL, counter, PCIe transfers that had to be repeated.
DCGM_FI_DEV_GPU_UTIL_RATIO, gauge, Ratio of time in which any kernel ran.
DCGM_FI_DEV_MEMORY_UTIL_RATIO, gauge, Ratio of time in which the memory was read or written.
DCGM_FI_DEV_ENC_UTIL_RATIO, gauge, Use of the video encoders as a ratio.
DCGM_FI_DEV_DEC_UTIL_RATIO, gauge, Use of the video decoders as a ratio.
DCGM_FI_DEV_XID_ERROR, gauge, Number of the last XID; it stays until the agent restarts.
DCGM_FI_DEV_FB_CAPACITY_BYTES, gauge, All memory in bytes.
DCGM_FI_DEV_FB_FREE_BYTES, gauge, Free memory in bytes.
DCGM_FI_DEV_FB_USED_BYTES, gauge, Used memory in bytes.
DCGM_FI_DEV_FB_RESERVED_BYTES, gauge, Memory reserved by the driver in bytes.
DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND, gauge, Data over all NVLinks in both directions.
DCGM_FI_DEV_VGPU_LICENSE_STATUS, gauge, Whether a vGPU licence is held.
DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL, counter, Rows replaced for uncorrectable errors.
DCGM_FI_DEV_ROW_REMAP_CORRECTABLE_TOTAL, counter, Rows replaced for correctable errors.
DCGM_FI_DEV_ROW_REMAP_FAILED, gauge, Whether replacing a row has failed.
DCGM_FI_SYSTEM_DRIVER_VERSION, label, Driver version
DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO, gauge, Ratio of time in which the compute engine was active.
DCGM_FI_PROF_TENSOR_UTIL_RATIO, gauge, Ratio of cycles in which the tensor pipe was active.
DCGM_FI_PROF_DRAM_UTIL_RATIO, gauge, Ratio of cycles in which the memory moved data.
DCGM_FI_PROF_PCIE_TX_BYTES, gauge, Bytes sent over PCIe each second.
DCGM_FI_PROF_PCIE_RX_BYTES, gauge, Bytes received over PCIe each second.
)";

}  // namespace

Result<Counters> parse_counters(std::string_view file, std::string_view text) {
  if (text.size() > kCountersBytesMax) {
    return invalid("{}: more than {} bytes; this is no counters file", file, kCountersBytesMax);
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (!is_utf8(text)) return invalid("{}: not UTF-8; save it as such", file);
  Counters counters;
  std::set<std::string, std::less<>> seen;
  Line line = {.file = file};
  while (!text.empty()) {
    ++line.number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view row = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (row.empty() || row.starts_with('#')) continue;
    JOGAK_TRY(CounterSpec spec, parse_line(line, row));
    if (!seen.insert(spec.name).second) {
      return line.bad("{} a second time; remove one of the two lines", spec.name);
    }
    if (spec.field == nullptr) {
      counters.warnings.push_back(fmt::format(
          "{}:{}: {} cannot be had through NVML and has no series", file, line.number, spec.name));
    }
    counters.specs.push_back(std::move(spec));
  }
  if (counters.specs.empty()) return invalid("{}: no counter in it; name at least one field", file);
  return counters;
}

nvml::SampleWants sample_wants(const Counters& counters) {
  nvml::SampleWants wants;
  wants.gpm = false;
  for (const CounterSpec& spec : counters.specs) {
    if (spec.field == nullptr) continue;
    switch (spec.field->cost) {
      case FieldCost::None:
        break;
      case FieldCost::GpmEngines:
        wants.gpm = wants.gpm_engines = true;
        break;
      case FieldCost::GpmLinks:
        wants.gpm = wants.gpm_links = true;
        break;
      case FieldCost::Gpm:
        wants.gpm = true;
        break;
      case FieldCost::Links:
        wants.links = true;
        break;
      case FieldCost::Held:
        wants.held = true;
        break;
      case FieldCost::Pcie:
        wants.pcie_throughput = true;
        break;
    }
  }
  return wants;
}

Result<Naming> parse_naming(std::string_view text) {
  if (text == "classic") return Naming::Classic;
  if (text == "modern") return Naming::Modern;
  return invalid("naming \"{}\": use classic or modern", text);
}

std::string_view default_counters_text(Naming naming) {
  return naming == Naming::Classic ? kClassic : kModern;
}

Counters default_counters(Naming naming) {
  auto counters = parse_counters("default", default_counters_text(naming));
  JOGAK_CHECK(counters.has_value(), "{}", counters.error().what);
  return *std::move(counters);
}

}  // namespace jogak::agent
