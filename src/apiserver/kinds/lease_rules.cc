// SPDX-License-Identifier: Apache-2.0
//
// Leases: a PUT may create one, and must name the version it replaces.
#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"

namespace jogak::api {

namespace {

class LeaseStrategy : public PlainStrategy {
 public:
  void validate_create(const Doc& lease, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    const Doc& spec = lease["spec"];
    const Path at("spec");
    if (spec.has("leaseDurationSeconds") && spec["leaseDurationSeconds"].as_int() <= 0) {
      errors.invalid(at.child("leaseDurationSeconds"), spec["leaseDurationSeconds"],
                     "must be greater than 0");
    }
    if (spec["leaseTransitions"].as_int() < 0) {
      errors.invalid(at.child("leaseTransitions"), spec["leaseTransitions"],
                     "must be greater than or equal to 0");
    }
  }
  void validate_update(const Doc& lease, const Doc& /*old*/, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_create(lease, context, errors);
  }
  void prepare_create(Doc& lease, WriteContext& /*context*/) const override { drop(lease, {}); }
  void prepare_update(Doc& lease, const Doc& old, WriteContext& /*context*/) const override {
    drop(lease, old);
  }

  bool allows_create_on_update() const override { return true; }
  bool allows_unconditional_update() const override { return false; }

 private:
  // Members of coordinated leader election, which is off by default.
  static void drop(Doc& lease, const Doc& old) {
    Doc* spec = lease.find("spec");
    if (spec == nullptr) return;
    for (const std::string_view member : {"strategy", "preferredHolder"}) {
      if (!old["spec"].has(member)) spec->erase(member);
    }
  }
};

}  // namespace

StrategyPtr lease_strategy() { return std::make_shared<LeaseStrategy>(); }

}  // namespace jogak::api
