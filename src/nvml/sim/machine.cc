// SPDX-License-Identifier: Apache-2.0
//
// Life of a simulated machine: clock, faults, handles, events. MIG is in machine_mig.cc.
#include "nvml/sim/machine.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/core.h>

#include "base/mono_clock.h"
#include "nvml/abi_constants.h"
#include "nvml/sim/names.h"

namespace jogak::nvml::sim {

namespace {

// Handles look like pointers of a library, so that mixing them up with real memory shows.
constexpr std::uint64_t kHandleBase = 0x4A47'0000'0000ULL;
constexpr std::uint64_t kHandleStep = 16;
constexpr std::size_t kLogMax = 10'000;
constexpr std::size_t kObjectsMax = 65'536;

const void* pointer_of(std::uint64_t handle) {
  return reinterpret_cast<const void*>(handle);  // NOLINT(performance-no-int-to-ptr)
}

std::uint64_t handle_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

bool acts_on(const FaultSpec& fault, int gpu) { return fault.gpu < 0 || fault.gpu == gpu; }

bool can_end(FaultKind kind) {
  return kind == FaultKind::Lost || kind == FaultKind::Thermal || kind == FaultKind::PowerBrake ||
         kind == FaultKind::NvlinkDown || kind == FaultKind::SlowCall ||
         kind == FaultKind::FailCall;
}

}  // namespace

Machine::Machine(MachineSpec spec, Options options)
    : spec_(std::move(spec)), options_(std::move(options)) {
  driver_version_ = spec_.driver_version;
  began_ = options_.now ? options_.now() : mono_now_ns() / 1000;
  if (!options_.faults_file.empty()) faults_file_.emplace(options_.faults_file);
  for (std::size_t i = 0; i < spec_.gpus.size(); ++i) {
    GpuState gpu;
    gpu.index = static_cast<int>(i);
    gpu.spec = spec_.gpus[i];
    gpu.persistence = gpu.spec.persistence;
    gpu.mig_enabled = gpu.spec.mig_enabled;
    gpu.mig_pending = gpu.spec.mig_pending;
    gpu.ecc_pending = gpu.spec.ecc_enabled;
    gpus_.push_back(std::move(gpu));
  }
}

Result<std::unique_ptr<Machine>> Machine::create(MachineSpec spec, Options options) {
  std::unique_ptr<Machine> machine(new Machine(std::move(spec), std::move(options)));
  JOGAK_TRY_VOID(machine->create_described_instances());
  JOGAK_TRY_VOID(machine->open_state());
  machine->log_.clear();
  return machine;
}

TimeUs Machine::now() const {
  return (options_.now ? options_.now() : mono_now_ns() / 1000) - began_;
}

std::vector<int> Machine::visible_gpus() const {
  std::vector<int> indices;
  for (const GpuState& gpu : gpus_) {
    if (!gpu.is_removed) indices.push_back(gpu.index);
  }
  return indices;
}

void Machine::advance() {
  if (faults_file_) look_at_faults_file();
  const TimeUs time = now();
  while (faults_done_ < spec_.faults.size() && spec_.faults[faults_done_].at <= time) {
    happen(spec_.faults[faults_done_++]);
  }
}

std::optional<TimeUs> Machine::next_fault_at() const {
  if (faults_done_ >= spec_.faults.size()) return std::nullopt;
  return spec_.faults[faults_done_].at;
}

void Machine::happen(const FaultSpec& fault) {
  const auto xid = [&](const GpuState& gpu, std::uint64_t code) {
    LoggedEvent event{.time = fault.at, .gpu = gpu.index, .type = abi::kEventXid, .data = code};
    if (fault.instance >= 0 && static_cast<std::size_t>(fault.instance) < gpu.instances.size()) {
      const GpuInstanceState& instance = gpu.instances[static_cast<std::size_t>(fault.instance)];
      event.gi_id = instance.id;
      if (!instance.compute.empty()) event.ci_id = instance.compute.front().id;
    }
    log_event(event);
  };
  if (fault.kind == FaultKind::DriverReload) return do_reload(fault);
  for (GpuState& gpu : gpus_) {
    if (!acts_on(fault, gpu.index)) continue;
    switch (fault.kind) {
      case FaultKind::Xid:
        xid(gpu, static_cast<std::uint64_t>(fault.code));
        break;
      case FaultKind::Lost:
        xid(gpu, 79);
        break;
      case FaultKind::Ecc:
        log_event({.time = fault.at,
                   .gpu = gpu.index,
                   .type = fault.code == 0 ? abi::kEventSingleBitEcc : abi::kEventDoubleBitEcc,
                   .data = static_cast<std::uint64_t>(fault.count)});
        if (fault.code != 0) xid(gpu, 48);
        break;
      case FaultKind::RowRemap:
        xid(gpu, (fault.code & 4) != 0 ? 64 : 63);
        break;
      case FaultKind::RecoveryAction:
        log_event({.time = fault.at,
                   .gpu = gpu.index,
                   .type = abi::kEventRecoveryAction,
                   .data = static_cast<std::uint64_t>(fault.code)});
        xid(gpu, 154);
        break;
      case FaultKind::NvlinkDown:
        xid(gpu, 74);
        break;
      case FaultKind::Reset:
        do_reset(gpu);
        break;
      default:
        break;
    }
  }
}

void Machine::drop_instances(GpuState& gpu) {
  for (const GpuInstanceState& instance : gpu.instances) {
    for (const ComputeInstanceState& compute : instance.compute) {
      drop_handle(compute.handle);
      drop_handle(compute.device_handle);
    }
    drop_handle(instance.handle);
  }
  gpu.instances.clear();
  std::erase_if(gpu.processes, [](const ProcessState& process) { return process.gi_id >= 0; });
}

void Machine::do_reset(GpuState& gpu) {
  drop_instances(gpu);
  gpu.mig_enabled = gpu.mig_pending;
  gpu.spec.ecc_enabled = gpu.ecc_pending;
  gpu.counting_since = now();
  gpu.ended_load = 0;
  gpu.spec.counters.rows_pending = false;
  gpu.spec.counters.recovery_action = 0;
  gpu.processes.clear();
  keep_state();
  log_event({.time = now(), .gpu = gpu.index, .type = abi::kEventMigConfig});
}

void Machine::do_reload(const FaultSpec& fault) {
  down_until_ = std::max(down_until_, fault.at + fault.lasting);
  ++generation_;
  init_count_ = 0;
  handles_.clear();
  event_sets_.clear();
  gpm_samples_.clear();
  log_begin_ = log_end();
  log_.clear();
  if (!fault.driver_version.empty()) driver_version_ = fault.driver_version;
  for (GpuState& gpu : gpus_) {
    drop_instances(gpu);
    gpu.handle = 0;
    gpu.processes.clear();
    gpu.counting_since = down_until_;
    gpu.ended_load = 0;
    // Boards that need a reset keep the mode in their InfoROM; the others forget it.
    if (gpu.spec.mig_support == MigSupport::AtOnce) gpu.mig_pending = false;
    gpu.mig_enabled = gpu.mig_pending;
    gpu.spec.ecc_enabled = gpu.ecc_pending;
    gpu.persistence = gpu.spec.persistence;
  }
  keep_state();
  changed_.notify_all();
}

const FaultSpec* Machine::active(FaultKind kind, int gpu) const {
  const TimeUs time = now();
  const FaultSpec* found = nullptr;
  for (const FaultSpec& fault : spec_.faults) {
    if (fault.at > time) break;
    if (fault.kind != kind || !acts_on(fault, gpu)) continue;
    if (fault.lasting == 0 || time < fault.at + fault.lasting) found = &fault;
  }
  return found;
}

const FaultSpec* Machine::active_call(FaultKind kind, std::string_view call, int gpu) const {
  const TimeUs time = now();
  for (const FaultSpec& fault : spec_.faults) {
    if (fault.at > time) break;
    if (fault.kind != kind || fault.call != call) continue;
    if (fault.gpu >= 0 && fault.gpu != gpu) continue;
    if (fault.lasting == 0 || time < fault.at + fault.lasting) return &fault;
  }
  return nullptr;
}

bool Machine::is_link_down(int gpu, int link) const {
  const TimeUs time = now();
  return std::ranges::any_of(spec_.faults, [&](const FaultSpec& fault) {
    return fault.kind == FaultKind::NvlinkDown && acts_on(fault, gpu) && fault.code == link &&
           fault.at <= time && (fault.lasting == 0 || time < fault.at + fault.lasting);
  });
}

TimeUs Machine::acted(FaultKind kind, int gpu) const {
  const TimeUs time = now();
  const TimeUs since = gpus_[static_cast<std::size_t>(gpu)].counting_since;
  TimeUs total = 0;
  for (const FaultSpec& fault : spec_.faults) {
    if (fault.kind != kind || !acts_on(fault, gpu)) continue;
    const TimeUs end = fault.lasting == 0 ? time : std::min(time, fault.at + fault.lasting);
    total += std::max<TimeUs>(0, end - std::max(fault.at, since));
  }
  return total;
}

std::int64_t Machine::counted(FaultKind kind, int gpu, std::int64_t code, TimeUs since) const {
  const TimeUs time = now();
  std::int64_t total = 0;
  for (const FaultSpec& fault : spec_.faults) {
    if (fault.kind == kind && acts_on(fault, gpu) && fault.at >= since && fault.at <= time &&
        (code < 0 || (kind == FaultKind::RowRemap ? fault.code & 1 : fault.code) == code)) {
      total += fault.count;
    }
  }
  return total;
}

std::int64_t Machine::recovery_action(int gpu) const {
  const GpuState& state = gpus_[static_cast<std::size_t>(gpu)];
  const TimeUs time = now();
  std::int64_t action = state.spec.counters.recovery_action;
  for (const FaultSpec& fault : spec_.faults) {
    if (fault.kind == FaultKind::RecoveryAction && acts_on(fault, gpu) && fault.at <= time &&
        fault.at >= state.counting_since) {
      action = fault.code;
    }
  }
  return action;
}

bool Machine::row_bit(int gpu, std::int64_t bit, TimeUs since) const {
  const TimeUs time = now();
  return std::ranges::any_of(spec_.faults, [&](const FaultSpec& fault) {
    return fault.kind == FaultKind::RowRemap && acts_on(fault, gpu) && fault.at >= since &&
           fault.at <= time && (fault.code & bit) != 0;
  });
}

std::uint64_t Machine::new_handle(HandleTarget target) {
  const std::uint64_t handle = kHandleBase + kHandleStep * next_handle_++;
  handles_[handle] = target;
  return handle;
}

const HandleTarget* Machine::target(const void* handle) const {
  const auto at = handles_.find(handle_of(handle));
  return at == handles_.end() ? nullptr : &at->second;
}

std::uint64_t Machine::device_handle(int gpu) {
  GpuState& state = gpus_[static_cast<std::size_t>(gpu)];
  if (state.handle == 0) state.handle = new_handle({.kind = HandleKind::Device, .gpu = gpu});
  return state.handle;
}

GpuInstanceState* Machine::instance(int gpu, int gi_id) {
  auto& instances = gpus_[static_cast<std::size_t>(gpu)].instances;
  const auto at = std::ranges::find(instances, gi_id, &GpuInstanceState::id);
  return at == instances.end() ? nullptr : &*at;
}

ComputeInstanceState* Machine::compute_instance(int gpu, int gi_id, int ci_id) {
  GpuInstanceState* const parent = instance(gpu, gi_id);
  if (parent == nullptr) return nullptr;
  const auto at = std::ranges::find(parent->compute, ci_id, &ComputeInstanceState::id);
  return at == parent->compute.end() ? nullptr : &*at;
}

std::vector<const ProcessState*> Machine::processes(int gpu) const {
  const TimeUs time = now();
  std::vector<const ProcessState*> running;
  for (const ProcessState& process : gpus_[static_cast<std::size_t>(gpu)].processes) {
    const bool has_begun = process.spec.from <= time;
    if (has_begun && (process.spec.until == 0 || time < process.spec.until)) {
      running.push_back(&process);
    }
  }
  return running;
}

void Machine::log_event(LoggedEvent event) {
  log_.push_back(event);
  if (log_.size() > kLogMax) {
    log_.pop_front();
    ++log_begin_;
  }
  changed_.notify_all();
}

const void* Machine::create_event_set() {
  if (event_sets_.size() >= kObjectsMax) return nullptr;
  const std::uint64_t handle = kHandleBase + kHandleStep * next_handle_++;
  event_sets_[handle] = {.registrations = {}, .cursor = log_end(), .generation = generation_};
  return pointer_of(handle);
}

EventSetState* Machine::event_set(const void* handle) {
  const auto at = event_sets_.find(handle_of(handle));
  return at == event_sets_.end() ? nullptr : &at->second;
}

void Machine::free_event_set(const void* handle) {
  event_sets_.erase(handle_of(handle));
  changed_.notify_all();
}

std::optional<LoggedEvent> Machine::take_event(EventSetState& set) {
  set.cursor = std::max(set.cursor, log_begin_);
  while (set.cursor < log_end()) {
    const LoggedEvent& event = log_[static_cast<std::size_t>(set.cursor - log_begin_)];
    const std::uint64_t number = set.cursor++;
    for (const EventSetState::Registration& wanted : set.registrations) {
      if (wanted.gpu == event.gpu && (wanted.types & event.type) != 0 && number >= wanted.from) {
        return event;
      }
    }
  }
  return std::nullopt;
}

const void* Machine::create_gpm_sample() {
  if (gpm_samples_.size() >= kObjectsMax) return nullptr;
  const std::uint64_t handle = kHandleBase + kHandleStep * next_handle_++;
  gpm_samples_[handle] = {};
  return pointer_of(handle);
}

GpmSampleState* Machine::gpm_sample(const void* handle) {
  const auto at = gpm_samples_.find(handle_of(handle));
  return at == gpm_samples_.end() ? nullptr : &at->second;
}

void Machine::free_gpm_sample(const void* handle) { gpm_samples_.erase(handle_of(handle)); }

void Machine::inject(FaultSpec fault) {
  const std::scoped_lock lock(mutex_);
  advance();
  insert(std::move(fault));
}

FaultSpec Machine::insert(FaultSpec fault) {
  fault.at = now();
  if (!can_end(fault.kind) && fault.kind != FaultKind::DriverReload) fault.lasting = 0;
  const auto place = std::ranges::upper_bound(spec_.faults, fault.at, {}, &FaultSpec::at);
  const auto at = static_cast<std::size_t>(place - spec_.faults.begin());
  spec_.faults.insert(place, fault);
  // It is the last of those that are due.
  if (at == faults_done_) ++faults_done_;
  happen(fault);
  return fault;
}

void Machine::stand(const std::vector<FaultSpec>& faults) {
  const std::scoped_lock lock(mutex_);
  advance();
  do_stand(faults);
}

void Machine::do_stand(const std::vector<FaultSpec>& faults) {
  const auto is_same = [](const FaultSpec& a, const FaultSpec& b) {
    return a.kind == b.kind && a.gpu == b.gpu && a.code == b.code && a.count == b.count;
  };
  const auto has = [&](const std::vector<FaultSpec>& list, const FaultSpec& fault) {
    return std::ranges::any_of(list, [&](const FaultSpec& one) { return is_same(one, fault); });
  };
  std::vector<FaultSpec> kept;
  for (const FaultSpec& fault : standing_) {
    if (has(faults, fault)) {
      kept.push_back(fault);
    } else {
      end_standing(fault);
    }
  }
  standing_ = std::move(kept);
  for (const FaultSpec& wanted : faults) {
    if (has(standing_, wanted)) continue;
    FaultSpec fault = wanted;
    fault.lasting = 0;
    // As it was noted, with the time: it is found again by that when it ends.
    fault = insert(fault);
    standing_.push_back(fault);
    if (fault.kind != FaultKind::Xid || !xid_asks_for_reset(fault.code)) continue;
    for (GpuState& gpu : gpus_) {
      if (acts_on(fault, gpu.index)) gpu.spec.counters.recovery_action = 1;
    }
  }
}

void Machine::end_standing(const FaultSpec& fault) {
  if (can_end(fault.kind)) {
    const auto at = std::ranges::find(spec_.faults, fault);
    if (at != spec_.faults.end()) at->lasting = std::max<TimeUs>(1, now() - fault.at);
  }
  if (fault.kind == FaultKind::Thermal || fault.kind == FaultKind::PowerBrake) return;
  for (GpuState& gpu : gpus_) {
    if (acts_on(fault, gpu.index)) heal(gpu);
  }
}

// A reset in which nothing is lost: what counts begins anew, instances and processes stay.
void Machine::heal(GpuState& gpu) {
  gpu.counting_since = now() + 1;  // what happened at this very moment is over, too
  gpu.ended_load = 0;
  gpu.spec.counters.rows_pending = false;
  gpu.spec.counters.recovery_action = 0;
}

void Machine::look_at_faults_file() {
  const auto text = faults_file_->changed(now());
  if (!text) return;
  const auto faults = parse_standing_faults(*text, static_cast<int>(gpus_.size()));
  if (!faults) {
    // Nobody else is there to hear it.
    fmt::print(stderr, "{}: {}\n", faults_file_->path(), faults.error().what);
    return;
  }
  do_stand(*faults);
}

void Machine::start_process(int gpu, ProcessSpec process, int gi_id, int ci_id) {
  const std::scoped_lock lock(mutex_);
  gpus_[static_cast<std::size_t>(gpu)].processes.push_back(
      {.spec = std::move(process), .gi_id = gi_id, .ci_id = ci_id});
}

bool Machine::end_process(std::int64_t pid) {
  const std::scoped_lock lock(mutex_);
  const TimeUs time = now();
  std::size_t ended = 0;
  for (GpuState& gpu : gpus_) {
    ended += std::erase_if(gpu.processes, [&](const ProcessState& process) {
      if (process.spec.pid != pid) return false;
      gpu.ended_load += sm_seconds(process.spec, gpu.counting_since, time);
      return true;
    });
  }
  return ended > 0;
}

void Machine::set_load(int gpu, Wave load) {
  const std::scoped_lock lock(mutex_);
  gpus_[static_cast<std::size_t>(gpu)].spec.load = load;
}

void Machine::reset_gpu(int gpu) {
  const std::scoped_lock lock(mutex_);
  advance();
  do_reset(gpus_[static_cast<std::size_t>(gpu)]);
}

}  // namespace jogak::nvml::sim
