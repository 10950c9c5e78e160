// SPDX-License-Identifier: Apache-2.0
// What `jogak up` says when it is ready.
#pragma once

#include <string>

#include "playground/up.h"

namespace jogak::cli {

// `kubectl` is the program to name in the commands.
std::string up_screen(playground::Up& up, const std::string& kubeconfig, const std::string& kubectl,
                      TimeUs start_time);

}  // namespace jogak::cli
