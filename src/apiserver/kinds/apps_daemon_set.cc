// SPDX-License-Identifier: Apache-2.0
//
// Daemon sets: defaults, update strategy, and the template's generation, which lives on in an
// annotation that only the server writes.
#include "apiserver/kinds/apps.h"
#include "apiserver/kinds/pod_spec.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/kinds/workload_template.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/selector.h"
#include "apiserver/schema/normalise.h"
#include "base/parse_number.h"

namespace jogak::api {

namespace {

constexpr std::string_view kTemplateGeneration = "deprecated.daemonset.template.generation";

std::int64_t template_generation(const Doc& object) {
  return parse_int(meta(object)["annotations"][kTemplateGeneration].as_string()).value_or(0);
}

void set_template_generation(Doc& object, std::int64_t generation) {
  object.at("metadata", "annotations", kTemplateGeneration) = std::to_string(generation);
}

void default_strategy(Doc& strategy) {
  if (strategy["type"].as_string().empty()) strategy.set("type", "RollingUpdate");
  if (strategy["type"].as_string() != "RollingUpdate") return;
  strategy.at("rollingUpdate").set_default("maxUnavailable", 1);
  strategy.at("rollingUpdate").set_default("maxSurge", 0);
}

void validate_strategy(const Doc& strategy, const Path& at, FieldErrors& errors) {
  const std::string& type = strategy["type"].as_string();
  if (type == "OnDelete") return;
  if (type != "RollingUpdate") {
    errors.not_supported(at, strategy, {"RollingUpdate", "OnDelete"});
    return;
  }
  const Doc& rolling = strategy["rollingUpdate"];
  const Doc& unavailable = rolling["maxUnavailable"];
  const Doc& surge = rolling["maxSurge"];
  const Path unavailable_at = at.child("rollingUpdate", "maxUnavailable");
  const Path surge_at = at.child("rollingUpdate", "maxSurge");
  check_int_or_percent(unavailable, unavailable_at, errors);
  check_int_or_percent(surge, surge_at, errors);
  check_at_most_100_percent(unavailable, unavailable_at, errors);
  check_at_most_100_percent(surge, surge_at, errors);
  const bool has_unavailable = int_or_percent_value(unavailable) != 0;
  const bool has_surge = int_or_percent_value(surge) != 0;
  if (has_unavailable && has_surge) {
    errors.invalid(surge_at, surge, "may not be set when maxUnavailable is non-zero");
  } else if (!has_unavailable && !has_surge) {
    errors.required(unavailable_at, "cannot be 0 when maxSurge is 0");
  }
}

void validate_spec(const Doc& spec, FieldErrors& errors) {
  const Path at("spec");
  const Doc& selector = spec["selector"];
  const Doc& pod_template = spec["template"];
  FieldErrors found;
  validate_label_selector(selector, at.child("selector"), found);
  for (const FieldError& error : found.list()) errors.add(error);
  const Doc& labels = meta(pod_template)["labels"];
  if (found.empty() && !LabelSelector::from_object(selector).matches(labels)) {
    errors.invalid(at.child("template", "metadata", "labels"), labels, kSelectorMismatch);
  }
  if (!selector.is_null() && selector["matchLabels"].empty() &&
      selector["matchExpressions"].empty()) {
    errors.invalid(at.child("selector"), selector, "empty selector is invalid for daemonset");
  }
  validate_pod_template(pod_template, at.child("template"), errors);
  check_runs_forever(pod_template, "DaemonSet", at.child("template"), errors);
  check_not_negative(spec, "minReadySeconds", at, errors);
  validate_strategy(spec["updateStrategy"], at.child("updateStrategy"), errors);
  check_not_negative(spec, "revisionHistoryLimit", at, errors);
}

class DaemonSetStrategy : public TemplateStrategy {
 public:
  using TemplateStrategy::TemplateStrategy;

  void set_defaults(Doc& object) const override {
    Doc& spec = object.at("spec");
    default_strategy(spec.at("updateStrategy"));
    spec.set_default("revisionHistoryLimit", 10);
    default_pod_template(spec.at("template"));
    // The annotation is there from the start, so that its writer owns it.
    set_template_generation(object, template_generation(object));
  }

  void prepare_create(Doc& object, WriteContext& context) const override {
    TemplateStrategy::prepare_create(object, context);
    set_template_generation(object, std::max<std::int64_t>(template_generation(object), 1));
  }

  void prepare_update(Doc& object, const Doc& old, WriteContext& context) const override {
    TemplateStrategy::prepare_update(object, old, context);
    // as it will be stored, with the zero members that the old one has already
    static const schema::Struct& type = schema::get("core.v1.PodTemplateSpec");
    const bool is_changed =
        !(schema::encode(template_of(object), type) == schema::encode(template_of(old), type));
    set_template_generation(object, template_generation(old) + (is_changed ? 1 : 0));
  }

  void prepare_subresource_update(std::string_view subresource, Doc& object, const Doc& old,
                                  WriteContext& context) const override {
    TemplateStrategy::prepare_subresource_update(subresource, object, old, context);
    set_template_generation(object, template_generation(old));
  }

  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_spec(object["spec"], errors);
    warn_on_create(object, false, errors, context);
  }

  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    check_immutable(object["spec"], old["spec"], "selector", Path("spec"), errors);
    validate_spec(object["spec"], errors);
    warn_on_update(object, old, errors, context);
  }

  void validate_subresource_update(std::string_view /*subresource*/, const Doc& object,
                                   const Doc& old, WriteContext& /*context*/,
                                   FieldErrors& errors) const override {
    const Path at("status");
    check_not_negative(object["status"],
                       {"currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled",
                        "numberReady", "observedGeneration", "updatedNumberScheduled",
                        "numberAvailable", "numberUnavailable", "collisionCount"},
                       at, errors);
    check_collisions(object["status"], old["status"], at, errors);
  }
};

}  // namespace

std::shared_ptr<const Strategy> daemon_set_strategy(const KindOptions& options) {
  return std::make_shared<DaemonSetStrategy>(options);
}

}  // namespace jogak::api
