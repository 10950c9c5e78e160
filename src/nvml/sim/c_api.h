// SPDX-License-Identifier: Apache-2.0
//
// The C interface of the simulation: the functions of functions.inc under their real names, and how
// they find their machine. In libjogak-nvml-sim.so it is the one that JOGAK_NVML_SIM names, made at
// the first call. In process, each thread says which machine it means (UseMachine), so that many
// nodes can live in one program.
#pragma once

#include <string>
#include <string_view>

#include "nvml/abi.h"

namespace jogak::nvml::sim {

class Machine;

// While it lives, the C functions called on this thread are about this machine.
class UseMachine {
 public:
  explicit UseMachine(Machine* machine);
  ~UseMachine();
  UseMachine(const UseMachine&) = delete;
  UseMachine& operator=(const UseMachine&) = delete;

 private:
  Machine* before_;
};

// The thread's machine, else that of the environment; null when there is none.
Machine* current_machine();

// What JOGAK_NVML_SIM_FAULTS says: the file with the line of standing faults; "": none.
std::string faults_file_of_environment();

// The function of this name, as dlsym gives it for the shared library; null when there is none or
// the current machine's library is too old for it.
void* symbol(std::string_view name);

}  // namespace jogak::nvml::sim

namespace jogak::nvml::abi {

#pragma GCC visibility push(default)
extern "C" {
#define F(name, parameters) Return name parameters;
#include "nvml/sim/functions.inc"  // NOLINT(bugprone-suspicious-include)
#undef F
const char* nvmlErrorString(Return result);
}
#pragma GCC visibility pop

}  // namespace jogak::nvml::abi
