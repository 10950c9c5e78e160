// SPDX-License-Identifier: Apache-2.0
//
// The plugins together, in their order.
#include "apiserver/admission/admission.h"

#include <utility>

#include "apiserver/admission/plugins.h"

namespace jogak::api {

std::vector<std::unique_ptr<AdmissionPlugin>> default_admission(StatusWriter write_status) {
  std::vector<std::unique_ptr<AdmissionPlugin>> plugins;
  plugins.push_back(namespace_lifecycle());
  plugins.push_back(limit_ranger());
  plugins.push_back(taint_nodes_by_condition());
  plugins.push_back(priority_admission());
  plugins.push_back(default_toleration_seconds());
  plugins.push_back(default_storage_class());
  plugins.push_back(storage_in_use_protection());
  plugins.push_back(claim_resize());
  plugins.push_back(runtime_class_admission());
  plugins.push_back(pod_topology_labels());
  plugins.push_back(resource_quota(std::move(write_status)));
  return plugins;
}

}  // namespace jogak::api
