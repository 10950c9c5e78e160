// SPDX-License-Identifier: Apache-2.0
//
// What a service may say, in the order in which the server complains.
#include <algorithm>
#include <set>
#include <string>

#include "apiserver/kinds/service_rules.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::string_view kTopologyMode = "service.kubernetes.io/topology-mode";
constexpr std::string_view kTopologyHints = "service.kubernetes.io/topology-aware-hints";
constexpr std::string_view kSourceRanges = "service.beta.kubernetes.io/load-balancer-source-ranges";
constexpr std::int64_t kAffinitySecondsMax = 86400;

Path spec_at(std::string_view name) { return Path("spec").child(name); }

bool is_balancer(const Doc& service) { return service_type(service) == "LoadBalancer"; }

void validate_topology(const Doc& service, FieldErrors& errors) {
  const Doc& annotations = meta(service)["annotations"];
  if (annotations.has(kTopologyMode) && annotations.has(kTopologyHints) &&
      !(annotations[kTopologyMode] == annotations[kTopologyHints])) {
    errors.invalid(
        Path("metadata.annotations").key(kTopologyMode), annotations[kTopologyMode],
        "must match annotations[" + std::string(kTopologyHints) + "] when both are specified");
  }
}

void validate_external_name(const Doc& spec, FieldErrors& errors) {
  constexpr std::string_view kNotHere = "may not be set for ExternalName services";
  if (!spec["clusterIPs"].empty()) errors.forbidden(spec_at("clusterIPs"), kNotHere);
  if (!spec["ipFamilies"].empty()) errors.forbidden(spec_at("ipFamilies"), kNotHere);
  if (spec.has("ipFamilyPolicy")) errors.forbidden(spec_at("ipFamilyPolicy"), kNotHere);
  std::string name = spec["externalName"].as_string();
  if (name.ends_with('.')) name.pop_back();
  if (name.empty()) {
    errors.required(spec_at("externalName"));
  } else {
    add_problems(errors, spec_at("externalName"), name, check_dns1123_subdomain(name));
  }
}

void validate_by_type(const Doc& service, FieldErrors& errors) {
  const Doc& spec = service["spec"];
  const std::string type(service_type(service));
  if (type == "ExternalName") {
    validate_external_name(spec, errors);
  } else if ((type == "LoadBalancer" || type == "NodePort") && is_headless(service)) {
    errors.invalid(spec_at("clusterIPs").index(0), kHeadless,
                   "may not be set to 'None' for " + type + " services");
  }
}

void validate_port(const Doc& port, bool needs_name, std::set<std::string_view>& names,
                   const Path& at, FieldErrors& errors) {
  const std::string& name = port["name"].as_string();
  if (!name.empty()) {
    add_problems(errors, at.child("name"), name, check_dns1123_label(name));
    if (!names.insert(name).second) errors.duplicate(at.child("name"), name);
  } else if (needs_name) {
    errors.required(at.child("name"));
  }
  add_problems(errors, at.child("port"), port["port"].as_int(), check_port(port["port"].as_int()));
  check_supported(port["protocol"], {"SCTP", "TCP", "UDP"}, at.child("protocol"), errors);
  const Doc& target = port["targetPort"];
  if (target.is_string()) {
    add_problems(errors, at.child("targetPort"), target, check_port_name(target.as_string()));
  } else {
    add_problems(errors, at.child("targetPort"), target.as_int(), check_port(target.as_int()));
  }
  if (port.has("appProtocol")) {
    add_problems(errors, at.child("appProtocol"), port["appProtocol"],
                 check_qualified_name(port["appProtocol"].as_string()));
  }
}

void validate_ports(const Doc& spec, FieldErrors& errors) {
  const Doc::Items& ports = spec["ports"].items();
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    validate_port(ports[i], ports.size() > 1, names, spec_at("ports").index(i), errors);
  }
}

