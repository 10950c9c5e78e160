// SPDX-License-Identifier: Apache-2.0
//
// scheduling.k8s.io/v1alpha2: pod groups and the workloads that describe them. Specs do not change.
// Members behind gates of their own (topology, preemption as a group, claims) are dropped.
#include <array>
#include <string>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::string_view kProtection = "scheduling.k8s.io/podgroup-protection";
constexpr std::size_t kTemplatesMax = 8;
constexpr std::array<std::string_view, 5> kGated = {
    "schedulingConstraints", "resourceClaims", "disruptionMode", "priorityClassName", "priority"};

void drop_gated(Doc& spec, const Doc& old) {
  for (const std::string_view member : kGated) {
    if (same(old[member], {})) spec.erase(member);
  }
}

void require_name(const Doc& owner, std::string_view member, NameCheck check, const Path& at,
                  FieldErrors& errors) {
  const std::string& name = owner[member].as_string();
  if (name.empty()) {
    errors.required(at.child(member));
  } else {
    validate_name(name, check, at.child(member), errors);
  }
}

void validate_policy(const Doc& policy, const Path& at, FieldErrors& errors) {
  const bool is_basic = policy.has("basic");
  const bool is_gang = policy.has("gang");
  if (!is_basic && !is_gang) {
    errors.invalid(at, "", "must specify one of: `basic`, `gang`");
  }
  if (is_basic && is_gang) {
    errors.invalid(at, "{basic, gang}", "must specify exactly one of: `basic`, `gang`");
  }
  if (!is_gang) return;
  const std::int64_t count = policy.get("gang", "minCount").as_int();
  const Path count_at = at.child("gang", "minCount");
  if (count == 0) errors.required(count_at);
  if (count < 0) errors.invalid(count_at, count, "must be greater than or equal to 1");
}

void validate_template_reference(const Doc& reference, const Path& at, FieldErrors& errors) {
  if (reference.is_null()) return;
  const Doc* workload = reference.find("workload");
  if (workload == nullptr) {
    errors.invalid(at, "", "must specify one of: `workload`");
    return;
  }
  require_name(*workload, "workloadName", check_dns1123_subdomain, at.child("workload"), errors);
  require_name(*workload, "podGroupTemplateName", check_dns1123_label, at.child("workload"),
               errors);
}

class PodGroupStrategy : public PlainStrategy {
 public:
  void set_defaults(Doc& group) const override {
    Doc& spec = group.at("spec");
    if (!spec.is_object()) spec = Doc::object();
    spec.set_default("disruptionMode", "Pod");
  }
  void prepare_create(Doc& group, WriteContext& /*context*/) const override {
    group.erase("status");
    drop_gated(group.at("spec"), {});
    group.at("spec").set("disruptionMode", "Pod");  // the default comes back on every read
    if (!has_finalizer(group, kProtection)) group.at("metadata", "finalizers").push(kProtection);
  }
  void validate_create(const Doc& group, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    const Doc& spec = group["spec"];
    validate_template_reference(spec["podGroupTemplateRef"], Path("spec.podGroupTemplateRef"),
                                errors);
    validate_policy(spec["schedulingPolicy"], Path("spec.schedulingPolicy"), errors);
  }
  void prepare_update(Doc& group, const Doc& old, WriteContext& context) const override {
    Strategy::prepare_update(group, old, context);
    drop_gated(group.at("spec"), old["spec"]);
  }
  void validate_update(const Doc& group, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    for (const std::string_view member : {"podGroupTemplateRef", "schedulingPolicy"}) {
      require_same_quietly(group["spec"][member], old["spec"][member], Path("spec").child(member),
                           errors);
    }
    for (const std::string_view member : kGated) {
      if (!same(group["spec"][member], old["spec"][member])) {
        errors.forbidden(Path("spec").child(member), "");
      }
    }
  }
  void validate_subresource_update(std::string_view /*subresource*/, const Doc& group,
                                   const Doc& /*old*/, WriteContext& /*context*/,
                                   FieldErrors& errors) const override {
    validate_conditions(group.get("status", "conditions"), Path("status.conditions"), errors);
  }
  void prepare_subresource_update(std::string_view subresource, Doc& group, const Doc& old,
                                  WriteContext& context) const override {
    Strategy::prepare_subresource_update(subresource, group, old, context);
    if (Doc* status = group.find("status")) status->erase("resourceClaimStatuses");
  }
};

class WorkloadStrategy : public PlainStrategy {
 public:
  void prepare_create(Doc& workload, WriteContext& /*context*/) const override {
    for_templates(workload, {});
  }
  void validate_create(const Doc& workload, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_controller(workload.get("spec", "controllerRef"), errors);
    validate_templates(workload.get("spec", "podGroupTemplates"), errors);
  }
  void prepare_update(Doc& workload, const Doc& old, WriteContext& /*context*/) const override {
    for_templates(workload, old.get("spec", "podGroupTemplates"));
  }
  void validate_update(const Doc& workload, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    const Path at("spec.podGroupTemplates");
    require_same_quietly(workload.get("spec", "controllerRef"), old.get("spec", "controllerRef"),
                         Path("spec.controllerRef"), errors);
    const Doc& templates = workload.get("spec", "podGroupTemplates");
    if (same(templates, old.get("spec", "podGroupTemplates"))) return;
    errors.invalid(at, {}, "field is immutable");
    if (templates.empty()) errors.required(at);
    if (templates.size() > kTemplatesMax) errors.too_many(at, templates.size(), kTemplatesMax);
  }

 private:
  static void for_templates(Doc& workload, const Doc& old) {
    if (workload.get("spec", "podGroupTemplates").empty()) return;
    Doc& templates = workload.at("spec", "podGroupTemplates");
    for (std::size_t i = 0; i < templates.size(); ++i) {
      drop_gated(templates.items()[i], i < old.size() ? old.items()[i] : Doc());
    }
  }
  static void validate_controller(const Doc& reference, FieldErrors& errors) {
    if (reference.is_null()) return;
    const Path at("spec.controllerRef");
    const std::string& group = reference["apiGroup"].as_string();
    if (!group.empty()) {
      validate_name(group, check_dns1123_subdomain, at.child("apiGroup"), errors);
    }
    require_name(reference, "kind", check_path_segment, at, errors);
    require_name(reference, "name", check_path_segment, at, errors);
  }
  static void validate_templates(const Doc& templates, FieldErrors& errors) {
    const Path at("spec.podGroupTemplates");
    if (templates.empty()) {
      errors.required(at);
      return;
    }
    if (templates.size() > kTemplatesMax) {
      errors.too_many(at, templates.size(), kTemplatesMax);
      return;
    }
    validate_unique(
        templates, at, [](const Doc& item) { return Doc::object().set("name", item["name"]); },
        errors);
    for (std::size_t i = 0; i < templates.size(); ++i) {
      require_name(templates.items()[i], "name", check_dns1123_label, at.index(i), errors);
      validate_policy(templates.items()[i]["schedulingPolicy"],
                      at.index(i).child("schedulingPolicy"), errors);
    }
  }
};

}  // namespace

StrategyPtr pod_group_strategy() { return std::make_shared<PodGroupStrategy>(); }
StrategyPtr workload_strategy() { return std::make_shared<WorkloadStrategy>(); }

}  // namespace jogak::api
