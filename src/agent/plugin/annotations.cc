// SPDX-License-Identifier: Apache-2.0
// Writes the values of the two annotations, in the form that the scheduler's parser takes.
#include "agent/plugin/annotations.h"

#include <algorithm>
#include <set>

#include "base/json_writer.h"

namespace jogak::agent {

namespace {

constexpr std::size_t kGpusMax = 32;
constexpr std::string_view kGpuResource = "nvidia.com/gpu";
constexpr std::string_view kVendorPrefix = "nvidia.com/";

// GPU instances that are cut into parts: nobody can be given one whole.
std::set<int> parted_instances(const nvml::GpuFacts& gpu) {
  std::set<int> seen;
  std::set<int> parted;
  for (const nvml::MigInstanceFacts& row : gpu.mig_instances) {
    if (row.ci_id < 0) continue;
    const bool is_part = !row.gi_profile.empty() && row.profile != row.gi_profile;
    if (!seen.insert(row.gi_id).second || is_part) parted.insert(row.gi_id);
  }
  return parted;
}

void write_gpu(JsonWriter& json, const nvml::GpuFacts& gpu, const UnhealthyReasons& unhealthy,
               bool is_mig_dynamic) {
  json.begin_object();
  if (!gpu.uuid.empty()) json.field("uuid", gpu.uuid);
  if (gpu.memory_mib > 0) json.field("memoryMiB", gpu.memory_mib);
  if (gpu.numa_node && *gpu.numa_node >= 0) json.field("numa", *gpu.numa_node);
  bool has_links = false;
  for (std::size_t i = 0; i < gpu.links.size(); ++i) {
    if (gpu.links[i].nvlinks == 0 || static_cast<int>(i) == gpu.index) continue;
    if (!has_links) json.key("nvlink").begin_array();
    has_links = true;
    json.value(i);
  }
  if (has_links) json.end_array();
  if (gpu.is_lost || gpu.uuid.empty() || unhealthy.contains(gpu.uuid)) {
    json.field("health", "Unhealthy");
  }
  if (gpu.mig_enabled) {
    json.key("mig").begin_object();
    json.field("enabled", true);
    const std::set<int> parted = parted_instances(gpu);
    // Who holds parts is not known to the scheduler: where there are any it must not count on
    // their slices, neither for what is listed nor for what could be cut.
    if (is_mig_dynamic && parted.empty()) json.field("dynamic", true);
    std::set<std::pair<int, std::string>> instances;  // each GPU instance once
    for (const nvml::MigInstanceFacts& instance : gpu.mig_instances) {
      if (instance.ci_id < 0 || unhealthy.contains(instance.uuid)) continue;
      if (parted.contains(instance.gi_id)) continue;
      instances.emplace(instance.placement.start,
                        instance.gi_profile.empty() ? instance.profile : instance.gi_profile);
    }
    if (!instances.empty()) {
      json.key("instances").begin_array();
      for (const auto& [start, profile] : instances) {
        json.begin_object().field("profile", profile).field("start", start).end_object();
      }
      json.end_array();
    }
    json.end_object();
  }
  json.end_object();
}

}  // namespace

std::string gpus_annotation(const nvml::NodeFacts& facts, const UnhealthyReasons& unhealthy,
                            bool is_mig_dynamic) {
  if (facts.gpus.empty() || facts.gpus.size() > kGpusMax) return {};
  JsonWriter json;
  json.begin_array();
  for (const nvml::GpuFacts& gpu : facts.gpus) write_gpu(json, gpu, unhealthy, is_mig_dynamic);
  json.end_array();
  return json.take();
}

std::map<PodName, std::string> holds_annotations(const nvml::NodeFacts& facts,
                                                 const std::vector<Holding>& holdings) {
  struct Held {
    std::set<int> gpus;
    bool is_plain = true;
  };
  std::map<PodName, Held> pods;
  for (const Holding& holding : holdings) {
    if (!holding.resource.starts_with(kVendorPrefix)) continue;
    Held& held = pods[{.ns = holding.holder.pod_namespace, .name = holding.holder.pod}];
    const auto gpu = std::ranges::find(facts.gpus, holding.device_id, &nvml::GpuFacts::uuid);
    if (holding.resource != kGpuResource || gpu == facts.gpus.end() || gpu->mig_enabled) {
      held.is_plain = false;
    } else {
      held.gpus.insert(gpu->index);
    }
  }
  std::map<PodName, std::string> result;
  for (const auto& [pod, held] : pods) {
    if (!held.is_plain) continue;
    JsonWriter json;
    json.begin_array();
    for (const int gpu : held.gpus) json.begin_object().field("gpu", gpu).end_object();
    json.end_array();
    result.emplace(pod, json.take());
  }
  return result;
}

}  // namespace jogak::agent
