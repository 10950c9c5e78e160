// SPDX-License-Identifier: Apache-2.0
//
// Facts: pkg/quota/v1/evaluator/core of Kubernetes.
#include "apiserver/object/quota_usage.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::string_view kRequests = "requests.";
constexpr std::string_view kDeviceClass = "deviceclass.resource.kubernetes.io/";
constexpr std::string_view kClassMark = ".storageclass.storage.k8s.io/";
constexpr std::string_view kResourceClaims = "resourceclaims.resource.k8s.io";
constexpr std::string_view kDevicesMark = ".deviceclass.resource.k8s.io/devices";
// Of a claim for all devices of a class nobody knows how many there are: the most it can get.
constexpr std::int64_t kMostDevices = 32;
constexpr std::string_view kStorageClassNote = "volume.beta.kubernetes.io/storage-class";

// Tables that a quota may also name without "count/".
constexpr std::array<std::string_view, 6> kPlainNames = {
    "configmaps",     "secrets",  "replicationcontrollers",
    "resourcequotas", "services", "persistentvolumeclaims"};

constexpr std::array<std::string_view, 10> kPodNames = {"pods",
                                                        "cpu",
                                                        "memory",
                                                        "ephemeral-storage",
                                                        "requests.cpu",
                                                        "requests.memory",
                                                        "requests.ephemeral-storage",
                                                        "limits.cpu",
                                                        "limits.memory",
                                                        "limits.ephemeral-storage"};

