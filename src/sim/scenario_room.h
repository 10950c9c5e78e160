// SPDX-License-Identifier: Apache-2.0
// Whether every pod of a scenario could run on some node if that node were empty. A pod that never
// can is a mistake in the file, and waiting for it for ever would hide that.
#pragma once

#include "base/result.h"
#include "sim/scenario.h"

namespace jogak::sim {

// The first pod that no empty node can hold, with where it was written, what it asks for and what
// the largest node offers. Looks at resources and devices, not at labels, taints or other pods.
Result<void> check_room(const Scenario& scenario);

}  // namespace jogak::sim
