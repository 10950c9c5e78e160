// SPDX-License-Identifier: Apache-2.0
//
// Which machine the C functions are about, and what stands before all of them.
#include "nvml/sim/c_call.h"

#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>

#include "base/file.h"
#include "nvml/sim/shipped.h"

namespace jogak::nvml::sim {

namespace {

thread_local Machine* thread_machine = nullptr;

Result<std::unique_ptr<Machine>> machine_of_environment(const std::string& name) {
  JOGAK_TRY(MachineSpec spec, load_machine(name));
  return Machine::create(std::move(spec), {.faults_file = faults_file_of_environment()});
}

Machine* environment_machine() {
  // Made once and never freed: threads of the program may call until its end.
  static Machine* const machine = [] {
    const char* const name = std::getenv("JOGAK_NVML_SIM");  // NOLINT(concurrency-mt-unsafe)
    if (name == nullptr || *name == '\0') return static_cast<Machine*>(nullptr);
    auto made = machine_of_environment(name);
    if (made) return made->release();
    fmt::print(stderr, "JOGAK_NVML_SIM: {}\n", made.error().what);
    return static_cast<Machine*>(nullptr);
  }();
  return machine;
}

}  // namespace

std::string faults_file_of_environment() {
  const char* const path = std::getenv("JOGAK_NVML_SIM_FAULTS");  // NOLINT(concurrency-mt-unsafe)
  return path == nullptr ? "" : path;
}

UseMachine::UseMachine(Machine* machine) : before_(thread_machine) { thread_machine = machine; }
UseMachine::~UseMachine() { thread_machine = before_; }

Machine* current_machine() {
  return thread_machine != nullptr ? thread_machine : environment_machine();
}

void wait_if_slow(Machine& machine, std::unique_lock<std::mutex>& lock, std::string_view function,
                  int gpu) {
  const FaultSpec* const slow = machine.active_call(FaultKind::SlowCall, function, gpu);
  if (slow == nullptr || machine.is_virtual()) return;
  const TimeUs delay = slow->delay;
  lock.unlock();
  std::this_thread::sleep_for(std::chrono::microseconds(delay));
  lock.lock();
  machine.advance();
}

Return may_call(Machine& machine, std::string_view function, int gpu) {
  if (!machine.is_driver_up()) return Return::DriverNotLoaded;
  if (machine.init_count() == 0) return Return::Uninitialized;
  const auto& missing = machine.spec().missing_symbols;
  if (std::ranges::find(missing, function) != missing.end()) return Return::FunctionNotFound;
  if (const FaultSpec* fault = machine.active_call(FaultKind::FailCall, function, gpu)) {
    return static_cast<Return>(fault->code);
  }
  return Return::Success;
}

Return put_text(char* to, std::size_t size, std::string_view text) {
  if (to == nullptr) return Return::InvalidArgument;
  if (size < text.size() + 1) return Return::InsufficientSize;
  std::memcpy(to, text.data(), text.size());
  to[text.size()] = '\0';
  return Return::Success;
}

}  // namespace jogak::nvml::sim
