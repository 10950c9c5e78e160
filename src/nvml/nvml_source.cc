// SPDX-License-Identifier: Apache-2.0
//
// Sessions, return codes and the opening of a source. Facts, samples, events and MIG have files of
// their own.
#include "nvml/nvml_source.h"

#include <chrono>

#include "nvml/abi_constants.h"
#include "nvml/sim/c_api.h"
#include "nvml/sim/machine.h"
#include "nvml/sim/shipped.h"

namespace jogak::nvml {

using abi::Return;

Missing missing_of(Return result) {
  switch (result) {
    case Return::NotSupported:
    case Return::FunctionNotFound:
    case Return::ArgumentVersionMismatch:
    case Return::Deprecated:
      return Missing::NotSupported;
    case Return::NoPermission:
      return Missing::NoPermission;
    case Return::NotFound:
    case Return::NoData:
    case Return::NotReady:
      return Missing::NoData;
    case Return::GpuIsLost:
    case Return::GpuNotFound:
      return Missing::Lost;
    default:
      return Missing::Failed;
  }
}

Errc errc_of(Return result) {
  switch (result) {
    case Return::NotFound:
      return Errc::NotFound;
    case Return::GpuIsLost:
    case Return::GpuNotFound:
      return Errc::Gone;
    case Return::InUse:
    case Return::InsufficientResources:
    case Return::ResetRequired:
    case Return::InvalidState:
      return Errc::Conflict;
    case Return::Timeout:
      return Errc::Timeout;
    case Return::Uninitialized:
    case Return::DriverNotLoaded:
    case Return::LibRmVersionMismatch:
    case Return::LibraryNotFound:
    case Return::Unknown:
    case Return::OperatingSystem:
    case Return::Memory:
      return Errc::Unavailable;
    default:
      return Errc::Invalid;
  }
}

NvmlSource::NvmlSource(std::unique_ptr<Library> library, Options options)
    : library_(std::move(library)), f_(library_->functions()), options_(std::move(options)) {}

NvmlSource::~NvmlSource() {
  const sim::UseMachine use(options_.machine.get());
  end_session();
}

std::unique_ptr<NvmlSource> NvmlSource::of_machine(std::shared_ptr<sim::Machine> machine,
                                                   std::function<TimeUs()> now) {
  const sim::UseMachine use(machine.get());
  return std::make_unique<NvmlSource>(
      Library::from_lookup([](const char* name) { return sim::symbol(name); }, "simulation"),
      // Asked seldom, and when there is something to be seen.
      Options{.now = std::move(now), .loss_look_every = 0, .machine = std::move(machine)});
}

Result<std::unique_ptr<NvmlSource>> NvmlSource::open(const std::string& nvml,
                                                     const std::vector<std::string>& driver_roots,
                                                     std::string_view identity,
                                                     std::function<TimeUs()> now) {
  constexpr std::string_view kSim = "sim:";
  if (nvml.starts_with(kSim)) {
    JOGAK_TRY(sim::MachineSpec spec, sim::load_machine(nvml.substr(kSim.size()), identity));
    JOGAK_TRY(
        auto machine,
        sim::Machine::create(std::move(spec), {.faults_file = sim::faults_file_of_environment()}));
    auto source = of_machine(std::move(machine), std::move(now));
    source->options_.loss_look_every = Options{}.loss_look_every;
    return source;
  }
  JOGAK_TRY(auto library, Library::open(nvml == "auto" ? "" : nvml, driver_roots));
  return std::make_unique<NvmlSource>(std::move(library),
                                      Options{.now = std::move(now), .machine = nullptr});
}

TimeUs NvmlSource::now() const {
  if (options_.now) return options_.now();
  const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since_1970).count();
}

void NvmlSource::end_session() {
  if (!is_open_) return;
  for (Gpu& gpu : gpus_) {
    for (const auto& [gi_id, sample] : gpu.gpm) call(f_.gpm_free, sample);
    if (!gpu.facts.uuid.empty()) remembered_[gpu.facts.index] = gpu.facts;
  }
  if (events_ != nullptr) call(f_.event_set_free, events_);
  // After a reload there is nothing to shut down, and the library says so.
  call(f_.shutdown);
  events_ = nullptr;
  gpus_.clear();
  is_open_ = is_ended_ = false;
}

