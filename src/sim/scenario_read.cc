// SPDX-License-Identifier: Apache-2.0
// Scenario files to values. The format is described in docs/scenario-format.md.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/quantity.h"
#include "base/units.h"
#include "sim/scenario.h"
#include "sim/scenario_fields.h"
#include "sim/scenario_room.h"

namespace jogak::sim {

namespace {

constexpr std::int64_t kNodesMax = 100'000;
constexpr std::int64_t kPodsMax = 1'000'000;

// "name" for one, "name-0", "name-1"... for several.
std::string numbered(const std::string& name, std::int64_t i, std::int64_t count) {
  return count == 1 ? name : fmt::format("{}-{}", name, i);
}

void read_nodes(YamlFields fields, Scenario& scenario) {
  const std::int64_t count = fields.integer("count", 1, 0, kNodesMax);
  core::NodeSpec spec = read_node_spec(fields);
  fields.finish();
  if (static_cast<std::int64_t>(scenario.nodes.size()) + count > kNodesMax) {
    return fields.bad("count", fmt::format("more than {} nodes in all", kNodesMax));
  }
  if (fields.failed()) return;
  const std::string name = spec.name;
  for (std::int64_t i = 0; i < count; ++i) {
    spec.name = numbered(name, i, count);
    core::NodeSpec node = spec;
    // As every kubelet does, unless the file says otherwise.
    const auto at = std::ranges::lower_bound(
        node.labels, kHostnameLabel, {}, [](const auto& l) { return std::string_view(l.first); });
    if (at == node.labels.end() || at->first != kHostnameLabel) {
      node.labels.emplace(at, std::string(kHostnameLabel), node.name);
    }
    scenario.nodes.push_back(std::move(node));
  }
}

void read_pods(YamlFields fields, Scenario& scenario) {
  const std::int64_t count = fields.integer("count", 1, 0, kPodsMax);
  ScenarioPod pod;
  pod.arrival_ns = fields.seconds_ns("arrival", 0);
  pod.run_ns = fields.seconds_ns("run", kForever);
  const std::int64_t every_ns = fields.seconds_ns("every", 0);
  pod.spec = read_pod_spec(fields);
  pod.origin = fields.origin();
  fields.finish();
  if (static_cast<std::int64_t>(scenario.pods.size()) + count > kPodsMax) {
    return fields.bad("count", fmt::format("more than {} pods in all", kPodsMax));
  }
  if (count > 0 && every_ns > std::numeric_limits<std::int64_t>::max() / 4 / count) {
    return fields.bad("every", "the last pod would arrive too late");
  }
  if (fields.failed()) return;
  const std::string name = pod.spec.name;
  for (std::int64_t i = 0; i < count; ++i) {
    pod.spec.name = numbered(name, i, count);
    scenario.pods.push_back(pod);
    pod.arrival_ns += every_ns;
  }
}

struct ActionName {
  std::string_view word;
  ScenarioAction action;
};
constexpr ActionName kNodeActions[] = {
    {"down", ScenarioAction::NodeDown},         {"up", ScenarioAction::NodeUp},
    {"cordon", ScenarioAction::NodeCordon},     {"uncordon", ScenarioAction::NodeUncordon},
    {"label", ScenarioAction::NodeLabel},       {"gpu-unhealthy", ScenarioAction::GpuUnhealthy},
    {"gpu-healthy", ScenarioAction::GpuHealthy}};

void read_event(YamlFields fields, Scenario& scenario) {
  ScenarioEvent event;
  event.at_ns = fields.seconds_ns("at", 0);
  if (!fields.has("at")) fields.bad("at", "is required");
  const bool is_node = fields.has("node");
  if (is_node == fields.has("pod")) {
    return fields.bad("", "an event names either a node or a pod");
  }
  event.target = fields.required_text(is_node ? "node" : "pod");
  const std::string word = fields.required_text("do");
  if (!is_node) {
    if (event.target.find('/') == std::string::npos) event.target.insert(0, "default/");
    event.action = ScenarioAction::PodDelete;
    if (word != "delete") fields.bad("do", "the one thing done to pods is delete");
  } else {
    const auto at = std::ranges::find(kNodeActions, word, &ActionName::word);
    if (at == std::end(kNodeActions)) {
      return fields.bad("do",
                        "expected down, up, cordon, uncordon, label, gpu-unhealthy or "
                        "gpu-healthy");
    }
    event.action = at->action;
  }
  const bool is_gpu =
      event.action == ScenarioAction::GpuUnhealthy || event.action == ScenarioAction::GpuHealthy;
  if (is_gpu) {
    if (!fields.has("gpu")) fields.bad("gpu", "is required: the index of the device");
    event.gpu = static_cast<std::int32_t>(fields.integer("gpu", 0, 0, core::kMaxGpus - 1));
  }
  if (event.action == ScenarioAction::NodeLabel) {
    event.labels = fields.pairs("labels");
    if (event.labels.empty()) fields.bad("labels", "is required: what to set, empty to remove");
  }
  fields.finish();
  scenario.events.push_back(std::move(event));
}

void read_mix(YamlFields fields, Scenario& scenario) {
  core::MixClass entry;
  entry.cpu = fields.milli("cpu", 0);
  entry.memory = fields.quantity("memory", 0);
  entry.weight = fields.integer("weight", 1, 1, 1'000'000'000);
  const core::GpuRequest gpu = read_gpu_request(fields, "gpu");
  if (gpu.kind == core::GpuAsk::ShareMib || gpu.kind == core::GpuAsk::Mig) {
    fields.bad("gpu", "a mix knows whole devices and shares in parts of a device only");
  }
  entry.gpu_count = gpu.count;
  entry.gpu_milli = gpu.count == 0 ? 0 : gpu.kind == core::GpuAsk::Whole ? 1000 : gpu.amount;
  entry.models = gpu.models;
  fields.finish();
  scenario.mix.push_back(std::move(entry));
}

void read_scenario(YamlFields& fields, Scenario& scenario) {
  scenario.name = fields.text("name", scenario.name);
  scenario.policy = fields.text("policy", scenario.policy);
  if (const auto policy = core::make_policy(scenario.policy, 0); !policy) {
    fields.bad("policy", policy.error().what);
  }
  scenario.seed = fields.integer("seed", scenario.seed, 0, std::int64_t{1} << 32);
  scenario.has_preemption = fields.flag("preemption", scenario.has_preemption);
  scenario.until_ns = fields.seconds_ns("until", scenario.until_ns);
  for (YamlFields& entry : fields.maps("nodes")) read_nodes(std::move(entry), scenario);
  for (YamlFields& entry : fields.maps("pods")) read_pods(std::move(entry), scenario);
  for (YamlFields& entry : fields.maps("events")) read_event(std::move(entry), scenario);
  for (YamlFields& entry : fields.maps("mix")) read_mix(std::move(entry), scenario);
  if (auto cluster = fields.map("cluster")) {
    scenario.running_ns = cluster->seconds_ns("running_for", scenario.running_ns);
    scenario.waiting_ns = cluster->seconds_ns("waiting_run", scenario.waiting_ns);
    cluster->finish();
  }
  fields.finish();
}

// Milli of one device that a share of so many MiB is, by the first device that knows its memory.
std::int32_t milli_of_mib(const Scenario& scenario, std::int32_t mib) {
  for (const core::NodeSpec& node : scenario.nodes) {
    for (const core::GpuSpec& gpu : node.gpus) {
      if (gpu.memory_mib <= 0) continue;
      const std::int64_t milli = (std::int64_t{mib} * 1000 + gpu.memory_mib - 1) / gpu.memory_mib;
      return static_cast<std::int32_t>(std::clamp<std::int64_t>(milli, 1, 1000));
    }
  }
  return 1000;
}

std::int64_t request_of(const core::PodShape& shape, std::string_view name) {
  for (const auto& [key, amount] : shape.requests) {
    if (key == name) return amount;
  }
  return 0;
}

}  // namespace

Result<void> parse_scenario(std::string file, std::string_view text, Scenario& scenario) {
  return read_yaml_map(file, text, "a map with nodes and pods",
                       [&](YamlFields& fields) { read_scenario(fields, scenario); });
}

Result<void> check_scenario(const Scenario& scenario) {
  if (scenario.nodes.empty()) return invalid("no nodes in the scenario");
  if (scenario.pods.empty()) return invalid("no pods in the scenario");
  const bool has_lengths = scenario.running_ns != kForever || scenario.waiting_ns != kForever;
  if (has_lengths && !scenario.has_cluster) {
    return invalid("cluster: the scenario starts from none; give one or leave the lengths out");
  }
  std::map<std::string_view, const core::NodeSpec*> nodes;
  for (const core::NodeSpec& node : scenario.nodes) {
    if (!nodes.emplace(node.name, &node).second)
      return invalid("two nodes are named {}", node.name);
  }
  std::set<std::string> pods;
  for (const ScenarioPod& pod : scenario.pods) {
    if (!pods.insert(pod.spec.ns + "/" + pod.spec.name).second) {
      return invalid("two pods are named {}/{}", pod.spec.ns, pod.spec.name);
    }
  }
  for (std::size_t i = 0; i < scenario.events.size(); ++i) {
    const ScenarioEvent& event = scenario.events[i];
    if (event.action == ScenarioAction::PodDelete) {
      if (pods.contains(event.target)) continue;
      return invalid("events[{}]: no pod {}", i, event.target);
    }
    const auto node = nodes.find(event.target);
    if (node == nodes.end()) return invalid("events[{}]: no node {}", i, event.target);
    const bool is_gpu =
        event.action == ScenarioAction::GpuUnhealthy || event.action == ScenarioAction::GpuHealthy;
    if (is_gpu && static_cast<std::size_t>(event.gpu) >= node->second->gpus.size()) {
      return invalid("events[{}]: node {} has no GPU {}", i, event.target, event.gpu);
    }
  }
  return check_room(scenario);
}

core::WorkloadMix mix_of_pods(const Scenario& scenario) {
  using Key =
      std::tuple<std::int64_t, std::int64_t, std::int32_t, std::int32_t, std::vector<std::string>>;
  std::map<Key, std::int64_t> counts;
  for (const ScenarioPod& pod : scenario.pods) {
    const core::GpuRequest& gpu = pod.spec.shape.gpu;
    if (gpu.kind == core::GpuAsk::Mig) continue;
    std::int32_t milli = 0;
    if (gpu.kind == core::GpuAsk::Whole) milli = 1000;
    if (gpu.kind == core::GpuAsk::ShareMilli) milli = gpu.amount;
    if (gpu.kind == core::GpuAsk::ShareMib) milli = milli_of_mib(scenario, gpu.amount);
    ++counts[{request_of(pod.spec.shape, "cpu"), request_of(pod.spec.shape, "memory"), gpu.count,
              milli, gpu.models}];
  }
  core::WorkloadMix mix;
  for (const auto& [key, count] : counts) {
    const auto& [cpu, memory, gpus, milli, models] = key;
    mix.push_back({.cpu = cpu,
                   .memory = memory,
                   .gpu_count = gpus,
                   .gpu_milli = milli,
                   .models = models,
                   .weight = count});
  }
  return mix;
}

}  // namespace jogak::sim
