// SPDX-License-Identifier: Apache-2.0
//
// Objects are parsed anew at each change: slow, and without a state of its own that may be wrong.
#include "test/livesim/facts.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "apiserver/codec/codec.h"
#include "base/check.h"
#include "base/quantity.h"

namespace jogak::livesim {

namespace {

constexpr std::string_view kGpu = "nvidia.com/gpu";
constexpr TimeUs kRoomsKept = 900 * kSecondInUs;

std::int64_t quantity(const Doc& value, bool is_milli) {
  const std::string text = value.is_number() ? value.number_text() : value.as_string();
  if (text.empty()) return 0;
  const auto parsed = is_milli ? parse_quantity_milli(text) : parse_quantity(text);
  JOGAK_CHECK(parsed.has_value(), "{}", text);
  return *parsed;
}

// Numbers of a JSON text keep their digits.
std::int64_t integer(const Doc& number, std::int64_t fallback = 0) {
  return number.is_number() ? quantity(number.number_text(), false) : fallback;
}

std::int64_t number_of(const Doc& text) {
  return text.as_string().empty() ? 0 : quantity(text, false);
}

Doc parse(std::string_view json) {
  auto parsed = codec::parse_json(json);
  JOGAK_CHECK(parsed.has_value(), "not JSON: {}", json);
  return std::move(parsed->doc);
}

std::vector<Holding> holds_of(const Doc& annotations) {
  std::vector<Holding> holds;
  const std::string& text = annotations["jogak.io/gpu-holds"].as_string();
  if (text.empty()) return holds;
  const Doc list = parse(text);
  for (const Doc& item : list.items()) {
    holds.push_back({.gpu = integer(item["gpu"]), .milli = integer(item["milli"], 1000)});
  }
  return holds;
}

std::vector<bool> devices_of(const std::string& text) {
  std::vector<bool> devices;
  if (text.empty()) return devices;
  const Doc list = parse(text);
  for (const Doc& item : list.items()) {
    const std::string& health = item["health"].as_string();
    devices.push_back(health.empty() || health == "Healthy");
  }
  return devices;
}

const Doc& condition_of(const Doc& object, std::string_view type) {
  static const Doc kNone;
  for (const Doc& condition : object.get("status", "conditions").items()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return kNone;
}

std::string key_of(std::string_view ns, std::string_view name) {
  return fmt::format("{}/{}", ns, name);
}

// The sum of the containers: pods of these tests have no init containers and no overhead.
void read_requests(const Doc& spec, PodFacts& pod) {
  pod.cpu_milli = pod.gpus = 0;
  for (const Doc& container : spec["containers"].items()) {
    const Doc& requests = container.get("resources", "requests");
    pod.cpu_milli += quantity(requests["cpu"], true);
    pod.gpus += quantity(requests[kGpu], false);
  }
}

void read_pod(const Doc& object, PodFacts& pod) {
  const Doc& metadata = object["metadata"];
  const Doc& spec = object["spec"];
  const Doc& status = object["status"];
  const Doc& annotations = metadata["annotations"];
  pod.scheduler = spec["schedulerName"].as_string();
  pod.zone = spec["nodeSelector"]["zone"].as_string();
  pod.priority = integer(spec["priority"]);
  pod.is_gated = !spec["schedulingGates"].empty();
  pod.share_milli = number_of(annotations["jogak.io/gpu-milli"]);
  pod.share_count = number_of(annotations["jogak.io/gpu-count"]);
  if (pod.share_milli > 0 && pod.share_count == 0) pod.share_count = 1;
  read_requests(spec, pod);
  pod.claims.clear();
  for (const Doc& volume : spec["volumes"].items()) {
    const std::string& claim = volume.get("persistentVolumeClaim", "claimName").as_string();
    if (!claim.empty()) pod.claims.push_back(claim);
  }
  pod.node = spec["nodeName"].as_string();
  pod.holds = holds_of(annotations);
  pod.nominated = status["nominatedNodeName"].as_string();
  const Doc& condition = condition_of(object, "PodScheduled");
  pod.condition = condition["status"].as_string();
  pod.reason = condition["reason"].as_string();
  pod.message = condition["message"].as_string();
  pod.is_deleting = metadata.has("deletionTimestamp");
  const std::string& phase = status["phase"].as_string();
  pod.is_over = phase == "Succeeded" || phase == "Failed";
}

}  // namespace

Room NodeFacts::most_since(TimeUs since) const {
  Room most = is_gone ? Room() : allocatable;
  for (const auto& [until, room] : rooms) {
    if (until < since) continue;
    most.cpu_milli = std::max(most.cpu_milli, room.cpu_milli);
    most.gpus = std::max(most.gpus, room.gpus);
    most.pods = std::max(most.pods, room.pods);
  }
  return most;
}

Facts::Facts(Loop& loop, api::Server& server) : loop_(loop), server_(server) {
  follow("pods", &Facts::on_pod);
  follow("nodes", &Facts::on_node);
  follow("persistentvolumes", &Facts::on_volume);
  follow("persistentvolumeclaims", &Facts::on_claim);
  follow("leases.coordination.k8s.io", &Facts::on_lease);
}

Facts::~Facts() {
  for (const store::WatchId watch : watches_) server_.store().unwatch(watch);
}

void Facts::follow(std::string_view table, Reader reader) {
  store::Store& store = server_.store();
  auto watch = store.watch(store.table(table), store.revision(),
                           [this, reader](const store::EventPtr& event) {
                             ++changes_;
                             digest_.add(event->type).add(event->revision).add(event->object->json);
                             (this->*reader)(*event, parse(event->object->json));
                           });
  JOGAK_CHECK(watch.has_value(), "{}", watch.error().what);
  watches_.push_back(*watch);
}

void Facts::on_pod(const store::Event& event, const Doc& object) {
  const store::Object& stored = *event.object;
  const std::string key = key_of(stored.ns, stored.name);
  const auto [it, is_new] = pods_.try_emplace(stored.uid);
  PodFacts& pod = it->second;
  if (is_new) {
    pod.ns = stored.ns;
    pod.name = stored.name;
    pod.uid = stored.uid;
    pod.created_at = now();
    names_[key] = stored.uid;
  }
  const bool was_bound = !pod.node.empty();
  const bool was_deleting = pod.is_deleting;
  const bool was_over = pod.is_over;
  const std::string was_nominated = pod.nominated;
  const bool was_gated = pod.is_gated || is_new;
  read_pod(object, pod);
  if (was_gated && !pod.is_gated) pod.ungated_at = now();
  if (pod.is_deleting && pod.deleting_at == 0) pod.deleting_at = now();
  if (event.type == store::EventType::Deleted) {
    pod.gone_at = now();
    if (pod.deleting_at == 0) pod.deleting_at = now();
    const auto name = names_.find(key);
    if (name != names_.end() && name->second == stored.uid) names_.erase(name);
  }
  if (is_new || pod.is_gone() || was_bound != !pod.node.empty() || was_over != pod.is_over) {
    last_move_ = now();
  }
  if (trace) {
    std::string story;
    if (is_new) {
      story +=
          fmt::format(" is new ({}m, {} GPUs, {} x {} milli, priority {}, by {})", pod.cpu_milli,
                      pod.gpus, pod.share_count, pod.share_milli, pod.priority, pod.scheduler);
    }
    if (!was_bound && !pod.node.empty()) story += " is bound to " + pod.node;
    if (!was_deleting && pod.is_deleting) story += " is being deleted";
    if (!was_over && pod.is_over) story += " is over";
    if (was_nominated != pod.nominated) story += " is nominated to \"" + pod.nominated + "\"";
    if (pod.is_gone()) story += " is gone";
    if (!story.empty()) {
      for (const Holding& held : pod.holds) story += fmt::format(" [{}:{}]", held.gpu, held.milli);
      trace(fmt::format("pod {}{}", pod.name, story));
    }
  }
  if (!was_bound && !pod.node.empty()) {
    pod.bound_at = now();
    if (listener != nullptr) listener->on_bound(pod, is_outside);
  }
}

void Facts::on_node(const store::Event& event, const Doc& object) {
  NodeFacts& node = nodes_[event.object->name];
  const NodeFacts before = node;
  if (!node.name.empty() && !node.is_gone) {
    node.rooms.emplace_back(now(), node.allocatable);
    node.device_states.emplace_back(now(), node.devices);
    std::erase_if(node.rooms, [&](const auto& old) { return old.first + kRoomsKept < now(); });
    std::erase_if(node.device_states,
                  [&](const auto& old) { return old.first + kRoomsKept < now(); });
  }
  node.name = event.object->name;
  node.is_gone = event.type == store::EventType::Deleted;
  node.zone = object.get("metadata", "labels")["zone"].as_string();
  const Doc& room = object.get("status", "allocatable");
  node.allocatable = {.cpu_milli = quantity(room["cpu"], true),
                      .gpus = quantity(room[kGpu], false),
                      .pods = quantity(room["pods"], false)};
  const std::string& devices = object.get("metadata", "annotations")["jogak.io/gpus"].as_string();
  node.has_devices = !devices.empty();
  node.devices = devices_of(devices);
  node.is_open = !node.is_gone && !object.get("spec", "unschedulable").as_bool() &&
                 object.get("spec", "taints").empty() &&
                 condition_of(object, "Ready")["status"].as_string() == "True";
  if (before.allocatable != node.allocatable || before.devices != node.devices ||
      before.is_open != node.is_open || before.zone != node.zone) {
    node.changed_at = last_move_ = now();
  }
  if (trace) {
    std::string healthy;
    for (const bool is_healthy : node.devices) healthy += is_healthy ? '+' : '-';
    trace(fmt::format("node {}{}: {}m, {} GPUs {}, {}", node.name, node.is_gone ? " is gone" : "",
                      node.allocatable.cpu_milli, node.allocatable.gpus, healthy,
                      node.is_open ? "open" : "closed"));
  }
}

void Facts::on_volume(const store::Event& event, const Doc& object) {
  const Doc& claim = object.get("spec", "claimRef");
  const std::string key = key_of(claim["namespace"].as_string(), claim["name"].as_string());
  if (event.type == store::EventType::Deleted) {
    claim_zones_.erase(key);
    return;
  }
  if (claim.is_null()) return;
  std::string zone;
  for (const Doc& term :
       object.get("spec", "nodeAffinity", "required", "nodeSelectorTerms").items()) {
    for (const Doc& expression : term["matchExpressions"].items()) {
      if (expression["key"].as_string() == "zone" && !expression["values"].empty()) {
        zone = expression["values"].items().front().as_string();
      }
    }
  }
  claim_zones_[key] = zone;
}

void Facts::on_claim(const store::Event& event, const Doc& object) {
  if (!trace) return;
  trace(fmt::format(
      "claim {}{}: for node \"{}\", volume \"{}\"", event.object->name,
      event.type == store::EventType::Deleted ? " is gone" : "",
      object.get("metadata", "annotations")["volume.kubernetes.io/selected-node"].as_string(),
      object.get("spec", "volumeName").as_string()));
}

void Facts::on_lease(const store::Event& event, const Doc& object) {
  if (event.object->ns != "kube-system") return;  // those of nodes
  const std::string& holder = object.get("spec", "holderIdentity").as_string();
  if (trace && holder != lease_.holder) trace(fmt::format("the lease is held by \"{}\"", holder));
  if (!holder.empty() && holder != lease_.holder) ++lease_changes_;
  lease_ = {.holder = object.get("spec", "holderIdentity").as_string(),
            .renewed_at = now(),
            .duration_s = integer(object.get("spec", "leaseDurationSeconds"))};
}

const PodFacts* Facts::find_pod(std::string_view ns, std::string_view name) const {
  const auto it = names_.find(key_of(ns, name));
  return it == names_.end() ? nullptr : &pods_.at(it->second);
}

PodFacts* Facts::find_uid(std::string_view uid) {
  const auto it = pods_.find(std::string(uid));
  return it == pods_.end() ? nullptr : &it->second;
}

std::optional<std::string> Facts::claim_zone(std::string_view ns, std::string_view name) const {
  const auto it = claim_zones_.find(key_of(ns, name));
  if (it == claim_zones_.end()) return std::nullopt;
  return it->second;
}

void Facts::forget_gone(TimeUs older_than) {
  const TimeUs before = now() - older_than;
  std::erase_if(pods_, [&](const auto& entry) {
    return entry.second.is_gone() && entry.second.gone_at < before;
  });
}

}  // namespace jogak::livesim
