// SPDX-License-Identifier: Apache-2.0
//
// What whoever keeps up with a collection is told of one of its objects.
#pragma once

#include <string_view>

namespace jogak::kube {

// Views hold during the call only.
struct ObjectChange {
  bool is_deleted = false;
  // Deleted, seen only as a gap between two lists: `json` is empty.
  bool is_gap = false;
  std::string_view ns, name, uid, version;
  std::string_view json;  // the whole object; its last state when deleted
};

}  // namespace jogak::kube
