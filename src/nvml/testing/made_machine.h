// SPDX-License-Identifier: Apache-2.0
//
// Simulated machines for tests: a short file, a clock that the test moves, and a source on it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "nvml/gpu_source.h"
#include "nvml/nvml_source.h"
#include "nvml/sim/machine.h"

namespace jogak::nvml::testing {

// "apiVersion..., kind..." with the given rest.
std::string machine_text(std::string_view rest);

struct MadeMachine {
  std::shared_ptr<TimeUs> clock = std::make_shared<TimeUs>(0);
  std::shared_ptr<sim::Machine> machine;
  std::unique_ptr<NvmlSource> source;

  // The text after apiVersion and kind; a bad one fails a check.
  explicit MadeMachine(std::string_view rest);

  void to(TimeUs time) { *clock = time; }
  NodeFacts facts();              // CHECKs success
  GpuSample sample(int gpu = 0);  // CHECKs success
  std::string uuid(int gpu = 0);
};

}  // namespace jogak::nvml::testing