bool is_in(const auto& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

bool is_quota_of_extended(std::string_view name) {
  if (!name.starts_with(kRequests)) {
    return false;
  }
  return !is_native_resource(name) || name.substr(kRequests.size()).starts_with(kDeviceClass);
}

// What requests and limits mean to a quota.
ResourceList compute_usage(const ResourceList& requests, const ResourceList& limits) {
  ResourceList out;
  out["pods"] = Amount::of(1);
  for (const std::string_view name : {"cpu", "memory", "ephemeral-storage"}) {
    if (const auto found = requests.find(name); found != requests.end()) {
      out[std::string(name)] = found->second;
      out[std::string(kRequests).append(name)] = found->second;
    }
    if (const auto found = limits.find(name); found != limits.end()) {
      out[std::string("limits.").append(name)] = found->second;
    }
  }
  for (const auto& [name, amount] : requests) {
    if (is_hugepage_resource(name)) {
      out[name] = amount;
    }
    if (is_hugepage_resource(name) || is_extended_resource(name) ||
        name.starts_with(kDeviceClass)) {
      out[std::string(kRequests) + name] = amount;
    }
  }
  return out;
}

// A finished pod costs nothing, nor does one that should be gone by now.
bool is_charged(const Doc& pod, TimeUs now) {
  const std::string& phase = pod["status"]["phase"].as_string();
  if (phase == "Failed" || phase == "Succeeded") {
    return false;
  }
  const Doc& grace = meta(pod)["deletionGracePeriodSeconds"];
  const auto deleted = parse_time(meta(pod)["deletionTimestamp"].as_string());
  return !deleted || grace.is_null() || now <= *deleted + grace.as_int() * kSecondInUs;
}

ResourceList pod_usage(const Doc& pod, TimeUs now) {
  if (!is_charged(pod, now)) {
    return {};
  }
  constexpr PodSumOptions kOptions = {.with_status = true};
  return compute_usage(pod_requests(pod, kOptions), pod_limits(pod, kOptions));
}

ResourceList service_usage(const Doc& service) {
  ResourceList out;
  const Doc& spec = service["spec"];
  const std::string& type = spec["type"].as_string();
  std::int64_t ports = 0;
  if (type == "NodePort" ||
      (type == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"].as_bool(true))) {
    ports = static_cast<std::int64_t>(spec["ports"].size());
  } else if (type == "LoadBalancer") {
    ports = std::ranges::count_if(spec["ports"].items(),
                                  [](const Doc& port) { return port["nodePort"].as_int() != 0; });
  }
  out["services.nodeports"] = Amount::of(ports);
  out["services.loadbalancers"] = Amount::of(type == "LoadBalancer" ? 1 : 0);
  return out;
}

std::string claim_class(const Doc& claim) {
  const Doc& note = meta(claim)["annotations"][kStorageClassNote];
  return note.is_null() ? claim["spec"]["storageClassName"].as_string() : note.as_string();
}

ResourceList claim_usage(const Doc& claim) {
  ResourceList out;
  const std::string prefix = claim_class(claim).append(kClassMark);
  const bool has_class = prefix.size() > kClassMark.size();
  if (has_class) {
    out[prefix + "persistentvolumeclaims"] = Amount::of(1);
  }
  if (const auto size =
          Amount::parse(claim.get("spec", "resources", "requests", "storage").as_string())) {
    out["requests.storage"] = *size;
    if (has_class) {
      out[prefix + "requests.storage"] = *size;
    }
  }
  return out;
}

std::int64_t devices_of(const Doc& request) {
  const std::string& mode = request["allocationMode"].as_string();
  return mode == "All" ? kMostDevices : mode == "ExactCount" ? request["count"].as_int() : 0;
}

std::string devices_name(const Doc& request) {
  return std::string(request["deviceClassName"].as_string()).append(kDevicesMark);
}

// Devices by class; of alternatives the one that takes most.
ResourceList device_usage(const Doc& claim) {
  ResourceList out;
  for (const Doc& request : claim.get("spec", "devices", "requests").items()) {
    ResourceList one;
    if (const Doc* exactly = request.find("exactly")) {
      one[devices_name(*exactly)] = Amount::of(devices_of(*exactly));
    }
    for (const Doc& alternative : request["firstAvailable"].items()) {
      raise_resources(one, {{devices_name(alternative), Amount::of(devices_of(alternative))}});
    }
    add_resources(out, one);
  }
  return out;
}

bool has_foreign_terms(const Doc& affinity) {
  const auto is_foreign = [](const Doc& term) {
    return !term["namespaces"].empty() || term.has("namespaceSelector");
  };
  return std::ranges::any_of(affinity["requiredDuringSchedulingIgnoredDuringExecution"].items(),
                             is_foreign) ||
         std::ranges::any_of(affinity["preferredDuringSchedulingIgnoredDuringExecution"].items(),
                             [&](const Doc& term) { return is_foreign(term["podAffinityTerm"]); });
}

bool has_value(const Doc& values, const std::string& text) {
  return std::ranges::any_of(values.items(),
                             [&](const Doc& value) { return value.as_string() == text; });
}

// One requirement on a named value that may be absent.
bool selects(const Doc& rule, const std::string& value) {
  const std::string& op = rule["operator"].as_string();
  if (op == "In") {
    return !value.empty() && has_value(rule["values"], value);
  }
  if (op == "NotIn") {
    return value.empty() || !has_value(rule["values"], value);
  }
  return value.empty() == (op == "DoesNotExist");
}

bool is_best_effort(const Doc& pod) {
  // Stored pods carry their class; a pod on its way has it from its preparation.
  return pod["status"]["qosClass"].as_string() == "BestEffort";
}

bool pod_in_scope(const Doc& rule, const Doc& pod) {
  const std::string& scope = rule["scopeName"].as_string();
  if (scope == "Terminating" || scope == "NotTerminating") {
    return is_terminating_pod(pod) == (scope == "Terminating");
  }
  if (scope == "BestEffort" || scope == "NotBestEffort") {
    return is_best_effort(pod) == (scope == "BestEffort");
  }
  if (scope == "PriorityClass") {
    return selects(rule, pod["spec"]["priorityClassName"].as_string());
  }
  if (scope == "CrossNamespacePodAffinity") {
    const Doc& affinity = pod["spec"]["affinity"];
    return has_foreign_terms(affinity["podAffinity"]) ||
           has_foreign_terms(affinity["podAntiAffinity"]);
  }
  return false;
}

bool in_scope(const Doc& rule, std::string_view table, const Doc& object) {
  if (table == "pods") {
    return pod_in_scope(rule, object);
  }
  return table == "persistentvolumeclaims" &&
         rule["scopeName"].as_string() == "VolumeAttributesClass" &&
         selects(rule, object["spec"]["volumeAttributesClassName"].as_string());
}

}  // namespace

bool is_terminating_pod(const Doc& pod) {
  const Doc& deadline = pod["spec"]["activeDeadlineSeconds"];
  return !deadline.is_null() && deadline.as_int() >= 0;
}

ResourceList quota_usage(std::string_view table, const Doc& object, TimeUs now) {
  ResourceList out;
  if (table == "pods") {
    out = pod_usage(object, now);
  } else if (table == "services") {
    out = service_usage(object);
  } else if (table == "persistentvolumeclaims") {
    out = claim_usage(object);
  } else if (table == kResourceClaims) {
    out = device_usage(object);
  }
  out[std::string("count/").append(table)] = Amount::of(1);
  if (is_in(kPlainNames, table)) {
    out[std::string(table)] = Amount::of(1);
  }
  return out;
}

bool quota_tracks(std::string_view table, std::string_view name) {
  if (name.starts_with("count/")) {
    return name.substr(std::string_view("count/").size()) == table;
  }
  if (table == "pods") {
    return is_in(kPodNames, name) || is_hugepage_resource(name) ||
           (name.starts_with(kRequests) && is_hugepage_resource(name.substr(kRequests.size()))) ||
           is_quota_of_extended(name);
  }
  if (table == "services" && (name == "services.nodeports" || name == "services.loadbalancers")) {
    return true;
  }
  if (table == "persistentvolumeclaims" &&
      (name == "requests.storage" || name.find(kClassMark) != std::string_view::npos)) {
    return true;
  }
  if (table == kResourceClaims && name.ends_with(kDevicesMark)) {
    return true;
  }
  return name == table && is_in(kPlainNames, table);
}

bool quota_covers(const Doc& quota_spec, std::string_view table, const Doc& object) {
  for (const Doc& scope : quota_spec["scopes"].items()) {
    Doc rule = Doc::object();
    rule.set("scopeName", scope).set("operator", "Exists");
    if (!in_scope(rule, table, object)) {
      return false;
    }
  }
  return std::ranges::all_of(quota_spec["scopeSelector"]["matchExpressions"].items(),
                             [&](const Doc& rule) { return in_scope(rule, table, object); });
}

std::string missing_requests(const Doc& pod, const ResourceList& names) {
  const Doc& of_pod = pod["spec"]["resources"];
  if (!of_pod["requests"].empty() || !of_pod["limits"].empty()) {
    return "";
  }
  std::string out;
  for (const std::string_view name :
       {"cpu", "limits.cpu", "limits.memory", "memory", "requests.cpu", "requests.memory"}) {
    if (names.find(name) == names.end()) {
      continue;
    }
    std::set<std::string> missing;
    for (const std::string_view list : {"containers", "initContainers"}) {
      for (const Doc& container : pod["spec"][list].items()) {
        const Doc& resources = container["resources"];
        const ResourceList usage = compute_usage(read_resources(resources["requests"]),
                                                 read_resources(resources["limits"]));
        if (usage.find(name) == usage.end()) {
          missing.insert(container["name"].as_string());
        }
      }
    }
    if (missing.empty()) {
      continue;
    }
    out.append(out.empty() ? "must specify " : "; ").append(name).append(" for: ");
    bool is_first = true;
    for (const std::string& container : missing) {
      out.append(is_first ? "" : ",").append(container);
      is_first = false;
    }
  }
  return out;
}

}  // namespace jogak::api