// Of ports, each counted with its protocol.
void validate_distinct(const Doc& spec, std::string_view name, FieldErrors& errors) {
  std::set<std::pair<std::string, std::int64_t>> seen;
  const Doc::Items& ports = spec["ports"].items();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::int64_t number = ports[i][name].as_int();
    const bool is_node_port = name == "nodePort";
    if (is_node_port && number == 0) continue;
    if (seen.emplace(ports[i]["protocol"].as_string(), number).second) continue;
    const Path at = spec_at("ports").index(i);
    if (is_node_port) {
      errors.duplicate(at.child(name), number);
    } else {
      errors.duplicate(at, ports[i]);
    }
  }
}

void validate_affinity_config(const Doc& config, FieldErrors& errors) {
  constexpr std::string_view kWhen = "when session affinity type is ClientIP";
  const Path at = spec_at("sessionAffinityConfig");
  const Doc& seconds = config["clientIP"]["timeoutSeconds"];
  if (config.is_null()) {
    errors.required(at, kWhen);
  } else if (config["clientIP"].is_null()) {
    errors.required(at.child("clientIP"), kWhen);
  } else if (seconds.is_null()) {
    errors.required(at.child("clientIP", "timeoutSeconds"), kWhen);
  } else if (seconds.as_int() <= 0 || seconds.as_int() > kAffinitySecondsMax) {
    errors.invalid(at.child("clientIP", "timeoutSeconds"), seconds,
                   "must be greater than 0 and less than " + std::to_string(kAffinitySecondsMax));
  }
}

void validate_affinity(const Doc& spec, FieldErrors& errors) {
  const std::string& affinity = spec["sessionAffinity"].as_string();
  if (affinity.empty()) {
    errors.required(spec_at("sessionAffinity"));
  } else {
    check_supported(affinity, {"ClientIP", "None"}, spec_at("sessionAffinity"), errors);
  }
  if (affinity == "ClientIP") {
    validate_affinity_config(spec["sessionAffinityConfig"], errors);
  } else if (affinity == "None" && spec.has("sessionAffinityConfig")) {
    errors.forbidden(spec_at("sessionAffinityConfig"),
                     "must not be set when session affinity is None");
  }
}

void validate_external_ips(const Doc& spec, const Doc& old_spec, FieldErrors& errors) {
  const Doc::Items& addresses = spec["externalIPs"].items();
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const Path at = spec_at("externalIPs").index(i);
    FieldErrors found;
    check_legacy_ip(addresses[i].as_string(), old_spec["externalIPs"], at, found);
    if (found.empty()) check_endpoint_ip(addresses[i].as_string(), at, found);
    for (const FieldError& error : found.list()) errors.add(error);
  }
}

void validate_type(const Doc& service, FieldErrors& errors) {
  const Doc& spec = service["spec"];
  if (service_type(service).empty()) {
    errors.required(spec_at("type"));
  } else {
    check_supported(spec["type"], {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"},
                    spec_at("type"), errors);
  }
  if (service_type(service) != "ClusterIP") return;
  const Doc::Items& ports = spec["ports"].items();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports[i]["nodePort"].as_int() != 0) {
      errors.forbidden(spec_at("ports").index(i).child("nodePort"),
                       "may not be used when `type` is 'ClusterIP'");
    }
  }
}

std::string trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t start = text.find_first_not_of(kBlanks);
  if (start == std::string_view::npos) return {};
  return std::string(text.substr(start, text.find_last_not_of(kBlanks) - start + 1));
}

constexpr std::string_view kBalancersOnly = "may only be used when `type` is 'LoadBalancer'";

void validate_source_ranges(const Doc& service, const Doc& old, FieldErrors& errors) {
  const Path at = spec_at("LoadBalancerSourceRanges");  // in the server's spelling
  if (!is_balancer(service)) errors.forbidden(at, kBalancersOnly);
  std::vector<std::string> existing;
  for (const Doc& range : old["spec"]["loadBalancerSourceRanges"].items()) {
    existing.push_back(trimmed(range.as_string()));
  }
  const Doc::Items& ranges = service["spec"]["loadBalancerSourceRanges"].items();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    check_legacy_cidr(trimmed(ranges[i].as_string()), existing, at.index(i), errors);
  }
}

