// SPDX-License-Identifier: Apache-2.0
//
// See node_rig.h.
#include "agent/run/testing/node_rig.h"

#include <algorithm>
#include <utility>

#include "agent/exporter/counters.h"
#include "base/check.h"
#include "nvml/nvml_source.h"
#include "nvml/testing/made_machine.h"

namespace jogak::agent::testing {

AgentOptions NodeRig::defaults() {
  AgentOptions options;
  options.node_name = "n1";
  options.worker.has_thread = false;
  options.render.counters = default_counters(options.render.naming);
  return options;
}

AgentOptions NodeRig::quiet() {
  AgentOptions options = defaults();
  options.sample_every = options.event_every = options.facts_every = 0;
  options.listen.is_on = false;
  return options;
}

NodeRig::NodeRig(std::string_view machine_text, AgentOptions options, HostView host)
    : options_(std::move(options)), host_(std::move(host)) {
  auto spec = nvml::sim::read_machine("m.yaml", nvml::testing::machine_text(machine_text));
  JOGAK_CHECK(spec.has_value(), "{}", spec.error().what);
  auto made = nvml::sim::Machine::create(
      *std::move(spec), {.now = [this, began = loop.now()] { return loop.now() - began; }});
  JOGAK_CHECK(made.has_value(), "{}", made.error().what);
  machine = *std::move(made);
  make_node();
}

void NodeRig::restart() {
  node.reset();
  offers.clear();
  wishes.clear();
  make_node();
  start();
  node->on_node(labels, annotations);
}

void NodeRig::make_node() {
  HostView host = host_;
  host.mig_journal = journal;
  NodePorts ports;
  ports.offer = [this](PluginSnapshotPtr offer) { offers.push_back(std::move(offer)); };
  ports.wish = [this](NodeWish wish) {
    wishes.push_back(std::move(wish));
    loop.post([this, alive = is_alive_] {
      if (*alive && writes_node && !wishes.empty()) write_node();
    });
  };
  ports.ask_holdings = [this] {
    ++asked;
    loop.post([this, alive = is_alive_] {
      if (!*alive) return;
      if (kubelet) {
        node->on_holdings(holdings);
      } else {
        node->on_holdings(std::unexpected(kubelet.error()));
      }
    });
  };
  ports.holds = [this](std::map<PodName, std::string> told) { holds = std::move(told); };
  ports.want_mps = [this](std::vector<MpsDaemon> daemons) { mps.push_back(std::move(daemons)); };
  ports.note = [this](NodeNote note) { notes.push_back(std::move(note)); };
  ports.failure = [this](const Error& error) { failures.push_back(error.what); };
  node = std::make_unique<NodeAgent>(
      loop, log, nvml::NvmlSource::of_machine(machine, [this] { return loop.now(); }), options_,
      std::move(host), std::move(ports));
}

std::string NodeRig::gpu_uuid(int gpu) const {
  return machine->spec().gpus[static_cast<std::size_t>(gpu)].uuid;
}

std::vector<std::string> NodeRig::offered(std::string_view resource) const {
  std::vector<std::string> states;
  const PluginResource* const found =
      offers.empty() ? nullptr : offers.back()->inventory.find(resource);
  if (found == nullptr) return states;
  for (const PluginDevice& device : found->devices) {
    states.push_back(device.is_healthy ? "healthy" : device.reason);
  }
  return states;
}

std::vector<std::string> NodeRig::offered_ids(std::string_view resource) const {
  std::vector<std::string> ids;
  const PluginResource* const found =
      offers.empty() ? nullptr : offers.back()->inventory.find(resource);
  if (found == nullptr) return ids;
  for (const PluginDevice& device : found->devices) ids.push_back(device.id);
  return ids;
}

bool NodeRig::condition(std::string_view type) const {
  JOGAK_CHECK(!wishes.empty());
  const auto at = std::ranges::find(wishes.back().conditions, type, &NodeCondition::type);
  JOGAK_CHECK(at != wishes.back().conditions.end(), "no condition {}", type);
  return at->is_problem;
}

void NodeRig::hold(const std::string& resource, const std::string& id, const std::string& pod) {
  const std::size_t slash = pod.find('/');
  holdings.push_back({.resource = resource,
                      .device_id = id,
                      .holder = {.pod_namespace = pod.substr(0, slash),
                                 .pod = pod.substr(slash + 1),
                                 .container = "main",
                                 .pod_uid = ""}});
  node->on_holdings(holdings);
}

void NodeRig::hold_nothing() {
  holdings.clear();
  node->on_holdings(holdings);
}

void NodeRig::write_node() {
  const NodeWish& wish = wishes.back();
  const auto before = std::pair(labels, annotations);
  for (const auto& [name, value] : wish.lasting_labels) labels[name] = value;
  for (const auto& [name, value] : wish.lasting_annotations) annotations[name] = value;
  annotations.erase("jogak.io/mig.config.reason");
  for (const auto& [name, value] : wish.annotations) annotations[name] = value;
  if (before != std::pair(labels, annotations)) node->on_node(labels, annotations);
}

void NodeRig::label(const std::string& name, const std::string& value) {
  if (value.empty()) {
    labels.erase(name);
  } else {
    labels[name] = value;
  }
  node->on_node(labels, annotations);
}

std::string NodeRig::node_label(const std::string& name) const {
  const auto at = labels.find(name);
  return at == labels.end() ? "" : at->second;
}

std::string NodeRig::node_annotation(const std::string& name) const {
  const auto at = annotations.find(name);
  return at == annotations.end() ? "" : at->second;
}

std::vector<std::string> NodeRig::instances(int gpu) {
  const auto source = nvml::NvmlSource::of_machine(machine, [this] { return loop.now(); });
  const auto facts = source->facts();
  JOGAK_CHECK(facts.has_value());
  std::vector<std::string> profiles;
  for (const auto& instance : facts->gpus[static_cast<std::size_t>(gpu)].mig_instances) {
    profiles.push_back(instance.gi_profile);
  }
  std::ranges::sort(profiles);
  return profiles;
}

int NodeRig::logged(std::string_view text) const {
  return static_cast<int>(std::ranges::count_if(
      lines.lines, [&](const std::string& line) { return line.find(text) != std::string::npos; }));
}

}  // namespace jogak::agent::testing
