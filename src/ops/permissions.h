// SPDX-License-Identifier: Apache-2.0
//
// Everything the scheduler asks of the API server, in one place: what is checked before it starts,
// and what the role in deploy/ must grant, no more and no less (a test compares them).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace jogak::ops {

struct Permission {
  std::string_view verb;      // "list"
  std::string_view group;     // "policy", "" for the core group
  std::string_view resource;  // "poddisruptionbudgets"
  std::string_view subresource = {};
  // Only in the namespace of the lease; else everywhere.
  bool is_lease = false;
};
std::span<const Permission> permissions();

// "list poddisruptionbudgets.policy", "create pods/binding".
std::string permission_text(const Permission& permission);

}  // namespace jogak::ops
