// SPDX-License-Identifier: Apache-2.0
//
// Files of MIG configurations. What is accepted reads back the same, and means something or is
// refused for a node.
#include <cstdint>
#include <string_view>

#include "agent/mig/config_file.h"
#include "agent/mig/profile_name.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak;
  using namespace jogak::agent;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto configs = read_mig_configs("f", text);
  if (!configs) return 0;
  JOGAK_CHECK(!configs->empty());
  const auto again = read_mig_configs("g", mig_configs_doc(*configs).yaml());
  JOGAK_CHECK(again.has_value(), "printed, but not accepted: {}", again.error().what);
  JOGAK_CHECK(*again == *configs, "printed, and read as another");

  nvml::NodeFacts node;
  for (int i = 0; i < 3; ++i) {
    nvml::GpuFacts gpu;
    gpu.index = i;
    gpu.uuid = std::string("GPU-") + static_cast<char>('0' + i);
    gpu.pci_device_id = 0x20B010DE;
    gpu.mig_capable = i != 2;
    node.gpus.push_back(gpu);
  }
  for (const MigConfig& config : *configs) {
    const auto goals = config_goals(config, node);
    if (goals) JOGAK_CHECK(!goals->empty() && goals->size() <= node.gpus.size());
  }
  return 0;
}
