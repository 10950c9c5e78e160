// SPDX-License-Identifier: Apache-2.0
//
// Services as a kind: defaults, allocation before validation as in the real server, status of load
// balancers, warnings.
#include <string>

#include "apiserver/kinds/scale.h"
#include "apiserver/kinds/service_rules.h"
#include "apiserver/kinds/workload.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/kinds/workload_template.h"
#include "apiserver/object/meta.h"
#include "base/check.h"

namespace jogak::api {

namespace {

constexpr std::int64_t kAffinitySeconds = 10800;

void default_ports(Doc& spec) {
  Doc* ports = spec.find("ports");
  if (ports == nullptr || !ports->is_array()) return;
  for (Doc& port : ports->items()) {
    if (port["protocol"].as_string().empty()) port.set("protocol", "TCP");
    const Doc& target = port["targetPort"];
    if (target.as_int() == 0 && target.as_string().empty()) {
      port.set("targetPort", port["port"].as_int());
    }
  }
}

void default_affinity(Doc& spec) {
  if (spec["sessionAffinity"].as_string().empty()) spec.set("sessionAffinity", "None");
  const std::string affinity = spec["sessionAffinity"].as_string();
  if (affinity == "None") spec.erase("sessionAffinityConfig");
  if (affinity == "ClientIP" && !spec["sessionAffinityConfig"]["clientIP"].has("timeoutSeconds")) {
    spec.at("sessionAffinityConfig", "clientIP", "timeoutSeconds") = kAffinitySeconds;
  }
}

void default_ingress(Doc& object) {
  Doc* status = object.find("status");
  Doc* balancer = status == nullptr ? nullptr : status->find("loadBalancer");
  Doc* ingress = balancer == nullptr ? nullptr : balancer->find("ingress");
  if (ingress == nullptr || !ingress->is_array()) return;
  for (Doc& entry : ingress->items()) {
    if (!entry["ip"].as_string().empty()) entry.set_default("ipMode", "VIP");
  }
}

// All errors of an allocation that cannot be; the server reports those alone.
FieldErrors allocation_errors(const Doc& object, const Doc& old, const IpRange& range,
                              WriteContext& context) {
  FieldErrors errors;
  Doc trial = object;
  allocate_service(trial, old, range, context, errors);
  return errors;
}

class ServiceStrategy : public StatusStrategy {
 public:
  explicit ServiceStrategy(const IpRange& range) : range_(range) {}

  NameCheck name_check() const override { return check_dns1123_label; }
  bool tracks_generation() const override { return false; }
  bool allows_create_on_update() const override { return true; }
  bool returns_deleted_object() const override { return true; }

  void set_defaults(Doc& object) const override {
    Doc& spec = object.at("spec");
    default_affinity(spec);
    if (spec["type"].as_string().empty()) spec.set("type", "ClusterIP");
    default_ports(spec);
    const std::string type = spec["type"].as_string();
    if (is_external(object) && spec["externalTrafficPolicy"].as_string().empty()) {
      spec.set("externalTrafficPolicy", "Cluster");
    }
    if (type == "NodePort" || type == "LoadBalancer" || type == "ClusterIP") {
      spec.set_default("internalTrafficPolicy", "Cluster");
    }
    if (type == "LoadBalancer") {
      spec.set_default("allocateLoadBalancerNodePorts", true);
      default_ingress(object);
    }
  }

  void prepare_create(Doc& object, WriteContext& context) const override {
    complete_cluster_ips(object, {});
    allocate(object, {}, context);
    StatusStrategy::prepare_create(object, context);
    if (!needs_cluster_ip(object)) object.at("spec").erase("internalTrafficPolicy");
  }

