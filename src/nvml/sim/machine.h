// SPDX-License-Identifier: Apache-2.0
//
// A simulated machine while it runs: the driver, its GPUs with what was created on them, the clock
// that faults and load follow, and the handles that the C interface gave out. The C functions
// (c_api_*.cc) hold `mutex()` and call down here; tests and the playground also reach in through
// the members marked "outside", which lock for themselves.
//
//   faults ──> advance(now) ──> state and event log ──> event sets
//   load(t) ─> readings.h   ──> what a call answers
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nvml/abi.h"
#include "nvml/sim/machine_spec.h"
#include "nvml/sim/standing.h"

namespace jogak {
class YamlFields;
}

namespace jogak::nvml::sim {

struct ComputeInstanceState {
  int id = 0;
  int query_index = 0;  // of its profile; for compute instances also the profile's id
  int slices = 0;
  int start = 0;
  int mig_index = 0;
  std::string uuid;
  std::uint64_t handle = 0, device_handle = 0;
};

struct GpuInstanceState {
  int id = 0;
  int profile = 0;  // index into GpuSpec::mig_profiles
  PlacementSpec placement;
  std::uint64_t handle = 0;
  std::vector<ComputeInstanceState> compute;  // by id
};

struct ProcessState {
  ProcessSpec spec;
  int gi_id = -1, ci_id = -1;
};

struct GpuState {
  int index = 0;
  GpuSpec spec;
  std::uint64_t handle = 0;
  bool persistence = false, accounting = false;
  bool mig_enabled = false, mig_pending = false;
  bool ecc_pending = false;
  bool is_draining = false, is_removed = false;
  TimeUs counting_since = 0;                // volatile counters and energy begin here
  std::vector<GpuInstanceState> instances;  // by id
  std::vector<ProcessState> processes;
  double ended_load = 0;  // of processes that were ended; percent times seconds, since it counts
  std::uint64_t created = 0;  // compute instances so far: UUIDs are never reused
};

enum class HandleKind : std::uint8_t { Device, MigDevice, GpuInstance, ComputeInstance };
struct HandleTarget {
  HandleKind kind = HandleKind::Device;
  int gpu = 0, gi_id = -1, ci_id = -1;
};

struct LoggedEvent {
  TimeUs time = 0;
  int gpu = 0;
  std::uint64_t type = 0, data = 0;
  int gi_id = -1, ci_id = -1;
};

struct EventSetState {
  struct Registration {
    int gpu = 0;
    std::uint64_t types = 0;
    std::uint64_t from = 0;  // first event of the log that counts
  };
  std::vector<Registration> registrations;
  std::uint64_t cursor = 0;
  std::uint64_t generation = 0;
};

struct GpmSampleState {
  bool is_taken = false;
  int gpu = 0, gi_id = -1;
  TimeUs time = 0;
};

class Machine {
 public:
  struct Options {
    std::function<TimeUs()> now = {};  // microseconds, any zero; empty: the machine's own clock
    // A file with a line of standing faults (standing.h), looked at ten times a second while
    // somebody asks the machine anything. "": none.
    std::string faults_file = {};
    // With a clock of its own nothing waits: slow calls and event waits return at once.
    bool is_virtual() const { return now != nullptr; }
  };

  // Errors: Invalid, when the instances of the file do not fit, or its state file is of another
  // machine or broken; Unavailable, when that file cannot be read or written.
  static Result<std::unique_ptr<Machine>> create(MachineSpec spec, Options options);

  std::mutex& mutex() { return mutex_; }
  std::condition_variable& changed() { return changed_; }
  bool is_virtual() const { return options_.is_virtual(); }

  // Since the machine began.
  TimeUs now() const;
  // Faults up to now happen. First thing in every call.
  void advance();
  // When the next fault is due; nothing when none is left.
  std::optional<TimeUs> next_fault_at() const;

  const MachineSpec& spec() const { return spec_; }
  std::vector<GpuState>& gpus() { return gpus_; }
  bool is_driver_up() const { return spec_.has_driver && now() >= down_until_; }
  const std::string& driver_version() const { return driver_version_; }
  std::uint64_t generation() const { return generation_; }
  int& init_count() { return init_count_; }
  // GPUs that the driver shows, in order.
  std::vector<int> visible_gpus() const;

  // Faults that act on a GPU now.
  bool is_lost(int gpu) const { return active(FaultKind::Lost, gpu) != nullptr; }
  const FaultSpec* active(FaultKind kind, int gpu) const;
  // FailCall or SlowCall on this function; gpu -1: a call that is not about one.
  const FaultSpec* active_call(FaultKind kind, std::string_view call, int gpu) const;
  bool is_link_down(int gpu, int link) const;
  // How long faults of this kind have acted on the GPU, since it counts.
  TimeUs acted(FaultKind kind, int gpu) const;
  // Sum of counts of the faults that happened since then. code_mask 0: any.
  std::int64_t counted(FaultKind kind, int gpu, std::int64_t code, TimeUs since) const;
  std::int64_t recovery_action(int gpu) const;
  bool row_bit(int gpu, std::int64_t bit, TimeUs since) const;

