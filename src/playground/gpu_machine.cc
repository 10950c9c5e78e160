// SPDX-License-Identifier: Apache-2.0
//
// Products are compared as feature discovery writes them.
#include "playground/gpu_machine.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "agent/labels/feature_labels.h"
#include "base/parse_number.h"
#include "nvml/sim/identity.h"
#include "nvml/sim/models.h"
#include "playground/gpu_config.h"

namespace jogak::playground {

namespace sim = nvml::sim;

Result<sim::MachineSpec> read_gpus(std::string_view text, const std::string& identity) {
  sim::MachineSpec machine;
  sim::set_usual_driver(machine);
  sim::fill_versions(machine);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t x = std::min(item.find('x'), item.size());
    const auto count = parse_int(item.substr(0, x), 1, sim::kGpusMax);
    auto model = sim::find_model(item.substr(std::min(x + 1, item.size())));
    if (!count || !model) {
      return invalid("{} \"{}\": expected COUNTxMODEL with a count of 1 to {} and a model of {}",
                     kSimulatedGpus, item, sim::kGpusMax, fmt::join(sim::model_names(), ", "));
    }
    model->model = item.substr(x + 1);
    model->mig_pending = model->mig_enabled;
    for (std::int64_t i = 0; i < *count; ++i) machine.gpus.push_back(*model);
    if (machine.gpus.size() > sim::kGpusMax) {
      return invalid("{}: more than {} GPUs", kSimulatedGpus, sim::kGpusMax);
    }
  }
  const int count = static_cast<int>(machine.gpus.size());
  if (count == 0) return invalid("{}: names no GPUs, like 8xA100-SXM4-80GB", kSimulatedGpus);
  for (int i = 0; i < count; ++i) {
    sim::fill_identity(machine.gpus[static_cast<std::size_t>(i)], i, count,
                       {.numa_nodes = count > 1 ? 2 : 1, .cpus = 96, .identity = identity});
  }
  sim::join_directly(machine);
  return machine;
}

void turn_mig_on(sim::MachineSpec& machine) {
  for (sim::GpuSpec& gpu : machine.gpus) {
    gpu.mig_enabled = gpu.mig_pending = gpu.mig_support != sim::MigSupport::None;
  }
}

std::string model_of_product(std::string_view product) {
  for (const std::string& name : sim::model_names()) {
    if (agent::label_value(sim::find_model(name)->name) == product) return name;
  }
  return {};
}

namespace {

constexpr std::string_view kShared = "-SHARED";
constexpr std::string_view kRenamed = "nvidia.com/gpu.shared";

std::int64_t number(const Doc& text) {
  const auto value = parse_int(text.is_number() ? text.number_text() : text.as_string());
  return value ? *value : 0;
}

// Of the numbers of shares that are on offer.
ManifestSharing sharing_of(const Doc& labels, const Doc& capacity) {
  return {.replicas = number(labels["nvidia.com/gpu.replicas"]),
          .is_mps = labels["nvidia.com/gpu.sharing-strategy"].as_string() == "mps",
          .is_renamed = number(capacity[kRenamed]) > 0};
}

}  // namespace

void name_gpus(Doc& node) {
  const Doc& labels = node["metadata"]["labels"];
  const Doc& capacity = node.get("status", "capacity");
  if (node.get("metadata", "annotations").has(kSimulatedGpus)) return;
  std::string_view product = labels["nvidia.com/gpu.product"].as_string();
  if (product.ends_with(kShared)) product.remove_suffix(kShared.size());
  const std::string model = model_of_product(product);
  if (model.empty()) return;
  std::int64_t count = number(capacity["nvidia.com/gpu"]);
  const std::int64_t labelled = number(labels["nvidia.com/gpu.count"]);
  std::string config;
  if (labels.has("nvidia.com/mig.config")) {
    count = std::max(count, labelled);
  } else {
    const bool has_slices = std::ranges::any_of(capacity.members(), [&](const auto& entry) {
      return entry.key.starts_with("nvidia.com/") && entry.key != "nvidia.com/gpu" &&
             entry.key != kRenamed && number(entry.value) > 0;
    });
    if (has_slices) return;
    const ManifestSharing sharing = sharing_of(labels, capacity);
    if (sharing.replicas > 1) {
      const std::int64_t shares = count + number(capacity[kRenamed]);
      if (shares % sharing.replicas != 0) return;
      count = shares / sharing.replicas;
      config = config_text(sharing);
    }
    if ((labelled > 0 && labelled != count) || (sharing.is_renamed && config.empty())) return;
  }
  if (count < 1 || count > sim::kGpusMax) return;
  Doc& annotations = node.at("metadata", "annotations");
  annotations.set(kSimulatedGpus, fmt::format("{}x{}", count, model));
  if (!config.empty()) annotations.set(kPluginConfig, config);
}

void leave_to_agent(Doc& node) {
  if (!node.get("metadata", "annotations").has(kSimulatedGpus)) return;
  const auto erase = [](Doc* members, std::string_view prefix) {
    if (members == nullptr) return;
    std::vector<std::string> found;
    for (const auto& [key, value] : members->members()) {
      if (key.starts_with(prefix)) found.push_back(key);
    }
    for (const std::string& key : found) members->erase(key);
  };
  Doc& labels = node.at("metadata", "labels");
  erase(&labels, "nvidia.com/gpu.");
  labels.set("nvidia.com/gpu.present", "true");  // not of the agent: whoever runs the node sets it
  for (const std::string_view list : {"capacity", "allocatable"}) {
    erase(node.at("status").find(list), "nvidia.com/mig-");
    erase(node.at("status").find(list), kRenamed);
  }
}

}  // namespace jogak::playground
