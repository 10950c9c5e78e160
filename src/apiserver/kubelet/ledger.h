// SPDX-License-Identifier: Apache-2.0
//
// What the pods on one simulated node take, and the kubelet's own look at whether another fits: the
// scheduler's promise is checked again where it must hold. Devices have owners: each unit of an
// extended resource belongs to one pod at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

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
  // Admits the pod and books what it asks, or says why not.
  std::optional<Rejection> admit(const std::string& uid, const Doc& pod);
  void release(const std::string& uid);
  bool holds(std::string_view uid) const { return pods_.contains(uid); }
  std::size_t pods() const { return pods_.size(); }
  // Numbers of the devices of a resource that the pod holds, ascending.
  std::vector<std::int64_t> devices_of(std::string_view uid, std::string_view resource) const;

 private:
  struct Held {
    api::ResourceList requests;
    std::map<std::string, std::set<std::int64_t>, std::less<>> devices;  // by resource
  };

  std::set<std::int64_t> free_devices(const std::string& resource) const;

  api::ResourceList allocatable_;
  api::ResourceList used_;
  std::map<std::string, Held, std::less<>> pods_;
};

}  // namespace jogak::kubelet
