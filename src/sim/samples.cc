// SPDX-License-Identifier: Apache-2.0
// Sample clusters and workloads.
#include "sim/samples.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/edit_distance.h"
#include "base/json_writer.h"
#include "base/parse_number.h"
#include "base/rng.h"

namespace jogak::sim {

namespace {

// Label values and memory as NVIDIA's feature discovery reports them.
constexpr auto kModels = std::to_array<SampleModel>({
    {"H200-141", "NVIDIA-H200", 143771, 24, 256, true},
    {"H100-80", "NVIDIA-H100-80GB-HBM3", 81559, 24, 192, true},
    {"A100-80", "NVIDIA-A100-SXM4-80GB", 81920, 16, 128, true},
    {"A100-40", "NVIDIA-A100-SXM4-40GB", 40960, 12, 96, true},
    {"V100-32", "Tesla-V100-SXM2-32GB", 32768, 12, 48, true},
    {"L40S", "NVIDIA-L40S", 46068, 16, 96, false},
    {"L4", "NVIDIA-L4", 23034, 16, 64, false},
    {"A10", "NVIDIA-A10", 23028, 12, 48, false},
    {"T4", "Tesla-T4", 15360, 24, 96, false},
});

constexpr std::int64_t kNodesMax = 100'000;
constexpr std::int64_t kCpuNodeCores = 64;
constexpr std::int64_t kCpuNodeGib = 256;
constexpr std::string_view kZoneLabel = "topology.kubernetes.io/zone";
constexpr std::string_view kRackLabel = "jogak.io/rack";

struct SampleNode {
  std::string name;
  std::int64_t cpu = 0;
  std::int64_t memory_gib = 0;
  std::string zone;
  std::string rack;
  const SampleGroup* group = nullptr;
};

std::string lower(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

std::vector<SampleNode> draw_nodes(const std::vector<SampleGroup>& groups, std::uint64_t seed) {
  static constexpr std::array<std::int64_t, 4> kQuarters = {3, 4, 4, 6};  // of the usual ratio
  Rng rng(seed, "samples/cluster");
  std::vector<SampleNode> nodes;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const SampleGroup& group = groups[g];
    for (std::int64_t i = 0; i < group.count; ++i) {
      const std::int64_t quarters = kQuarters[rng.below(kQuarters.size())];
      const std::uint64_t zone = rng.below(3);
      SampleNode node;
      const std::string kind = group.model == nullptr ? "cpu" : lower(group.model->name);
      node.name = fmt::format("{}-{:03}", kind, i);
      if (g > 0) {
        const bool is_again = std::ranges::any_of(
            groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(g),
            [&group](const SampleGroup& earlier) { return earlier.model == group.model; });
        if (is_again) node.name = fmt::format("{}-{}-{:03}", kind, g, i);
      }
      const std::int64_t cores =
          group.model == nullptr ? kCpuNodeCores : group.model->cpu_per_gpu * group.gpus;
      const std::int64_t gib =
          group.model == nullptr ? kCpuNodeGib : group.model->memory_gib_per_gpu * group.gpus;
      node.cpu = std::max<std::int64_t>(cores * quarters / 4, 4);
      node.memory_gib = std::max<std::int64_t>(gib * quarters / 4, 16);
      node.zone = fmt::format("zone-{}", static_cast<char>('a' + zone));
      node.rack = fmt::format("rack-{}-{}", static_cast<char>('a' + zone), i / 8);
      node.group = &group;
      nodes.push_back(std::move(node));
    }
  }
  return nodes;
}

Doc gpu_doc(const SampleGroup& group) {
  Doc gpu = Doc::object();
  gpu.set("count", group.gpus).set("model", group.model->product);
  gpu.set("memory", fmt::format("{}Mi", group.model->memory_mib));
  Doc numa = Doc::array();
  for (std::int32_t i = 0; i < group.gpus; ++i) numa.push(group.gpus > 1 ? i * 2 / group.gpus : 0);
  gpu.set("numa", std::move(numa));
  if (group.model->has_nvlink && group.gpus > 1) gpu.set("nvlink", "all");
  return gpu;
}

std::int64_t parse_part(std::string_view text, std::int64_t max) {
  const auto number = parse_int(text, 0, max);
  return number ? *number : -1;
}

Result<SampleGroup> parse_group(std::string_view text) {
  static constexpr std::string_view kForm = "expected COUNTxGPUSxMODEL like 8x8xA100-80, or 4xCPU";
  SampleGroup group;
  const std::size_t first = std::min(text.find('x'), text.size());
  group.count = parse_part(text.substr(0, first), kNodesMax);
  std::string_view rest = text.substr(std::min(first + 1, text.size()));
  if (group.count < 1) return invalid("{}: {}", text, kForm);
  if (rest == "CPU" || rest == "cpu") return group;
  const std::size_t second = std::min(rest.find('x'), rest.size());
  group.gpus = static_cast<std::int32_t>(parse_part(rest.substr(0, second), 16));
  const std::string_view model = rest.substr(std::min(second + 1, rest.size()));
  if (group.gpus < 1 || model.empty()) return invalid("{}: {}, at most 16 GPUs", text, kForm);
  const auto at = std::ranges::find_if(
      kModels, [model](const SampleModel& m) { return lower(m.name) == lower(model); });
  if (at == kModels.end()) {
    return invalid("{}: unknown model {}; the models are {}", text, model, sample_model_names());
  }
  group.model = &*at;
  return group;
}

}  // namespace

std::string sample_model_names() {
  std::string names;
  for (const SampleModel& model : kModels) {
    names.append(names.empty() ? "" : ", ").append(model.name);
  }
  return names;
}

std::int64_t sample_gpus(const std::vector<SampleGroup>& groups) {
  std::int64_t sum = 0;
  for (const SampleGroup& group : groups) sum += group.count * group.gpus;
  return sum;
}

Result<std::vector<SampleGroup>> parse_sample_groups(std::string_view text) {
  std::vector<SampleGroup> groups;
  std::int64_t nodes = 0;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    JOGAK_TRY(const SampleGroup group, parse_group(text.substr(0, comma)));
    nodes += group.count;
    if (nodes > kNodesMax) return invalid("more than {} nodes", kNodesMax);
    groups.push_back(group);
    if (comma == text.size()) return groups;
    text.remove_prefix(comma + 1);
  }
}

