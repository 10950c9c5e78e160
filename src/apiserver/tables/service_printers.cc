// SPDX-License-Identifier: Apache-2.0
//
// Services and what stands behind them.
#include <set>
#include <string>
#include <vector>

#include "apiserver/object/meta.h"
#include "apiserver/tables/printer.h"

namespace jogak::api {
namespace {

constexpr std::size_t kShown = 3;

constexpr ColumnFact kServiceColumns[] = {
    kNameColumn,
    {.name = "Type", .description = "How the service is reached"},
    {.name = "Cluster-IP", .description = "Address inside the cluster"},
    {.name = "External-IP", .description = "Addresses outside of the cluster"},
    {.name = "Port(s)", .description = "Ports, with their node ports"},
    kAgeColumn,
    {.name = "Selector", .priority = 1, .description = "Labels of the pods behind it"},
};

std::vector<std::string> balancer_addresses(const Doc& service) {
  std::set<std::string> sorted;
  for (const Doc& ingress : service.get("status", "loadBalancer", "ingress").items()) {
    const std::string address = text_or(ingress["ip"], ingress["hostname"].as_string());
    if (!address.empty()) {
      sorted.insert(address);
    }
  }
  return {sorted.begin(), sorted.end()};
}

std::string external_address(const Doc& service) {
  const Doc& spec = service["spec"];
  const std::string& type = spec["type"].as_string();
  if (type == "ExternalName") {
    return spec["externalName"].as_string();
  }
  const bool is_balanced = type == "LoadBalancer";
  if (!is_balanced && type != "ClusterIP" && type != "NodePort") {
    return "<unknown>";
  }
  std::vector<std::string> addresses;
  if (is_balanced) {
    addresses = balancer_addresses(service);
  }
  for (const Doc& address : spec["externalIPs"].items()) {
    addresses.push_back(address.as_string());
  }
  if (addresses.empty()) {
    return is_balanced ? "<pending>" : "<none>";
  }
  return join(addresses, ",");
}

std::string ports_text(const Doc& ports) {
  std::vector<std::string> parts;
  for (const Doc& port : ports.items()) {
    std::string part = std::to_string(port["port"].as_int());
    if (port["nodePort"].as_int() > 0) {
      part += ":" + std::to_string(port["nodePort"].as_int());
    }
    parts.push_back(part + "/" + port["protocol"].as_string());
  }
  return parts.empty() ? "<none>" : join(parts, ",");
}

void print_service(const Doc& service, TimeUs now, Doc::Items& cells) {
  const Doc& spec = service["spec"];
  const Doc::Items& ips = spec["clusterIPs"].items();
  cells.emplace_back(name_of(service));
  cells.emplace_back(spec["type"].as_string());
  cells.emplace_back(ips.empty() ? "<none>" : ips.front().as_string());
  cells.emplace_back(external_address(service));
  cells.emplace_back(ports_text(spec["ports"]));
  cells.emplace_back(age_of(service, now));
  cells.emplace_back(labels_text(spec["selector"]));
}

constexpr ColumnFact kEndpointsColumns[] = {
    kNameColumn, {.name = "Endpoints", .description = "Addresses with their ports"}, kAgeColumn};

// Every address with every port of its subset, or alone where there are no ports.
std::vector<std::string> endpoint_addresses(const Doc& endpoints) {
  std::vector<std::string> parts;
  for (const Doc& subset : endpoints["subsets"].items()) {
    const Doc::Items& addresses = subset["addresses"].items();
    if (subset["ports"].empty()) {
      for (const Doc& address : addresses) {
        parts.push_back(address["ip"].as_string());
      }
    }
    for (const Doc& port : subset["ports"].items()) {
      const std::string number = ":" + std::to_string(port["port"].as_int());
      for (const Doc& address : addresses) {
        const std::string& ip = address["ip"].as_string();
        const bool has_colons = ip.find(':') != std::string::npos;
        parts.push_back((has_colons ? "[" + ip + "]" : ip) + number);
      }
    }
  }
  return parts;
}

void print_endpoints(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(object["subsets"].empty() ? "<none>"
                                               : shortened(endpoint_addresses(object), kShown, ""));
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kSliceColumns[] = {
    kNameColumn,
    {.name = "AddressType", .description = "IPv4, IPv6 or FQDN"},
    {.name = "Ports", .description = "Ports that all endpoints have"},
    {.name = "Endpoints", .description = "Addresses"},
    kAgeColumn,
};

void print_slice(const Doc& object, TimeUs now, Doc::Items& cells) {
  std::vector<std::string> ports, addresses;
  for (const Doc& port : object["ports"].items()) {
    if (port["port"].is_int()) {
      ports.push_back(port["port"].number_text());
    } else {
      ports.push_back(port["name"].is_string() ? port["name"].as_string() : "*");
    }
  }
  for (const Doc& endpoint : object["endpoints"].items()) {
    for (const Doc& address : endpoint["addresses"].items()) {
      addresses.push_back(address.as_string());
    }
  }
  cells.emplace_back(name_of(object));
  cells.emplace_back(object["addressType"].as_string());
  cells.emplace_back(shortened(ports, kShown, "<unset>"));
  cells.emplace_back(shortened(addresses, kShown, "<unset>"));
  cells.emplace_back(age_of(object, now));
}

constexpr Printer kPrinters[] = {
    {"", "Service", kServiceColumns, print_service},
    {"", "Endpoints", kEndpointsColumns, print_endpoints},
    {"discovery.k8s.io", "EndpointSlice", kSliceColumns, print_slice},
};

}  // namespace

std::span<const Printer> service_printers() { return kPrinters; }

}  // namespace jogak::api
