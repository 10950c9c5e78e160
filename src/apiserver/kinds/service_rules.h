// SPDX-License-Identifier: Apache-2.0
//
// Services part by part: questions that many rules ask, what is allocated, what is refused.
#pragma once

#include <string_view>
#include <vector>

#include "apiserver/kinds/service_ip.h"
#include "apiserver/registry/resource.h"

namespace jogak::api {

inline constexpr std::string_view kHeadless = "None";

// `service` is the whole object.
std::string_view service_type(const Doc& service);
bool needs_cluster_ip(const Doc& service);
bool is_headless(const Doc& service);  // its one cluster IP is None
bool is_external(const Doc& service);  // reachable from outside the cluster
bool needs_health_port(const Doc& service);
bool same_member(const Doc& a, const Doc& b, std::string_view name);  // of the spec

// Create: the list of cluster IPs follows the single one. Update: what an old client left out comes
// back, what it changed is carried over.
void complete_cluster_ips(Doc& service, const Doc& old);
void keep_allocated(Doc& service, const Doc& old);
// Members that belong to the old type and that the client did not touch go with it.
void drop_type_dependent(Doc& service, const Doc& old);

// Families, cluster IPs and node ports that are asked for or free. Errors say why not; then the
// service is half done and must not be used. `old` is null on create.
void allocate_service(Doc& service, const Doc& old, const IpRange& range, WriteContext& context,
                      FieldErrors& errors);

// clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy among themselves.
void validate_cluster_ips(const Doc& service, const Doc& old, FieldErrors& errors);
void validate_service(const Doc& service, const Doc& old, FieldErrors& errors);
// spec.loadBalancerClass: of balancers only. Looked at twice in an update, as the server does.
void validate_balancer_class(const Doc& service, FieldErrors& errors);
void validate_service_change(const Doc& service, const Doc& old, FieldErrors& errors);
void validate_balancer_status(const Doc& service, const Doc& old, FieldErrors& errors);
// The handler of services/NAME/proxy.
ApiResult<Answer> refuse_service_proxy(Ops& ops, Call& call);
void warn_about_service(const Doc& service, std::vector<std::string>& warnings);

}  // namespace jogak::api
