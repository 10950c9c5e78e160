// SPDX-License-Identifier: Apache-2.0
//
// A pod of a runtime class gets what the class costs and where it may run.
#include <algorithm>
#include <optional>
#include <string>

#include "apiserver/admission/plugins.h"
#include "base/result.h"

namespace jogak::api {

namespace {

constexpr std::string_view kMismatch =
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

// Null without a class; a refusal when the pod names one that does not exist.
ApiResult<Doc> class_of(const Admission& admission, const Lookup& lookup) {
  const Doc& name = (*admission.object)["spec"]["runtimeClassName"];
  if (name.is_null()) {
    return Doc();
  }
  auto found = lookup.get("runtimeclasses.node.k8s.io", "", name.as_string());
  if (!found) {
    return refuse(admission, "pod rejected: RuntimeClass \"" + name.as_string() + "\" not found");
  }
  return *std::move(found);
}

ApiResult<void> set_scheduling(const Admission& admission, const Doc& scheduling, Doc& spec) {
  for (const Doc::Member& label : scheduling["nodeSelector"].members()) {
    const Doc& own = spec["nodeSelector"][label.key];
    if (!own.is_null() && own != label.value) {
      return refuse(admission, "conflict: runtimeClass.scheduling.nodeSelector[" + label.key +
                                   "] = " + label.value.as_string() + "; pod.spec.nodeSelector[" +
                                   label.key + "] = " + own.as_string());
    }
    spec.at("nodeSelector").set(label.key, label.value);
  }
  for (const Doc& toleration : scheduling["tolerations"].items()) {
    const auto& own = spec["tolerations"].items();
    if (std::ranges::find(own, toleration) == own.end()) {
      spec.at("tolerations").push(toleration);
    }
  }
  return {};
}

class RuntimeClass : public AdmissionPlugin {
 public:
  ApiResult<void> mutate(Admission& admission, WriteContext& context) const override {
    if (!applies(admission)) {
      return {};
    }
    JOGAK_TRY(const Doc runtime, class_of(admission, context.lookup));
    if (runtime.is_null()) {
      return {};
    }
    Doc& spec = admission.object->at("spec");
    if (const Doc& fixed = runtime["overhead"]["podFixed"]; !fixed.is_null()) {
      if (!spec["overhead"].empty() && spec["overhead"] != fixed) {
        return refuse(admission, kMismatch);
      }
      spec.set("overhead", fixed);
    }
    return set_scheduling(admission, runtime["scheduling"], spec);
  }

  ApiResult<void> validate(const Admission& admission, WriteContext& context) const override {
    if (!applies(admission)) {
      return {};
    }
    JOGAK_TRY(const Doc runtime, class_of(admission, context.lookup));
    const Doc& own = (*admission.object)["spec"]["overhead"];
    if (runtime.has("overhead")) {
      if (own != runtime["overhead"]["podFixed"]) {
        return refuse(admission, kMismatch);
      }
    } else if (!own.is_null()) {
      return refuse(admission,
                    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined "
                    "Overhead");
    }
    return {};
  }

 private:
  static bool applies(const Admission& admission) {
    return is_main(admission, "", "pods") && admission.operation == Operation::Create;
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> runtime_class_admission() {
  return std::make_unique<RuntimeClass>();
}

}  // namespace jogak::api
