// SPDX-License-Identifier: Apache-2.0
//
// What leads traffic to services and keeps it from pods, and the addresses handed out.
#include <set>
#include <string>
#include <vector>

#include "apiserver/object/meta.h"
#include "apiserver/tables/printer.h"

namespace jogak::api {
namespace {

constexpr ColumnFact kIngressColumns[] = {
    kNameColumn,
    {.name = "Class", .description = "Ingress class that serves it"},
    {.name = "Hosts", .description = "Hosts of its rules"},
    {.name = "Address", .description = "Where it is reached"},
    {.name = "Ports", .description = "Ports that it opens"},
    kAgeColumn,
};

// The first three; the number that follows counts all the rules, also those without a host.
std::string hosts_text(const Doc::Items& rules) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> hosts;
  bool has_more = false;
  for (const Doc& rule : rules) {
    has_more = has_more || hosts.size() == kShown;
    if (!has_more && !rule["host"].as_string().empty()) {
      hosts.push_back(rule["host"].as_string());
    }
  }
  if (hosts.empty()) {
    return "*";
  }
  const std::string more =
      has_more ? " + " + std::to_string(rules.size() - kShown) + " more..." : "";
  return join(hosts, ",") + more;
}

std::string ingress_addresses(const Doc& ingress) {
  std::set<std::string> sorted;
  for (const Doc& point : ingress.get("status", "loadBalancer", "ingress").items()) {
    const std::string address = text_or(point["ip"], point["hostname"].as_string());
    if (!address.empty()) {
      sorted.insert(address);
    }
  }
  return join({sorted.begin(), sorted.end()}, ",");
}

void print_ingress(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& spec = object["spec"];
  cells.emplace_back(name_of(object));
  cells.emplace_back(text_or(spec["ingressClassName"], "<none>"));
  cells.emplace_back(hosts_text(spec["rules"].items()));
  cells.emplace_back(ingress_addresses(object));
  cells.emplace_back(spec["tls"].empty() ? "80" : "80, 443");
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kIngressClassColumns[] = {
    kNameColumn,
    {.name = "Controller", .description = "Who serves ingresses of this class"},
    {.name = "Parameters", .description = "Object with more settings"},
    kAgeColumn,
};

void print_ingress_class(const Doc& object, TimeUs now, Doc::Items& cells) {
  const bool is_default =
      meta(object).get("annotations", "ingressclass.kubernetes.io/is-default-class").as_string() ==
      "true";
  const Doc& parameters = object.get("spec", "parameters");
  std::string reference = "<none>";
  if (!parameters.is_null()) {
    const std::string& group = parameters["apiGroup"].as_string();
    reference = parameters["kind"].as_string() + (group.empty() ? "" : "." + group) + "/" +
                parameters["name"].as_string();
  }
  cells.emplace_back(name_of(object) + (is_default ? " (default)" : ""));
  cells.emplace_back(object.get("spec", "controller").as_string());
  cells.emplace_back(reference);
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kPolicyColumns[] = {
    kNameColumn, {.name = "Pod-Selector", .description = "Pods that it is about"}, kAgeColumn};

void print_policy(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(selector_text(object.get("spec", "podSelector"), "<none>"));
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kRangeColumns[] = {
    kNameColumn, {.name = "CIDRs", .description = "Ranges that addresses are from"}, kAgeColumn};

void print_range(const Doc& object, TimeUs now, Doc::Items& cells) {
  std::vector<std::string> ranges;
  for (const Doc& range : object.get("spec", "cidrs").items()) {
    ranges.push_back(range.as_string());
  }
  cells.emplace_back(name_of(object));
  cells.emplace_back(join(ranges, ","));
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kAddressColumns[] = {
    kNameColumn, {.name = "ParentRef", .description = "Object that has the address"}};

void print_address(const Doc& object, TimeUs, Doc::Items& cells) {
  const Doc& parent = object.get("spec", "parentRef");
  std::string reference = "<none>";
  if (!parent.is_null()) {
    const std::string& group = parent["group"].as_string();
    const std::string& ns = parent["namespace"].as_string();
    reference = parent["resource"].as_string() + (group.empty() ? "" : "." + group) +
                (ns.empty() ? "" : "/" + ns) + "/" + parent["name"].as_string();
  }
  cells.emplace_back(name_of(object));
  cells.emplace_back(reference);
}

constexpr std::string_view kGroup = "networking.k8s.io";

constexpr Printer kPrinters[] = {
    {kGroup, "Ingress", kIngressColumns, print_ingress},
    {kGroup, "IngressClass", kIngressClassColumns, print_ingress_class},
    {kGroup, "NetworkPolicy", kPolicyColumns, print_policy},
    {kGroup, "ServiceCIDR", kRangeColumns, print_range},
    {kGroup, "IPAddress", kAddressColumns, print_address},
};

}  // namespace

std::span<const Printer> network_printers() { return kPrinters; }

}  // namespace jogak::api