// The form from before the member: a list in an annotation.
void validate_source_annotation(const Doc& service, const Doc& old, FieldErrors& errors) {
  const Doc& value = meta(service)["annotations"][kSourceRanges];
  if (value.is_null()) return;
  const Path at = Path("metadata.annotations").key(kSourceRanges);
  if (!is_balancer(service)) errors.forbidden(at, kBalancersOnly);
  if (meta(old)["annotations"][kSourceRanges] == value) return;
  const std::string text = trimmed(value.as_string());
  for (std::size_t start = 0; !text.empty() && start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    check_legacy_cidr(trimmed(std::string_view(text).substr(start, end - start)), {}, at, errors);
    start = end + 1;
  }
}

void validate_balancer_members(const Doc& service, const Doc& old, FieldErrors& errors) {
  const Doc& spec = service["spec"];
  if (spec["loadBalancerSourceRanges"].empty()) {
    validate_source_annotation(service, old, errors);
  } else {
    validate_source_ranges(service, old, errors);
  }
  const bool has_choice = spec.has("allocateLoadBalancerNodePorts");
  if (has_choice && !is_balancer(service)) {
    errors.forbidden(spec_at("allocateLoadBalancerNodePorts"), kBalancersOnly);
  }
  if (!has_choice && is_balancer(service)) {
    errors.required(Path("allocateLoadBalancerNodePorts"));
  }
  validate_balancer_class(service, errors);
}

void validate_traffic(const Doc& service, FieldErrors& errors) {
  const Doc& spec = service["spec"];
  const Doc& external = spec["externalTrafficPolicy"];
  const Path external_at = spec_at("externalTrafficPolicy");
  if (!is_external(service)) {
    if (!external.as_string().empty()) {
      errors.invalid(external_at, external, "may only be set for externally-accessible services");
    }
  } else if (external.as_string().empty()) {
    errors.required(external_at);
  } else {
    check_supported(external, {"Cluster", "Local"}, external_at, errors);
  }
  const std::int64_t port = spec["healthCheckNodePort"].as_int();
  const Path port_at = spec_at("healthCheckNodePort");
  if (!needs_health_port(service)) {
    if (port != 0) {
      errors.invalid(port_at, port,
                     "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is "
                     "'Local'");
    }
  } else if (port == 0) {
    errors.required(port_at);
  } else {
    add_problems(errors, port_at, port, check_port(port));
  }
  const Path internal_at = spec_at("internalTrafficPolicy");
  if (spec.has("internalTrafficPolicy")) {
    check_supported(spec["internalTrafficPolicy"], {"Cluster", "Local"}, internal_at, errors);
  } else if (service_type(service) == "ClusterIP" || service_type(service) == "NodePort" ||
             is_balancer(service)) {
    errors.required(internal_at);
  }
  if (spec.has("trafficDistribution")) {
    check_supported(spec["trafficDistribution"],
                    {"PreferClose", "PreferSameZone", "PreferSameNode"},
                    spec_at("trafficDistribution"), errors);
  }
}

void validate_families(const Doc& spec, FieldErrors& errors) {
  std::set<std::string_view> seen;
  const Doc::Items& families = spec["ipFamilies"].items();
  for (std::size_t i = 0; i < families.size(); ++i) {
    const Path at = spec_at("ipFamilies").index(i);
    check_supported(families[i], {"IPv4", "IPv6"}, at, errors);
    if (!seen.insert(families[i].as_string()).second) errors.duplicate(at, families[i]);
  }
  if (spec.has("ipFamilyPolicy")) {
    check_supported(spec["ipFamilyPolicy"], {"PreferDualStack", "RequireDualStack", "SingleStack"},
                    spec_at("ipFamilyPolicy"), errors);
  }
}

