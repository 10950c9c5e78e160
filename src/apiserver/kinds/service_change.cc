// SPDX-License-Identifier: Apache-2.0
//
// How services change: allocated values stay with a service whose client did not send them, go when
// a new type has no use for them, and are never exchanged.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/service_rules.h"
#include "apiserver/kinds/workload_checks.h"

namespace jogak::api {

namespace {

Path spec_at(std::string_view name) { return Path("spec").child(name); }

bool is_type(const Doc& service, std::string_view type) { return service_type(service) == type; }
bool is_balancer(const Doc& service) { return is_type(service, "LoadBalancer"); }

bool has_node_ports(const Doc& service) {
  return is_type(service, "NodePort") || is_balancer(service);
}

// The same, but for a balancer that goes without.
bool allocates_node_ports(const Doc& service) {
  return is_type(service, "NodePort") ||
         (is_balancer(service) && service["spec"]["allocateLoadBalancerNodePorts"].as_bool(true));
}

std::set<std::int64_t> node_ports(const Doc& service) {
  std::set<std::int64_t> ports;
  for (const Doc& port : service["spec"]["ports"].items()) {
    if (port["nodePort"].as_int() != 0) ports.insert(port["nodePort"].as_int());
  }
  return ports;
}

bool same_cluster_ips(const Doc& a, const Doc& b) {
  return same_member(a, b, "clusterIP") && same_member(a, b, "clusterIPs");
}

void keep_node_ports(Doc& service, const Doc& old) {
  const std::set<std::int64_t> before = node_ports(old);
  const std::set<std::int64_t> now = node_ports(service);
  std::map<std::string, std::int64_t> by_name;
  for (const Doc& port : old["spec"]["ports"].items()) {
    by_name[port["name"].as_string()] = port["nodePort"].as_int();
  }
  Doc* ports = service.at("spec").find("ports");
  if (ports == nullptr || !ports->is_array()) return;
  for (Doc& port : ports->items()) {
    if (port["nodePort"].as_int() != 0) continue;
    const auto known = by_name.find(port["name"].as_string());
    if (known == by_name.end() || known->second == 0) continue;
    if (!(before.contains(known->second) && now.contains(known->second))) {
      port.set("nodePort", known->second);
    }
  }
}

void drop_node_ports(Doc& service) {
  Doc* ports = service.at("spec").find("ports");
  if (ports == nullptr || !ports->is_array()) return;
  for (Doc& port : ports->items()) port.erase("nodePort");
}

// One of the two lists that may grow and shrink at their end but keep their first value.
struct PairRules {
  std::string_view name;  // "clusterIPs"
  std::string_view unset, released;
};

void validate_pair(const Doc& service, const Doc& old, const PairRules& rules,
                   FieldErrors& errors) {
  const Doc& now = service["spec"][rules.name];
  const Doc& before = old["spec"][rules.name];
  const Path at = spec_at(rules.name);
  const bool is_families = rules.name == "ipFamilies";
  if (now.size() == before.size()) {
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (!(now.items()[i] == before.items()[i])) {
        errors.invalid(at.index(is_families ? 0 : i), now, "may not change once set");
      }
    }
    return;
  }
  const bool is_less = now.size() < before.size();
  const bool is_unset = is_families ? service["spec"]["clusterIPs"].empty() : now.empty();
  if (is_less && is_unset) errors.invalid(at.index(0), now, rules.unset);
  if (!now.empty() && !before.empty() && !(now.items()[0] == before.items()[0])) {
    errors.invalid(at.index(0), now, "may not change once set");
  }
  if (is_less && now.size() == 1 &&
      service["spec"]["ipFamilyPolicy"].as_string() != "SingleStack") {
    errors.invalid(spec_at("ipFamilyPolicy"), service["spec"]["ipFamilyPolicy"], rules.released);
  }
}

}  // namespace

std::string_view service_type(const Doc& service) { return service["spec"]["type"].as_string(); }

bool needs_cluster_ip(const Doc& service) { return !is_type(service, "ExternalName"); }

bool is_headless(const Doc& service) {
  return service["spec"]["clusterIPs"].size() == 1 &&
         service["spec"]["clusterIPs"].items()[0].as_string() == kHeadless;
}

bool is_external(const Doc& service) {
  return has_node_ports(service) ||
         (is_type(service, "ClusterIP") && !service["spec"]["externalIPs"].empty());
}

bool needs_health_port(const Doc& service) {
  return is_balancer(service) && service["spec"]["externalTrafficPolicy"].as_string() == "Local";
}

