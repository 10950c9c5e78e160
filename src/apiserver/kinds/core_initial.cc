// SPDX-License-Identifier: Apache-2.0
//
// The objects that a server has before its first client, as kube-apiserver 1.36 makes them: the
// four namespaces, the system's priority classes, the service in front of itself, and two config
// maps that clients look for.
#include "apiserver/kinds/core_initial.h"

#include <arpa/inet.h>

#include <string>
#include <string_view>

#include "apiserver/kinds/scheduling_priority.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

Doc object_of(std::string_view api_version, std::string_view kind, std::string_view name,
              std::string_view ns = "") {
  Doc object = Doc::object();
  object.set("kind", kind).set("apiVersion", api_version);
  object.at("metadata").set("name", name);
  if (!ns.empty()) object.at("metadata").set("namespace", ns);
  return object;
}

// The first address of "10.0.0.0/24" behind the network's own; "" when it is not an IPv4 range.
std::string first_address(std::string_view range) {
  in_addr address{};
  const std::string base(range.substr(0, range.find('/')));
  if (inet_pton(AF_INET, base.c_str(), &address) != 1) return "";
  address.s_addr = htonl(ntohl(address.s_addr) + 1);
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address, text, sizeof(text));
  return text;
}

Doc server_service(const std::string& address) {
  Doc service = object_of("v1", "Service", "kubernetes", "default");
  service.at("metadata", "labels").set("component", "apiserver").set("provider", "kubernetes");
  Doc& spec = service.at("spec");
  spec.set("clusterIP", address).set("clusterIPs", Doc::array({address}));
  spec.set("ipFamilies", Doc::array({"IPv4"})).set("ipFamilyPolicy", "SingleStack");
  spec.set("type", "ClusterIP").set("sessionAffinity", "None");
  spec.at("ports").push(Doc::object()
                            .set("name", "https")
                            .set("protocol", "TCP")
                            .set("port", 443)
                            .set("targetPort", 6443));
  return service;
}

}  // namespace

std::vector<Doc> initial_objects(const KindOptions& options, TimeUs now) {
  std::vector<Doc> objects;
  for (const std::string_view ns : {"kube-system", "kube-public", "kube-node-lease", "default"}) {
    objects.push_back(object_of("v1", "Namespace", ns));
  }
  for (const SystemPriority& priority : kSystemPriorities) {
    Doc object = object_of("scheduling.k8s.io/v1", "PriorityClass", priority.name);
    object.set("value", priority.value).set("description", priority.description);
    objects.push_back(std::move(object));
  }
  if (const std::string address = first_address(options.service_range); !address.empty()) {
    objects.push_back(server_service(address));
  }
  objects.push_back(
      object_of("v1", "ConfigMap", "extension-apiserver-authentication", "kube-system"));
  Doc tracking = object_of("v1", "ConfigMap",
                           "kube-apiserver-legacy-service-account-token-tracking", "kube-system");
  const std::string time = format_time(now);
  tracking.at("data").set("since", time.substr(0, time.find('T')));
  objects.push_back(std::move(tracking));
  return objects;
}

}  // namespace jogak::api
