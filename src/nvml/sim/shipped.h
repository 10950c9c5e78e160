// SPDX-License-Identifier: Apache-2.0
//
// The simulation files that the program brings along (share/nvml-sim), by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nvml/sim/machine_spec.h"

namespace jogak::nvml::sim {

// "a100-40gb-x8", ... in the order to show.
std::vector<std::string> shipped_names();
// The text of a file, "" for an unknown name.
std::string_view shipped_text(std::string_view name);

// A shipped name, or the path of a file (whatever has a '/' or ends in .yaml). `identity` as in
// read_machine(). Errors: Invalid, also for a name that is not there; those of reading a file.
Result<MachineSpec> load_machine(const std::string& name_or_file, std::string_view identity = {});

}  // namespace jogak::nvml::sim
