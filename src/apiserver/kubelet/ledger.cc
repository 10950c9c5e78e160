// SPDX-License-Identifier: Apache-2.0
//
// Admission in a kubelet's order: the number of pods, devices, then the other resources. Counted
// units go lowest number first; which of a plugin's devices a container gets is the plugin's wish.
#include "apiserver/kubelet/ledger.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/check.h"

namespace jogak::kubelet {

namespace {

constexpr std::int64_t kDevicesMax = 4096;  // of one resource that are told apart

using Ids = std::vector<std::string>;

api::Amount amount_in(const api::ResourceList& list, std::string_view name) {
  const auto it = list.find(name);
  return it == list.end() ? api::Amount() : it->second;
}

// In the unit of the message: millicores, else whole units.
std::int64_t shown(std::string_view name, const api::Amount& amount) {
  return name == "cpu" ? amount.milli_value() : amount.value();
}

Rejection unexpected(const std::string& why) {
  return {.reason = "UnexpectedAdmissionError",
          .message = fmt::format("Allocate failed due to {}, which is unexpected", why)};
}

std::optional<Rejection> too_few(std::string_view resource, std::int64_t wanted,
                                 std::size_t available) {
  return unexpected(
      fmt::format("requested number of devices unavailable for {}. Requested: {}, Available: {}",
                  resource, wanted, available));
}

bool has(const Ids& ids, std::string_view id) { return std::ranges::find(ids, id) != ids.end(); }

// Of extended resources requests equal limits, and either may be given alone.
api::ResourceList wanted_by(const Doc& container) {
  api::ResourceList wanted = api::read_resources(container["resources"]["limits"]);
  api::raise_resources(wanted, api::read_resources(container["resources"]["requests"]));
  return wanted;
}

}  // namespace

// On the way through the containers of a pod.
struct NodeLedger::Giving {
  const std::vector<HeldDevices>& remembered;
  // What init containers that end leave to those after them, by resource.
  std::map<std::string, Ids, std::less<>> reusable;
};

void NodeLedger::set_allocatable(const Doc& allocatable) {
  allocatable_ = api::read_resources(allocatable);
}

void NodeLedger::set_withheld(std::map<std::string, std::int64_t, std::less<>> withheld) {
  withheld_ = std::move(withheld);
}

bool NodeLedger::is_managed(std::string_view resource) const {
  return devices_ != nullptr && devices_->manages(resource);
}

std::set<std::int64_t> NodeLedger::free_units(const std::string& resource) const {
  std::set<std::int64_t> free;
  const std::int64_t count = std::min(amount_in(allocatable_, resource).value(), kDevicesMax);
  for (std::int64_t i = 0; i < count; ++i) free.insert(i);
  for (const auto& [uid, held] : pods_) {
    const auto it = held.units.find(resource);
    if (it == held.units.end()) continue;
    for (const std::int64_t unit : it->second) free.erase(unit);
  }
  return free;
}

Ids NodeLedger::healthy_ids(std::string_view resource) const {
  Ids ids;
  if (devices_ == nullptr) return ids;
  const std::vector<HostResource>& offered = devices_->resources();
  const auto at = std::ranges::find(offered, resource, &HostResource::name);
  if (at == offered.end()) return ids;
  for (const HostDevice& device : at->devices) {
    if (device.is_healthy) ids.push_back(device.id);
  }
  const auto less = withheld_.find(resource);
  if (less != withheld_.end()) {
    const std::int64_t left = static_cast<std::int64_t>(ids.size()) - less->second;
    ids.resize(static_cast<std::size_t>(
        std::clamp<std::int64_t>(left, 0, static_cast<std::int64_t>(ids.size()))));
  }
  return ids;
}

Ids NodeLedger::free_ids(std::string_view resource) const {
  Ids ids = healthy_ids(resource);
  for (const auto& [uid, held] : pods_) {
    for (const HeldDevices& devices : held.devices) {
      if (devices.resource != resource) continue;
      std::erase_if(ids, [&](const std::string& id) { return has(devices.ids, id); });
    }
  }
  return ids;
}

std::int64_t NodeLedger::healthy(const HostResource& resource) const {
  return static_cast<std::int64_t>(healthy_ids(resource.name).size());
}

bool NodeLedger::is_healthy(std::string_view resource, std::string_view id) const {
  return has(healthy_ids(resource), id);
}

std::optional<Rejection> NodeLedger::take_units(Held& held) const {
  for (const auto& [name, wanted] : held.requests) {
    if (wanted.is_zero() || !api::is_extended_resource(name) || is_managed(name)) continue;
    std::set<std::int64_t> free = free_units(name);
    const std::int64_t count = wanted.value();
    if (count > static_cast<std::int64_t>(free.size())) return too_few(name, count, free.size());
    std::set<std::int64_t>& mine = held.units[name];
    for (auto it = free.begin(); static_cast<std::int64_t>(mine.size()) < count; ++it) {
      mine.insert(*it);
    }
  }
  return std::nullopt;
}

// One container: what it had before, then what init containers left, then what the plugin would
// rather give.
std::optional<Rejection> NodeLedger::give(Giving& giving, const Doc& container, bool is_init,
                                          Held& held) const {
  const std::string& name = container["name"].as_string();
  const bool is_sidecar = is_init && container["restartPolicy"].as_string() == "Always";
  for (const auto& [resource, wanted] : wanted_by(container)) {
    if (wanted.is_zero() || !is_managed(resource)) continue;
    const auto count = static_cast<std::size_t>(wanted.value());
    Ids& reusable = giving.reusable[resource];
    Ids available = free_ids(resource);
    for (const HeldDevices& mine : held.devices) {  // of this pod's earlier containers
      if (mine.resource != resource) continue;
      std::erase_if(available, [&](const std::string& id) { return has(mine.ids, id); });
    }
    if (count > reusable.size() + available.size()) {
      if (healthy_ids(resource).empty()) {
        return unexpected(fmt::format(
            "no healthy devices present; cannot allocate unhealthy devices {}", resource));
      }
      return too_few(resource, wanted.value(), reusable.size() + available.size());
    }
    Ids ids;
    for (const HeldDevices& before : giving.remembered) {
      if (before.container != name || before.resource != resource) continue;
      for (const std::string& id : before.ids) {
        const bool is_free = has(available, id) || has(reusable, id);
        if (is_free && ids.size() < count && !has(ids, id)) ids.push_back(id);
      }
    }
    for (const std::string& id : reusable) {
      if (ids.size() < count && !has(ids, id)) ids.push_back(id);
    }
    if (ids.size() < count) {
      std::erase_if(available, [&](const std::string& id) { return has(ids, id); });
      Ids all = ids;
      all.insert(all.end(), available.begin(), available.end());
      Ids hint = devices_->prefer(resource, all, ids, static_cast<int>(count));
      hint.insert(hint.end(), available.begin(), available.end());  // a hint may be too short
      for (const std::string& id : hint) {
        if (ids.size() < count && has(available, id) && !has(ids, id)) ids.push_back(id);
      }
    }
    const auto answer = devices_->allocate(resource, ids);
    if (!answer) {
      return unexpected(fmt::format("rpc error: code = Unknown desc = {}", answer.error().what));
    }
    std::erase_if(reusable, [&](const std::string& id) { return has(ids, id); });
    if (is_init && !is_sidecar) reusable.insert(reusable.end(), ids.begin(), ids.end());
    held.devices.push_back({.container = name, .resource = resource, .ids = std::move(ids)});
  }
  return std::nullopt;
}

std::optional<Rejection> NodeLedger::take_devices(const Doc& pod,
                                                  const std::vector<HeldDevices>& remembered,
                                                  Held& held) const {
  if (devices_ == nullptr) return std::nullopt;
  Giving giving{.remembered = remembered, .reusable = {}};
  for (const Doc& container : pod.get("spec", "initContainers").items()) {
    if (auto refused = give(giving, container, true, held)) return refused;
  }
  for (const Doc& container : pod.get("spec", "containers").items()) {
    if (auto refused = give(giving, container, false, held)) return refused;
  }
  return std::nullopt;
}

std::optional<Rejection> NodeLedger::take_amounts(const Held& held) const {
  for (const auto& [name, wanted] : held.requests) {
    if (wanted.is_zero() || api::is_extended_resource(name)) continue;
    api::Amount used = amount_in(used_, name);
    const api::Amount before = used;
    used += wanted;
    const api::Amount capacity = amount_in(allocatable_, name);
    if (used > capacity) {
      return Rejection{.reason = "OutOf" + name,
                       .message = fmt::format(
                           "Node didn't have enough resource: {}, requested: {}, used: {}, "
                           "capacity: {}",
                           name, shown(name, wanted), shown(name, before), shown(name, capacity))};
    }
  }
  return std::nullopt;
}

std::optional<Rejection> NodeLedger::admit(const std::string& uid, const Doc& pod,
                                           const std::vector<HeldDevices>& remembered) {
  JOGAK_CHECK(!holds(uid));
  const std::int64_t pods_max = amount_in(allocatable_, "pods").value();
  const auto used_pods = static_cast<std::int64_t>(pods_.size());
  if (used_pods + 1 > pods_max) {
    return Rejection{.reason = "OutOfpods",
                     .message = fmt::format("Node didn't have enough resource: pods, requested: 1, "
                                            "used: {}, capacity: {}",
                                            used_pods, pods_max)};
  }
  Held held{.requests = api::pod_requests(pod), .units = {}, .devices = {}};
  if (auto refused = take_units(held)) return refused;
  if (auto refused = take_devices(pod, remembered, held)) return refused;
  if (auto refused = take_amounts(held)) return refused;
  api::add_resources(used_, held.requests);
  pods_.emplace(uid, std::move(held));
  return std::nullopt;
}

void NodeLedger::release(const std::string& uid) {
  const auto it = pods_.find(uid);
  if (it == pods_.end()) return;
  for (const auto& [name, amount] : it->second.requests) used_[name] -= amount;
  pods_.erase(it);
}

std::vector<std::int64_t> NodeLedger::devices_of(std::string_view uid,
                                                 std::string_view resource) const {
  const auto it = pods_.find(uid);
  if (it == pods_.end()) return {};
  const auto units = it->second.units.find(resource);
  if (units == it->second.units.end()) return {};
  return {units->second.begin(), units->second.end()};
}

const std::vector<HeldDevices>& NodeLedger::held_by(std::string_view uid) const {
  static const std::vector<HeldDevices> kNone;
  const auto it = pods_.find(uid);
  return it == pods_.end() ? kNone : it->second.devices;
}

}  // namespace jogak::kubelet
