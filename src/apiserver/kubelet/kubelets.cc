// SPDX-License-Identifier: Apache-2.0
//
// Nodes: what a kubelet says of itself, and which pods it looks after.
#include "apiserver/kubelet/kubelets.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "apiserver/object/meta.h"

namespace jogak::kubelet {

namespace {

constexpr std::size_t kLeasesPerSecond = 40;  // over all nodes
constexpr std::int64_t kRenewalsPerLease = 4;
constexpr std::string_view kLeases = "leases.coordination.k8s.io";
constexpr std::string_view kLeaseNamespace = "kube-node-lease";

std::string node_ip(std::uint32_t number) {
  return fmt::format("10.{}.{}.{}", 64 + (number >> 16U) % 64, (number >> 8U) & 255U,
                     number & 255U);
}

Doc condition(std::string_view type, bool is_true, std::string_view reason,
              std::string_view message, TimeUs now) {
  return Doc::object()
      .set("type", type)
      .set("status", is_true ? "True" : "False")
      .set("lastHeartbeatTime", api::format_time(now))
      .set("lastTransitionTime", api::format_time(now))
      .set("reason", reason)
      .set("message", message);
}

// A condition that says what it said before keeps the time since when.
void keep_transitions(const Doc& before, Doc& conditions) {
  for (Doc& condition : conditions.items()) {
    for (const Doc& old : before.items()) {
      if (old["type"] != condition["type"] || old["status"] != condition["status"]) continue;
      condition.set("lastTransitionTime", old["lastTransitionTime"]);
    }
  }
}

Doc healthy_conditions(TimeUs now) {
  Doc list = Doc::array();
  list.push(condition("MemoryPressure", false, "KubeletHasSufficientMemory",
                      "kubelet has sufficient memory available", now));
  list.push(condition("DiskPressure", false, "KubeletHasNoDiskPressure",
                      "kubelet has no disk pressure", now));
  list.push(condition("PIDPressure", false, "KubeletHasSufficientPID",
                      "kubelet has sufficient PID available", now));
  list.push(condition("Ready", true, "KubeletReady", "kubelet is posting ready status", now));
  return list;
}

using Amounts = std::map<std::string, std::int64_t, std::less<>>;

// "nvidia.com/gpu=2,..."; what is not of that form counts as absent.
Amounts read_unhealthy(std::string_view text) {
  Amounts amounts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) continue;
    const auto lost = api::Amount::parse(item.substr(equals + 1));
    if (lost.has_value()) amounts[std::string(item.substr(0, equals))] = lost->value();
  }
  return amounts;
}

void take_unhealthy(api::ResourceList& list, const Amounts& unhealthy) {
  for (const auto& [name, count] : unhealthy) {
    const auto it = list.find(name);
    if (it == list.end()) continue;
    it->second -= api::Amount::of(count);
    if (it->second.is_negative()) it->second = api::Amount::of(0);
  }
}

}  // namespace

Kubelets::Kubelets(const controllers::ApiFactory& make_api, controllers::PodIndex& pods,
                   KubeletOptions options, DeviceHost* devices)
    : api_(make_api("kubelet")),
      pods_(pods),
      options_(std::move(options)),
      host_(devices),
      queue_(api_->loop(), [this](const std::string& key) { return sync_pod(key); }) {
  following_ = api_->follow("nodes", [this](const api::Api::Change& change) { on_node(change); });
  pods_.listen([this, alive = alive_](store::EventType type, const controllers::PodViewPtr& pod,
                                      const controllers::PodViewPtr&) {
    if (*alive) on_pod(type, pod);
  });
  if (host_ == nullptr) return;
  host_->on_change = [this, alive = alive_](const std::string& node) {
    if (*alive) on_devices(node);
  };
}

Kubelets::~Kubelets() {
  *alive_ = false;
  for (auto& [name, node] : nodes_) {
    api_->loop().cancel(node.lease_timer);
    for (auto& [uid, run] : node.runs) api_->loop().cancel(run.timer);
  }
}

Kubelets::NodeState* Kubelets::find_node(std::string_view name) {
  const auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : &it->second;
}

void Kubelets::on_node(const api::Api::Change& change) {
  const Doc& object = *change.object;
  const std::string& name = api::name_of(object);
  if (change.type == store::EventType::Deleted) {
    if (NodeState* node = find_node(name)) {
      api_->loop().cancel(node->lease_timer);
      for (auto& [uid, run] : node->runs) api_->loop().cancel(run.timer);
      nodes_.erase(name);
      if (host_ != nullptr) host_->forget_node(name);
    }
    return;
  }
  if (api::meta(object)["labels"][kSimulatedLabel].as_string() != "true") return;
  const auto [it, is_new] = nodes_.try_emplace(name);
  NodeState& node = it->second;
  if (is_new) {
    node.name = name;
    node.number = next_node_++;
    node.ip = node_ip(node.number);
    renew_lease(name);
  }
  if (host_ != nullptr) {
    node.devices = host_->see_node(object);
    node.ledger.set_devices(node.devices);
  }
  sync_node(node, object);
  if (is_new) {
    for (const controllers::PodViewPtr& pod : pods_.on_node(name)) queue_.add(pod->key());
  }
}

