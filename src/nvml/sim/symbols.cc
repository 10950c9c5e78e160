// SPDX-License-Identifier: Apache-2.0
//
// The functions by name, for callers in this process, and the ones that only say no.
#include <algorithm>

#include "nvml/sim/c_api.h"
#include "nvml/sim/machine.h"

#pragma GCC visibility push(default)
extern "C" {
// Called with any arguments: callers clean up after themselves on every ABI that Linux has.
#define F(name) \
  jogak::nvml::abi::Return name() { return jogak::nvml::abi::Return::NotSupported; }
#include "nvml/sim/unsupported.inc"  // NOLINT(bugprone-suspicious-include)
#undef F
}
#pragma GCC visibility pop

namespace jogak::nvml::sim {

namespace {

struct Symbol {
  std::string_view name;
  void* address;
};

const Symbol kSymbols[] = {
#define F(name, parameters) {#name, reinterpret_cast<void*>(&abi::name)},
#include "nvml/sim/functions.inc"  // NOLINT(bugprone-suspicious-include)
#undef F
    {"nvmlErrorString", reinterpret_cast<void*>(&abi::nvmlErrorString)},
};

}  // namespace

void* symbol(std::string_view name) {
  if (const Machine* const machine = current_machine()) {
    const auto& missing = machine->spec().missing_symbols;
    if (std::ranges::find(missing, name) != missing.end()) return nullptr;
  }
  const auto* const at = std::ranges::find(kSymbols, name, &Symbol::name);
  return at == std::end(kSymbols) ? nullptr : at->address;
}

}  // namespace jogak::nvml::sim
