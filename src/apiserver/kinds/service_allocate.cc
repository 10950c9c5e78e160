// SPDX-License-Identifier: Apache-2.0
//
// Cluster IPs and node ports: what is taken is what stored services have, so nothing needs to be
// given back. One range of one IP family, as the server is started with.
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/service_rules.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::int64_t kPortMin = 30000;
constexpr std::int64_t kPortMax = 32767;
// The lower part of each range is left to those who ask for a value, while the rest lasts.
constexpr std::int64_t kPortsKept = 86;
constexpr std::int64_t kAddressesKeptMin = 16;
constexpr std::int64_t kAddressesKeptMax = 256;

Path spec_at(std::string_view name) { return Path("spec").child(name); }

std::string_view family_of(bool is_v6) { return is_v6 ? "IPv6" : "IPv4"; }

std::string policy_of(const Doc& service) { return service["spec"]["ipFamilyPolicy"].as_string(); }

// What other services hold.
struct Taken {
  std::set<IpAddress> addresses;
  std::set<std::int64_t> ports;
};

Taken taken_by_others(const Doc& service, const WriteContext& context) {
  Taken taken;
  for (const Doc& other : context.lookup.list("services", "")) {
    if (name_of(other) == name_of(service) && namespace_of(other) == namespace_of(service)) {
      continue;
    }
    const Doc& spec = other["spec"];
    for (const Doc& text : spec["clusterIPs"].items()) {
      if (const auto address = IpAddress::parse(text.as_string())) {
        taken.addresses.insert(*address);
      }
    }
    for (const Doc& port : spec["ports"].items()) taken.ports.insert(port["nodePort"].as_int());
    taken.ports.insert(spec["healthCheckNodePort"].as_int());
  }
  return taken;
}

// A number of [first, last] that `is_free`, drawn from the part after `kept` while there is one.
template <class IsFree>
std::optional<std::int64_t> draw(std::int64_t first, std::int64_t last, std::int64_t kept, Rng& rng,
                                 const IsFree& is_free) {
  const auto search = [&](std::int64_t low, std::int64_t high) -> std::optional<std::int64_t> {
    if (low > high) return std::nullopt;
    const std::int64_t start = rng.between(low, high);
    for (std::int64_t i = 0; i <= high - low; ++i) {
      const std::int64_t number = low + (start - low + i) % (high - low + 1);
      if (is_free(number)) return number;
    }
    return std::nullopt;
  };
  const std::int64_t split = std::min(first + kept, last + 1);
  const auto upper = search(split, last);
  return upper.has_value() ? upper : search(first, split - 1);
}

// --- Families ----------------------------------------------------------------------------------

// A service that prefers two families and did not touch what follows from it stays as it is.
bool is_settled_preference(const Doc& service, const Doc& old) {
  return !old.is_null() && service_type(service) == service_type(old) &&
         policy_of(service) == "PreferDualStack" && policy_of(old) == "PreferDualStack" &&
         same_member(service, old, "clusterIP") && same_member(service, old, "clusterIPs") &&
         same_member(service, old, "ipFamilies");
}

bool is_selectorless_headless(const Doc& service) {
  return service["spec"]["clusterIP"].as_string() == kHeadless &&
         service["spec"]["selector"].empty();
}

void default_policy(Doc& service, const Doc& old) {
  if (service["spec"].has("ipFamilyPolicy")) return;
  Doc& policy = service.at("spec", "ipFamilyPolicy");
  if (old["spec"].has("ipFamilyPolicy")) {
    policy = old["spec"]["ipFamilyPolicy"];
  } else {
    policy = is_selectorless_headless(service) ? "RequireDualStack" : "SingleStack";
  }
}

void cut_to_one(Doc& service, const Doc& old, std::string_view name) {
  Doc* list = service.at("spec").find(name);
  if (list != nullptr && list->size() > 1 && same_member(service, old, name)) {
    list->items().resize(1);
  }
}

void refuse_policy(const Doc& service, std::string_view why, FieldErrors& errors) {
  errors.invalid(spec_at("ipFamilyPolicy"), service["spec"]["ipFamilyPolicy"], why);
}

void check_reductions(Doc& service, const Doc& old, FieldErrors& errors) {
  if (old.is_null()) return;
  if (policy_of(service) == "SingleStack") {
    cut_to_one(service, old, "clusterIPs");
    cut_to_one(service, old, "ipFamilies");
    return;
  }
  const auto is_reduced = [&](std::string_view name) {
    const std::size_t now = service["spec"][name].size();
    return now > 0 && now < old["spec"][name].size();
  };
  if (is_reduced("clusterIPs")) {
    refuse_policy(service, "must be 'SingleStack' to release the secondary cluster IP", errors);
  }
  if (is_reduced("ipFamilies")) {
    refuse_policy(service, "must be 'SingleStack' to release the secondary IP family", errors);
  }
}

void check_single(const Doc& service, FieldErrors& errors) {
  if (policy_of(service) != "SingleStack") return;
  if (service["spec"]["clusterIPs"].size() == 2) {
    refuse_policy(service,
                  "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are "
                  "specified",
                  errors);
  }
  if (service["spec"]["ipFamilies"].size() == 2) {
    refuse_policy(service,
                  "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are "
                  "specified",
                  errors);
  }
}