void Kubelets::sync_node(NodeState& node, const Doc& object) {
  const Doc& annotations = api::meta(object)["annotations"];
  const bool is_down = annotations[kFault].as_string() == "down";
  if (is_down != node.is_down) {
    node.is_down = is_down;
    if (!is_down) {  // back: say so, and look after what happened meanwhile
      node.has_status = false;
      renew_lease(node.name);
      for (const controllers::PodViewPtr& pod : pods_.on_node(node.name)) queue_.add(pod->key());
      for (auto& [uid, run] : node.runs) {  // they were said not to be ready meanwhile
        if (run.is_admitted && !run.is_stopping) write_status(node, run);
      }
    }
  }
  node.ledger.set_allocatable(object.get("status", "allocatable"));
  if (node.is_waiting()) node.has_waited = true;
  if (node.is_down || node.is_waiting()) return;
  if (std::exchange(node.has_waited, false)) {
    for (const controllers::PodViewPtr& pod : pods_.on_node(node.name)) queue_.add(pod->key());
  }
  const std::string& unhealthy = annotations[kUnhealthy].as_string();
  node.ledger.set_withheld(read_unhealthy(unhealthy));
  // whoever took it for lost is told that it is not
  const bool is_lost = api::condition_is(object, "Ready", "Unknown");
  const bool has_news = unhealthy != node.last_unhealthy ||
                        (node.devices != nullptr && node.devices->resources() != node.told_devices);
  if (node.has_status && !has_news && !is_lost) return;
  node.last_unhealthy = unhealthy;
  node.has_status = true;
  write_node_status(node, object);
}

void Kubelets::write_node_status(NodeState& node, const Doc& object) {
  Doc capacity = object.get("status", "capacity");
  capacity.set_default("cpu", "32");
  capacity.set_default("memory", "128Gi");
  capacity.set_default("pods", "110");
  api::ResourceList allocatable = api::read_resources(capacity);
  take_unhealthy(allocatable, read_unhealthy(node.last_unhealthy));
  if (node.devices != nullptr) {
    // A resource that its plugin ceased to offer stays, with none of it.
    for (auto& [name, amount] : allocatable) {
      if (!node.devices->manages(name)) continue;
      capacity.set(name, "0");
      amount = api::Amount::of(0);
    }
    node.told_devices = node.devices->resources();
    for (const HostResource& resource : node.told_devices) {
      capacity.set(resource.name, std::to_string(resource.devices.size()));
      allocatable[resource.name] = api::Amount::of(node.ledger.healthy(resource));
    }
  }
  Doc conditions = healthy_conditions(api_->now());
  keep_transitions(object.get("status", "conditions"), conditions);
  Doc status = Doc::object();
  status.set("capacity", capacity)
      .set("allocatable", api::write_resources(allocatable))
      .set("conditions", std::move(conditions));
  Doc addresses = Doc::array();
  addresses.push(Doc::object().set("type", "InternalIP").set("address", node.ip));
  addresses.push(Doc::object().set("type", "Hostname").set("address", node.name));
  status.set("addresses", std::move(addresses));
  status.set("nodeInfo", Doc::object()
                             .set("architecture", "amd64")
                             .set("bootID", api::uid_of(object))
                             .set("containerRuntimeVersion", "sim://1.0")
                             .set("kernelVersion", "6.1.0")
                             .set("kubeProxyVersion", "")
                             .set("kubeletVersion", options_.version)
                             .set("machineID", api::uid_of(object))
                             .set("operatingSystem", "linux")
                             .set("osImage", "Jogak simulated node")
                             .set("systemUUID", api::uid_of(object)));
  // Conditions of others (the node agent's) stay: they are merged by their type.
  const auto written = api_->patch("nodes", "", node.name, api::PatchType::Strategic,
                                   Doc::object().set("status", std::move(status)), "status");
  if (!written.has_value()) node.has_status = false;  // the next change of the node tries again
}