Result<void> NvmlSource::open_session() {
  // A node without GPUs is a node all the same.
  Return result = call(f_.init_with_flags, abi::kInitNoGpus);
  if (result == Return::FunctionNotFound) result = call(f_.init);
  if (result != Return::Success) {
    return fail(Errc::Unavailable, "nvmlInit: {}", library_->error_text(result));
  }
  is_open_ = true;
  is_ended_ = false;
  ++generation_;
  std::uint32_t count = 0;
  JOGAK_TRY_VOID(check(call(f_.count, &count), "nvmlDeviceGetCount"));
  gpus_.resize(count);
  for (std::uint32_t index = 0; index < count; ++index) {
    Gpu& gpu = gpus_[index];
    const int key = static_cast<int>(index);
    if (const auto known = remembered_.find(key); known != remembered_.end()) {
      gpu.facts = known->second;
    }
    gpu.facts.index = key;
    if (const Return got = call(f_.handle_by_index, index, &gpu.handle); got != Return::Success) {
      gpu.handle = nullptr;
      gpu.is_lost = true;
      gpu.facts.lost_reason = library_->error_text(got);
      continue;
    }
    read_identity(gpu);
  }
  open_event_set();
  return {};
}

void NvmlSource::open_event_set() {
  if (call(f_.event_set_create, &events_) != Return::Success) {
    events_ = nullptr;
    return;
  }
  constexpr std::uint64_t kWanted = abi::kEventXid | abi::kEventSingleBitEcc |
                                    abi::kEventDoubleBitEcc | abi::kEventMigConfig |
                                    abi::kEventRecoveryAction;
  for (const Gpu& gpu : gpus_) {
    std::uint64_t supported = 0;
    if (gpu.handle == nullptr ||
        call(f_.supported_events, gpu.handle, &supported) != Return::Success) {
      continue;
    }
    // MIG events are for privileged callers only: the rest must not suffer for it.
    const std::uint64_t types = kWanted & supported;
    if (call(f_.register_events, gpu.handle, types, events_) != Return::Success) {
      call(f_.register_events, gpu.handle, types & ~abi::kEventMigConfig, events_);
    }
  }
}

Result<void> NvmlSource::ensure_session() {
  const bool had_one = is_open_;
  if (is_ended_) end_session();
  if (is_open_) return {};
  auto opened = open_session();
  if (!opened) {
    end_session();
    return opened;
  }
  tells_reload_ = tells_reload_ || had_one || generation_ > 1;
  return {};
}

Result<NvmlSource::Gpu*> NvmlSource::find(const std::string& uuid) {
  JOGAK_TRY_VOID(ensure_session());
  for (Gpu& gpu : gpus_) {
    if (gpu.facts.uuid != uuid) continue;
    if (gpu.handle == nullptr) {
      // It was lost when the session began; perhaps it is back.
      const auto index = static_cast<std::uint32_t>(gpu.facts.index);
      if (call(f_.handle_by_index, index, &gpu.handle) != Return::Success) gpu.handle = nullptr;
    }
    return &gpu;
  }
  return fail(Errc::NotFound, "no GPU {}", uuid);
}

Result<void> NvmlSource::check(Return result, std::string_view what, Gpu* gpu) {
  if (result == Return::Success) return {};
  missed(result, gpu);
  return fail(errc_of(result), "{}: {}", what, library_->error_text(result));
}

Missing NvmlSource::missed(Return result, Gpu* gpu) {
  if (result == Return::Uninitialized || result == Return::DriverNotLoaded) is_ended_ = true;
  if (gpu != nullptr && missing_of(result) == Missing::Lost) {
    gpu->is_lost = true;
    gpu->facts.is_lost = true;
    gpu->facts.lost_reason = library_->error_text(result);
  }
  return missing_of(result);
}

Result<void> NvmlSource::set_compute_mode(const std::string& uuid, int mode) {
  const sim::UseMachine use(options_.machine.get());
  JOGAK_TRY(Gpu* const gpu, find(uuid));
  if (gpu->handle == nullptr) return fail(Errc::Gone, "GPU {} is lost", uuid);
  return check(call(f_.set_compute_mode, gpu->handle, static_cast<abi::Enum>(mode)),
               "nvmlDeviceSetComputeMode", gpu);
}

Reading<std::string> NvmlSource::read_text(Gpu& gpu,
                                           Return (*function)(abi::Device, char*, std::uint32_t),
                                           std::size_t size) {
  std::string text(size, '\0');
  const Return result =
      call(function, gpu.handle, text.data(), static_cast<std::uint32_t>(text.size()));
  if (result != Return::Success) return missed(result, &gpu);
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

}  // namespace jogak::nvml
