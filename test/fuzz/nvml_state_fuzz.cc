// SPDX-License-Identifier: Apache-2.0
//
// State files of a simulated machine, as whatever a broken disk leaves of them: refused in words,
// or a state that is written and read back as itself and that the machine's own rules allow.
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "nvml/sim/machine.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak;
  using namespace jogak::nvml::sim;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const MachineSpec spec =
      *read_machine("m",
                    "apiVersion: jogak.io/v1\nkind: NvmlSimulation\nidentity: n\ngpus:\n"
                    "- {model: A100-SXM4-40GB, migEnabled: true}\n- {model: T4}\n");
  const auto make = [] { return *Machine::create(spec, {.now = [] { return TimeUs{0}; }}); };
  const std::unique_ptr<Machine> machine = make();
  const auto restored = machine->restore_state("f", text);
  if (!restored) {
    JOGAK_CHECK(restored.error().what.starts_with("f:"), "{}", restored.error().what);
    return 0;
  }
  const std::unique_ptr<Machine> again = make();
  const auto copied = again->restore_state("g", machine->state_text());
  JOGAK_CHECK(copied.has_value(), "{}", copied.error().what);
  JOGAK_CHECK(again->state_text() == machine->state_text(), "written, and read as another");
  return 0;
}