// Plugins told something else: the node's numbers follow, and pods show the health of what they
// hold.
void Kubelets::on_devices(const std::string& name) {
  NodeState* node = find_node(name);
  if (node == nullptr || node->is_waiting()) return;
  if (const auto object = api_->get("nodes", "", name); object.has_value()) {
    sync_node(*node, *object);
  }
  for (auto& [uid, run] : node->runs) {
    bool has_changed = false;
    for (DeviceStatus& device : run.facts.devices) {
      const bool is_healthy = node->ledger.is_healthy(device.resource, device.id);
      has_changed |= is_healthy != device.is_healthy;
      device.is_healthy = is_healthy;
    }
    if (has_changed && !node->is_down && node->ledger.holds(uid)) write_status(*node, run);
  }
}

TimeUs Kubelets::lease_period() const {
  const auto nodes = static_cast<TimeUs>(nodes_.size());
  return std::max(options_.lease_period,
                  nodes * kSecondInUs / static_cast<TimeUs>(kLeasesPerSecond));
}

void Kubelets::renew_lease(const std::string& name) {
  NodeState* node = find_node(name);
  if (node == nullptr || node->is_down) return;
  const std::string now = api::format_micro_time(api_->now());
  // a lease lasts for several renewals, however rare they are
  const std::int64_t seconds = kRenewalsPerLease * lease_period() / kSecondInUs;
  const Doc renewal = Doc::object().set(
      "spec", Doc::object().set("renewTime", now).set("leaseDurationSeconds", seconds));
  const auto renewed = api_->patch(kLeases, kLeaseNamespace, name, api::PatchType::Merge, renewal);
  if (!renewed.has_value() && renewed.error().code == 404) {
    Doc lease = Doc::object();
    lease.set("metadata", Doc::object().set("name", name).set("namespace", kLeaseNamespace));
    lease.set("spec", Doc::object()
                          .set("holderIdentity", name)
                          .set("leaseDurationSeconds", seconds)
                          .set("renewTime", now));
    // a refusal (the namespace is not there yet) is cured by the next renewal
    const auto made = api_->create(kLeases, kLeaseNamespace, std::move(lease));
    static_cast<void>(made);
  }
  api_->loop().cancel(node->lease_timer);
  node->lease_timer = api_->loop().at(next_renewal(*node), [this, alive = alive_, name] {
    if (*alive) renew_lease(name);
  });
}

// Nodes take turns, each at its own place in the period, so that thousands made at once do not
// renew at once; those of one second renew together, which wakes the process less often.
TimeUs Kubelets::next_renewal(const NodeState& node) const {
  constexpr TimeUs kSpread = 618'034;  // of a million: neighbours fall far apart
  const TimeUs period = lease_period();
  const TimeUs place = static_cast<TimeUs>(node.number) * kSpread % 1'000'000 * period / 1'000'000;
  const TimeUs now = api_->now();
  TimeUs due = now / period * period + place / kSecondInUs * kSecondInUs;
  // never sooner than half a period after this one
  while (due < now + period / 2) due += period;
  return due;
}

void Kubelets::on_pod(store::EventType type, const controllers::PodViewPtr& pod) {
  NodeState* node = find_node(pod->node);
  if (node == nullptr) return;
  if (type == store::EventType::Deleted) {
    forget(*node, pod->uid);
  } else {
    queue_.add(pod->key());
  }
}

bool Kubelets::wants_devices(const NodeState& node, const Doc& pod) {
  return node.devices != nullptr &&
         std::ranges::any_of(api::pod_requests(pod), [&](const auto& wanted) {
           return node.devices->manages(wanted.first);
         });
}

controllers::Outcome Kubelets::sync_pod(const std::string& key) {
  const auto [ns, name] = controllers::split_key(key);
  const controllers::PodViewPtr view = pods_.find(ns, name);
  if (view == nullptr) return controllers::Outcome::Done;
  NodeState* node = find_node(view->node);
  if (node == nullptr || node->is_down || node->is_waiting()) return controllers::Outcome::Done;
  const auto it = node->runs.find(view->uid);
  if (it == node->runs.end()) {
    if (view->is_finished() && !view->is_deleting) return controllers::Outcome::Done;
    const auto pod = api_->get("pods", ns, name);
    if (!pod.has_value() || api::uid_of(*pod) != view->uid) return controllers::Outcome::Done;
    if (wants_devices(*node, *pod) && !node->devices->wake()) {
      node->has_waited = true;  // it is looked at again when they are there
      return controllers::Outcome::Done;
    }
    begin(*node, *pod);
    return controllers::Outcome::Done;
  }
  PodRun& run = it->second;
  // a second deletion may shorten the grace that is left
  const bool is_news = !run.is_stopping || view->deletion_end < run.deletion_end;
  if (view->is_deleting && is_news) begin_stop(*node, run, view->deletion_end);
  return controllers::Outcome::Done;
}

}  // namespace jogak::kubelet
