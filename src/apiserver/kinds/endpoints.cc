// SPDX-License-Identifier: Apache-2.0
//
// Endpoints and endpoint slices: addresses behind a service.
#include <set>
#include <string>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/service_ip.h"
#include "apiserver/kinds/workload.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::size_t kEndpointsMax = 1000;
constexpr std::size_t kAddressesMax = 100;
constexpr std::size_t kPortsMax = 20000;
constexpr std::size_t kTopologyMax = 16;
constexpr std::size_t kHintsMax = 8;

void validate_optional_name(const Doc& holder, std::string_view name, NameCheck check,
                            const Path& at, FieldErrors& errors) {
  const Doc& value = holder[name];
  if (!value.is_null()) add_problems(errors, at.child(name), value, check(value.as_string()));
}

void validate_app_protocol(const Doc& port, const Path& at, FieldErrors& errors) {
  validate_optional_name(port, "appProtocol", check_qualified_name, at, errors);
}

// --- Endpoints ---------------------------------------------------------------------------------

void validate_address(const Doc& address, const Path& at, FieldErrors& errors) {
  const std::string& ip = address["ip"].as_string();
  check_legacy_ip(ip, {}, at.child("ip"), errors);
  if (!address["hostname"].as_string().empty()) {
    validate_optional_name(address, "hostname", check_dns1123_label, at, errors);
  }
  validate_optional_name(address, "nodeName", check_dns1123_subdomain, at, errors);
  check_endpoint_ip(ip, at.child("ip"), errors);
}

void validate_endpoint_port(const Doc& port, bool needs_name, const Path& at, FieldErrors& errors) {
  const std::string& name = port["name"].as_string();
  if (!name.empty()) {
    add_problems(errors, at.child("name"), name, check_dns1123_label(name));
  } else if (needs_name) {
    errors.required(at.child("name"));
  }
  add_problems(errors, at.child("port"), port["port"].as_int(), check_port(port["port"].as_int()));
  check_supported(port["protocol"], {"SCTP", "TCP", "UDP"}, at.child("protocol"), errors);
  validate_app_protocol(port, at, errors);
}

void validate_subset(const Doc& subset, const Path& at, FieldErrors& errors) {
  if (subset["addresses"].empty() && subset["notReadyAddresses"].empty()) {
    errors.required(at, "must specify `addresses` or `notReadyAddresses`");
  }
  for (const std::string_view list : {"addresses", "notReadyAddresses"}) {
    const Doc::Items& addresses = subset[list].items();
    for (std::size_t i = 0; i < addresses.size(); ++i) {
      validate_address(addresses[i], at.child(list).index(i), errors);
    }
  }
  const Doc::Items& ports = subset["ports"].items();
  for (std::size_t i = 0; i < ports.size(); ++i) {
    validate_endpoint_port(ports[i], ports.size() > 1, at.child("ports").index(i), errors);
  }
}

class EndpointsStrategy : public Strategy {
 public:
  bool tracks_generation() const override { return false; }
  bool allows_create_on_update() const override { return true; }

  void set_defaults(Doc& object) const override {
    Doc* subsets = object.find("subsets");
    if (subsets == nullptr || !subsets->is_array()) return;
    for (Doc& subset : subsets->items()) {
      Doc* ports = subset.find("ports");
      if (ports == nullptr || !ports->is_array()) continue;
      for (Doc& port : ports->items()) {
        if (port["protocol"].as_string().empty()) port.set("protocol", "TCP");
      }
    }
  }

  void prepare_create(Doc& /*object*/, WriteContext& /*context*/) const override {}
  void prepare_update(Doc& /*object*/, const Doc& /*old*/,
                      WriteContext& /*context*/) const override {}

  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override {
    validate(object, {}, context, errors);
  }
  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    validate(object, old, context, errors);
  }

 private:
  static void validate(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) {
    const Doc::Items& subsets = object["subsets"].items();
    // What was stored may stay.
    if (old.is_null() || !same(object["subsets"], old["subsets"])) {
      for (std::size_t i = 0; i < subsets.size(); ++i) {
        validate_subset(subsets[i], Path("subsets").index(i), errors);
      }
    }
    if (!errors.empty()) return;
    for (std::size_t i = 0; i < subsets.size(); ++i) {
      for (const std::string_view list : {"addresses", "notReadyAddresses"}) {
        const Doc::Items& addresses = subsets[i][list].items();
        for (std::size_t j = 0; j < addresses.size(); ++j) {
          warn_about_ip(addresses[j]["ip"].as_string(),
                        Path("subsets").index(i).child(list).index(j).child("ip"),
                        context.warnings);
        }
      }
    }
  }
};

