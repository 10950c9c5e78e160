// SPDX-License-Identifier: Apache-2.0
//
// Facts: pkg/controller/endpoint and endpointslice of Kubernetes.
#include "apiserver/controllers/endpoint_parts.h"

#include <algorithm>

#include "apiserver/controllers/pod_control.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::size_t kCapacity = 1000;  // addresses of an Endpoints object
constexpr std::string_view kManagedBy = "endpoints.kubernetes.io/managed-by";

bool is_v6(std::string_view ip) { return ip.find(':') != std::string_view::npos; }

bool is_headless(const Doc& service) {
  const std::string& ip = service.get("spec", "clusterIP").as_string();
  return ip.empty() || ip == "None";
}

bool has_hostname(const Doc& service, const EndpointPod& pod) {
  return !pod.hostname.empty() && pod.subdomain == api::name_of(service);
}

bool has_address(const EndpointPod& pod, bool with_deleting) {
  return !pod.is_finished && !pod.ips.empty() && (with_deleting || !pod.is_deleting);
}

// The number behind a service's port on this pod; 0 when the pod has none of that name.
std::int64_t port_number(const Doc& service_port, const EndpointPod& pod) {
  const Doc& target = service_port["targetPort"];
  if (!target.is_string()) return target.as_int();
  for (const EndpointPod::Port& port : pod.ports) {
    const bool is_it =
        port.name == target.as_string() && port.protocol == service_port["protocol"].as_string();
    if (is_it) return port.number;
  }
  return 0;
}

Doc target_ref(const EndpointPod& pod) {
  return Doc::object()
      .set("kind", "Pod")
      .set("namespace", pod.ns)
      .set("name", pod.name)
      .set("uid", pod.uid);
}

const std::string* address_of_family(const Doc& service, const EndpointPod& pod) {
  const Doc::Items& families = service.get("spec", "ipFamilies").items();
  const bool wants_v6 = families.empty() ? is_v6(service.get("spec", "clusterIP").as_string())
                                         : families.front().as_string() == "IPv6";
  const auto it =
      std::ranges::find_if(pod.ips, [&](const std::string& ip) { return is_v6(ip) == wants_v6; });
  return it == pod.ips.end() ? nullptr : &*it;
}

// One address with the ports it serves.
struct Served {
  Doc address;
  bool is_ready = false;
};

void sort_addresses(Doc& list) {
  std::ranges::sort(list.items(), {}, [](const Doc& address) {
    return std::pair(address["ip"].as_string(), address.get("targetRef", "uid").as_string());
  });
}

// Leaves at most so many addresses, ready ones first.
bool cut(Doc& subsets, std::size_t capacity) {
  std::size_t total = 0;
  for (const Doc& subset : subsets.items()) {
    total += subset["addresses"].size() + subset["notReadyAddresses"].size();
  }
  if (total <= capacity) return false;
  std::size_t left = capacity;
  for (const std::string_view list : {"addresses", "notReadyAddresses"}) {
    for (Doc& subset : subsets.items()) {
      Doc* addresses = subset.find(list);
      if (addresses == nullptr) continue;
      if (addresses->size() > left) addresses->items().resize(left);
      left -= addresses->size();
      if (addresses->empty()) subset.erase(list);
    }
  }
  std::erase_if(subsets.items(), [](const Doc& subset) {
    return !subset.has("addresses") && !subset.has("notReadyAddresses");
  });
  return true;
}

}  // namespace

EndpointPod endpoint_pod(const Doc& pod) {
  EndpointPod result;
  result.ns = api::namespace_of(pod);
  result.name = api::name_of(pod);
  result.uid = api::uid_of(pod);
  const Doc& spec = pod["spec"];
  result.node = spec["nodeName"].as_string();
  result.hostname = spec["hostname"].as_string();
  result.subdomain = spec["subdomain"].as_string();
  const Doc& status = pod["status"];
  for (const Doc& ip : status["podIPs"].items()) result.ips.push_back(ip["ip"].as_string());
  if (result.ips.empty() && !status["podIP"].as_string().empty()) {
    result.ips.push_back(status["podIP"].as_string());
  }
  const auto add_ports = [&](const Doc& container) {
    for (const Doc& port : container["ports"].items()) {
      if (port["name"].as_string().empty()) continue;
      result.ports.push_back({.name = port["name"].as_string(),
                              .protocol = port["protocol"].as_string(),
                              .number = port["containerPort"].as_int()});
    }
  };
  for (const Doc& container : spec["containers"].items()) add_ports(container);
  for (const Doc& container : spec["initContainers"].items()) {
    if (container["restartPolicy"].as_string() == "Always") add_ports(container);
  }
  const Doc& ready = api::condition_of(pod, "Ready");
  result.is_ready = ready["status"].as_string() == "True";
  result.changed = api::parse_time(ready["lastTransitionTime"].as_string()).value_or(0);
  result.is_deleting = api::is_deleting(pod);
  const std::string& phase = status["phase"].as_string();
  result.is_finished = phase == "Succeeded" || phase == "Failed";
  return result;
}

