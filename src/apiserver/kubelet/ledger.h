// SPDX-License-Identifier: Apache-2.0
//
// What the pods on one simulated node take, and the kubelet's own look at whether another fits: the
// scheduler's promise is checked again where it must hold. Devices have owners: each belongs to one
// pod at a time. Those that a plugin offers have ids and are handed out container by container, as
// a kubelet does it; of all other extended resources units are counted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kubelet/device_host.h"
#include "apiserver/object/resource_list.h"
#include "base/doc.h"

namespace jogak::kubelet {

// Why a pod is refused, as a real kubelet words it.
struct Rejection {
  std::string reason;  // OutOfcpu, OutOfpods, UnexpectedAdmissionError
  std::string message;
};

class NodeLedger {
 public:
  // From node.status.allocatable; devices that are gone stay with who has them.
  void set_allocatable(const Doc& allocatable);
  // Whom to ask for devices; null: all are counted. They outlive the ledger or are replaced.
  void set_devices(NodeDevices* devices) { devices_ = devices; }
  // So many of a resource's devices are given to nobody, the last of those that are healthy.
  void set_withheld(std::map<std::string, std::int64_t, std::less<>> withheld);

  // Admits the pod and books what it asks, or says why not. `remembered` is what it held before
  // this ledger was made; of that it gets back what is there and free.
  std::optional<Rejection> admit(const std::string& uid, const Doc& pod,
                                 const std::vector<HeldDevices>& remembered = {});
  void release(const std::string& uid);
  bool holds(std::string_view uid) const { return pods_.contains(uid); }
  std::size_t pods() const { return pods_.size(); }
  // Numbers of the devices of a counted resource that the pod holds, ascending.
  std::vector<std::int64_t> devices_of(std::string_view uid, std::string_view resource) const;
  // What its containers hold of plugins' devices, in the order of the containers.
  const std::vector<HeldDevices>& held_by(std::string_view uid) const;
  // Healthy ones of those offered.
  std::int64_t healthy(const HostResource& resource) const;
  bool is_healthy(std::string_view resource, std::string_view id) const;

 private:
  struct Held {
    api::ResourceList requests;
    std::map<std::string, std::set<std::int64_t>, std::less<>> units;  // by counted resource
    std::vector<HeldDevices> devices;
  };
  struct Giving;

  bool is_managed(std::string_view resource) const;
  std::set<std::int64_t> free_units(const std::string& resource) const;
  std::vector<std::string> healthy_ids(std::string_view resource) const;
  std::vector<std::string> free_ids(std::string_view resource) const;
  std::optional<Rejection> take_units(Held& held) const;
  std::optional<Rejection> take_devices(const Doc& pod, const std::vector<HeldDevices>& remembered,
                                        Held& held) const;
  std::optional<Rejection> give(Giving& giving, const Doc& container, bool is_init,
                                Held& held) const;
  std::optional<Rejection> take_amounts(const Held& held) const;

  NodeDevices* devices_ = nullptr;
  std::map<std::string, std::int64_t, std::less<>> withheld_;
  api::ResourceList allocatable_;
  api::ResourceList used_;
  std::map<std::string, Held, std::less<>> pods_;
};

}  // namespace jogak::kubelet