  void prepare_update(Doc& object, const Doc& old, WriteContext& context) const override {
    keep_allocated(object, old);
    complete_cluster_ips(object, old);
    allocate(object, old, context);
    StatusStrategy::prepare_update(object, old, context);
    drop_type_dependent(object, old);
  }

  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override {
    if (refuse_allocation(object, {}, context, errors)) return;
    validate_service(object, {}, errors);
    if (errors.empty()) warn_about_service(object, context.warnings);
  }

  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    if (refuse_allocation(object, old, context, errors)) return;
    validate_service_change(object, old, errors);
    validate_service(object, old, errors);
    if (errors.empty()) warn_about_service(object, context.warnings);
  }

  void validate_subresource_update(std::string_view /*subresource*/, const Doc& object,
                                   const Doc& old, WriteContext& context,
                                   FieldErrors& errors) const override {
    validate_balancer_status(object, old, errors);
    if (!errors.empty()) return;
    const Doc::Items& ingress = object["status"]["loadBalancer"]["ingress"].items();
    for (std::size_t i = 0; i < ingress.size(); ++i) {
      warn_about_ip(ingress[i]["ip"].as_string(), Path("status.loadBalancer.ingress").index(i),
                    context.warnings);
    }
  }

  std::vector<std::string_view> selectable_fields() const override {
    return {"spec.clusterIP", "spec.type"};
  }

 private:
  // Fills in what is free; what cannot be is left for validation to report.
  void allocate(Doc& object, const Doc& old, WriteContext& context) const {
    FieldErrors errors;
    Doc filled = object;
    allocate_service(filled, old, range_, context, errors);
    if (errors.empty()) object = std::move(filled);
  }

  bool refuse_allocation(const Doc& object, const Doc& old, WriteContext& context,
                         FieldErrors& errors) const {
    const FieldErrors found = allocation_errors(object, old, range_, context);
    for (const FieldError& error : found.list()) errors.add(error);
    return !found.empty();
  }

  IpRange range_;
};

void add_proxy(Resource& services) {
  std::uint16_t verbs = 0;
  for (const Verb verb : {Verb::Create, Verb::Delete, Verb::Get, Verb::Patch, Verb::Update}) {
    verbs = static_cast<std::uint16_t>(verbs | static_cast<std::uint16_t>(verb));
  }
  services.subresources.insert(services.subresources.begin(), {.name = "proxy",
                                                               .group = "",
                                                               .version = "v1",
                                                               .kind = "ServiceProxyOptions",
                                                               .verbs = verbs,
                                                               .type = nullptr,
                                                               .handler = refuse_service_proxy,
                                                               .projection = {}});
}

}  // namespace

void validate_balancer_status(const Doc& service, const Doc& old, FieldErrors& errors) {
  const Path at("status.loadBalancer.ingress");
  const Doc::Items& ingress = service["status"]["loadBalancer"]["ingress"].items();
  if (service_type(service) != "LoadBalancer") {
    if (!ingress.empty()) {
      errors.forbidden(at, "may only be used when `spec.type` is 'LoadBalancer'");
    }
    return;
  }
  Doc existing = Doc::array();
  for (const Doc& entry : old["status"]["loadBalancer"]["ingress"].items()) {
    existing.push(entry["ip"]);
  }
  for (std::size_t i = 0; i < ingress.size(); ++i) {
    const std::string& ip = ingress[i]["ip"].as_string();
    const Doc& mode = ingress[i]["ipMode"];
    const Path mode_at = at.index(i).child("ipMode");
    if (!ip.empty()) check_legacy_ip(ip, existing, at.index(i).child("ip"), errors);
    if (mode.is_null()) {
      if (!ip.empty()) errors.required(mode_at, "must be specified when `ip` is set");
    } else if (ip.empty()) {
      errors.forbidden(mode_at, "may not be specified when `ip` is not set");
    } else {
      check_supported(mode, {"Proxy", "VIP"}, mode_at, errors);
    }
    const std::string& host = ingress[i]["hostname"].as_string();
    if (host.empty()) continue;
    const Path host_at = at.index(i).child("hostname");
    add_problems(errors, host_at, host, check_dns1123_subdomain(host));
    if (IpAddress::parse(host).has_value()) {
      errors.invalid(host_at, host, "must be a DNS name, not an IP address");
    }
  }
}

