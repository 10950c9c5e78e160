// SPDX-License-Identifier: Apache-2.0
//
// A pod's priority and preemption policy come from its priority class, or from the one class that
// is the default for all.
#include <optional>
#include <string>

#include "apiserver/admission/plugins.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::string_view kClasses = "priorityclasses.scheduling.k8s.io";

// Of several, which only a race could make, the one with the lowest value.
std::optional<Doc> default_class(const Lookup& lookup) {
  std::optional<Doc> found;
  for (Doc& candidate : lookup.list(kClasses, "")) {
    if (candidate["globalDefault"].as_bool() &&
        (!found || (*found)["value"].as_int() > candidate["value"].as_int())) {
      found = std::move(candidate);
    }
  }
  return found;
}

ApiResult<void> set_priority(Admission& admission, const Lookup& lookup) {
  Doc& spec = admission.object->at("spec");
  std::string name = spec["priorityClassName"].as_string();
  std::optional<Doc> from = name.empty() ? default_class(lookup) : lookup.get(kClasses, "", name);
  if (!name.empty() && !from) {
    return refuse(admission, "no PriorityClass with name " + name + " was found");
  }
  if (from) {
    name = name_of(*from);
    spec.set("priorityClassName", name);
  }
  const std::int64_t priority = from ? (*from)["value"].as_int() : 0;
  if (spec.has("priority") && spec["priority"].as_int() != priority) {
    return refuse(admission, "the integer value of priority (" + spec["priority"].number_text() +
                                 ") must not be provided in pod spec; priority admission "
                                 "controller computed " +
                                 std::to_string(priority) + " from the given PriorityClass name");
  }
  spec.set("priority", priority);
  const std::string policy =
      from ? (*from)["preemptionPolicy"].as_string() : "PreemptLowerPriority";
  if (policy.empty()) {
    return {};
  }
  if (spec.has("preemptionPolicy") && spec["preemptionPolicy"].as_string() != policy) {
    return refuse(admission, "the string value of PreemptionPolicy (" +
                                 spec["preemptionPolicy"].as_string() +
                                 ") must not be provided in pod spec; priority admission "
                                 "controller computed " +
                                 policy + " from the given PriorityClass name");
  }
  spec.set("preemptionPolicy", policy);
  return {};
}

class Priority : public AdmissionPlugin {
 public:
  ApiResult<void> mutate(Admission& admission, WriteContext& context) const override {
    if (!is_main(admission, "", "pods") || admission.object == nullptr) {
      return {};
    }
    if (admission.operation == Operation::Create) {
      return set_priority(admission, context.lookup);
    }
    // A client that knows nothing of priorities does not take them away.
    Doc& spec = admission.object->at("spec");
    for (const std::string_view key : {"priority", "preemptionPolicy"}) {
      if (!spec.has(key) && (*admission.old)["spec"].has(key)) {
        spec.set(key, (*admission.old)["spec"][key]);
      }
    }
    return {};
  }

  ApiResult<void> validate(const Admission& admission, WriteContext& context) const override {
    if (!is_main(admission, "scheduling.k8s.io", "priorityclasses") ||
        admission.object == nullptr || !(*admission.object)["globalDefault"].as_bool()) {
      return {};
    }
    const auto other = default_class(context.lookup);
    if (other && (admission.operation == Operation::Create ||
                  name_of(*other) != name_of(*admission.object))) {
      return refuse(admission, "PriorityClass " + name_of(*other) +
                                   " is already marked as default. Only one default can exist");
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> priority_admission() { return std::make_unique<Priority>(); }

}  // namespace jogak::api
