// SPDX-License-Identifier: Apache-2.0
// Decoders of the two JSON annotations, with the fields that each may have.
#include "kube/gpu_annotations.h"

#include <algorithm>
#include <limits>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/edit_distance.h"
#include "kube/json.h"

namespace jogak::kube {

namespace {

constexpr std::int32_t kInt32Max = std::numeric_limits<std::int32_t>::max();

void refuse_other_fields(const Json& json, std::span<const std::string_view> known) {
  json.each_field([known](std::string_view name, const Json& value) {
    if (std::ranges::find(known, name) != known.end()) return;
    const std::string hint = did_you_mean(name, known);
    value.complain(hint.empty() ? fmt::format("unknown field; known are {}", fmt::join(known, ", "))
                                : fmt::format("unknown field{}", hint));
  });
}

std::int32_t int32_between(const Json& json, std::int32_t min, std::int32_t max) {
  return static_cast<std::int32_t>(json.integer(min, max));
}

GpuDevice::Health read_health(const Json& json) {
  const std::string_view text = json.view();
  if (text.empty() || text == "Healthy") return GpuDevice::Health::Healthy;
  if (text == "Unhealthy") return GpuDevice::Health::Unhealthy;
  if (text != "Unknown") {
    json.complain(fmt::format("\"{}\" is unknown; use Healthy, Unhealthy or Unknown", text));
  }
  return GpuDevice::Health::Unknown;
}

MigInstance read_instance(const Json& json) {
  constexpr std::string_view kFields[] = {"profile", "start"};
  refuse_other_fields(json, kFields);
  MigInstance result{.profile = json["profile"].text(),
                     .start = int32_between(json["start"], 0, 15)};
  if (result.profile.empty()) json["profile"].complain("is required, e.g. \"1g.10gb\"");
  if (!json["start"]) json["start"].complain("is required: the first memory slice, e.g. 0");
  return result;
}

void read_mig(const Json& json, GpuDevice& device) {
  constexpr std::string_view kFields[] = {"enabled", "dynamic", "instances"};
  refuse_other_fields(json, kFields);
  device.mig_enabled = json["enabled"].flag();
  device.mig_dynamic = json["dynamic"].flag();
  json["instances"].each_item(
      [&device](const Json& item) { device.mig_instances.push_back(read_instance(item)); });
  const bool uses = device.mig_dynamic || !device.mig_instances.empty();
  if (uses && !device.mig_enabled) json["enabled"].complain("must be true here");
}

GpuDevice read_device(const Json& json) {
  constexpr std::string_view kFields[] = {"uuid", "memoryMiB", "numa", "nvlink", "health", "mig"};
  refuse_other_fields(json, kFields);
  GpuDevice result;
  result.uuid = json["uuid"].text();
  if (const Json memory = json["memoryMiB"])
    result.memory_mib = int32_between(memory, 1, kInt32Max);
  if (const Json numa = json["numa"]) result.numa = int32_between(numa, -1, 1023);
  json["nvlink"].each_item([&result](const Json& item) {
    result.nvlink.push_back(int32_between(item, 0, kGpusPerNodeMax - 1));
  });
  result.health = read_health(json["health"]);
  read_mig(json["mig"], result);
  return result;
}

GpuHolding read_holding(const Json& json) {
  constexpr std::string_view kFields[] = {"gpu", "milli", "mib", "migStart"};
  refuse_other_fields(json, kFields);
  GpuHolding result;
  const Json gpu = json["gpu"];
  if (!gpu) gpu.complain("is required: the index of the device on its node, from 0");
  result.gpu = int32_between(gpu, 0, kGpusPerNodeMax - 1);
  int kinds = 0;
  if (const Json milli = json["milli"]) {
    ++kinds;
    result.kind = GpuHolding::Kind::Milli;
    result.amount = int32_between(milli, 1, 999);
  }
  if (const Json mib = json["mib"]) {
    ++kinds;
    result.kind = GpuHolding::Kind::Mib;
    result.amount = int32_between(mib, 1, kInt32Max);
  }
  if (const Json start = json["migStart"]) {
    ++kinds;
    result.kind = GpuHolding::Kind::Mig;
    result.amount = int32_between(start, 0, 15);
  }
  if (kinds > 1) json.complain("use only one of milli, mib and migStart");
  return result;
}

void check_links(const Json& json, const std::vector<GpuDevice>& devices) {
  std::size_t i = 0;
  json.each_item([&](const Json& item) {
    item["nvlink"].each_item([&](const Json& link) {
      const auto other = static_cast<std::size_t>(int32_between(link, 0, kGpusPerNodeMax - 1));
      if (other == i) link.complain("is the device itself; list the others it is linked to");
      if (other >= devices.size()) {
        link.complain(
            fmt::format("is {}, but the node has only {} devices", other, devices.size()));
      }
    });
    ++i;
  });
}

template <class T, T (*read)(const Json&)>
Result<std::vector<T>> parse_list(std::string_view text,
                                  void (*check)(const Json&, const std::vector<T>&)) {
  simdjson::dom::parser parser;
  simdjson::dom::element element;
  if (const auto error = parser.parse(text.data(), text.size(), true).get(element);
      error != simdjson::SUCCESS) {
    return invalid("is not valid JSON: {}", simdjson::error_message(error));
  }
  JsonContext context;
  const Json json(context, element);
  std::vector<T> result;
  json.each_item([&result](const Json& item) {
    if (result.size() == kGpusPerNodeMax) item.complain("is one too many; a node has at most 32");
    if (result.size() < kGpusPerNodeMax) result.push_back(read(item));
  });
  if (check != nullptr && context.problem().empty()) check(json, result);
  if (!context.problem().empty()) return invalid("{}", context.problem());
  return result;
}

}  // namespace

Result<std::vector<GpuDevice>> parse_gpu_devices(std::string_view json) {
  return parse_list<GpuDevice, read_device>(json, check_links);
}

Result<std::vector<GpuHolding>> parse_gpu_holdings(std::string_view json) {
  return parse_list<GpuHolding, read_holding>(json, nullptr);
}

}  // namespace jogak::kube
