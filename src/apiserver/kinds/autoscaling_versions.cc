// SPDX-License-Identifier: Apache-2.0
//
// An autoscaler in autoscaling/v1 and in v2. The annotations are read by old clients and written by
// them, so names and spelling follow the real server, down to the Go names inside the behavior.
#include <array>
#include <span>
#include <string>

#include "apiserver/codec/codec.h"
#include "apiserver/kinds/autoscaling.h"
#include "apiserver/object/meta.h"
#include "apiserver/schema/normalise.h"

namespace jogak::api {

namespace {

constexpr std::string_view kMetrics = "autoscaling.alpha.kubernetes.io/metrics";
constexpr std::string_view kStatuses = "autoscaling.alpha.kubernetes.io/current-metrics";
constexpr std::string_view kConditions = "autoscaling.alpha.kubernetes.io/conditions";
constexpr std::string_view kBehavior = "autoscaling.alpha.kubernetes.io/behavior";
constexpr std::array<std::string_view, 6> kAnnotations = {
    kMetrics,
    kStatuses,
    kConditions,
    kBehavior,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance"};
constexpr std::array<std::string_view, 2> kOfSpec = {kMetrics, kBehavior};
constexpr std::array<std::string_view, 2> kOfStatus = {kStatuses, kConditions};
constexpr std::int64_t kDefaultUtilization = 80;

// Go's encoder writes these three as escapes. They stand in strings only.
std::string go_json(const Doc& value) {
  std::string text;
  value.append_json(text);
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '<':
        escaped += "\\u003c";
        break;
      case '>':
        escaped += "\\u003e";
        break;
      case '&':
        escaped += "\\u0026";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

void annotate(Doc& object, std::string_view key, const Doc& value) {
  object.at("metadata", "annotations").set(key, go_json(value));
}

// The annotation as a value, null where it is absent or no JSON.
Doc annotation(const Doc& object, std::string_view key) {
  const Doc& text = meta(object)["annotations"][key];
  if (!text.is_string()) return {};
  auto parsed = codec::parse_json(text.as_string());
  return parsed.has_value() ? std::move(parsed->doc) : Doc();
}

// What a client wrote into an annotation must be of the type or it counts as absent.
Doc checked(Doc value, std::string_view type) {
  schema::Complaints complaints;
  auto decoded = schema::decode(std::move(value), schema::get(type), complaints);
  return decoded.has_value() ? *std::move(decoded) : Doc();
}

// Every element checked, or null when one is wrong.
Doc checked_list(const Doc& list, std::string_view type, Doc (*convert)(const Doc&)) {
  if (!list.is_array()) return {};
  Doc result = Doc::array();
  for (const Doc& item : list.items()) {
    Doc element = item.is_object() ? checked(convert(item), type) : Doc();
    if (element.is_null()) return {};
    result.push(std::move(element));
  }
  return result;
}

bool is_cpu_resource(const Doc& metric) {
  return metric["type"].as_string() == "Resource" && metric.has("resource") &&
         metric["resource"]["name"].as_string() == "cpu";
}

bool is_cpu_utilization(const Doc& metric) {
  return is_cpu_resource(metric) && metric["resource"]["target"].has("averageUtilization");
}

Doc cpu_utilization(const Doc& percent) {
  Doc metric;
  metric.set("type", "Resource");
  metric.at("resource", "name") = "cpu";
  metric.at("resource", "target", "type") = "Utilization";
  metric.at("resource", "target", "averageUtilization") = percent;
  return metric;
}

// A rule set of the behavior, with the member names of Go.
struct RuleName {
  std::string_view go, json;
};
constexpr std::array<RuleName, 4> kRules = {
    {{"StabilizationWindowSeconds", "stabilizationWindowSeconds"},
     {"SelectPolicy", "selectPolicy"},
     {"Policies", "policies"},
     {"Tolerance", "tolerance"}}};
constexpr std::array<RuleName, 3> kPolicy = {
    {{"Type", "type"}, {"Value", "value"}, {"PeriodSeconds", "periodSeconds"}}};

Doc rules_to_go(const Doc& rules) {
  if (rules.is_null()) return {};
  Doc result;
  for (const RuleName& rule : kRules) result.set(rule.go, rules[rule.json]);
  if (!rules["policies"].is_array()) return result;
  Doc policies = Doc::array();
  for (const Doc& policy : rules["policies"].items()) {
    Doc entry;
    for (const RuleName& member : kPolicy) entry.set(member.go, policy[member.json]);
    policies.push(std::move(entry));
  }
  return result.set("Policies", std::move(policies));
}

// Go reads names in any case.
const Doc& any_case(const Doc& object, const RuleName& name) {
  return object.has(name.go) ? object[name.go] : object[name.json];
}

Doc rules_from_go(const Doc& rules) {
  if (!rules.is_object()) return {};
  Doc result = Doc::object();
  for (const RuleName& rule : kRules) {
    const Doc& value = any_case(rules, rule);
    if (!value.is_null() && rule.json != "policies") result.set(rule.json, value);
  }
  const Doc& policies = any_case(rules, kRules[2]);
  if (!policies.is_array()) return result;
  Doc list = Doc::array();
  for (const Doc& policy : policies.items()) {
    Doc entry = Doc::object();
    for (const RuleName& member : kPolicy) entry.set(member.json, any_case(policy, member));
    list.push(std::move(entry));
  }
  return result.set("policies", std::move(list));
}

Doc behavior_from_go(const Doc& value) {
  Doc behavior = Doc::object();
  for (const RuleName& name : {RuleName{.go = "ScaleUp", .json = "scaleUp"},
                               RuleName{.go = "ScaleDown", .json = "scaleDown"}}) {
    Doc rules = rules_from_go(any_case(value, name));
    if (!rules.is_null()) behavior.set(name.json, std::move(rules));
  }
  if (behavior.empty()) return {};
  return checked(std::move(behavior), "autoscaling.v2.HorizontalPodAutoscalerBehavior");
}

void copy_members(Doc& to, const Doc& from, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (const Doc* value = from.find(name)) to.set(name, *value);
  }
}

Doc spec_to_v2(const Doc& v1) {
  const Doc& from = v1["spec"];
  Doc spec = Doc::object();
  copy_members(spec, from, {"scaleTargetRef", "minReplicas", "maxReplicas"});
  Doc metrics =
      checked_list(annotation(v1, kMetrics), "autoscaling.v2.MetricSpec", metric_spec_to_v2);
  if (metrics.is_null()) metrics = Doc::array();
  if (from.has("targetCPUUtilizationPercentage")) {
    metrics.push(cpu_utilization(from["targetCPUUtilizationPercentage"]));
  }
  if (metrics.empty()) metrics.push(cpu_utilization(kDefaultUtilization));
  spec.set("metrics", std::move(metrics));
  if (Doc behavior = behavior_from_go(annotation(v1, kBehavior)); !behavior.is_null()) {
    spec.set("behavior", std::move(behavior));
  }
  return spec;
}

Doc same_condition(const Doc& condition) { return condition; }

Doc status_to_v2(const Doc& v1) {
  const Doc& from = v1["status"];
  Doc status = Doc::object();
  copy_members(status, from,
               {"observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"});
  Doc metrics =
      checked_list(annotation(v1, kStatuses), "autoscaling.v2.MetricStatus", metric_status_to_v2);
  if (metrics.is_null() && from.has("currentCPUUtilizationPercentage")) {
    Doc metric;
    metric.set("type", "Resource");
    metric.at("resource", "name") = "cpu";
    metric.at("resource", "current", "averageUtilization") =
        from["currentCPUUtilizationPercentage"];
    metrics.push(std::move(metric));
  }
  if (!metrics.empty()) status.set("currentMetrics", std::move(metrics));
  Doc conditions = checked_list(annotation(v1, kConditions),
                                "autoscaling.v2.HorizontalPodAutoscalerCondition", same_condition);
  if (!conditions.empty()) status.set("conditions", std::move(conditions));
  return status;
}

void drop_annotations(Doc& object, std::span<const std::string_view> keys) {
  Doc* metadata = object.find("metadata");
  Doc* annotations = metadata == nullptr ? nullptr : metadata->find("annotations");
  if (annotations == nullptr) return;
  for (const std::string_view key : keys) annotations->erase(key);
  if (annotations->empty()) metadata->erase("annotations");
}

void keep_annotations(Doc& object, const Doc& old, std::span<const std::string_view> keys) {
  drop_annotations(object, keys);
  for (const std::string_view key : keys) {
    if (const Doc* value = meta(old)["annotations"].find(key)) {
      object.at("metadata", "annotations").set(key, *value);
    }
  }
}

void annotate_list(Doc& object, std::string_view key, const Doc& list, Doc (*convert)(const Doc&)) {
  Doc values = Doc::array();
  for (const Doc& item : list.items()) {
    if (key != kMetrics || !is_cpu_utilization(item)) values.push(convert(item));
  }
  if (!values.empty()) annotate(object, key, values);
}

}  // namespace

void drop_autoscaler_annotations(Doc& object) { drop_annotations(object, kAnnotations); }

void keep_spec_annotations(Doc& object, const Doc& old) { keep_annotations(object, old, kOfSpec); }

void keep_status_annotations(Doc& object, const Doc& old) {
  keep_annotations(object, old, kOfStatus);
}

bool has_annotated_metrics(const Doc& v1) {
  return !checked_list(annotation(v1, kMetrics), "autoscaling.v2.MetricSpec", metric_spec_to_v2)
              .empty();
}

Doc autoscaler_to_v2(Doc v1) {
  Doc spec = spec_to_v2(v1);
  Doc status = status_to_v2(v1);
  v1.set("apiVersion", "autoscaling/v2").set("spec", std::move(spec));
  v1.set("status", std::move(status));
  drop_autoscaler_annotations(v1);
  return v1;
}

Doc autoscaler_to_v1(Doc v2) {
  drop_autoscaler_annotations(v2);
  const Doc from = v2["spec"];
  const Doc from_status = v2["status"];
  Doc spec = Doc::object();
  copy_members(spec, from, {"scaleTargetRef", "minReplicas", "maxReplicas"});
  for (const Doc& metric : from["metrics"].items()) {
    if (!is_cpu_utilization(metric)) continue;
    spec.set("targetCPUUtilizationPercentage", metric["resource"]["target"]["averageUtilization"]);
    break;
  }
  annotate_list(v2, kMetrics, from["metrics"], metric_spec_to_v1);
  annotate_list(v2, kStatuses, from_status["currentMetrics"], metric_status_to_v1);
  if (from.has("behavior")) {
    Doc behavior;
    behavior.set("ScaleUp", rules_to_go(from["behavior"]["scaleUp"]));
    behavior.set("ScaleDown", rules_to_go(from["behavior"]["scaleDown"]));
    annotate(v2, kBehavior, behavior);
  }
  annotate_list(v2, kConditions, from_status["conditions"], same_condition);

  Doc status = Doc::object();
  copy_members(status, from_status,
               {"observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas"});
  for (const Doc& metric : from_status["currentMetrics"].items()) {
    const Doc& current = metric["resource"]["current"];
    if (is_cpu_resource(metric) && current.has("averageUtilization")) {
      status.set("currentCPUUtilizationPercentage", current["averageUtilization"]);
    }
  }
  v2.set("apiVersion", "autoscaling/v1").set("spec", std::move(spec));
  return v2.set("status", std::move(status));
}

}  // namespace jogak::api
