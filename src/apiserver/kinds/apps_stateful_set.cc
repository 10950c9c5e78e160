// SPDX-License-Identifier: Apache-2.0
//
// Stateful sets: defaults down to the claim templates, the few members that may change, status.
#include <array>
#include <set>

#include "apiserver/kinds/apps.h"
#include "apiserver/kinds/pod_spec.h"
#include "apiserver/kinds/storage_rules.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/kinds/workload_template.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/selector.h"

namespace jogak::api {

namespace {

// What an update may change in the spec.
constexpr std::array<std::string_view, 7> kMutable = {"replicas",
                                                      "template",
                                                      "updateStrategy",
                                                      "minReadySeconds",
                                                      "ordinals",
                                                      "revisionHistoryLimit",
                                                      "persistentVolumeClaimRetentionPolicy"};

// What a check of the spec leaves out, for objects that were stored under older rules.
struct Leniency {
  bool skip_claims = false;
  bool skip_service_name = false;
  bool skip_template = false;
};

// A claim template is written out as a whole object, kind and status included.
void default_claim_template(Doc& claim) {
  claim.set("kind", "PersistentVolumeClaim").set("apiVersion", "v1");
  default_claim_spec(claim.at("spec"));
  if (claim["status"]["phase"].as_string().empty()) claim.at("status", "phase") = "Pending";
}

void default_update_strategy(Doc& strategy) {
  if (strategy["type"].as_string().empty()) {
    strategy.set("type", "RollingUpdate");
    if (strategy["rollingUpdate"].is_null()) strategy.set("rollingUpdate", Doc::object());
  }
  if (strategy["type"].as_string() == "RollingUpdate" && strategy.has("rollingUpdate")) {
    strategy.at("rollingUpdate").set_default("partition", 0);
  }
}

void validate_update_strategy(const Doc& strategy, const Path& at, FieldErrors& errors) {
  const std::string& type = strategy["type"].as_string();
  const Doc& rolling = strategy["rollingUpdate"];
  const Path rolling_at = at.child("rollingUpdate");
  if (type == "OnDelete") {
    if (!rolling.is_null()) {
      errors.invalid(rolling_at, rolling, "only allowed for updateStrategy 'RollingUpdate'");
    }
    return;
  }
  if (type != "RollingUpdate") {
    errors.invalid(at, strategy, "must be 'RollingUpdate' or 'OnDelete'");
    return;
  }
  check_not_negative(rolling, "partition", rolling_at, errors);
  if (!rolling.has("maxUnavailable")) return;
  const Doc& unavailable = rolling["maxUnavailable"];
  const Path unavailable_at = rolling_at.child("maxUnavailable");
  check_int_or_percent(unavailable, unavailable_at, errors);
  if (int_or_percent_value(unavailable) == 0) {
    errors.invalid(unavailable_at, unavailable, "cannot be 0");
  }
  check_at_most_100_percent(unavailable, unavailable_at, errors);
}

// The template as its pods will see it: the controller sets host name and subdomain, and adds a
// volume for each claim template.
Doc template_to_check(const Doc& spec) {
  Doc pod_template = spec["template"];
  const Doc& claims = spec["volumeClaimTemplates"];
  Doc& pod_spec = pod_template.at("spec");
  pod_spec.erase("subdomain");
  pod_spec.erase("hostname");
  if (claims.empty()) return pod_template;
  Doc volumes = Doc::array();
  std::set<std::string_view> names;
  for (const Doc& claim : claims.items()) {
    if (!names.insert(name_of(claim)).second) continue;
    Doc volume;
    volume.set("name", name_of(claim));
    volume.at("persistentVolumeClaim", "claimName") = name_of(claim);
    volumes.push(std::move(volume));
  }
  for (const Doc& volume : pod_spec["volumes"].items()) {
    if (!names.contains(volume["name"].as_string())) volumes.push(volume);
  }
  pod_spec.set("volumes", std::move(volumes));
  return pod_template;
}

void validate_template(const Doc& spec, const Path& at, const Leniency& leniency,
                       FieldErrors& errors) {
  const Doc pod_template = template_to_check(spec);
  const Doc& metadata = pod_template["metadata"];
  const LabelSelector selector = LabelSelector::from_object(spec["selector"]);
  if (!selector.is_everything() && !selector.matches(metadata["labels"])) {
    errors.invalid(at.child("metadata", "labels"), metadata["labels"], kSelectorMismatch);
  }
  if (!leniency.skip_template) validate_pod_template(pod_template, at, errors);
  validate_labels(metadata["labels"], at.child("labels"), errors);
  validate_annotations(metadata["annotations"], at.child("annotations"), errors);
}

void validate_retention(const Doc& policy, const Path& at, FieldErrors& errors) {
  if (policy.is_null()) return;
  for (const std::string_view name : {"whenDeleted", "whenScaled"}) {
    check_supported(policy[name], {"Retain", "Delete"}, at.child(name), errors);
  }
}

void validate_spec(const Doc& spec, const Leniency& leniency, FieldErrors& errors) {
  const Path at("spec");
  const std::string& management = spec["podManagementPolicy"].as_string();
  if (management != "OrderedReady" && management != "Parallel") {
    errors.invalid(at.child("podManagementPolicy"), management,
                   "must be 'OrderedReady' or 'Parallel'");
  }
  validate_update_strategy(spec["updateStrategy"], at.child("updateStrategy"), errors);
  validate_retention(spec["persistentVolumeClaimRetentionPolicy"],
                     at.child("persistentVolumeClaimRetentionPolicy"), errors);
  const Doc::Items& claims = spec["volumeClaimTemplates"].items();
  for (std::size_t i = 0; i < claims.size() && !leniency.skip_claims; ++i) {
    validate_claim_spec(claims[i]["spec"], at.child("volumeClaimTemplates").index(i).child("spec"),
                        errors);
  }
  check_not_negative(spec, {"replicas", "minReadySeconds"}, at, errors);
  if (spec["ordinals"]["start"].as_int() < 0) {
    errors.invalid(at.child("ordinals.start"), spec["ordinals"]["start"], kNotNegative);
  }
  const Doc& service = spec["serviceName"];
  if (!leniency.skip_service_name && !service.as_string().empty()) {
    add_problems(errors, at.child("serviceName"), service,
                 check_dns1123_label(service.as_string()));
  }
  if (check_selector(spec["selector"], "statefulset", at.child("selector"), errors)) {
    validate_template(spec, at.child("template"), leniency, errors);
  } else {
    errors.invalid(at.child("selector"), spec["selector"], "");
  }
  check_runs_forever(spec["template"], "StatefulSet", at.child("template"), errors);
}

bool changes_more(const Doc& spec, const Doc& old) {
  Doc now = spec;
  Doc before = old;
  for (const std::string_view key : kMutable) {
    now.erase(key);
    before.erase(key);
  }
  return !(now == before);
}

class StatefulSetStrategy : public TemplateStrategy {
 public:
  using TemplateStrategy::TemplateStrategy;