// The family of an address that was asked for is asked for with it.
void infer_families(Doc& service, const IpRange& range, FieldErrors& errors) {
  const Doc addresses = service["spec"]["clusterIPs"];
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const std::string& text = addresses.items()[i].as_string();
    if (text == kHeadless) return;
    if (i < service["spec"]["ipFamilies"].size()) continue;
    const auto address = IpAddress::parse(text);
    const bool is_v6 = address.has_value() && address->is_v6();
    if (is_v6 == range.is_v6()) {
      service.at("spec", "ipFamilies").push(family_of(is_v6));
    } else {
      errors.invalid(spec_at("clusterIPs").index(i), addresses,
                     std::string(family_of(is_v6)) + " is not configured on this cluster");
    }
  }
}

void fill_headless_families(Doc& service, const IpRange& range) {
  Doc& families = service.at("spec", "ipFamilies");
  if (families.empty()) families = Doc::array({family_of(range.is_v6())});
  if (families.size() < 2 && policy_of(service) != "SingleStack") {
    families.push(family_of(families.items()[0].as_string() == "IPv4"));
  }
}

void fill_families(Doc& service, const Doc& old, const IpRange& range, FieldErrors& errors) {
  if (!needs_cluster_ip(service) || is_settled_preference(service, old)) return;
  default_policy(service, old);
  validate_cluster_ips(service, old, errors);
  if (!errors.empty()) return;
  check_reductions(service, old, errors);
  check_single(service, errors);
  infer_families(service, range, errors);
  if (!errors.empty()) return;
  if (is_selectorless_headless(service)) {
    fill_headless_families(service, range);
    return;
  }
  if (policy_of(service) == "RequireDualStack") {
    refuse_policy(service, "this cluster is not configured for dual-stack services", errors);
  }
  const Doc::Items& families = service["spec"]["ipFamilies"].items();
  for (std::size_t i = 0; i < families.size(); ++i) {
    if (families[i].as_string() != family_of(range.is_v6())) {
      errors.invalid(spec_at("ipFamilies").index(i), families[i], "not configured on this cluster");
    }
  }
  if (errors.empty() && families.empty()) {
    service.at("spec", "ipFamilies") = Doc::array({family_of(range.is_v6())});
  }
}

// --- Addresses ---------------------------------------------------------------------------------

void take_address(const Doc& service, const IpRange& range, const Taken& taken,
                  FieldErrors& errors) {
  const Doc& list = service["spec"]["clusterIPs"];
  const std::string& text = list.items()[0].as_string();
  const auto address = IpAddress::parse(text);
  std::string why;
  if (!address.has_value() || !range.may_allocate(*address)) {
    why = "the provided network does not match the current range";
    if (address.has_value() && range.contains(*address)) {
      why = "the provided IP (" + text + ") is not in the valid range. The range of valid IPs is " +
            range.text();
    }
  } else if (taken.addresses.contains(*address)) {
    why = "provided IP is already allocated";
  }
  if (!why.empty()) {
    errors.invalid(spec_at("clusterIPs"), list, "failed to allocate IP " + text + ": " + why);
  }
}

void draw_address(Doc& service, const IpRange& range, const Taken& taken, WriteContext& context,
                  FieldErrors& errors) {
  const std::int64_t size = range.size();
  const std::int64_t kept =
      size <= kAddressesKeptMin ? 0 : std::clamp(size / 16, kAddressesKeptMin, kAddressesKeptMax);
  const auto number = draw(1, size, kept, context.rng, [&](std::int64_t candidate) {
    return !taken.addresses.contains(range.at(candidate));
  });
  if (!number.has_value()) {
    errors.internal(spec_at("clusterIPs"), "failed to allocate a serviceIP: range is full");
    return;
  }
  const std::string text = range.at(*number).text();
  service.at("spec").set("clusterIP", text).set("clusterIPs", Doc::array({text}));
}

void fill_addresses(Doc& service, const Doc& old, const IpRange& range, const Taken& taken,
                    WriteContext& context, FieldErrors& errors) {
  if (!needs_cluster_ip(service)) return;
  const Doc& list = service["spec"]["clusterIPs"];
  if (!list.empty() && list.items()[0].as_string() == kHeadless) return;
  // An address once given stays; only a service that had none gets one.
  if (!old.is_null() && needs_cluster_ip(old)) return;
  if (list.empty()) {
    draw_address(service, range, taken, context, errors);
  } else {
    take_address(service, range, taken, errors);
  }
}

// --- Ports -------------------------------------------------------------------------------------

class PortAllocation {
 public:
  PortAllocation(const std::set<std::int64_t>& taken, WriteContext& context)
      : taken_(taken), rng_(context.rng) {}

  // "" when the port is now ours.
  std::string take(std::int64_t port) {
    if (port < kPortMin || port > kPortMax) {
      return "provided port is not in the valid range. The range of valid ports is 30000-32767";
    }
    if (!taken_.insert(port).second) return "provided port is already allocated";
    return {};
  }
  // What the service had before is free for itself.
  void keep(std::int64_t port) { taken_.insert(port); }