void warn_about_service(const Doc& service, std::vector<std::string>& warnings) {
  const Doc& spec = service["spec"];
  constexpr std::string_view kHints = "service.kubernetes.io/topology-aware-hints";
  const auto warn = [&](std::string text) { warnings.push_back(std::move(text)); };
  if (meta(service)["annotations"].has(kHints)) {
    warn("annotation " + std::string(kHints) +
         " is deprecated, please use service.kubernetes.io/topology-mode instead");
  }
  const auto warn_about_list = [&](std::string_view name, const auto& warn_about_one) {
    const Doc::Items& values = spec[name].items();
    for (std::size_t i = 0; i < values.size(); ++i) {
      warn_about_one(values[i].as_string(), Path("spec").child(name).index(i), warnings);
    }
  };
  const bool is_none = spec["clusterIP"].as_string() == kHeadless;
  if (!is_none) warn_about_list("clusterIPs", warn_about_ip);
  const bool is_headless_type = is_none && service_type(service) == "ClusterIP";
  const bool has_external_ips = !spec["externalIPs"].empty();
  if (is_headless_type) {
    if (!spec["loadBalancerIP"].as_string().empty()) {
      warn("spec.loadBalancerIP is ignored for headless services");
    }
    if (has_external_ips) warn("spec.externalIPs is ignored for headless services");
    if (spec["sessionAffinity"].as_string() != "None") {
      warn("spec.SessionAffinity is ignored for headless services");
    }
  }
  warn_about_list("externalIPs", warn_about_ip);
  if (has_external_ips && !is_headless_type && needs_cluster_ip(service)) {
    warn("spec.externalIPs is deprecated and may no longer be implemented in some clusters");
  }
  warn_about_ip(spec["loadBalancerIP"].as_string(), Path("spec.loadBalancerIP"), warnings);
  warn_about_list("loadBalancerSourceRanges", warn_about_cidr);
  if (!needs_cluster_ip(service) && has_external_ips) {
    warn("spec.externalIPs is ignored when spec.type is \"ExternalName\"");
  }
  if (needs_cluster_ip(service) && !spec["externalName"].as_string().empty()) {
    warn("spec.externalName is ignored when spec.type is not \"ExternalName\"");
  }
  if (spec["trafficDistribution"].as_string() == "PreferClose") {
    warn("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
  }
}

std::shared_ptr<const Strategy> service_strategy(const KindOptions& options) {
  const auto range = IpRange::parse(options.service_range);
  JOGAK_CHECK(range.has_value());
  return std::make_shared<ServiceStrategy>(*range);
}

void add_service_kinds(Registry& registry, const KindOptions& options) {
  Resource endpoints = make_resource({.group = "",
                                      .version = "v1",
                                      .plural = "endpoints",
                                      .singular = "endpoints",
                                      .kind = "Endpoints",
                                      .short_names = {"ep"},
                                      .in_all = false,
                                      .has_status = false},
                                     endpoints_strategy());
  endpoints.deprecation =
      "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
  registry.add(std::move(endpoints));
  Resource controllers = make_resource({.group = "",
                                        .version = "v1",
                                        .plural = "replicationcontrollers",
                                        .singular = "replicationcontroller",
                                        .kind = "ReplicationController",
                                        .short_names = {"rc"}},
                                       replication_controller_strategy(options));
  add_scale(controllers);
  registry.add(std::move(controllers));
  Resource services = make_resource({.group = "",
                                     .version = "v1",
                                     .plural = "services",
                                     .singular = "service",
                                     .kind = "Service",
                                     .short_names = {"svc"}},
                                    service_strategy(options));
  add_proxy(services);
  registry.add(std::move(services));
  registry.add(make_resource({.group = "discovery.k8s.io",
                              .version = "v1",
                              .plural = "endpointslices",
                              .singular = "endpointslice",
                              .kind = "EndpointSlice",
                              .in_all = false,
                              .has_status = false},
                             endpoint_slice_strategy()));
}

}  // namespace jogak::api
