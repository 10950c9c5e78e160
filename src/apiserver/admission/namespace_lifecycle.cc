// SPDX-License-Identifier: Apache-2.0
//
// Objects live in namespaces that exist; nothing new comes into one that ends; three namespaces
// stay.
#include <string>

#include "apiserver/admission/plugins.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

bool is_immortal(std::string_view name) {
  return name == "default" || name == "kube-system" || name == "kube-public";
}

class NamespaceLifecycle : public AdmissionPlugin {
 public:
  ApiResult<void> mutate(Admission& admission, WriteContext& context) const override {
    if (is_for(admission, "", "namespaces") || admission.ns.empty() ||
        admission.operation == Operation::Delete) {
      return {};
    }
    const auto space = context.lookup.get("namespaces", "", admission.ns);
    if (!space) {
      return not_found({"namespaces", ""}, admission.ns);
    }
    if (admission.operation != Operation::Create ||
        (*space)["status"]["phase"].as_string() != "Terminating") {
      return {};
    }
    const std::string ns(admission.ns);
    Refusal refusal = refuse(admission, "unable to create new content in namespace " + ns +
                                            " because it is being terminated");
    refusal.error().causes.push_back({.reason = "NamespaceTerminating",
                                      .message = "namespace " + ns + " is being terminated",
                                      .field = "metadata.namespace"});
    return refusal;
  }

  ApiResult<void> validate(const Admission& admission, WriteContext& /*context*/) const override {
    if (admission.operation == Operation::Delete && is_for(admission, "", "namespaces") &&
        is_immortal(admission.name)) {
      return refuse(admission, "this namespace may not be deleted");
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> namespace_lifecycle() {
  return std::make_unique<NamespaceLifecycle>();
}

}  // namespace jogak::api
