// SPDX-License-Identifier: Apache-2.0
//
// Pod disruption budgets.
#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/workload.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/kinds/workload_template.h"

namespace jogak::api {

namespace {

void validate_spec(const Doc& spec, FieldErrors& errors) {
  const Path at("spec");
  if (spec.has("minAvailable") && spec.has("maxUnavailable")) {
    errors.invalid(at, spec, "minAvailable and maxUnavailable cannot be both set");
  }
  for (const std::string_view name : {"minAvailable", "maxUnavailable"}) {
    check_int_or_percent(spec[name], at.child(name), errors);
    check_at_most_100_percent(spec[name], at.child(name), errors);
  }
  validate_label_selector(spec["selector"], at.child("selector"), errors);
  if (spec.has("unhealthyPodEvictionPolicy")) {
    check_supported(spec["unhealthyPodEvictionPolicy"], {"AlwaysAllow", "IfHealthyBudget"},
                    at.child("unhealthyPodEvictionPolicy"), errors);
  }
}

class DisruptionBudgetStrategy : public StatusStrategy {
 public:
  NameCheck name_check() const override { return check_path_segment; }
  bool allows_unconditional_update() const override { return false; }

  void validate_create(const Doc& object, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_spec(object["spec"], errors);
  }
  void validate_update(const Doc& object, const Doc& /*old*/, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_spec(object["spec"], errors);
  }

  void validate_subresource_update(std::string_view /*subresource*/, const Doc& object,
                                   const Doc& /*old*/, WriteContext& /*context*/,
                                   FieldErrors& errors) const override {
    const Path at("status");
    const Doc& status = object["status"];
    validate_conditions(status["conditions"], at.child("conditions"), errors);
    check_not_negative(status,
                       {"disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"},
                       at, errors);
  }
};

}  // namespace

std::shared_ptr<const Strategy> disruption_budget_strategy() {
  return std::make_shared<DisruptionBudgetStrategy>();
}

void add_policy_kinds(Registry& registry) {
  registry.add(make_resource({.group = "policy",
                              .version = "v1",
                              .plural = "poddisruptionbudgets",
                              .singular = "poddisruptionbudget",
                              .kind = "PodDisruptionBudget",
                              .short_names = {"pdb"},
                              .in_all = false},
                             disruption_budget_strategy()));
}

}  // namespace jogak::api
