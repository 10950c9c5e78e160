// SPDX-License-Identifier: Apache-2.0
//
// What to do on a machine without a driver is part of the message, for every command with --nvml.
#pragma once

#include <string_view>

#include "base/result.h"

namespace jogak::cli {

// `error` of a source that `--nvml` named: of "auto" without a driver, with the simulations to try.
Error with_simulations(Error error, std::string_view nvml);

}  // namespace jogak::cli
