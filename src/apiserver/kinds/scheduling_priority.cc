// SPDX-License-Identifier: Apache-2.0
//
// Priority classes. Those of the system are made by the server, cannot be deleted, and own a prefix
// of names; that only one class is the default is admission's business.
#include <array>
#include <string>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/kinds/scheduling_priority.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::int64_t kHighestUserPriority = 1'000'000'000;
constexpr std::string_view kSystemPrefix = "system-";

const SystemPriority* find_system(std::string_view name) {
  for (const SystemPriority& known : kSystemPriorities) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

// Why the class may not bear that name, "" when it may.
std::string misfit(const Doc& object) {
  const std::string& name = name_of(object);
  const SystemPriority* known = find_system(name);
  if (known == nullptr) return name + " is not a known system priority class";
  if (object["value"].as_int() != known->value) {
    return "value of " + name + " PriorityClass must be " + std::to_string(known->value);
  }
  if (object["globalDefault"].as_bool()) {
    return "globalDefault of " + name + " PriorityClass must be false";
  }
  return "";
}

class PriorityClassStrategy : public Strategy {
 public:
  void set_defaults(Doc& object) const override {
    object.set_default("preemptionPolicy", "PreemptLowerPriority");
  }
  void validate_create(const Doc& object, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    const std::string& name = name_of(object);
    if (name.starts_with(kSystemPrefix)) {
      if (const std::string why = misfit(object); !why.empty()) {
        errors.forbidden(Path("metadata.name"),
                         "priority class names with 'system-' prefix are reserved for system use "
                         "only. error: " +
                             why);
      }
    } else if (object["value"].as_int() > kHighestUserPriority) {
      errors.forbidden(Path("value"), "maximum allowed value of a user defined priority is " +
                                          std::to_string(kHighestUserPriority));
    }
    const std::string& policy = object["preemptionPolicy"].as_string();
    if (policy.empty()) {
      errors.required(Path("preemptionPolicy"));
    } else if (policy != "PreemptLowerPriority" && policy != "Never") {
      errors.not_supported(Path("preemptionPolicy"), policy, {"PreemptLowerPriority", "Never"});
    }
  }
  void validate_update(const Doc& object, const Doc& old, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    if (!same(object["value"], old["value"])) {
      errors.forbidden(Path("value"), "may not be changed in an update.");
    }
    require_same(object["preemptionPolicy"], old["preemptionPolicy"], Path("preemptionPolicy"),
                 errors);
  }
  bool spec_changed(const Doc& /*object*/, const Doc& /*old*/) const override { return false; }
  std::optional<ApiResult<Doc>> delete_instead(const Doc& object,
                                               WriteContext& /*context*/) const override {
    if (find_system(name_of(object)) == nullptr) return std::nullopt;
    return forbidden({"priorityclasses", "scheduling.k8s.io"}, name_of(object),
                     "this is a system priority class and cannot be deleted");
  }
};

}  // namespace

StrategyPtr priority_class_strategy() { return std::make_shared<PriorityClassStrategy>(); }

}  // namespace jogak::api