// False when an address cannot be read, so that comparing them would only mislead.
bool validate_addresses(const Doc& spec, const Doc& old_spec, FieldErrors& errors) {
  bool is_readable = true;
  const Doc& list = spec["clusterIPs"];
  const Path at = spec_at("clusterIPs");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string& text = list.items()[i].as_string();
    if (i == 0 && text == kHeadless) {
      if (list.size() > 1) {
        is_readable = false;
        errors.invalid(at, list, "'None' must be the first and only value");
      }
      continue;
    }
    FieldErrors found;
    check_legacy_ip(text, old_spec["clusterIPs"], at.index(i), found);
    for (const FieldError& error : found.list()) errors.add(error);
    is_readable = is_readable && found.empty();
  }
  if (list.size() > 2) errors.invalid(at, list, "may only hold up to 2 values");
  return is_readable;
}

void validate_address_families(const Doc& service, FieldErrors& errors) {
  const Doc& list = service["spec"]["clusterIPs"];
  const Doc::Items& families = service["spec"]["ipFamilies"].items();
  const Path at = spec_at("clusterIPs");
  std::vector<bool> is_v6;
  for (const Doc& text : list.items()) {
    const auto address = IpAddress::parse(text.as_string());
    is_v6.push_back(address.has_value() && address->is_v6());
  }
  // Both families must be there; how many of each is another rule's matter.
  if (is_v6.size() > 1 && std::ranges::count(is_v6, true) % std::ssize(is_v6) == 0) {
    errors.invalid(at, list, "may specify no more than one IP for each IP family");
  }
  if (is_headless(service)) return;
  for (std::size_t i = 0; i < std::min(is_v6.size(), families.size()); ++i) {
    const std::string& family = families[i].as_string();
    if (family == (is_v6[i] ? "IPv4" : "IPv6")) {
      errors.invalid(at.index(i), list.items()[i],
                     "expected an " + family + " value as indicated by `ipFamilies[" +
                         std::to_string(i) + "]`");
    }
  }
}

}  // namespace

void validate_cluster_ips(const Doc& service, const Doc& old, FieldErrors& errors) {
  if (!needs_cluster_ip(service)) return;
  const Doc& spec = service["spec"];
  const Doc& list = spec["clusterIPs"];
  const std::string& single = spec["clusterIP"].as_string();
  if (single.empty()) {
    if (!list.empty()) {
      errors.invalid(spec_at("clusterIPs"), list,
                     "must be empty when `clusterIP` is not specified");
    }
  } else if (list.empty()) {
    errors.required(spec_at("clusterIPs"));
  } else if (list.items()[0].as_string() != single) {
    errors.invalid(spec_at("clusterIPs"), list, "first value must match `clusterIP`");
  }
  validate_families(spec, errors);
  if (validate_addresses(spec, old["spec"], errors)) validate_address_families(service, errors);
}

void validate_balancer_class(const Doc& service, FieldErrors& errors) {
  const Doc& name = service["spec"]["loadBalancerClass"];
  if (name.is_null()) return;
  if (is_balancer(service)) {
    add_problems(errors, spec_at("loadBalancerClass"), name,
                 check_qualified_name(name.as_string()));
  } else {
    errors.forbidden(spec_at("loadBalancerClass"), kBalancersOnly);
  }
}

void validate_service(const Doc& service, const Doc& old, FieldErrors& errors) {
  const Doc& spec = service["spec"];
  validate_topology(service, errors);
  if (spec["ports"].empty() && !is_headless(service) && needs_cluster_ip(service)) {
    errors.required(spec_at("ports"));
  }
  validate_by_type(service, errors);
  validate_ports(spec, errors);
  validate_labels(spec["selector"], spec_at("selector"), errors);
  validate_affinity(spec, errors);
  validate_cluster_ips(service, old, errors);
  validate_external_ips(spec, old["spec"], errors);
  validate_type(service, errors);
  validate_distinct(spec, "nodePort", errors);
  validate_distinct(spec, "port", errors);
  validate_balancer_members(service, old, errors);
  validate_traffic(service, errors);
}

}  // namespace jogak::api