// --- Endpoint slices ---------------------------------------------------------------------------

void validate_fqdn(std::string_view text, const Path& at, FieldErrors& errors) {
  if (text.empty()) {
    errors.required(at);
    return;
  }
  if (text.ends_with('.')) text.remove_suffix(1);
  const std::string name(text);
  const Problems problems = check_dns1123_subdomain(name);
  if (!problems.empty()) {
    errors.invalid(at, name, problems.front());
  } else if (!name.contains('.')) {
    errors.invalid(at, name, "should be a domain with at least two segments separated by dots");
  } else {
    for (std::size_t start = 0; start <= name.size();) {
      const std::size_t end = std::min(name.find('.', start), name.size());
      const std::string label = name.substr(start, end - start);
      if (const Problems wrong = check_dns1123_label(label); !wrong.empty()) {
        errors.invalid(at, label, wrong.front());
        return;
      }
      start = end + 1;
    }
  }
}

void validate_slice_ip(std::string_view text, bool wants_v6, const Path& list_at, const Path& at,
                       FieldErrors& errors) {
  FieldErrors found;
  if (wants_v6) {
    check_canonical_ip(text, at, found);
  } else {
    check_legacy_ip(text, {}, at, found);
  }
  for (const FieldError& error : found.list()) errors.add(error);
  if (!found.empty()) return;
  if (IpAddress::parse(text)->is_v6() != wants_v6) {
    errors.invalid(list_at, text, wants_v6 ? "must be an IPv6 address" : "must be an IPv4 address");
  }
  check_endpoint_ip(text, at, errors);
}

void validate_slice_addresses(const Doc& endpoint, const std::string& type, const Path& at,
                              FieldErrors& errors) {
  const Doc::Items& addresses = endpoint["addresses"].items();
  if (addresses.empty()) {
    errors.required(at, "must contain at least 1 address");
  } else if (addresses.size() > kAddressesMax) {
    errors.too_many(at, addresses.size(), kAddressesMax);
  }
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const std::string& text = addresses[i].as_string();
    if (type == "FQDN") {
      validate_fqdn(text, at.index(i), errors);
    } else if (type == "IPv4" || type == "IPv6") {
      validate_slice_ip(text, type == "IPv6", at, at.index(i), errors);
    }
  }
}

// False when there are too many to look at.
bool validate_hint_list(const Doc& hints, std::string_view list, NameCheck check, const Path& at,
                        FieldErrors& errors) {
  const Doc::Items& items = hints[list].items();
  const Path list_at = at.child(list);
  if (items.size() > kHintsMax) {
    errors.too_many(list_at, items.size(), kHintsMax);
    return false;
  }
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Doc& name = items[i]["name"];
    const Path name_at = list_at.index(i).child("name");
    if (!seen.insert(name.as_string()).second) errors.duplicate(name_at, name);
    add_problems(errors, name_at, name.as_string(), check(name.as_string()));
  }
  return true;
}

void validate_slice_endpoint(const Doc& endpoint, const std::string& type, const Path& at,
                             FieldErrors& errors) {
  validate_slice_addresses(endpoint, type, at.child("addresses"), errors);
  validate_optional_name(endpoint, "nodeName", check_dns1123_subdomain, at, errors);
  const Doc& topology = endpoint["deprecatedTopology"];
  const Path topology_at = at.child("deprecatedTopology");
  if (topology.size() > kTopologyMax) errors.too_many(topology_at, topology.size(), kTopologyMax);
  validate_labels(topology, topology_at, errors);
  validate_optional_name(endpoint, "hostname", check_dns1123_label, at, errors);
  const Doc& hints = endpoint["hints"];
  if (validate_hint_list(hints, "forZones", check_label_value, at.child("hints"), errors)) {
    validate_hint_list(hints, "forNodes", check_dns1123_subdomain, at.child("hints"), errors);
  }
}