  std::uint64_t new_handle(HandleTarget target);
  void drop_handle(std::uint64_t handle) { handles_.erase(handle); }
  const HandleTarget* target(const void* handle) const;
  std::uint64_t device_handle(int gpu);

  GpuInstanceState* instance(int gpu, int gi_id);
  ComputeInstanceState* compute_instance(int gpu, int gi_id, int ci_id);
  std::vector<const ProcessState*> processes(int gpu) const;  // those that run now

  // MIG (machine_mig.cc). All answer as the driver would.
  abi::Return set_mig_mode(int gpu, bool enabled, abi::Return& activation);
  int remaining_capacity(int gpu, int profile) const;
  // start -1: the driver chooses, the highest place first. An id that is given must be free.
  abi::Return create_instance(int gpu, int profile, int start, int& gi_id, int wanted_id = -1);
  abi::Return destroy_instance(int gpu, int gi_id);
  abi::Return create_compute(int gpu, int gi_id, int query_index, int start, int& ci_id,
                             int wanted_id = -1);
  abi::Return destroy_compute(int gpu, int gi_id, int ci_id);
  bool is_in_use(int gpu, int gi_id, int ci_id) const;  // ids -1: any

  void log_event(LoggedEvent event);
  EventSetState* event_set(const void* handle);
  const void* create_event_set();
  void free_event_set(const void* handle);
  // The first event that the set waits for, if any has come.
  std::optional<LoggedEvent> take_event(EventSetState& set);
  std::uint64_t log_end() const { return log_begin_ + log_.size(); }

  GpmSampleState* gpm_sample(const void* handle);
  const void* create_gpm_sample();
  void free_gpm_sample(const void* handle);

  // Outside: lock by themselves, and may be called from any thread.
  void inject(FaultSpec fault);  // happens now; `at` is set
  // From now on these faults stand, and no others that stood: what is new happens, what is gone
  // ends, and its GPU is healed. `at`, `lasting` are set.
  void stand(const std::vector<FaultSpec>& faults);
  void start_process(int gpu, ProcessSpec process, int gi_id, int ci_id);
  bool end_process(std::int64_t pid);
  void set_load(int gpu, Wave load);
  void reset_gpu(int gpu);

  // MIG modes and instances as text (machine_state.cc); the way back refuses, in words, what is not
  // a state of this machine, which is then good for nothing.
  std::string state_text() const;
  Result<void> restore_state(const std::string& file, std::string_view text);

 private:
  Machine(MachineSpec spec, Options options);
  Result<void> create_described_instances();
  void happen(const FaultSpec& fault);
  FaultSpec insert(FaultSpec fault);  // what was noted: it has its time
  void do_stand(const std::vector<FaultSpec>& faults);
  void end_standing(const FaultSpec& fault);
  void heal(GpuState& gpu);
  void look_at_faults_file();
  void do_reset(GpuState& gpu);
  void do_reload(const FaultSpec& fault);
  void drop_instances(GpuState& gpu);
  Result<void> open_state();
  void keep_state() const;
  void restore_gpu(YamlFields& fields, GpuState& gpu);
  void restore_instance(YamlFields& fields, GpuState& gpu);
  void restore_compute(YamlFields& fields, GpuState& gpu, int gi_id);

  MachineSpec spec_;
  Options options_;
  TimeUs began_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<GpuState> gpus_;
  std::size_t faults_done_ = 0;
  std::vector<FaultSpec> standing_;
  std::optional<FaultsFile> faults_file_;
  TimeUs down_until_ = 0;
  std::string driver_version_;
  std::uint64_t generation_ = 1;
  bool keeps_state_ = false;  // in spec_.state_file, from when it was opened
  int init_count_ = 0;
  std::uint64_t next_handle_ = 1;
  std::map<std::uint64_t, HandleTarget> handles_;
  std::map<std::uint64_t, EventSetState> event_sets_;
  std::map<std::uint64_t, GpmSampleState> gpm_samples_;
  std::deque<LoggedEvent> log_;
  std::uint64_t log_begin_ = 0;
};

// Slices of the compute instance profiles that a GPU instance offers, by query index; 0: not there.
int compute_profile_slices(const MigProfileSpec& profile, int query_index);
int compute_profile_count(const MigProfileSpec& profile, int query_index);
std::vector<PlacementSpec> compute_placements(const MigProfileSpec& profile, int query_index);
int compute_multiprocessors(const GpuSpec& gpu, const MigProfileSpec& profile, int query_index);
// The index of the compute profile that covers so many slices, the richest one; -1: none.
int compute_query_index(const MigProfileSpec& profile, int slices);
// "1c.3g.20gb", or the profile's own name where it covers all.
std::string compute_profile_name(const MigProfileSpec& profile, int query_index);

}  // namespace jogak::nvml::sim
