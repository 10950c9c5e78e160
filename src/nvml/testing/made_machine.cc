// SPDX-License-Identifier: Apache-2.0
//
// See made_machine.h.
#include "nvml/testing/made_machine.h"

#include "base/check.h"

namespace jogak::nvml::testing {

std::string machine_text(std::string_view rest) {
  return "apiVersion: jogak.io/v1\nkind: NvmlSimulation\n" + std::string(rest);
}

MadeMachine::MadeMachine(std::string_view rest) {
  auto spec = sim::read_machine("m.yaml", machine_text(rest));
  JOGAK_CHECK(spec.has_value(), "{}", spec.error().what);
  auto made = sim::Machine::create(*std::move(spec), {.now = [time = clock] { return *time; }});
  JOGAK_CHECK(made.has_value(), "{}", made.error().what);
  machine = *std::move(made);
  source = NvmlSource::of_machine(machine, [time = clock] { return *time; });
}

NodeFacts MadeMachine::facts() {
  auto facts = source->facts();
  JOGAK_CHECK(facts.has_value(), "{}", facts.error().what);
  return *std::move(facts);
}

GpuSample MadeMachine::sample(int gpu) {
  auto sample = source->sample(uuid(gpu), {.processes = true, .pcie_throughput = true});
  JOGAK_CHECK(sample.has_value(), "{}", sample.error().what);
  return *std::move(sample);
}

std::string MadeMachine::uuid(int gpu) {
  return machine->spec().gpus[static_cast<std::size_t>(gpu)].uuid;
}

}  // namespace jogak::nvml::testing
