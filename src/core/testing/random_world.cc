// SPDX-License-Identifier: Apache-2.0
// Draws are made one statement each: the order within one argument list is the compiler's.
#include "core/testing/random_world.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"
#include "core/model/testing.h"

namespace jogak::core::testing {
namespace {

std::uint64_t env_number(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

Trial Trial::from_env(std::uint64_t default_rounds) {
  return {env_number("JOGAK_SEED", 1), env_number("JOGAK_ROUNDS", default_rounds)};
}

std::string Trial::repeat(std::uint64_t round) const {
  return fmt::format("repeat with JOGAK_SEED={} JOGAK_ROUNDS=1", seed_of(round));
}

void apply(Cluster& cluster, const Event& event) {
  const auto pod = cluster.find_pod(event.pod.ns, event.pod.name);
  switch (event.kind) {
    case Event::Kind::Node: {
      const auto id = cluster.upsert_node(event.node);
      JOGAK_CHECK(id.has_value(), "{}", id.error().what);
      return;
    }
    case Event::Kind::NodeGone:
      if (const auto id = cluster.find_node(event.node_name)) cluster.remove_node(*id);
      return;
    case Event::Kind::Pod: {
      const auto id = cluster.upsert_pod(event.pod);
      JOGAK_CHECK(id.has_value(), "{}", id.error().what);
      return;
    }
    case Event::Kind::PodGone:
      if (pod) cluster.remove_pod(*pod);
      return;
    case Event::Kind::Terminating:
      if (pod) cluster.set_terminating(*pod);
      return;
    case Event::Kind::Nominate:
      if (!pod || cluster.pod(*pod).state != PodState::Pending) return;
      if (const auto id = cluster.find_node(event.node_name)) {
        cluster.nominate(*pod, *id);
      } else {
        cluster.nominate(*pod, kNoNode);
      }
      return;
    case Event::Kind::Namespace:
      cluster.mutable_objects().namespaces[event.name_space.name] = event.name_space;
      return;
  }
}

RandomWorld::RandomWorld(std::uint64_t seed, WorldOptions options)
    : rng_(seed, "random-world"), options_(options) {
  has_.taints = rng_.chance(1, 2);
  has_.selectors = rng_.chance(1, 2);
  has_.ports = rng_.chance(1, 3);
  has_.scalars = rng_.chance(1, 2);
  has_.devices = rng_.chance(2, 3);
  has_.shares = rng_.chance(1, 2);
  has_.mig = options.mig && rng_.chance(1, 3);
  has_.spread = rng_.chance(1, 3);
  has_.affinity = rng_.chance(1, 3);
  has_.anti = rng_.chance(1, 3);
  has_.priorities = rng_.chance(1, 2);
  has_.features = rng_.chance(1, 6);
  has_.gates = rng_.chance(1, 8);
  has_.preferences = rng_.chance(1, 2);
  has_.namespaces = rng_.chance(1, 2);
}

std::string RandomWorld::pick(std::initializer_list<const char*> from) {
  return *(from.begin() + rng_.below(from.size()));
}

std::string RandomWorld::node_name() {
  return fmt::format("n{}", rng_.below(static_cast<std::uint64_t>(options_.nodes)));
}

// ---- nodes ----------------------------------------------------------------------------------

NodeSpec RandomWorld::node(std::int32_t index) {
  NodeBuilder builder(fmt::format("n{}", index));
  builder.cpu(rng_.between(1, 8)).memory_gib(rng_.between(2, 16)).pods(rng_.between(2, 9));
  if (rng_.chance(1, 2)) builder.resource("ephemeral-storage", rng_.between(0, 40) * kGib);
  add_labels(builder.spec());
  if (has_.scalars && rng_.chance(2, 3)) builder.resource("example.com/nic", rng_.between(0, 3));
  if (has_.features && rng_.chance(1, 2)) builder.feature("FancyKubelet");
  if (rng_.chance(1, 3)) builder.image("registry.example/app:1", 300 * kMib);
  if (rng_.chance(1, 4)) builder.order(static_cast<std::int32_t>(rng_.between(-1, 2)));
  if (has_.devices && rng_.chance(3, 4)) add_devices(builder.spec());
  if (options_.as_kubernetes) limit_to_kubernetes(builder.spec());
  drawn_.resize(static_cast<std::size_t>(options_.nodes));
  drawn_[static_cast<std::size_t>(index)] = builder.spec();
  return builder.spec();
}

NodeSpec RandomWorld::relabelled(std::int32_t index) {
  drawn_.resize(static_cast<std::size_t>(options_.nodes));
  NodeSpec& spec = drawn_[static_cast<std::size_t>(index)];
  if (spec.name.empty()) return node(index);
  spec.labels.clear();
  set_entry(spec.labels, "kubernetes.io/hostname", spec.name);
  spec.taints.clear();
  spec.unschedulable = false;
  add_labels(spec);
  if (options_.as_kubernetes) limit_to_kubernetes(spec);
  return spec;
}

void RandomWorld::add_labels(NodeSpec& node) {
  const auto label = [&](std::uint64_t tenths, const char* key, const std::string& value) {
    if (rng_.chance(tenths, 10)) set_entry(node.labels, key, value);
  };
  label(8, "topology.kubernetes.io/zone", pick({"a", "b", "c"}));
  label(5, "rack", pick({"r1", "r2"}));
  label(5, "disk", pick({"ssd", "hdd"}));
  label(5, "cores", pick({"4", "16", "many"}));
  if (!has_.taints) return;
  const std::string owner = pick({"x", "y"});
  if (rng_.chance(1, 4)) node.taints.push_back({"dedicated", owner, TaintEffect::NoSchedule});
  if (rng_.chance(1, 6)) node.taints.push_back({"spot", "", TaintEffect::PreferNoSchedule});
  if (rng_.chance(1, 8)) node.taints.push_back({"leaving", "now", TaintEffect::NoExecute});
  node.unschedulable = rng_.chance(1, 8);
}

void RandomWorld::limit_to_kubernetes(NodeSpec& node) const {
  node.order = 0;
  if (!node.gpu_model.empty()) set_entry(node.labels, "nvidia.com/gpu.product", node.gpu_model);
}

void RandomWorld::limit_to_kubernetes(PodSpec& pod) const {
  pod.shape.node_name.clear();
  pod.shape.required_features.clear();
  if (pod.shape.images.empty()) pod.shape.images.emplace_back("registry.example/app:2");
  if (pod.shape.gpu.mig_profile == "9g.900gb") pod.shape.gpu.mig_profile = "1g.5gb";
}

void RandomWorld::add_devices(NodeSpec& node) {
  const auto count = static_cast<std::int32_t>(rng_.between(1, 4));
  set_entry(node.allocatable, "nvidia.com/gpu", std::int64_t{count});
  node.gpu_model = pick({"Tesla-T4", "NVIDIA-A100-SXM4-40GB"});
  if (rng_.chance(1, 6)) return;  // counted only
  const bool is_a100 = node.gpu_model != "Tesla-T4";
  std::int32_t memory = is_a100 ? 40960 : 15360;
  if (rng_.chance(1, 8)) memory = 0;
  for (std::int32_t i = 0; i < count; ++i) {
    GpuSpec gpu;
    gpu.memory_mib = memory;
    if (rng_.chance(1, 10)) gpu.health = GpuHealth::Unhealthy;
    if (rng_.chance(1, 3)) gpu.numa_node = i / 2;
    if (has_.mig && is_a100 && rng_.chance(1, 2)) {
      gpu.mig_enabled = true;
      gpu.mig_dynamic = rng_.chance(1, 2);
      if (!gpu.mig_dynamic) gpu.mig_instances = {{"1g.5gb", 0}, {"2g.10gb", 2}, {"3g.20gb", 4}};
    }
    node.gpus.push_back(std::move(gpu));
  }
}

// ---- pods -----------------------------------------------------------------------------------

PodSpec RandomWorld::pod(std::int32_t index) {
  PodBuilder builder(fmt::format("p{}", index));
  builder.label("app", pick({"x", "y", "z"}));
  if (rng_.chance(1, 4)) builder.label("ver", pick({"1", "2"}));
  if (has_.namespaces && rng_.chance(1, 2)) builder.ns(fmt::format("team{}", index % 2));
  if (rng_.chance(4, 5)) builder.cpu_milli(rng_.between(0, 5) * 500);
  if (rng_.chance(1, 2)) builder.memory_gib(rng_.between(0, 4));
  if (rng_.chance(1, 8)) builder.resource("ephemeral-storage", rng_.between(0, 20) * kGib);
  if (has_.scalars && rng_.chance(1, 4)) builder.resource("example.com/nic", rng_.between(0, 2));
  if (has_.ports && rng_.chance(1, 3)) {
    const std::string ip = pick({"0.0.0.0", "10.0.0.1", "10.0.0.2"});
    const std::string protocol = pick({"TCP", "UDP"});
    builder.host_port(rng_.chance(1, 2) ? 80 : 81, ip, protocol);
  }
  if (has_.priorities) builder.priority(static_cast<std::int32_t>(rng_.between(0, 2)) * 10);
  if (has_.features && rng_.chance(1, 4)) builder.needs_feature("FancyKubelet");
  if (has_.gates && rng_.chance(1, 5)) builder.shape().gates.push_back("example.com/wait");
  if (rng_.chance(1, 4)) builder.image("registry.example/app:1");
  if (rng_.chance(1, 4)) builder.start_time(rng_.between(0, 9) * 1'000'000'000);
  if (has_.devices && rng_.chance(1, 2)) ask_devices(builder.spec());
  add_node_rules(builder.shape());
  add_pod_rules(builder.shape());
  builder.spec().uid = fmt::format("uid-{}-{}", index, rng_.below(1000));
  if (options_.as_kubernetes) limit_to_kubernetes(builder.spec());
  return builder.spec();
}

void RandomWorld::ask_devices(PodSpec& pod) {
  GpuRequest& gpu = pod.shape.gpu;
  gpu.count = static_cast<std::int32_t>(rng_.between(1, 2));
  const std::uint64_t draw = rng_.below(4);
  if (has_.shares && draw == 0) {
    gpu.kind = GpuAsk::ShareMilli;
    gpu.amount = static_cast<std::int32_t>(rng_.between(1, 9)) * 111;
  } else if (has_.shares && draw == 1) {
    gpu.kind = GpuAsk::ShareMib;
    gpu.amount = static_cast<std::int32_t>(rng_.between(1, 20)) * 1000;
  } else if (has_.mig && draw == 2) {
    gpu.kind = GpuAsk::Mig;
    gpu.mig_profile = pick({"1g.5gb", "2g.10gb", "3g.20gb", "1g.5gb+me", "7g.40gb", "9g.900gb"});
  } else {
    gpu.kind = GpuAsk::Whole;
    gpu.count = static_cast<std::int32_t>(rng_.between(1, 3));
    set_entry(pod.shape.requests, "nvidia.com/gpu", std::int64_t{gpu.count});
  }
  if (rng_.chance(1, 6)) gpu.models.push_back(pick({"Tesla-T4", "NVIDIA-A100-SXM4-40GB"}));
}

Requirement RandomWorld::node_requirement() {
  switch (rng_.below(6)) {
    case 0:
      return in("disk", {pick({"ssd", "hdd"})});
    case 1:
      return not_in("disk", {pick({"ssd", "hdd"})});
    case 2:
      return exists("rack");
    case 3:
      return absent("rack");
    case 4:
      return greater("cores", pick({"3", "4", "15", "lots"}));
    default:
      return less("cores", pick({"5", "16", "17"}));
  }
}

void RandomWorld::add_node_rules(PodShape& shape) {
  if (has_.taints && rng_.chance(1, 3)) {
    Toleration t;
    t.key = pick({"dedicated", "leaving", "spot", "node.kubernetes.io/unschedulable", ""});
    t.exists = t.key.empty() || rng_.chance(1, 2);
    if (!t.exists) t.value = pick({"x", "now", ""});
    if (rng_.chance(1, 3)) t.effect = TaintEffect::NoSchedule;
    shape.tolerations.push_back(std::move(t));
  }
  if (!has_.selectors) return;
  if (rng_.chance(1, 6)) shape.node_selector.push_back(in("disk", {pick({"ssd", "hdd"})}));
  if (rng_.chance(1, 5)) {
    shape.node_affinity.emplace();
    const std::uint64_t terms = rng_.below(3);
    for (std::uint64_t i = 0; i < terms; ++i) {
      NodeSelectorTerm term;
      if (rng_.chance(4, 5)) term.labels.push_back(node_requirement());
      if (rng_.chance(1, 3)) term.labels.push_back(node_requirement());
      if (rng_.chance(1, 3)) {
        const SelectorOp op = rng_.chance(2, 3) ? SelectorOp::In : SelectorOp::NotIn;
        term.fields.push_back({"metadata.name", op, {node_name()}});
      }
      shape.node_affinity->push_back(std::move(term));
    }
  }
  if (rng_.chance(1, 30)) shape.node_name = node_name();
  if (has_.preferences && rng_.chance(1, 4)) {
    shape.preferred_node.push_back(
        {static_cast<std::int32_t>(rng_.between(1, 100)), {{node_requirement()}, {}}});
  }
}

LabelSelector RandomWorld::pod_selector() {
  LabelSelector selector;
  if (rng_.chance(1, 8)) return selector;
  const std::string app = pick({"x", "y", "z"});
  selector.requirements.push_back(rng_.chance(4, 5) ? in("app", {app}) : not_in("app", {app}));
  if (rng_.chance(1, 8)) selector.requirements.push_back(exists("ver"));
  return selector;
}

PodAffinityTerm RandomWorld::affinity_term() {
  PodAffinityTerm term;
  if (!rng_.chance(1, 12)) term.selector = pod_selector();
  term.topology_key =
      pick({"topology.kubernetes.io/zone", "rack", "kubernetes.io/hostname", "none"});
  if (!has_.namespaces) return term;
  if (rng_.chance(1, 3)) term.namespaces.push_back(pick({"default", "team0", "team1"}));
  if (rng_.chance(1, 3)) {
    term.namespace_selector.emplace();
    if (rng_.chance(2, 3)) term.namespace_selector->requirements.push_back(in("env", {"prod"}));
  }
  return term;
}

SpreadConstraint RandomWorld::spread_constraint() {
  SpreadConstraint c;
  c.max_skew = static_cast<std::int32_t>(rng_.between(1, 2));
  c.topology_key = pick({"topology.kubernetes.io/zone", "rack", "kubernetes.io/hostname"});
  c.hard = rng_.chance(4, 5);
  if (!rng_.chance(1, 12)) c.selector = pod_selector();
  if (rng_.chance(1, 5)) c.match_label_keys.push_back("ver");
  if (c.hard && rng_.chance(1, 5)) c.min_domains = static_cast<std::int32_t>(rng_.between(2, 3));
  c.honor_node_affinity = rng_.chance(3, 4);
  c.honor_node_taints = rng_.chance(1, 2);
  return c;
}

void RandomWorld::add_pod_rules(PodShape& shape) {
  if (has_.spread && rng_.chance(1, 3)) {
    shape.spread.push_back(spread_constraint());
    if (rng_.chance(1, 3)) shape.spread.push_back(spread_constraint());
  }
  if (has_.affinity && rng_.chance(1, 4)) {
    shape.required_affinity.push_back(affinity_term());
    if (rng_.chance(1, 4)) shape.required_affinity.push_back(affinity_term());
  }
  if (has_.anti && rng_.chance(1, 4)) {
    shape.required_anti_affinity.push_back(affinity_term());
    if (rng_.chance(1, 4)) shape.required_anti_affinity.push_back(affinity_term());
  }
  if (has_.preferences && (has_.affinity || has_.anti) && rng_.chance(1, 4)) {
    PodAffinityTerm term = affinity_term();
    term.weight = static_cast<std::int32_t>(rng_.between(1, 100));
    (rng_.chance(1, 2) ? shape.preferred_affinity : shape.preferred_anti_affinity).push_back(term);
  }
}

void RandomWorld::bind(PodSpec& pod) {
  pod.bound_node = node_name();
  const GpuRequest& ask = pod.shape.gpu;
  if (ask.kind == GpuAsk::None || options_.exact_holds || rng_.chance(1, 3)) return;
  pod.holds.emplace();
  for (std::int32_t i = 0; i < ask.count; ++i) {
    GpuHold hold;
    hold.gpu = static_cast<std::int32_t>(rng_.between(0, 3));
    const bool is_share = ask.kind == GpuAsk::ShareMilli || ask.kind == GpuAsk::ShareMib;
    if (is_share) hold.amount = ask.amount;
    if (ask.kind == GpuAsk::Mig) hold.mig_start = static_cast<std::int32_t>(rng_.between(-1, 7));
    pod.holds->push_back(hold);
  }
  if (rng_.chance(1, 10)) pod.holds->pop_back();
}

// ---- events ---------------------------------------------------------------------------------

NamespaceSpec RandomWorld::name_space(std::int32_t index) {
  NamespaceSpec spec;
  spec.name = fmt::format("team{}", index);
  if (rng_.chance(1, 2)) spec.labels.emplace_back("env", pick({"prod", "test"}));
  return spec;
}

std::vector<Event> RandomWorld::start() {
  std::vector<Event> events;
  for (std::int32_t i = 0; i < 2; ++i) {
    events.push_back({.kind = Event::Kind::Namespace,
                      .node = {},
                      .pod = {},
                      .node_name = {},
                      .name_space = name_space(i)});
  }
  for (std::int32_t i = 0; i < options_.nodes; ++i) {
    Event event;
    event.node = node(i);
    events.push_back(std::move(event));
  }
  return events;
}

Event RandomWorld::event() {
  constexpr std::int64_t kWeights[] = {4, 1, 12, 4, 2, 2, 1};  // by Kind
  Event event;
  event.kind = static_cast<Event::Kind>(rng_.weighted(kWeights));
  const auto index =
      static_cast<std::int32_t>(rng_.below(static_cast<std::uint64_t>(options_.pods)));
  event.pod = pod(index);
  event.node_name = node_name();
  if (event.kind == Event::Kind::Node) {
    const auto which =
        static_cast<std::int32_t>(rng_.below(static_cast<std::uint64_t>(options_.nodes)));
    event.node = rng_.chance(1, 2) ? relabelled(which) : node(which);
  } else if (event.kind == Event::Kind::Pod) {
    if (rng_.chance(1, 2)) bind(event.pod);
    if (rng_.chance(1, 10)) event.pod.terminating = true;
    if (rng_.chance(1, 10)) event.pod.nominated_node = node_name();
  } else if (event.kind == Event::Kind::Nominate && rng_.chance(1, 4)) {
    event.node_name.clear();
  } else if (event.kind == Event::Kind::Namespace) {
    event.name_space = name_space(static_cast<std::int32_t>(rng_.below(2)));
  }
  return event;
}

}  // namespace jogak::core::testing
