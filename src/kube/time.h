// SPDX-License-Identifier: Apache-2.0
// Times as Kubernetes writes them (RFC 3339, "2026-02-02T02:09:39Z") to nanoseconds since 1970.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace jogak::kube {

// nullopt: not such a time, or before 1678 or after 2262, which nanoseconds in 64 bits cannot hold.
std::optional<std::int64_t> parse_time(std::string_view text);

}  // namespace jogak::kube
