// SPDX-License-Identifier: Apache-2.0
//
// The catalogue of GPU models that simulation files name: facts of the hardware, and the MIG
// profiles as some driver reported them. For simulation only: the agent itself asks the driver.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nvml/sim/machine_spec.h"

namespace jogak::nvml::sim {

// Short names: "A100-SXM4-40GB", "T4". Nothing for an unknown one.
std::optional<GpuSpec> find_model(std::string_view name);
std::vector<std::string> model_names();

// The value of nvmlDeviceGetBrand and nvmlDeviceGetArchitecture; 0 and 0xFFFFFFFF when unknown.
std::uint32_t brand_value(std::string_view name);
std::string brand_name(std::uint32_t value);
std::uint32_t architecture_value(std::string_view name);
std::string architecture_name(std::uint32_t value);

}  // namespace jogak::nvml::sim
