// SPDX-License-Identifier: Apache-2.0
//
// MicroTime as Kubernetes wants it in leases and events: "2026-02-02T02:09:39.000000Z", always six
// decimals (others are refused).
#pragma once

#include <string>

#include "base/loop.h"

namespace jogak::kube {

// Of the years 0 to 9999.
std::string micro_time(TimeUs time);

}  // namespace jogak::kube