void validate_slice_ports(const Doc& ports, FieldErrors& errors) {
  if (ports.size() > kPortsMax) {
    errors.too_many(Path("ports"), ports.size(), kPortsMax);
    return;
  }
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Doc& port = ports.items()[i];
    const Path at = Path("ports").index(i);
    const std::string& name = port["name"].as_string();
    if (!name.empty()) add_problems(errors, at.child("name"), name, check_dns1123_label(name));
    if (!names.insert(name).second) errors.duplicate(at.child("name"), name);
    if (port["protocol"].is_null()) {
      errors.required(at.child("protocol"));
    } else {
      check_supported(port["protocol"], {"SCTP", "TCP", "UDP"}, at.child("protocol"), errors);
    }
    validate_app_protocol(port, at, errors);
  }
}

class EndpointSliceStrategy : public Strategy {
 public:
  void set_defaults(Doc& object) const override {
    Doc* ports = object.find("ports");
    if (ports == nullptr || !ports->is_array()) return;
    for (Doc& port : ports->items()) port.set_default("name", "").set_default("protocol", "TCP");
  }

  void prepare_create(Doc& object, WriteContext& /*context*/) const override {
    drop_topology(object);
  }
  void prepare_update(Doc& object, const Doc& old, WriteContext& /*context*/) const override {
    if (!same(object["endpoints"], old["endpoints"])) drop_topology(object);
  }

  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override {
    validate(object, {}, errors);
    if (!errors.empty()) return;
    if (object["addressType"].as_string() == "FQDN") {
      context.warnings.emplace_back("spec.addressType: FQDN endpoints are deprecated");
    }
    warn(object, context);
  }
  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    validate(object, old, errors);
    check_immutable(object, old, "addressType", Path(), errors);
    if (errors.empty()) warn(object, context);
  }

  // Labels tell which service a slice belongs to, so they count.
  bool spec_changed(const Doc& object, const Doc& old) const override {
    return Strategy::spec_changed(object, old) ||
           !same(meta(object)["labels"], meta(old)["labels"]);
  }

 private:
  // A member of the beta version that v1 shows but does not take.
  static void drop_topology(Doc& object) {
    Doc* endpoints = object.find("endpoints");
    if (endpoints == nullptr || !endpoints->is_array()) return;
    for (Doc& endpoint : endpoints->items()) endpoint.erase("deprecatedTopology");
  }

  static void validate(const Doc& object, const Doc& old, FieldErrors& errors) {
    const std::string& type = object["addressType"].as_string();
    if (type.empty()) {
      errors.required(Path("addressType"));
    } else {
      check_supported(type, {"FQDN", "IPv4", "IPv6"}, Path("addressType"), errors);
    }
    validate_slice_ports(object["ports"], errors);
    const Doc::Items& endpoints = object["endpoints"].items();
    if (!old.is_null() && same(object["endpoints"], old["endpoints"])) return;
    if (endpoints.size() > kEndpointsMax) {
      errors.too_many(Path("endpoints"), endpoints.size(), kEndpointsMax);
      return;
    }
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      validate_slice_endpoint(endpoints[i], type, Path("endpoints").index(i), errors);
    }
  }

  static void warn(const Doc& object, WriteContext& context) {
    const Doc::Items& endpoints = object["endpoints"].items();
    for (std::size_t i = 0; i < endpoints.size(); ++i) {
      const Doc::Items& addresses = endpoints[i]["addresses"].items();
      for (std::size_t j = 0; j < addresses.size(); ++j) {
        warn_about_ip(addresses[j].as_string(),
                      Path("endpoints").index(i).child("addresses").index(j), context.warnings);
      }
    }
  }
};

}  // namespace

std::shared_ptr<const Strategy> endpoints_strategy() {
  return std::make_shared<EndpointsStrategy>();
}

std::shared_ptr<const Strategy> endpoint_slice_strategy() {
  return std::make_shared<EndpointSliceStrategy>();
}

}  // namespace jogak::api