  NameCheck name_check() const override { return check_dns1123_label; }

  void set_defaults(Doc& object) const override {
    Doc& spec = object.at("spec");
    if (spec["podManagementPolicy"].as_string().empty()) {
      spec.set("podManagementPolicy", "OrderedReady");
    }
    default_update_strategy(spec.at("updateStrategy"));
    Doc& retention = spec.at("persistentVolumeClaimRetentionPolicy");
    for (const std::string_view name : {"whenDeleted", "whenScaled"}) {
      if (retention[name].as_string().empty()) retention.set(name, "Retain");
    }
    spec.set_default("replicas", 1);
    spec.set_default("revisionHistoryLimit", 10);
    default_pod_template(spec.at("template"));
    if (Doc* claims = spec.find("volumeClaimTemplates"); claims != nullptr && claims->is_array()) {
      for (Doc& claim : claims->items()) default_claim_template(claim);
    }
  }

  void prepare_create(Doc& object, WriteContext& context) const override {
    TemplateStrategy::prepare_create(object, context);
    drop_max_unavailable(object);
  }

  void prepare_update(Doc& object, const Doc& old, WriteContext& context) const override {
    TemplateStrategy::prepare_update(object, old, context);
    if (!old["spec"]["updateStrategy"]["rollingUpdate"].has("maxUnavailable")) {
      drop_max_unavailable(object);
    }
  }

  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_spec(object["spec"], {}, errors);
    warn_on_create(object, false, errors, context);
    warn_about_history(object, errors, context);
  }

  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    Leniency leniency{.skip_claims = true, .skip_service_name = true, .skip_template = false};
    FieldErrors of_old;
    validate_spec(old["spec"], leniency, of_old);
    leniency.skip_template = !of_old.empty();
    validate_spec(object["spec"], leniency, errors);
    if (changes_more(object["spec"], old["spec"])) {
      errors.forbidden(Path("spec"),
                       "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
                       "'template', 'updateStrategy', 'revisionHistoryLimit', "
                       "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are "
                       "forbidden");
    }
    warn_on_update(object, old, errors, context);
    warn_about_history(object, errors, context);
  }

  void validate_subresource_update(std::string_view /*subresource*/, const Doc& object,
                                   const Doc& old, WriteContext& /*context*/,
                                   FieldErrors& errors) const override {
    const Doc& status = object["status"];
    const Path at("status");
    check_not_negative(status,
                       {"replicas", "readyReplicas", "currentReplicas", "updatedReplicas",
                        "availableReplicas", "observedGeneration", "collisionCount"},
                       at, errors);
    for (const std::string_view name :
         {"readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"}) {
      check_at_most(status, name, "replicas", "cannot be greater than status.replicas", at, errors);
    }
    check_at_most(status, "availableReplicas", "readyReplicas",
                  "cannot be greater than status.readyReplicas", at, errors);
    check_collisions(status, old["status"], at, errors);
  }

 private:
  // maxUnavailable of stateful sets is behind a gate that is off.
  static void drop_max_unavailable(Doc& object) {
    Doc& strategy = object.at("spec", "updateStrategy");
    if (Doc* rolling = strategy.find("rollingUpdate")) rolling->erase("maxUnavailable");
  }

  static void warn_about_history(const Doc& object, const FieldErrors& errors,
                                 WriteContext& context) {
    if (!errors.empty() || object["spec"]["revisionHistoryLimit"].as_int() >= 0) return;
    context.warnings.emplace_back(
        "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= "
        "0 is recommended");
  }
};

}  // namespace

std::shared_ptr<const Strategy> stateful_set_strategy(const KindOptions& options) {
  return std::make_shared<StatefulSetStrategy>(options);
}

}  // namespace jogak::api
