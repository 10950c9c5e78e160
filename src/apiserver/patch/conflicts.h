// SPDX-License-Identifier: Apache-2.0
//
// What an apply would take from other managers.
#pragma once

#include <string>
#include <vector>

#include "apiserver/object/api_error.h"
#include "apiserver/patch/field_set.h"

namespace jogak::patch {

struct Conflict {
  std::string manager;  // manager_text()
  FieldPath path;
};

// 409 with a cause for every conflict, in their order.
api::Refusal conflict_error(const std::vector<Conflict>& conflicts);

}  // namespace jogak::patch
