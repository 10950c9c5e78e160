// SPDX-License-Identifier: Apache-2.0
//
// A line of standing faults, from an annotation or a file. What is read must be of GPUs that there
// are, and a machine must survive it, also when it is taken back.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "nvml/sim/machine.h"
#include "nvml/sim/models.h"
#include "nvml/sim/standing.h"

using jogak::TimeUs;
using namespace jogak::nvml::sim;  // NOLINT(google-build-using-namespace)

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto faults = parse_standing_faults(text, 1);
  if (!faults) {
    JOGAK_CHECK(!faults.error().what.empty());
    return 0;
  }
  TimeUs now = 0;
  MachineSpec spec;
  spec.gpus.push_back(find_model("T4").value_or(GpuSpec{}));
  const auto machine = Machine::create(spec, {.now = [&now] { return now; }});
  JOGAK_CHECK(machine.has_value());
  for (const FaultSpec& fault : *faults) JOGAK_CHECK(fault.gpu <= 0);
  (*machine)->stand(*faults);
  now += jogak::kSecondInUs;
  (*machine)->stand({});
  JOGAK_CHECK(!(*machine)->is_lost(0));
  return 0;
}
