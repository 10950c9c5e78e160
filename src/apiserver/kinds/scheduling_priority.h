// SPDX-License-Identifier: Apache-2.0
//
// The priority classes every server has.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace jogak::api {

struct SystemPriority {
  std::string_view name;
  std::int64_t value;
  std::string_view description;
};

constexpr std::array<SystemPriority, 2> kSystemPriorities = {{
    {"system-node-critical", 2'000'001'000,
     "Used for system critical pods that must not be moved from their current node."},
    {"system-cluster-critical", 2'000'000'000,
     "Used for system critical pods that must run in the cluster, but can be moved to another "
     "node if necessary."},
}};

}  // namespace jogak::api
