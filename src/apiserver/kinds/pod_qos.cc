// SPDX-License-Identifier: Apache-2.0
//
// The quality of service that a pod gets from its requests and limits.
#include <string_view>

#include "apiserver/kinds/pod_spec.h"
#include "apiserver/object/resource_list.h"

namespace jogak::api {

namespace {

// The two that count, where they are more than zero.
ResourceList compute_resources(const Doc& list) {
  ResourceList out;
  for (const std::string_view name : {"cpu", "memory"}) {
    const auto amount = Amount::parse(list[name].as_string());
    if (amount && *amount > Amount::of(0)) {
      out.emplace(name, *amount);
    }
  }
  return out;
}

}  // namespace

std::string pod_qos_class(const Doc& spec) {
  ResourceList requests;
  ResourceList limits;
  bool is_guaranteed = true;
  const auto count = [&](const Doc& resources) {
    add_resources(requests, compute_resources(resources["requests"]));
    const ResourceList own = compute_resources(resources["limits"]);
    is_guaranteed = is_guaranteed && own.size() == 2;
    add_resources(limits, own);
  };
  if (const Doc* of_pod = spec.find("resources")) {
    const bool has_limits = !(*of_pod)["limits"].empty();
    count(*of_pod);
    is_guaranteed = is_guaranteed || !has_limits;
  } else {
    for (const std::string_view list : {"containers", "initContainers"}) {
      for (const Doc& container : spec[list].items()) {
        count(container["resources"]);
      }
    }
  }
  if (requests.empty() && limits.empty()) {
    return "BestEffort";
  }
  return is_guaranteed && requests == limits ? "Guaranteed" : "Burstable";
}

}  // namespace jogak::api
