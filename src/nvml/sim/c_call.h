// SPDX-License-Identifier: Apache-2.0
//
// What every function of the C interface does before its own work: find the machine and lock it,
// let due faults happen, refuse where the driver would. The order of refusals is the driver's: not
// loaded, not initialised, bad handle, lost, not supported, then the arguments.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>

#include "nvml/abi.h"
#include "nvml/sim/c_api.h"
#include "nvml/sim/machine.h"

namespace jogak::nvml::sim {

using abi::Return;

// Whether a function takes handles of MIG devices, too.
enum class Handles : std::uint8_t { GpuOnly, MigToo };

// What the function's own work gets.
struct Target {
  Machine& machine;
  GpuState& gpu;
  int gi_id = -1, ci_id = -1;  // of a MIG device, else -1
};

// Waits as a slow call does, without the lock. False: nothing to wait for.
void wait_if_slow(Machine& machine, std::unique_lock<std::mutex>& lock, std::string_view function,
                  int gpu);
// Success, or why the call cannot be: driver, initialisation, scripted failure.
Return may_call(Machine& machine, std::string_view function, int gpu);

template <class Work>
Return on_driver(std::string_view function, Work work) {
  Machine* const machine = current_machine();
  if (machine == nullptr) return Return::DriverNotLoaded;
  std::unique_lock lock(machine->mutex());
  machine->advance();
  wait_if_slow(*machine, lock, function, -1);
  if (const Return refused = may_call(*machine, function, -1); refused != Return::Success) {
    return refused;
  }
  return work(*machine);
}

// `handle` must be of one of the kinds; the work gets where it leads.
template <class Work>
Return on_handle(std::string_view function, const void* handle, HandleKind kind, Handles handles,
                 Work work) {
  Machine* const machine = current_machine();
  if (machine == nullptr) return Return::DriverNotLoaded;
  std::unique_lock lock(machine->mutex());
  machine->advance();
  const HandleTarget* found = machine->target(handle);
  const int index = found == nullptr ? -1 : found->gpu;
  wait_if_slow(*machine, lock, function, index);
  if (const Return refused = may_call(*machine, function, index); refused != Return::Success) {
    return refused;
  }
  found = machine->target(handle);
  if (found == nullptr) return Return::InvalidArgument;
  const bool is_mig_device = kind == HandleKind::Device && found->kind == HandleKind::MigDevice;
  if (found->kind != kind && !is_mig_device) return Return::InvalidArgument;
  GpuState& gpu = machine->gpus()[static_cast<std::size_t>(found->gpu)];
  if (machine->is_lost(found->gpu) || gpu.is_removed) return Return::GpuIsLost;
  if (std::ranges::find(gpu.spec.unsupported, function) != gpu.spec.unsupported.end()) {
    return Return::NotSupported;
  }
  if (is_mig_device && handles == Handles::GpuOnly) return Return::NotSupported;
  Target target{.machine = *machine, .gpu = gpu, .gi_id = found->gi_id, .ci_id = found->ci_id};
  return work(target);
}

template <class Work>
Return on_gpu(std::string_view function, abi::Device device, Work work) {
  return on_handle(function, device, HandleKind::Device, Handles::GpuOnly, work);
}

template <class Work>
Return on_any_device(std::string_view function, abi::Device device, Work work) {
  return on_handle(function, device, HandleKind::Device, Handles::MigToo, work);
}

// Stores through each pointer, none of which may be null.
template <class T, class U>
Return put(T* to, U value) {
  if (to == nullptr) return Return::InvalidArgument;
  *to = static_cast<T>(value);
  return Return::Success;
}

// A text into a caller's buffer: InsufficientSize when it does not fit with its final zero.
Return put_text(char* to, std::size_t size, std::string_view text);

// Into a fixed field of a struct, cut if need be; always ends in zero.
template <std::size_t N>
void fill_text(char (&to)[N], std::string_view text) {
  std::memset(to, 0, N);
  std::memcpy(to, text.data(), std::min(text.size(), N - 1));
}

// The two-call pattern: tells the number needed when the caller has too little room.
template <class T, class Make>
Return put_list(std::uint32_t* count, T* items, std::size_t size, Make make) {
  if (count == nullptr) return Return::InvalidArgument;
  const std::uint32_t room = *count;
  *count = static_cast<std::uint32_t>(size);
  if (size == 0) return Return::Success;
  if (room < size) return Return::InsufficientSize;
  if (items == nullptr) return Return::InvalidArgument;
  for (std::size_t i = 0; i < size; ++i) items[i] = make(i);
  return Return::Success;
}

// A handle that was given out, as the type of the interface.
template <class Handle>
Handle as_handle(std::uint64_t value) {
  return reinterpret_cast<Handle>(value);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace jogak::nvml::sim