Doc endpoint_subsets(const Doc& service, const std::vector<EndpointPod>& pods, bool& is_cut) {
  const Doc& spec = service["spec"];
  const bool shows_unready = spec["publishNotReadyAddresses"].as_bool();
  // by port, as JSON, in the order of the service; then ports of the same addresses together
  std::vector<std::pair<Doc, std::vector<Served>>> by_port;
  const auto add = [&](Doc port, Served served) {
    auto it = std::ranges::find_if(by_port, [&](const auto& one) { return one.first == port; });
    if (it == by_port.end())
      it = by_port.emplace(by_port.end(), std::move(port), std::vector<Served>());
    it->second.push_back(std::move(served));
  };
  for (const EndpointPod& pod : pods) {
    const std::string* ip = address_of_family(service, pod);
    if (!has_address(pod, shows_unready) || ip == nullptr) continue;
    Doc address = Doc::object().set("ip", *ip);
    if (has_hostname(service, pod)) address.set("hostname", pod.hostname);
    if (!pod.node.empty()) address.set("nodeName", pod.node);
    address.set("targetRef", target_ref(pod));
    const Served served{.address = std::move(address), .is_ready = shows_unready || pod.is_ready};
    if (spec["ports"].empty() && is_headless(service)) add(Doc(), served);
    for (const Doc& port : spec["ports"].items()) {
      const std::int64_t number = port_number(port, pod);
      if (number == 0) continue;
      Doc shown = Doc::object();
      if (!port["name"].as_string().empty()) shown.set("name", port["name"]);
      shown.set("port", number).set("protocol", port["protocol"]);
      if (port.has("appProtocol")) shown.set("appProtocol", port["appProtocol"]);
      add(std::move(shown), served);
    }
  }
  Doc subsets = Doc::array();
  for (auto& [port, served] : by_port) {
    Doc ready = Doc::array(), unready = Doc::array();
    for (Served& one : served) (one.is_ready ? ready : unready).push(std::move(one.address));
    sort_addresses(ready);
    sort_addresses(unready);
    Doc subset = Doc::object();
    if (!ready.empty()) subset.set("addresses", std::move(ready));
    if (!unready.empty()) subset.set("notReadyAddresses", std::move(unready));
    const auto same = std::ranges::find_if(subsets.items(), [&](const Doc& other) {
      return other["addresses"] == subset["addresses"] &&
             other["notReadyAddresses"] == subset["notReadyAddresses"];
    });
    if (same != subsets.items().end()) {
      if (!port.is_null()) same->at("ports").push(port);
      continue;
    }
    if (!port.is_null()) subset.set("ports", Doc::array().push(port));
    subsets.push(std::move(subset));
  }
  is_cut = cut(subsets, kCapacity);
  return subsets;
}

Doc endpoints_labels(const Doc& service) {
  Doc labels = api::meta(service)["labels"];
  if (!labels.is_object()) labels = Doc::object();
  labels.erase(kHeadless);
  if (is_headless(service)) labels.set(kHeadless, "");
  labels.set(kManagedBy, "endpoint-controller");
  return labels;
}

std::vector<std::string> address_types(const Doc& service) {
  std::vector<std::string> types;
  for (const Doc& family : service.get("spec", "ipFamilies").items()) {
    types.push_back(family.as_string());
  }
  if (!types.empty()) return types;
  const std::string& ip = service.get("spec", "clusterIP").as_string();
  if (!ip.empty() && ip != "None") return {is_v6(ip) ? "IPv6" : "IPv4"};
  return {"IPv4", "IPv6"};
}

std::vector<PortGroup> port_groups(const Doc& service, const std::vector<EndpointPod>& pods,
                                   const Zones& nodes, std::string_view address_type) {
  std::vector<PortGroup> groups;
  const Doc& spec = service["spec"];
  const bool shows_unready = spec["publishNotReadyAddresses"].as_bool();
  const std::string& distribution = spec["trafficDistribution"].as_string();
  for (const EndpointPod& pod : pods) {
    if (!has_address(pod, true)) continue;
    const auto node = nodes.find(pod.node);
    if (node == nodes.end() && !shows_unready) continue;  // asked again when the node appears
    Doc ports = Doc::array();
    for (const Doc& port : spec["ports"].items()) {
      const std::int64_t number = port_number(port, pod);
      if (number == 0) continue;
      Doc shown = Doc::object();
      shown.set("name", port["name"].as_string()).set("protocol", port["protocol"]);
      shown.set("port", number);
      if (port.has("appProtocol")) shown.set("appProtocol", port["appProtocol"]);
      ports.push(std::move(shown));
    }
    auto group =
        std::ranges::find_if(groups, [&](const PortGroup& one) { return one.ports == ports; });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {.ports = std::move(ports), .endpoints = Doc::array()});
    }
    Doc addresses = Doc::array();
    for (const std::string& ip : pod.ips) {
      if (is_v6(ip) == (address_type == "IPv6")) addresses.push(ip);
    }
    if (addresses.empty()) continue;
    const bool is_ready = shows_unready || (pod.is_ready && !pod.is_deleting);
    Doc endpoint = Doc::object();
    endpoint.set("addresses", std::move(addresses))
        .set("conditions", Doc::object()
                               .set("ready", is_ready)
                               .set("serving", pod.is_ready)
                               .set("terminating", pod.is_deleting));
    if (has_hostname(service, pod)) endpoint.set("hostname", pod.hostname);
    endpoint.set("targetRef", target_ref(pod));
    if (!pod.node.empty()) endpoint.set("nodeName", pod.node);
    if (node != nodes.end() && !node->second.empty()) {
      endpoint.set("zone", node->second);
      if (!distribution.empty() && is_ready) {
        const auto one = [](const std::string& name) {
          return Doc::array().push(Doc::object().set("name", name));
        };
        endpoint.at("hints").set("forZones", one(node->second));
        if (distribution == "PreferSameNode") endpoint.at("hints").set("forNodes", one(pod.node));
      }
    }
    group->endpoints.push(std::move(endpoint));
  }
  return groups;
}

}  // namespace jogak::controllers