bool same_member(const Doc& a, const Doc& b, std::string_view name) {
  return same(a["spec"][name], b["spec"][name]);
}

void complete_cluster_ips(Doc& service, const Doc& old) {
  Doc& spec = service.at("spec");
  const Doc single = spec["clusterIP"];
  const bool has_single = !single.as_string().empty();
  const bool has_list = !spec["clusterIPs"].empty();
  const auto take_single = [&] { spec.set("clusterIPs", Doc::array({single})); };
  if (old.is_null()) {
    if (has_single && !has_list) take_single();
    return;
  }
  const Doc& old_spec = old["spec"];
  const bool same_single = same(single, old_spec["clusterIP"]);
  if (!old_spec["clusterIPs"].empty() && !has_list && same_single) {
    spec.set("clusterIPs", old_spec["clusterIPs"]);
  }
  if (same_single || !same(spec["clusterIPs"], old_spec["clusterIPs"])) return;
  // Only the single one changed: the list goes with it.
  if (has_single) {
    take_single();
  } else {
    spec.erase("clusterIPs");
  }
}

void keep_allocated(Doc& service, const Doc& old) {
  Doc& spec = service.at("spec");
  const Doc& old_spec = old["spec"];
  if (needs_cluster_ip(old) && needs_cluster_ip(service)) {
    if (spec["clusterIP"].as_string().empty() && old_spec.has("clusterIP")) {
      spec.set("clusterIP", old_spec["clusterIP"]);
    }
    if (spec["clusterIPs"].empty() && !old_spec["clusterIPs"].empty()) {
      spec.set("clusterIPs", old_spec["clusterIPs"]);
    }
  }
  if (allocates_node_ports(old) && allocates_node_ports(service)) keep_node_ports(service, old);
  if (needs_health_port(old) && needs_health_port(service) &&
      spec["healthCheckNodePort"].as_int() == 0) {
    spec.set("healthCheckNodePort", old_spec["healthCheckNodePort"]);
  }
}

void drop_type_dependent(Doc& service, const Doc& old) {
  Doc& spec = service.at("spec");
  const auto drop_if_same = [&](bool applies, std::string_view name) {
    if (applies && same_member(service, old, name)) spec.erase(name);
  };
  if (needs_cluster_ip(old) && !needs_cluster_ip(service)) {
    if (same_cluster_ips(service, old)) {
      spec.erase("clusterIP");
      spec.erase("clusterIPs");
    }
    drop_if_same(true, "ipFamilies");
    drop_if_same(true, "ipFamilyPolicy");
  }
  if (has_node_ports(old) && !has_node_ports(service) &&
      std::ranges::includes(node_ports(old), node_ports(service))) {
    drop_node_ports(service);
  }
  drop_if_same(needs_health_port(old) && !needs_health_port(service), "healthCheckNodePort");
  const bool leaves_balancer = is_balancer(old) && !is_balancer(service);
  drop_if_same(leaves_balancer, "allocateLoadBalancerNodePorts");
  drop_if_same(leaves_balancer, "loadBalancerClass");
  drop_if_same(is_external(old) && !is_external(service), "externalTrafficPolicy");
  if (!is_balancer(service)) {
    if (Doc* status = service.find("status")) status->erase("loadBalancer");
  }
  if (!needs_cluster_ip(service)) spec.erase("internalTrafficPolicy");
}

void validate_service_change(const Doc& service, const Doc& old, FieldErrors& errors) {
  if (needs_cluster_ip(service) && needs_cluster_ip(old)) {
    const bool was_headless = is_headless(old);
    if (!(was_headless && is_headless(service))) {
      validate_pair(
          service, old,
          {.name = "clusterIPs",
           .unset = "primary clusterIP can not be unset",
           .released = "must be set to 'SingleStack' when releasing the secondary clusterIP"},
          errors);
    }
    if (!was_headless && !is_headless(service)) {
      validate_pair(
          service, old,
          {.name = "ipFamilies",
           .unset = "primary ipFamily can not be unset",
           .released = "must be set to 'SingleStack' when releasing the secondary ipFamily"},
          errors);
    }
  }
  if (is_balancer(old) && is_balancer(service) && !same_member(service, old, "loadBalancerClass")) {
    errors.invalid(spec_at("loadBalancerClass"), service["spec"]["loadBalancerClass"],
                   "may not change once set");
  }
  validate_balancer_class(service, errors);
  if (needs_health_port(old) && needs_health_port(service) &&
      !same_member(service, old, "healthCheckNodePort")) {
    errors.forbidden(spec_at("healthCheckNodePort"), kImmutable);
  }
}

}  // namespace jogak::api
