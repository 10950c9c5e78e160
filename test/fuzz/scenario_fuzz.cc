// SPDX-License-Identifier: Apache-2.0
//
// Scenario files. What is accepted is played, with every check on, where it is small; the core may
// still refuse a node or pod, in words, but nothing may break.
#include <cstdint>
#include <string_view>

#include "sim/scenario_run.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak::sim;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Scenario scenario;
  if (!parse_scenario("f", text, scenario) || !check_scenario(scenario)) return 0;
  if (scenario.nodes.size() > 20 || scenario.pods.size() > 60 || scenario.events.size() > 40) {
    return 0;
  }
  const auto result = run_scenario(scenario, {.policy = "", .check = true});
  static_cast<void>(result);
  return 0;
}
