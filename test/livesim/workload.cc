// SPDX-License-Identifier: Apache-2.0
//
// Small numbers, so that pods meet: nodes of a few cpus and devices, pods that take half of them.
#include "test/livesim/workload.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "apiserver/object/meta.h"

namespace jogak::livesim {

namespace {

struct Kind {
  std::string_view name;
  bool WorkloadOptions::* is_on;
};
constexpr std::array<Kind, 8> kKinds = {{
    {"devices", &WorkloadOptions::has_devices},
    {"foreign", &WorkloadOptions::has_foreign},
    {"volumes", &WorkloadOptions::has_volumes},
    {"priorities", &WorkloadOptions::has_priorities},
    {"budgets", &WorkloadOptions::has_budgets},
    {"gates", &WorkloadOptions::has_gates},
    {"ends", &WorkloadOptions::has_ends},
    {"zones", &WorkloadOptions::has_zones},
}};

}  // namespace

std::string WorkloadOptions::text() const {
  std::string text = fmt::format("{} nodes", nodes);
  for (const Kind& kind : kKinds) {
    if (this->*kind.is_on) text += fmt::format(" {}", kind.name);
  }
  if (has_node_changes) text += " node-changes";
  return text;
}

WorkloadOptions draw_workload(Rng& rng) {
  WorkloadOptions options;
  options.nodes = static_cast<int>(rng.between(2, 6));
  for (const Kind& kind : kKinds) options.*kind.is_on = rng.chance(1, 2);
  options.has_node_changes = rng.chance(2, 3);
  return options;
}

Workload::Workload(World& world, WorkloadOptions options, std::uint64_t seed)
    : world_(world), options_(options), rng_(seed, "workload") {}

int Workload::number(int bound) {
  return static_cast<int>(rng_.below(static_cast<std::uint64_t>(bound)));
}

NodeSpec Workload::draw_node(int index) {
  NodeSpec node{.name = fmt::format("n{}", index)};
  node.cpu = 4 + 2 * number(3);
  const int gpus = number(3);
  node.gpus = gpus == 0 ? 0 : 2 * gpus;
  node.pods = 6 + number(8);
  node.has_devices = options_.has_devices && node.gpus > 0 && number(4) > 0;
  if (options_.has_zones && number(2) == 0) node.zone = "y";
  return node;
}

void Workload::start() {
  for (int i = 0; i < options_.nodes; ++i) {
    const NodeSpec node = draw_node(i);
    nodes_[node.name] = node;
    world_.add_node(node);
  }
  const int pods = number(16);
  for (int i = 0; i < pods; ++i) add_pod();
}

PodSpec Workload::draw_pod() {
  PodSpec pod{.name = fmt::format("p{}", next_++)};
  pod.cpu_milli = 500 * (1 + number(6));
  const int kind = number(4);
  if (kind == 0) pod.gpus = 1 + number(3);
  if (kind == 1 && options_.has_devices) {
    pod.share_milli = 250 * (1 + number(3));
    pod.share_count = 1 + number(2);
  }
  if (options_.has_zones && number(4) == 0) pod.zone = number(2) == 0 ? "x" : "y";
  if (options_.has_priorities) {
    constexpr std::array<std::string_view, 4> kClasses = {"", "low", "mid", "high"};
    pod.priority_class = kClasses[static_cast<std::size_t>(number(4))];
  }
  if (options_.has_foreign && number(4) == 0) {
    pod.scheduler = "other";
    pod.share_milli = pod.share_count = 0;
  }
  pod.is_gated = options_.has_gates && number(6) == 0;
  pod.needs_volume = options_.has_volumes && number(4) == 0;
  if (options_.has_ends && number(3) == 0) pod.runs_for_s = 5 + number(90);
  pod.ignores_term = number(6) == 0;
  pod.grace_s = number(3) == 0 ? number(40) : number(4);
  pod.app = number(2) == 0 ? "a" : "b";
  return pod;
}

void Workload::add_pod() { world_.add_pod(draw_pod()); }

std::string Workload::some_node() {
  auto it = nodes_.begin();
  std::advance(it, number(static_cast<int>(nodes_.size())));
  return it->first;
}

const PodFacts* Workload::some_pod(bool bound_only) {
  std::vector<const PodFacts*> pods;
  for (const auto& [uid, pod] : world_.facts().pods()) {
    if (!pod.is_gone() && (!bound_only || !pod.node.empty())) pods.push_back(&pod);
  }
  if (pods.empty()) return nullptr;
  return pods[static_cast<std::size_t>(number(static_cast<int>(pods.size())))];
}

void Workload::remove_pod() {
  const PodFacts* pod = some_pod(false);
  if (pod == nullptr) return;
  const int grace = number(4) == 0 ? number(2) : -1;
  world_.remove("pods", pod->ns, std::string(pod->name), grace);
}

// The same name at once again: another uid, other wishes.
void Workload::replace_pod() {
  const PodFacts* found = some_pod(false);
  if (found == nullptr) return;
  const std::string name = found->name;
  if (!world_.remove("pods", "default", name, 0)) return;
  if (world_.api().get("pods", "default", name).has_value()) return;
  PodSpec pod = draw_pod();
  pod.name = name;
  world_.add_pod(pod);
}

void Workload::open_gate() {
  for (const auto& [uid, pod] : world_.facts().pods()) {
    if (!pod.waits() || !pod.is_gated) continue;
    const Doc merge = Doc::object().set("spec", Doc::object().set("schedulingGates", Doc::array()));
    world_.patch("pods", pod.ns, std::string(pod.name), merge);
    return;
  }
}

void Workload::change_node() {
  const std::string name = some_node();
  NodeSpec& node = nodes_[name];
  switch (number(3)) {
    case 0:
      return world_.cordon(name, true);
    case 1:
      return world_.cordon(name, false);
    default:
      break;
  }
  node.zone = node.zone == "x" && options_.has_zones ? "y" : "x";
  Doc merge = Doc::object();
  merge.at("metadata", "labels").set("zone", node.zone).set("colour", fmt::format("c{}", next_++));
  world_.patch("nodes", "", name, merge);
}

void Workload::replace_node() {
  const std::string name = some_node();
  if (away_.contains(name) || !world_.remove("nodes", "", name)) return;
  const int index = std::stoi(name.substr(1));
  nodes_[name] = draw_node(index);
  away_[name] = world_.loop().now() + static_cast<TimeUs>(rng_.below(60)) * kSecondInUs;
}

void Workload::sicken() {
  const std::string name = some_node();
  NodeSpec& node = nodes_[name];
  if (node.gpus == 0 || away_.contains(name)) return;
  if (node.has_devices) {
    if (node.sick.empty()) {
      node.sick.push_back(number(node.gpus));
    } else {
      node.sick.clear();
    }
    world_.set_devices(name, node);
    return;
  }
  Doc merge = Doc::object();
  merge.at("metadata", "annotations")
      .set("jogak.io/unhealthy", number(2) == 0 ? Doc("nvidia.com/gpu=1") : Doc());
  world_.patch("nodes", "", name, merge);
}

void Workload::budget() {
  const std::string app = number(2) == 0 ? "a" : "b";
  const std::string name = "budget-" + app;
  if (world_.remove("poddisruptionbudgets.policy", "default", name)) return;
  Doc object = Doc::object();
  object.set("apiVersion", "policy/v1").set("kind", "PodDisruptionBudget");
  object.at("metadata").set("name", name);
  object.at("spec").set("minAvailable", 1 + number(4));
  object.at("spec", "selector", "matchLabels").set("app", app);
  world_.add("poddisruptionbudgets.policy", "default", std::move(object));
}

// It looks at the store itself and only takes what is free there, as far as it knows.
void Workload::foreign_turn() {
  std::vector<const PodFacts*> waiting;
  for (const auto& [uid, pod] : world_.facts().pods()) {
    if (pod.waits() && !pod.is_ours() && !pod.is_gated && pod.claims.empty()) {
      waiting.push_back(&pod);
    }
  }
  for (const PodFacts* pod : waiting) {
    for (const auto& [name, node] : world_.facts().nodes()) {
      if (!node.is_open || (!pod->zone.empty() && pod->zone != node.zone)) continue;
      Room room = node.allocatable;
      for (const auto& [uid, other] : world_.facts().pods()) {
        if (other.node != name || !other.takes_room()) continue;
        room.cpu_milli -= other.cpu_milli;
        room.gpus -= other.gpus;
        --room.pods;
      }
      if (room.cpu_milli < pod->cpu_milli || room.gpus < pod->gpus || room.pods < 1) continue;
      world_.bind_foreign(*pod, name);
      break;
    }
  }
}

void Workload::act() {
  for (auto it = away_.begin(); it != away_.end();) {
    if (it->second > world_.loop().now()) {
      ++it;
      continue;
    }
    world_.add_node(nodes_[it->first]);
    it = away_.erase(it);
  }
  if (options_.has_foreign && number(2) == 0) foreign_turn();
  const int action = number(20);
  if (action < 8) return add_pod();
  if (action < 12) return remove_pod();
  if (action < 13) return replace_pod();
  if (action < 14) return open_gate();
  if (action < 15 && options_.has_budgets) return budget();
  if (!options_.has_node_changes) return add_pod();
  if (action < 17) return change_node();
  if (action < 18) return replace_node();
  return sicken();
}

void Workload::heal() {
  for (const auto& [name, when] : away_) world_.add_node(nodes_[name]);
  away_.clear();
  for (const auto& [name, node] : nodes_) world_.cordon(name, false);
}

}  // namespace jogak::livesim
