// SPDX-License-Identifier: Apache-2.0
//
// Which slices of a service change: endpoints stay where they are, new ones fill up slices that
// change anyway, then others, then new ones (the reconciler of endpointslice in Kubernetes is the
// model).
#include <algorithm>
#include <map>
#include <string>

#include "apiserver/controllers/endpoint_parts.h"
#include "apiserver/controllers/pod_control.h"
#include "apiserver/object/meta.h"

namespace jogak::controllers {

namespace {

constexpr std::size_t kSliceMax = 100;  // endpoints of a slice
constexpr std::string_view kServiceName = "kubernetes.io/service-name";
constexpr std::string_view kManagedBy = "endpointslice.kubernetes.io/managed-by";
constexpr std::string_view kManager = "endpointslice-controller.k8s.io";

Doc slice_labels(const Doc& service) {
  Doc labels = api::meta(service)["labels"];
  if (!labels.is_object()) labels = Doc::object();
  const std::string& ip = service.get("spec", "clusterIP").as_string();
  labels.erase(kHeadless);
  if (ip.empty() || ip == "None") labels.set(kHeadless, "");
  labels.set(kServiceName, api::name_of(service)).set(kManagedBy, kManager);
  return labels;
}

bool is_owned(const Doc& slice, const Doc& service) {
  return std::ranges::any_of(api::meta(slice)["ownerReferences"].items(), [&](const Doc& owner) {
    return owner["uid"].as_string() == api::uid_of(service);
  });
}

// Endpoints are the same ones when this is equal; the rest may change.
std::string identity(const Doc& endpoint) {
  std::string text = endpoint.get("targetRef", "uid").as_string();
  text.append("|").append(endpoint["nodeName"].as_string());
  for (const Doc& address : endpoint["addresses"].items()) text += "|" + address.as_string();
  return text;
}

Doc slice_of(const Doc& service, std::string_view type, const Doc& ports, Doc endpoints) {
  Doc slice = empty_slice(service, type);
  slice.set("ports", ports).set("endpoints", std::move(endpoints));
  return slice;
}

void fill(Doc& slice, Doc::Items& wanted) {
  Doc& endpoints = slice.at("endpoints");
  if (endpoints.is_null()) endpoints = Doc::array();
  while (!wanted.empty() && endpoints.size() < kSliceMax) {
    endpoints.push(std::move(wanted.back()));
    wanted.pop_back();
  }
}

// The slices of one set of ports.
void plan_group(const Doc& service, std::string_view type, std::vector<Doc> slices,
                const PortGroup& group, SlicePlan& plan) {
  const Doc labels = slice_labels(service);
  std::map<std::string, const Doc*, std::less<>> missing;  // wanted, and in no slice yet
  for (const Doc& endpoint : group.endpoints.items()) missing[identity(endpoint)] = &endpoint;
  std::vector<Doc> updated, unchanged;
  for (Doc& slice : slices) {
    Doc kept = Doc::array();
    bool has_changed = false;
    for (const Doc& endpoint : slice["endpoints"].items()) {
      const auto it = missing.find(identity(endpoint));
      if (it == missing.end()) {
        has_changed = true;
        continue;
      }
      has_changed = has_changed || !(*it->second == endpoint);
      kept.push(*it->second);
      missing.erase(it);
    }
    if (kept.empty() && has_changed) {
      plan.removed.push_back(std::move(slice));
    } else if (has_changed || api::meta(slice)["labels"] != labels) {
      slice.set("endpoints", std::move(kept));
      updated.push_back(std::move(slice));
    } else {
      unchanged.push_back(std::move(slice));
    }
  }
  Doc::Items wanted;
  for (const Doc& endpoint : group.endpoints.items()) {
    if (missing.contains(identity(endpoint))) wanted.push_back(endpoint);
  }
  std::ranges::reverse(wanted);  // fill() takes from the back
  std::ranges::sort(updated, std::ranges::greater(),
                    [](const Doc& slice) { return slice["endpoints"].size(); });
  for (Doc& slice : updated) fill(slice, wanted);
  while (!wanted.empty()) {
    const auto room = std::ranges::max_element(unchanged, {}, [&](const Doc& slice) {
      const std::size_t total = slice["endpoints"].size() + wanted.size();
      return total <= kSliceMax ? total : 0;
    });
    const bool fits =
        room != unchanged.end() && (*room)["endpoints"].size() + wanted.size() <= kSliceMax;
    if (fits) {
      fill(*room, wanted);
      updated.push_back(std::move(*room));
      unchanged.erase(room);
    } else {
      Doc slice = slice_of(service, type, group.ports, Doc::array());
      fill(slice, wanted);
      plan.created.push_back(std::move(slice));
    }
  }
  for (Doc& slice : updated) plan.updated.push_back(std::move(slice));
}

}  // namespace

Doc empty_slice(const Doc& service, std::string_view address_type) {
  Doc slice = Doc::object();
  slice.set("kind", "EndpointSlice").set("apiVersion", "discovery.k8s.io/v1");
  slice.at("metadata")
      .set("generateName", api::name_of(service) + "-")
      .set("namespace", api::namespace_of(service))
      .set("labels", slice_labels(service))
      .set("ownerReferences", Doc::array().push(controller_reference(service)));
  slice.set("addressType", address_type).set("endpoints", Doc::array()).set("ports", Doc::array());
  return slice;
}

SlicePlan plan_slices(const Doc& service, std::string_view address_type, std::vector<Doc> slices,
                      const std::vector<PortGroup>& groups) {
  SlicePlan plan;
  const std::size_t before = slices.size();
  const Doc labels = slice_labels(service);
  for (const PortGroup& group : groups) {
    std::vector<Doc> same;
    for (Doc& slice : slices) {
      if (slice.is_null() || !is_owned(slice, service)) continue;
      if (slice["ports"].items() != group.ports.items()) continue;
      same.push_back(std::move(slice));
      slice = Doc();
    }
    plan_group(service, address_type, std::move(same), group, plan);
  }
  for (Doc& slice : slices) {
    if (!slice.is_null()) plan.removed.push_back(std::move(slice));
  }
  if (plan.created.empty() && plan.removed.size() == before) {
    // nothing is left: one empty slice says so
    const bool is_there =
        before == 1 && is_owned(plan.removed[0], service) && plan.removed[0]["endpoints"].empty() &&
        plan.removed[0]["ports"].empty() && api::meta(plan.removed[0])["labels"] == labels;
    if (is_there) {
      plan.removed.clear();
    } else {
      plan.created.push_back(empty_slice(service, address_type));
    }
  }
  // what would be removed and made is changed instead
  while (!plan.created.empty()) {
    const auto old = std::ranges::find_if(
        plan.removed, [&](const Doc& slice) { return is_owned(slice, service); });
    if (old == plan.removed.end()) break;
    old->set("endpoints", plan.created.back()["endpoints"]);
    old->set("ports", plan.created.back()["ports"]);
    plan.updated.push_back(std::move(*old));
    plan.removed.erase(old);
    plan.created.pop_back();
  }
  for (Doc& slice : plan.updated) slice.at("metadata").set("labels", labels);
  return plan;
}

}  // namespace jogak::controllers
