// SPDX-License-Identifier: Apache-2.0
//
// All families in the order in which the registry lists them.
#include "apiserver/kinds/kinds.h"

namespace jogak::api {

void add_builtin_kinds(Registry& registry, const KindOptions& options) {
  add_core_kinds(registry, options);
  add_pod_kinds(registry, options);
  add_workload_kinds(registry, options);
  add_review_kinds(registry, options);
  add_stored_kinds(registry, options);
}

}  // namespace jogak::api
