// SPDX-License-Identifier: Apache-2.0
// Nodes, namespaces, priority classes, disruption budgets and workloads.
#include <algorithm>

#include "kube/decode_parts.h"

namespace jogak::kube {

Node read_node(const Json& json) {
  Node result;
  result.meta = read_meta(json, false);
  const Json spec = json["spec"];
  result.unschedulable = spec["unschedulable"].flag();
  spec["taints"].each_item([&result](const Json& item) {
    const auto effect = read_taint_effect(item["effect"]);
    if (!effect)
      item["effect"].complain("is required; use NoSchedule, PreferNoSchedule or NoExecute");
    result.taints.push_back({.key = item["key"].text(),
                             .value = item["value"].text(),
                             .effect = effect.value_or(TaintEffect::NoSchedule)});
  });
  const Json status = json["status"];
  const Json allocatable = status["allocatable"];
  result.allocatable = read_resources(allocatable ? allocatable : status["capacity"]);
  status["images"].each_item([&result](const Json& item) {
    result.images.push_back(
        {.names = item["names"].texts(),
         .size_bytes = item["sizeBytes"].integer(0, std::numeric_limits<std::int64_t>::max())});
  });
  result.declared_features = status["declaredFeatures"].texts();
  std::ranges::sort(result.declared_features);
  return result;
}

Namespace read_namespace(const Json& json) { return {.meta = read_meta(json, false)}; }

PriorityClass read_priority_class(const Json& json) {
  return {.meta = read_meta(json, false),
          .value = json["value"].int32(),
          .global_default = json["globalDefault"].flag(),
          .never_preempts = json["preemptionPolicy"].view() == "Never"};
}

PodDisruptionBudget read_pod_disruption_budget(const Json& json) {
  PodDisruptionBudget result;
  result.meta = read_meta(json, true);
  result.selector = read_label_selector(json["spec"]["selector"]);
  const Json status = json["status"];
  result.disruptions_allowed = status["disruptionsAllowed"].int32();
  status["disruptedPods"].each_field(
      [&result](std::string_view name, const Json&) { result.disrupted_pods.emplace_back(name); });
  std::ranges::sort(result.disrupted_pods);
  return result;
}

Workload read_workload(const Json& json, std::string_view kind) {
  Workload result;
  result.kind = kind;
  result.meta = read_meta(json, true);
  const Json selector = json["spec"]["selector"];
  const bool plain_map = kind == "Service" || kind == "ReplicationController";
  result.selector = plain_map ? read_map_selector(selector) : read_label_selector(selector);
  return result;
}

}  // namespace jogak::kube
