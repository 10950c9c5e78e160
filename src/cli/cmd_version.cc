// SPDX-License-Identifier: Apache-2.0
//
// `jogak version`: the number in the file VERSION, passed in by CMake.
#include <fmt/core.h>

#include "cli/commands.h"

namespace jogak::cli {

int cmd_version(Args args) {
  if (!args.empty()) {
    fmt::print(stderr, "jogak version: takes no arguments, got {}\n", args.front());
    return kExitUsage;
  }
  fmt::print("jogak {}\n", JOGAK_VERSION);
  return kExitDone;
}

}  // namespace jogak::cli
