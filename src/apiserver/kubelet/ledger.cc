// SPDX-License-Identifier: Apache-2.0
//
// Admission in a kubelet's order: the number of pods, devices, then the other resources. Devices go
// lowest number first.
#include "apiserver/kubelet/ledger.h"

#include <fmt/core.h>

#include "base/check.h"

namespace jogak::kubelet {

namespace {

constexpr std::int64_t kDevicesMax = 4096;  // of one resource that are told apart

api::Amount amount_in(const api::ResourceList& list, std::string_view name) {
  const auto it = list.find(name);
  return it == list.end() ? api::Amount() : it->second;
}

// In the unit of the message: millicores, else whole units.
std::int64_t shown(std::string_view name, const api::Amount& amount) {
  return name == "cpu" ? amount.milli_value() : amount.value();
}

}  // namespace

void NodeLedger::set_allocatable(const Doc& allocatable) {
  allocatable_ = api::read_resources(allocatable);
}

std::set<std::int64_t> NodeLedger::free_devices(const std::string& resource) const {
  std::set<std::int64_t> free;
  const std::int64_t count = std::min(amount_in(allocatable_, resource).value(), kDevicesMax);
  for (std::int64_t i = 0; i < count; ++i) free.insert(i);
  for (const auto& [uid, held] : pods_) {
    const auto it = held.devices.find(resource);
    if (it == held.devices.end()) continue;
    for (const std::int64_t device : it->second) free.erase(device);
  }
  return free;
}

std::optional<Rejection> NodeLedger::admit(const std::string& uid, const Doc& pod) {
  JOGAK_CHECK(!holds(uid));
  const std::int64_t pods_max = amount_in(allocatable_, "pods").value();
  const auto used_pods = static_cast<std::int64_t>(pods_.size());
  if (used_pods + 1 > pods_max) {
    return Rejection{.reason = "OutOfpods",
                     .message = fmt::format("Node didn't have enough resource: pods, requested: 1, "
                                            "used: {}, capacity: {}",
                                            used_pods, pods_max)};
  }
  Held held{.requests = api::pod_requests(pod), .devices = {}};
  for (const auto& [name, wanted] : held.requests) {
    if (wanted.is_zero() || !api::is_extended_resource(name)) continue;
    std::set<std::int64_t> free = free_devices(name);
    const std::int64_t count = wanted.value();
    if (count > static_cast<std::int64_t>(free.size())) {
      return Rejection{.reason = "UnexpectedAdmissionError",
                       .message = fmt::format("Allocate failed due to requested number of devices "
                                              "unavailable for {}. Requested: {}, Available: {}, "
                                              "which is unexpected",
                                              name, count, free.size())};
    }
    std::set<std::int64_t>& mine = held.devices[name];
    for (auto it = free.begin(); static_cast<std::int64_t>(mine.size()) < count; ++it) {
      mine.insert(*it);
    }
  }
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
  const auto devices = it->second.devices.find(resource);
  if (devices == it->second.devices.end()) return {};
  return {devices->second.begin(), devices->second.end()};
}

}  // namespace jogak::kubelet
