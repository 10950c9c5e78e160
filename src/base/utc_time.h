// SPDX-License-Identifier: Apache-2.0
//
// Times as Kubernetes writes them: RFC 3339 in UTC, whole seconds ("2026-02-02T02:09:39Z") or, in
// leases and events, always six decimals. Of the years 0 to 9999.
#pragma once

#include <string>

#include "base/loop.h"

namespace jogak {

std::string utc_seconds(TimeUs time);
std::string utc_micros(TimeUs time);

}  // namespace jogak
