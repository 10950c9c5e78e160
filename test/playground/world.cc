// SPDX-License-Identifier: Apache-2.0
//
// The counts are made anew from all objects each time: slow, and without a state that may be wrong.
#include "test/playground/world.h"

#include <algorithm>

#include <fmt/core.h>

#include "apiserver/object/meta.h"
#include "apiserver/object/resource_list.h"
#include "base/check.h"
#include "playground/fleet.h"

namespace jogak::playground::testing {

namespace {

constexpr std::string_view kGpu = "nvidia.com/gpu";

bool is_over(const Doc& pod) {
  const std::string& phase = pod.get("status", "phase").as_string();
  return phase == "Succeeded" || phase == "Failed";
}

std::string label_of(const Doc& pod) { return api::namespace_of(pod) + "/" + api::name_of(pod); }

// What the pods of one node take together.
struct Load {
  api::ResourceList used;
  std::int64_t pods = 0;
};

std::map<std::string, Load> loads_of(const std::vector<Doc>& pods) {
  std::map<std::string, Load> loads;
  for (const Doc& pod : pods) {
    const std::string& node = pod.get("spec", "nodeName").as_string();
    if (node.empty() || is_over(pod)) continue;
    Load& load = loads[node];
    api::add_resources(load.used, api::pod_requests(pod));
    ++load.pods;
  }
  return loads;
}

// Whether `wanted` is there when `used` is taken already.
bool fits(const api::ResourceList& capacity, const Load& load, const api::ResourceList& wanted) {
  const auto has = [&](std::string_view name, api::Amount needed) {
    const auto it = capacity.find(name);
    return !(needed > (it == capacity.end() ? api::Amount() : it->second));
  };
  if (!has("pods", api::Amount::of(load.pods + 1))) return false;
  return std::ranges::all_of(wanted, [&](const auto& entry) {
    api::Amount needed = entry.second;
    if (needed.is_zero()) return true;
    const auto used = load.used.find(entry.first);
    if (used != load.used.end()) needed += used->second;
    return has(entry.first, needed);
  });
}

bool is_open(const Doc& node) {
  return !node.get("spec", "unschedulable").as_bool() && node.get("spec", "taints").empty() &&
         api::condition_is(node, "Ready", "True");
}

// {"gpu":1}, ... of the annotation, as numbers of whole devices.
std::vector<std::string> devices_of(const Doc& pod) {
  std::vector<std::string> devices;
  const std::string& text = pod.get("metadata", "annotations")["jogak.io/gpu-holds"].as_string();
  const auto documents = read_manifests(text, "gpu-holds");
  JOGAK_CHECK(documents.has_value(), "gpu-holds of {}: {}", label_of(pod), text);
  for (const Doc& list : *documents) {
    for (const Doc& item : list.items()) {
      if (item.has("gpu") && item.size() == 1) devices.push_back(item["gpu"].number_text());
    }
  }
  return devices;
}

}  // namespace

World::World(std::vector<Doc> nodes, PlaygroundOptions options) {
  auto made = Playground::make(loop_, std::move(options));
  JOGAK_CHECK(made.has_value(), "{}", made.error().what);
  playground_ = *std::move(made);
  const auto loaded = playground_->load(std::move(nodes));
  JOGAK_CHECK(loaded.has_value(), "{}", loaded.error().what);
  following_ = api().follow("pods", [this](const api::Api::Change& change) {
    if (change.type != store::EventType::Deleted) return;
    gone_[api::uid_of(*change.object)] = {
        .last = *change.object,
        .was_disrupted = api::condition_is(*change.object, "DisruptionTarget", "True")};
  });
  run_for(2 * kSecondInUs);
}

World::~World() = default;

void World::apply(std::string_view manifests) {
  auto objects = read_manifests(manifests, "test");
  JOGAK_CHECK(objects.has_value(), "{}", objects.error().what);
  const auto loaded = playground_->load(*std::move(objects));
  JOGAK_CHECK(loaded.has_value(), "{}", loaded.error().what);
}

void World::add(Doc object) {
  std::vector<Doc> objects;
  objects.push_back(std::move(object));
  const auto loaded = playground_->load(std::move(objects));
  JOGAK_CHECK(loaded.has_value(), "{}", loaded.error().what);
}

Doc World::pod(std::string_view name) {
  auto found = api().get("pods", "default", name);
  return found.has_value() ? *std::move(found) : Doc();
}

std::size_t World::count(std::string_view prefix, std::string_view phase) {
  return static_cast<std::size_t>(std::ranges::count_if(pods(), [&](const Doc& pod) {
    return api::name_of(pod).starts_with(prefix) &&
           pod.get("status", "phase").as_string() == phase && !api::is_deleting(pod);
  }));
}

std::set<std::string> World::nodes_of(std::string_view prefix) {
  std::set<std::string> nodes;
  for (const Doc& pod : pods()) {
    if (!api::name_of(pod).starts_with(prefix)) continue;
    if (pod.get("status", "phase").as_string() == "Running") {
      nodes.insert(pod.get("spec", "nodeName").as_string());
    }
  }
  return nodes;
}

void World::annotate_node(std::string_view name, std::string_view key, std::string_view value) {
  Doc patch = Doc::object();
  patch.at("metadata", "annotations").set(key, value.empty() ? Doc() : Doc(value));
  const auto done = api().patch("nodes", "", name, api::PatchType::Merge, patch);
  JOGAK_CHECK(done.has_value(), "{}", done.error().message);
}

std::string World::broken_rule() {
  const std::vector<Doc> all = pods();
  std::map<std::string, api::ResourceList> capacities;
  for (const Doc& node : api().list("nodes")) {
    capacities[api::name_of(node)] = api::read_resources(node.get("status", "capacity"));
  }
  for (const auto& [node, load] : loads_of(all)) {
    const auto capacity = capacities.find(node);
    if (capacity == capacities.end()) continue;  // the pods of a node that went away go after it
    Load before = load;
    --before.pods;
    before.used.clear();
    if (!fits(capacity->second, before, load.used)) {
      std::string list;
      api::write_resources(load.used).append_json(list);
      return fmt::format("node {} gives more than it has: {} pods, {}", node, load.pods, list);
    }
  }
  std::map<std::string, std::string> owners;  // node/device -> pod
  for (const Doc& pod : all) {
    const std::string& reason = pod.get("status", "reason").as_string();
    const std::string& node = pod.get("spec", "nodeName").as_string();
    if ((reason.starts_with("OutOf") || reason == "UnexpectedAdmissionError") &&
        !refusing_.contains(node)) {
      return fmt::format("pod {} was refused on its node: {}", label_of(pod),
                         pod.get("status", "message").as_string());
    }
    if (is_over(pod)) continue;
    for (const std::string& device : devices_of(pod)) {
      const auto [it, is_new] =
          owners.try_emplace(fmt::format("{}/{}", node, device), label_of(pod));
      if (!is_new) {
        return fmt::format("device {} belongs to {} and {}", it->first, it->second, label_of(pod));
      }
    }
  }
  if (playground_->scheduler() != nullptr) {
    const live::DriverCounts& counts = scheduler().counts();
    if (counts.invalid_plans > 0 || counts.unreadable > 0) return scheduler().last_fault();
  }
  return "";
}

std::string World::needless_wait() {
  const std::vector<Doc> all = pods();
  const std::map<std::string, Load> loads = loads_of(all);
  const std::vector<Doc> nodes = api().list("nodes");
  for (const Doc& pod : all) {
    if (!pod.get("spec", "nodeName").as_string().empty() || is_over(pod) || api::is_deleting(pod)) {
      continue;
    }
    const api::ResourceList wanted = api::pod_requests(pod);
    const std::int64_t priority = pod.get("spec", "priority").as_int();
    std::vector<Doc> stay;  // pods that need not give way to this one
    for (const Doc& other : all) {
      if (other.get("spec", "priority").as_int() >= priority) stay.push_back(other);
    }
    const std::map<std::string, Load> left = loads_of(stay);
    for (const Doc& node : nodes) {
      if (!is_open(node)) continue;
      const std::string& name = api::name_of(node);
      const api::ResourceList capacity = api::read_resources(node.get("status", "allocatable"));
      const auto load = loads.find(name);
      if (fits(capacity, load == loads.end() ? Load() : load->second, wanted)) {
        return fmt::format("pod {} waits although node {} has room", label_of(pod), name);
      }
      const auto rest = left.find(name);
      if (fits(capacity, rest == left.end() ? Load() : rest->second, wanted)) {
        return fmt::format("pod {} waits although pods of lower priority hold node {}",
                           label_of(pod), name);
      }
    }
  }
  return "";
}

Doc simulated_node(std::string_view name, int cpu, int gpus) {
  Doc node = Doc::object();
  node.set("apiVersion", "v1").set("kind", "Node");
  node.at("metadata")
      .set("name", name)
      .at("labels")
      .set("jogak.io/simulated", "true")
      .set("kubernetes.io/hostname", name);
  Doc& capacity = node.at("status", "capacity");
  capacity.set("cpu", std::to_string(cpu)).set("memory", "64Gi").set("pods", "20");
  if (gpus > 0) {
    capacity.set(kGpu, std::to_string(gpus));
    node.at("metadata", "labels").set("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB");
  }
  return node;
}

Doc simple_pod(std::string_view name, int cpu, int gpus, std::string_view priority_class) {
  Doc pod = Doc::object();
  pod.set("apiVersion", "v1").set("kind", "Pod");
  pod.at("metadata").set("name", name).set("namespace", "default");
  Doc container = Doc::object();
  container.set("name", "main").set("image", "example/main:1");
  container.at("resources", "requests").set("cpu", std::to_string(cpu));
  if (gpus > 0) {
    container.at("resources", "requests").set(kGpu, std::to_string(gpus));
    container.at("resources", "limits").set(kGpu, std::to_string(gpus));
  }
  pod.at("spec").set("containers", Doc::array().push(std::move(container)));
  if (!priority_class.empty()) pod.at("spec").set("priorityClassName", priority_class);
  return pod;
}

Doc priority_class(std::string_view name, int value) {
  Doc object = Doc::object();
  object.set("apiVersion", "scheduling.k8s.io/v1").set("kind", "PriorityClass");
  object.at("metadata").set("name", name);
  object.set("value", value);
  return object;
}

}  // namespace jogak::playground::testing
