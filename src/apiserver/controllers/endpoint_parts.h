// SPDX-License-Identifier: Apache-2.0
//
// What the endpoints of a service are, from its pods: the addresses of an Endpoints object and of
// EndpointSlices. No writes here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/loop.h"

namespace jogak::controllers {

inline constexpr std::string_view kTriggerTime = "endpoints.kubernetes.io/last-change-trigger-time";
inline constexpr std::string_view kHeadless = "service.kubernetes.io/headless";

// Of a pod that a service selects; as little as its endpoints need.
struct EndpointPod {
  struct Port {
    std::string name, protocol;
    std::int64_t number = 0;
    friend bool operator==(const Port&, const Port&) = default;
  };
  std::string ns, name, uid, node, hostname, subdomain;
  std::vector<std::string> ips;
  std::vector<Port> ports;  // those with names
  bool is_ready = false, is_deleting = false, is_finished = false;
  TimeUs changed = 0;  // lastTransitionTime of Ready

  friend bool operator==(const EndpointPod&, const EndpointPod&) = default;
};
EndpointPod endpoint_pod(const Doc& pod);

// A node of a pod: known or not, and its zone.
using Zones = std::map<std::string, std::string, std::less<>>;

// subsets of an Endpoints object; `is_cut` when there were more than it may hold (1000).
Doc endpoint_subsets(const Doc& service, const std::vector<EndpointPod>& pods, bool& is_cut);
Doc endpoints_labels(const Doc& service);

// "IPv4", "IPv6": those the service has.
std::vector<std::string> address_types(const Doc& service);

// Endpoints that share their ports, as slices hold them.
struct PortGroup {
  Doc ports;      // array
  Doc endpoints;  // array, in the order of the pods
};
std::vector<PortGroup> port_groups(const Doc& service, const std::vector<EndpointPod>& pods,
                                   const Zones& nodes, std::string_view address_type);

// A slice of the service without endpoints and ports.
Doc empty_slice(const Doc& service, std::string_view address_type);

struct SlicePlan {
  std::vector<Doc> created, updated, removed;
};
// The fewest changes that make `slices` (all of one address type) hold the groups.
SlicePlan plan_slices(const Doc& service, std::string_view address_type, std::vector<Doc> slices,
                      const std::vector<PortGroup>& groups);

}  // namespace jogak::controllers