  std::optional<std::int64_t> next() {
    const auto port = draw(kPortMin, kPortMax, kPortsKept, rng_,
                           [&](std::int64_t candidate) { return !taken_.contains(candidate); });
    if (port.has_value()) taken_.insert(*port);
    return port;
  }

 private:
  std::set<std::int64_t> taken_;
  Rng& rng_;
};

std::int64_t node_port_of(const Doc& ports, std::int64_t port) {
  for (const Doc& entry : ports.items()) {
    if (entry["port"].as_int() == port && entry["nodePort"].as_int() != 0) {
      return entry["nodePort"].as_int();
    }
  }
  return 0;
}

bool may_draw_ports(const Doc& service) {
  return service_type(service) == "NodePort" ||
         (service_type(service) == "LoadBalancer" &&
          service["spec"]["allocateLoadBalancerNodePorts"].as_bool(true));
}

void draw_port(Doc& entry, PortAllocation& allocation, const Path& at, FieldErrors& errors) {
  if (const auto port = allocation.next()) {
    entry.set("nodePort", *port);
  } else {
    errors.internal(at, "failed to allocate a nodePort: range is full");
  }
}

// On create, ports of equal number (TCP and UDP) share their node port.
void init_node_ports(Doc& service, PortAllocation& allocation, FieldErrors& errors) {
  if (service["spec"]["ports"].empty()) return;
  Doc& ports = service.at("spec", "ports");
  std::set<std::int64_t> done;  // service ports whose node port is known
  for (std::size_t i = 0; i < ports.size(); ++i) {
    Doc& entry = ports.items()[i];
    const Path at = spec_at("ports").index(i).child("nodePort");
    const std::int64_t asked = entry["nodePort"].as_int();
    if (asked == 0 && !may_draw_ports(service)) continue;
    const std::int64_t port = entry["port"].as_int();
    const std::int64_t shared = node_port_of(ports, port);
    const bool is_first = done.insert(port).second;
    if (shared == 0) {
      draw_port(entry, allocation, at, errors);
    } else if (is_first || (asked != 0 && asked != shared)) {
      const std::int64_t wanted = is_first ? shared : asked;
      if (const std::string why = allocation.take(wanted); !why.empty()) {
        errors.invalid(at, wanted, why);
        return;
      }
      entry.set("nodePort", wanted);
    } else if (asked == 0) {
      entry.set("nodePort", shared);
    }
  }
}

void update_node_ports(Doc& service, const Doc& old, PortAllocation& allocation,
                       FieldErrors& errors) {
  std::set<std::int64_t> ours;
  for (const Doc& entry : old["spec"]["ports"].items()) ours.insert(entry["nodePort"].as_int());
  for (const std::int64_t port : ours) allocation.keep(port);
  if (service["spec"]["ports"].empty()) return;
  Doc& ports = service.at("spec", "ports");
  for (std::size_t i = 0; i < ports.size(); ++i) {
    Doc& entry = ports.items()[i];
    const Path at = spec_at("ports").index(i).child("nodePort");
    const std::int64_t asked = entry["nodePort"].as_int();
    if (asked == 0) {
      if (may_draw_ports(service)) draw_port(entry, allocation, at, errors);
      continue;
    }
    if (!ours.insert(asked).second) continue;
    if (const std::string why = allocation.take(asked); !why.empty()) {
      errors.invalid(at, asked, why);
      return;
    }
  }
}

void fill_health_port(Doc& service, const Doc& old, PortAllocation& allocation,
                      FieldErrors& errors) {
  if (!needs_health_port(service) || (!old.is_null() && needs_health_port(old))) return;
  const Path at = spec_at("healthCheckNodePort");
  const std::int64_t asked = service["spec"]["healthCheckNodePort"].as_int();
  if (asked == 0) {
    if (const auto port = allocation.next()) {
      service.at("spec").set("healthCheckNodePort", *port);
    } else {
      errors.internal(at, "failed to allocate a HealthCheck NodePort: range is full");
    }
  } else if (const std::string why = allocation.take(asked); !why.empty()) {
    errors.internal(at, "failed to allocate requested HealthCheck NodePort " +
                            std::to_string(asked) + ": " + why);
  }
}

}  // namespace

void allocate_service(Doc& service, const Doc& old, const IpRange& range, WriteContext& context,
                      FieldErrors& errors) {
  fill_families(service, old, range, errors);
  if (!errors.empty()) return;
  const Taken taken = taken_by_others(service, context);
  fill_addresses(service, old, range, taken, context, errors);
  if (!errors.empty()) return;
  PortAllocation allocation(taken.ports, context);
  const std::string_view type = service_type(service);
  if (type == "NodePort" || type == "LoadBalancer") {
    if (old.is_null()) {
      init_node_ports(service, allocation, errors);
    } else {
      update_node_ports(service, old, allocation, errors);
    }
  }
  if (errors.empty()) fill_health_port(service, old, allocation, errors);
}

}  // namespace jogak::api
