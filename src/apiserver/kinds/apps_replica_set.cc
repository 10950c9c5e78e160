// SPDX-License-Identifier: Apache-2.0
//
// Replica sets, and replication controllers, which differ in their selector and their defaults.
#include "apiserver/kinds/apps.h"
#include "apiserver/kinds/pod_spec.h"
#include "apiserver/kinds/workload.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/kinds/workload_template.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/selector.h"

namespace jogak::api {

namespace {

void validate_status(const Doc& status, bool has_terminating, FieldErrors& errors) {
  const Path at("status");
  check_not_negative(status,
                     {"replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas",
                      "observedGeneration"},
                     at, errors);
  if (has_terminating) check_not_negative(status, "terminatingReplicas", at, errors);
  for (const std::string_view name :
       {"fullyLabeledReplicas", "readyReplicas", "availableReplicas"}) {
    check_at_most(status, name, "replicas", "cannot be greater than status.replicas", at, errors);
  }
  check_at_most(status, "availableReplicas", "readyReplicas",
                "cannot be greater than readyReplicas", at, errors);
}

class ReplicaSetStrategy : public TemplateStrategy {
 public:
  using TemplateStrategy::TemplateStrategy;

  void set_defaults(Doc& object) const override {
    object.at("spec").set_default("replicas", 1);
    default_pod_template(object.at("spec", "template"));
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

  void validate_subresource_update(std::string_view /*subresource*/, const Doc& object,
                                   const Doc& /*old*/, WriteContext& /*context*/,
                                   FieldErrors& errors) const override {
    validate_status(object["status"], true, errors);
  }

 private:
  static void validate_spec(const Doc& spec, FieldErrors& errors) {
    const Path at("spec");
    check_not_negative(spec, {"replicas", "minReadySeconds"}, at, errors);
    // The server says "deployment" here too.
    if (check_selector(spec["selector"], "deployment", at.child("selector"), errors)) {
      validate_replica_template(spec, "ReplicaSet", at, errors);
    } else {
      errors.invalid(at.child("selector"), spec["selector"], "invalid label selector");
    }
  }
};

class ReplicationControllerStrategy : public TemplateStrategy {
 public:
  using TemplateStrategy::TemplateStrategy;

  void set_defaults(Doc& object) const override {
    Doc& spec = object.at("spec");
    spec.set_default("replicas", 1);
    if (!spec.has("template")) return;
    const Doc labels = spec["template"]["metadata"]["labels"];
    if (!labels.empty()) {
      if (spec["selector"].empty()) spec.set("selector", labels);
      if (meta(object)["labels"].empty()) object.at("metadata").set("labels", labels);
    }
    default_pod_template(object.at("spec", "template"));
  }

  // A controller may come without a template, which is an error and must not become an empty one.
  void prepare_create(Doc& object, WriteContext& context) const override {
    if (object["spec"].has("template")) {
      TemplateStrategy::prepare_create(object, context);
    } else {
      Strategy::prepare_create(object, context);
    }
  }
  void prepare_update(Doc& object, const Doc& old, WriteContext& context) const override {
    if (object["spec"].has("template")) {
      TemplateStrategy::prepare_update(object, old, context);
    } else {
      Strategy::prepare_update(object, old, context);
    }
  }

  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_spec(object["spec"], errors);
    warn_on_create(object, true, errors, context);
  }

  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_spec(object["spec"], errors);
    warn_on_update(object, old, errors, context);
  }

  void validate_subresource_update(std::string_view /*subresource*/, const Doc& object,
                                   const Doc& /*old*/, WriteContext& /*context*/,
                                   FieldErrors& errors) const override {
    validate_status(object["status"], false, errors);
  }

  std::vector<std::string_view> selectable_fields() const override { return {"status.replicas"}; }
  std::string field(const Doc& object, std::string_view path) const override {
    std::string text = TemplateStrategy::field(object, path);
    return text.empty() && path == "status.replicas" ? "0" : text;
  }
  bool orphans_by_default() const override { return true; }

 private:
  static void validate_spec(const Doc& spec, FieldErrors& errors) {
    const Path at("spec");
    check_not_negative(spec, "minReadySeconds", at, errors);
    if (spec["selector"].empty()) errors.required(at.child("selector"));
    check_not_negative(spec, "replicas", at, errors);
    const Path template_at = at.child("template");
    const Doc& pod_template = spec["template"];
    if (pod_template.is_null()) {
      errors.required(template_at);
      return;
    }
    const Doc& labels = meta(pod_template)["labels"];
    if (!spec["selector"].empty() && !LabelSelector::from_map(spec["selector"]).matches(labels)) {
      errors.invalid(template_at.child("metadata", "labels"), labels, kSelectorMismatch);
    }
    validate_pod_template(pod_template, template_at, errors);
    check_runs_forever(pod_template, "ReplicationController", template_at, errors);
  }
};

}  // namespace

std::shared_ptr<const Strategy> replica_set_strategy(const KindOptions& options) {
  return std::make_shared<ReplicaSetStrategy>(options);
}

std::shared_ptr<const Strategy> replication_controller_strategy(const KindOptions& options) {
  return std::make_shared<ReplicationControllerStrategy>(options);
}

}  // namespace jogak::api
