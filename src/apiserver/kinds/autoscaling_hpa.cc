// SPDX-License-Identifier: Apache-2.0
//
// Autoscalers: defaults of v2, and v1 as a view of v2.
#include "apiserver/kinds/autoscaling.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/kinds/workload_template.h"

namespace jogak::api {

namespace {

constexpr std::int64_t kDefaultUtilization = 80;
constexpr std::int64_t kPeriodSeconds = 15;

Doc policy(std::string_view type, std::int64_t value) {
  Doc entry;
  entry.set("type", type).set("value", value).set("periodSeconds", kPeriodSeconds);
  return entry;
}

// The members that a rule set leaves open. Only scaling up has a default window: that of scaling
// down is the controller's.
void default_rules(Doc& rules, bool is_up) {
  if (rules.is_null()) rules = Doc::object();
  if (is_up) rules.set_default("stabilizationWindowSeconds", 0);
  rules.set_default("selectPolicy", "Max");
  if (rules.has("policies")) return;
  Doc policies = Doc::array();
  if (is_up) policies.push(policy("Pods", 4));
  policies.push(policy("Percent", 100));
  rules.set("policies", std::move(policies));
}

class AutoscalerStrategy : public StatusStrategy {
 public:
  bool tracks_generation() const override { return false; }

  void set_defaults(Doc& object) const override { default_autoscaler(object); }

  void validate_create(const Doc& object, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_autoscaler_spec(object["spec"], {}, errors);
  }
  void validate_update(const Doc& object, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_autoscaler_spec(object["spec"], old["spec"], errors);
  }
  void validate_subresource_update(std::string_view /*subresource*/, const Doc& object,
                                   const Doc& /*old*/, WriteContext& /*context*/,
                                   FieldErrors& errors) const override {
    check_not_negative(object["status"], {"currentReplicas", "desiredReplicas"}, Path("status"),
                       errors);
  }
};

// A view of v2: what is stored and what is checked is v2.
class AutoscalerV1Strategy : public AutoscalerStrategy {
 public:
  void set_defaults(Doc& object) const override {
    Doc& spec = object.at("spec");
    spec.set_default("minReplicas", 1);
    if (!has_annotated_metrics(object)) {
      spec.set_default("targetCPUUtilizationPercentage", kDefaultUtilization);
    }
  }

  void prepare_create(Doc& object, WriteContext& context) const override {
    AutoscalerStrategy::prepare_create(object, context);
    keep_status_annotations(object, {});
  }
  void prepare_update(Doc& object, const Doc& old, WriteContext& context) const override {
    AutoscalerStrategy::prepare_update(object, old, context);
    keep_status_annotations(object, old);
  }
  void prepare_subresource_update(std::string_view subresource, Doc& object, const Doc& old,
                                  WriteContext& context) const override {
    AutoscalerStrategy::prepare_subresource_update(subresource, object, old, context);
    keep_spec_annotations(object, old);
  }

  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override {
    AutoscalerStrategy::validate_create(autoscaler_to_v2(object), context, errors);
  }
  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    AutoscalerStrategy::validate_update(autoscaler_to_v2(object), autoscaler_to_v2(old), context,
                                        errors);
  }

  Doc from_storage(Doc object) const override { return autoscaler_to_v1(std::move(object)); }
  Doc to_storage(Doc object) const override {
    Doc v2 = autoscaler_to_v2(std::move(object));
    default_autoscaler(v2);
    return v2;
  }
};

}  // namespace

void default_autoscaler(Doc& object) {
  drop_autoscaler_annotations(object);
  Doc& spec = object.at("spec");
  spec.set_default("minReplicas", 1);
  if (spec["metrics"].empty()) {
    Doc metric;
    metric.set("type", "Resource");
    metric.at("resource", "name") = "cpu";
    metric.at("resource", "target", "type") = "Utilization";
    metric.at("resource", "target", "averageUtilization") = kDefaultUtilization;
    spec.set("metrics", Doc::array({std::move(metric)}));
  }
  if (!spec.has("behavior")) return;
  default_rules(spec.at("behavior", "scaleUp"), true);
  default_rules(spec.at("behavior", "scaleDown"), false);
}

std::shared_ptr<const Strategy> autoscaler_strategy() {
  return std::make_shared<AutoscalerStrategy>();
}

std::shared_ptr<const Strategy> autoscaler_v1_strategy() {
  return std::make_shared<AutoscalerV1Strategy>();
}

void add_autoscaling_kinds(Registry& registry) {
  const auto names = [](std::string_view version) {
    return ResourceNames{.group = "autoscaling",
                         .version = version,
                         .plural = "horizontalpodautoscalers",
                         .singular = "horizontalpodautoscaler",
                         .kind = "HorizontalPodAutoscaler",
                         .short_names = {"hpa"}};
  };
  registry.add(make_resource(names("v2"), autoscaler_strategy()));
  Resource v1 = make_resource(names("v1"), autoscaler_v1_strategy());
  v1.is_storage_version = false;
  v1.is_preferred = false;
  registry.add(std::move(v1));
}

}  // namespace jogak::api