Doc sample_cluster(const std::vector<SampleGroup>& groups, std::uint64_t seed) {
  Doc list = Doc::array();
  for (const SampleNode& node : draw_nodes(groups, seed)) {
    Doc entry = Doc::object();
    entry.set("name", node.name).set("cpu", node.cpu);
    entry.set("memory", fmt::format("{}Gi", node.memory_gib));
    Doc labels = Doc::object();
    labels.set(kZoneLabel, node.zone).set(kRackLabel, node.rack);
    entry.set("labels", std::move(labels));
    if (node.group->model != nullptr) entry.set("gpu", gpu_doc(*node.group));
    list.push(std::move(entry));
  }
  Doc doc = Doc::object();
  doc.set("nodes", std::move(list));
  return doc;
}

Doc sample_cluster_k8s(const std::vector<SampleGroup>& groups, std::uint64_t seed) {
  Doc items = Doc::array();
  for (const SampleNode& node : draw_nodes(groups, seed)) {
    Doc labels = Doc::object();
    labels.set("kubernetes.io/hostname", node.name).set(kZoneLabel, node.zone);
    labels.set(kRackLabel, node.rack);
    Doc resources = Doc::object();
    resources.set("cpu", std::to_string(node.cpu));
    resources.set("memory", fmt::format("{}Gi", node.memory_gib)).set("pods", "110");
    if (node.group->model != nullptr) {
      labels.set("nvidia.com/gpu.product", node.group->model->product);
      labels.set("nvidia.com/gpu.memory", std::to_string(node.group->model->memory_mib));
      labels.set("nvidia.com/gpu.count", std::to_string(node.group->gpus));
      resources.set("nvidia.com/gpu", std::to_string(node.group->gpus));
    }
    Doc metadata = Doc::object();
    metadata.set("name", node.name).set("labels", std::move(labels));
    Doc status = Doc::object();
    status.set("capacity", resources).set("allocatable", resources);
    Doc item = Doc::object();
    item.set("apiVersion", "v1").set("kind", "Node").set("metadata", std::move(metadata));
    item.set("spec", Doc::object()).set("status", std::move(status));
    items.push(std::move(item));
  }
  Doc doc = Doc::object();
  doc.set("apiVersion", "v1").set("kind", "List").set("items", std::move(items));
  return doc;
}

}  // namespace jogak::sim
