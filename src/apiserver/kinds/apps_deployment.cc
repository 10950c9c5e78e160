// SPDX-License-Identifier: Apache-2.0
//
// Deployments: defaults, strategy of a rollout, selector that never changes, status arithmetic.
#include "apiserver/kinds/apps.h"
#include "apiserver/kinds/pod_spec.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/kinds/workload_template.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

void default_strategy(Doc& strategy) {
  if (strategy["type"].as_string().empty()) strategy.set("type", "RollingUpdate");
  if (strategy["type"].as_string() != "RollingUpdate") return;
  strategy.at("rollingUpdate").set_default("maxUnavailable", "25%");
  strategy.at("rollingUpdate").set_default("maxSurge", "25%");
}

void validate_strategy(const Doc& strategy, const Path& at, FieldErrors& errors) {
  const std::string& type = strategy["type"].as_string();
  if (type == "Recreate") {
    if (strategy.has("rollingUpdate")) {
      errors.forbidden(at.child("rollingUpdate"),
                       "may not be specified when strategy `type` is 'Recreate'");
    }
    return;
  }
  if (type != "RollingUpdate") {
    errors.not_supported(at, strategy, {"Recreate", "RollingUpdate"});
    return;
  }
  const Doc& rolling = strategy["rollingUpdate"];
  const Path rolling_at = at.child("rollingUpdate");
  const Doc& unavailable = rolling["maxUnavailable"];
  const Doc& surge = rolling["maxSurge"];
  check_int_or_percent(unavailable, rolling_at.child("maxUnavailable"), errors);
  check_int_or_percent(surge, rolling_at.child("maxSurge"), errors);
  if (int_or_percent_value(unavailable) == 0 && int_or_percent_value(surge) == 0) {
    errors.invalid(rolling_at.child("maxUnavailable"), unavailable,
                   "may not be 0 when `maxSurge` is 0");
  }
  check_at_most_100_percent(unavailable, rolling_at.child("maxUnavailable"), errors);
}

void validate_spec(const Doc& spec, FieldErrors& errors) {
  const Path at("spec");
  check_not_negative(spec, "replicas", at, errors);
  if (check_selector(spec["selector"], "deployment", at.child("selector"), errors)) {
    validate_replica_template(spec, "ReplicaSet", at, errors);
  } else {
    errors.invalid(at.child("selector"), spec["selector"], "invalid label selector");
  }
  validate_strategy(spec["strategy"], at.child("strategy"), errors);
  check_not_negative(spec, {"minReadySeconds", "revisionHistoryLimit"}, at, errors);
  if (!spec.has("progressDeadlineSeconds")) return;
  check_not_negative(spec, "progressDeadlineSeconds", at, errors);
  if (spec["progressDeadlineSeconds"].as_int() <= spec["minReadySeconds"].as_int()) {
    errors.invalid(at.child("progressDeadlineSeconds"), spec["progressDeadlineSeconds"],
                   "must be greater than minReadySeconds");
  }
}

class DeploymentStrategy : public TemplateStrategy {
 public:
  using TemplateStrategy::TemplateStrategy;

  void set_defaults(Doc& object) const override {
    Doc& spec = object.at("spec");
    spec.set_default("replicas", 1);
    default_strategy(spec.at("strategy"));
    spec.set_default("revisionHistoryLimit", 10);
    spec.set_default("progressDeadlineSeconds", 600);
    default_pod_template(spec.at("template"));
  }

  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_spec(object["spec"], errors);
    warn_on_create(object, true, errors, context);
  }

  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_spec(object["spec"], errors);
    check_immutable(object["spec"], old["spec"], "selector", Path("spec"), errors);
    warn_on_update(object, old, errors, context);
  }

  // The one kind whose status update leaves the labels alone.
  void prepare_subresource_update(std::string_view subresource, Doc& object, const Doc& old,
                                  WriteContext& context) const override {
    TemplateStrategy::prepare_subresource_update(subresource, object, old, context);
    if (const Doc* labels = meta(old).find("labels")) {
      object.at("metadata").set("labels", *labels);
    } else {
      object.at("metadata").erase("labels");
    }
  }

  void validate_subresource_update(std::string_view /*subresource*/, const Doc& object,
                                   const Doc& old, WriteContext& /*context*/,
                                   FieldErrors& errors) const override {
    const Doc& status = object["status"];
    const Path at("status");
    check_not_negative(
        status,
        {"observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas",
         "unavailableReplicas", "terminatingReplicas", "collisionCount"},
        at, errors);
    for (const std::string_view name : {"updatedReplicas", "readyReplicas", "availableReplicas"}) {
      check_at_most(status, name, "replicas", "cannot be greater than status.replicas", at, errors);
    }
    check_at_most(status, "availableReplicas", "readyReplicas",
                  "cannot be greater than readyReplicas", at, errors);
    check_collisions(status, old["status"], at, errors);
  }

  // Annotations are copied to replica sets, so they count as a change of the spec.
  bool spec_changed(const Doc& object, const Doc& old) const override {
    return TemplateStrategy::spec_changed(object, old) ||
           !(meta(object)["annotations"] == meta(old)["annotations"]);
  }
};

}  // namespace

std::shared_ptr<const Strategy> deployment_strategy(const KindOptions& options) {
  return std::make_shared<DeploymentStrategy>(options);
}

}  // namespace jogak::api
