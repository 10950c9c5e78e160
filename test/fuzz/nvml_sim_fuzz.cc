// SPDX-License-Identifier: Apache-2.0
//
// Simulation files: any bytes are refused in words, or give a machine that is written and read back
// as itself, whose instances fit or are refused, and that answers for the next hours.
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "nvml/nvml_source.h"
#include "nvml/sim/machine.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak;
  using namespace jogak::nvml;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto spec = sim::read_machine("f", text);
  if (!spec) {
    JOGAK_CHECK(spec.error().what.starts_with("f:"), "{}", spec.error().what);
    return 0;
  }
  const auto again = sim::read_machine("w", sim::write_machine(*spec, ""));
  JOGAK_CHECK(again.has_value(), "{}", again.error().what);
  JOGAK_CHECK(*again == *spec);

  const auto clock = std::make_shared<TimeUs>(0);
  auto machine = sim::Machine::create(*spec, {.now = [clock] { return *clock; }});
  if (!machine) {
    JOGAK_CHECK(machine.error().what.find("migInstances") != std::string::npos);
    return 0;
  }
  const auto source = NvmlSource::of_machine(*std::move(machine), [clock] { return *clock; });
  for (const TimeUs time : {TimeUs{0}, 5 * kSecondInUs, 3600 * kSecondInUs}) {
    *clock = time;
    const auto node = source->facts();
    if (!node) continue;
    JOGAK_CHECK(node->gpus.size() == spec->gpus.size());
    for (const GpuFacts& gpu : node->gpus) {
      if (!gpu.uuid.empty()) (void)source->sample(gpu.uuid, {});
    }
    (void)source->poll_events(0);
  }
  return 0;
}
