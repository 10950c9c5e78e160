// SPDX-License-Identifier: Apache-2.0
//
// One maker a plugin, and what they share.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "apiserver/admission/admission.h"

namespace jogak::api {

std::unique_ptr<AdmissionPlugin> namespace_lifecycle();
std::unique_ptr<AdmissionPlugin> limit_ranger();
std::unique_ptr<AdmissionPlugin> taint_nodes_by_condition();
std::unique_ptr<AdmissionPlugin> priority_admission();
std::unique_ptr<AdmissionPlugin> default_toleration_seconds();
std::unique_ptr<AdmissionPlugin> default_storage_class();
std::unique_ptr<AdmissionPlugin> storage_in_use_protection();
std::unique_ptr<AdmissionPlugin> claim_resize();
std::unique_ptr<AdmissionPlugin> runtime_class_admission();
std::unique_ptr<AdmissionPlugin> pod_topology_labels();
std::unique_ptr<AdmissionPlugin> resource_quota(StatusWriter write_status);

inline bool is_for(const Admission& admission, std::string_view group, std::string_view plural) {
  return admission.resource.plural == plural && admission.resource.group == group;
}
// The object itself, not one of its subresources.
inline bool is_main(const Admission& admission, std::string_view group, std::string_view plural) {
  return admission.subresource.empty() && is_for(admission, group, plural);
}

inline Refusal refuse(const Admission& admission, std::string_view why) {
  return forbidden(admission.resource.name(), admission.name, why);
}

}  // namespace jogak::api
