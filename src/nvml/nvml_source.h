// SPDX-License-Identifier: Apache-2.0
//
// GpuSource on NVML's C interface, real or simulated: the same path for both.
//
// A session is one nvmlInit and the handles since. When the driver goes away (reload, reset) calls
// begin to answer "uninitialized"; the session ends, its handles are forgotten, and the next call
// opens another with a higher generation. A lost GPU keeps its last known facts. One thread only,
// as the interface says.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nvml/gpu_source.h"
#include "nvml/library.h"

namespace jogak::nvml {

namespace sim {
class Machine;
}

Missing missing_of(abi::Return result);
// Of whatever type it is; fractions are rounded.
std::int64_t field_number(const abi::FieldValue& field);
Errc errc_of(abi::Return result);

class NvmlSource final : public GpuSource {
 public:
  struct Options {
    std::function<TimeUs()> now;  // microseconds since 1970; empty: the system's clock
    // poll_events() looks no more often whether GPUs still answer. One that is lost is also found
    // by whatever else is asked of it.
    TimeUs loss_look_every = kSecondInUs;
    // The simulation in this process that the library's functions are to be about.
    std::shared_ptr<sim::Machine> machine;
  };

  NvmlSource(std::unique_ptr<Library> library, Options options);
  ~NvmlSource() override;

  // From what `--nvml` says: "auto", the path of a library, "sim:NAME" or "sim:FILE.yaml".
  // `identity` as in sim::read_machine. `now` stamps samples and events, on any thread; whoever
  // compares them with a clock of its own gives that one: the machine's (empty) may be set, even
  // back. Errors: Unavailable without a library (the driver is looked for at the first call),
  // Invalid for a bad simulation.
  static Result<std::unique_ptr<NvmlSource>> open(const std::string& nvml,
                                                  const std::vector<std::string>& driver_roots = {},
                                                  std::string_view identity = {},
                                                  std::function<TimeUs()> now = {});
  static std::unique_ptr<NvmlSource> of_machine(std::shared_ptr<sim::Machine> machine,
                                                std::function<TimeUs()> now = {});

  Result<NodeFacts> facts() override;
  Result<GpuSample> sample(const std::string& uuid, const SampleWants& wants) override;
  Result<std::vector<GpuEvent>> poll_events(TimeUs timeout) override;
  Result<std::vector<ProcessFacts>> processes(const std::string& uuid) override;
  Result<bool> is_recut(const std::string& uuid) override;
  Result<void> set_compute_mode(const std::string& uuid, int mode) override;
  Result<bool> set_mig_mode(const std::string& uuid, bool is_enabled) override;
  Result<std::vector<MigInstanceFacts>> create_instance_in_parts(
      const std::string& uuid, int profile_id, MigPlacement placement,
      const std::vector<int>& part_slices) override;
  Result<std::vector<MigInstanceFacts>> create_instance(
      const std::string& uuid, int profile_id, MigPlacement placement,
      const std::vector<int>& ci_profile_ids) override;
  Result<void> destroy_instance(const std::string& uuid, int gi_id) override;
  Result<void> destroy_compute_instance(const std::string& uuid, int gi_id, int ci_id) override;
  Result<MigInstanceFacts> create_compute_instance(const std::string& uuid, int gi_id,
                                                   int ci_profile_id) override;

  std::uint64_t generation() const { return generation_; }
  const Library& library() const { return *library_; }
  // The simulation behind it; null for a real library.
  sim::Machine* machine() const { return options_.machine.get(); }

 private:
  struct Gpu {
    abi::Device handle = nullptr;  // null while it is lost
    bool is_lost = false;
    bool is_told_lost = false;
    GpuFacts facts;  // last known
    // The GPM sample of the last reading, of the GPU (-1) and of GPU instances.
    std::map<int, abi::GpmSample> gpm;
    int link_slots = 0;  // NVLinks, up or down
  };

  // nvml_source.cc: the session
  Result<void> ensure_session();
  void end_session();
  Result<void> open_session();
  void open_event_set();
  Result<Gpu*> find(const std::string& uuid);
  // Success, or an error about `what`; notes a lost GPU and an ended session.
  Result<void> check(abi::Return result, std::string_view what, Gpu* gpu = nullptr);
  // The same for readings.
  Missing missed(abi::Return result, Gpu* gpu);
  template <class T, class Value, class... Parameters, class... Arguments>
  Reading<T> read(Gpu& gpu, abi::Return (*function)(Parameters...), Arguments... arguments) {
    Value value{};
    const abi::Return result = call(function, gpu.handle, arguments..., &value);
    if (result == abi::Return::Success) return Reading<T>(static_cast<T>(value));
    return Reading<T>(missed(result, &gpu));
  }
  Reading<std::string> read_text(Gpu& gpu,
                                 abi::Return (*function)(abi::Device, char*, std::uint32_t),
                                 std::size_t size);
  TimeUs now() const;

  // nvml_facts.cc
  void read_identity(Gpu& gpu);
  void read_board(Gpu& gpu);
  void read_limits(Gpu& gpu);
  void read_links(Gpu& gpu);
  void read_fabric(Gpu& gpu);
  void read_topology();
  int direct_links(Gpu& from, const Gpu& to);

  // nvml_mig.cc
  void read_mig(Gpu& gpu);
  void read_mig_profiles(Gpu& gpu);
  std::vector<MigInstanceFacts> read_mig_instances(Gpu& gpu);
  void add_instances(Gpu& gpu, const MigProfileFacts& profile, abi::GpuInstance gi,
                     const std::map<std::pair<int, int>, MigInstanceFacts>& devices,
                     std::vector<MigInstanceFacts>& rows);
  std::map<std::pair<int, int>, MigInstanceFacts> read_mig_devices(Gpu& gpu);
  Result<abi::GpuInstance> find_instance(Gpu& gpu, int gi_id);
  // Finds the compute profiles of a new GPU instance.
  using ChooseParts = std::function<Result<std::vector<int>>(Gpu&, abi::GpuInstance, int slices)>;
  Result<std::vector<MigInstanceFacts>> create_with(const std::string& uuid, int profile_id,
                                                    MigPlacement placement,
                                                    const ChooseParts& choose);
  Result<int> part_compute_profile(Gpu& gpu, abi::GpuInstance gi, int slices);
  Result<int> whole_compute_profile(Gpu& gpu, abi::GpuInstance gi, int slices);

  // nvml_sample.cc
  void sample_engines(Gpu& gpu, GpuSample& sample);
  void sample_memory(Gpu& gpu, abi::Device device, MemorySample& memory);
  void sample_power(Gpu& gpu, GpuSample& sample);
  void sample_health(Gpu& gpu, GpuSample& sample);
  void sample_fields(Gpu& gpu, GpuSample& sample);
  Reading<std::int64_t> old_violation(Gpu& gpu, abi::Enum policy);
  void sample_pcie(Gpu& gpu, const SampleWants& wants, GpuSample& sample);
  void sample_mig(Gpu& gpu, const SampleWants& wants, GpuSample& sample);
  Reading<std::vector<ProcessFacts>> sample_processes(Gpu& gpu);
  void add_processes(Gpu& gpu, ProcessFacts::Kind kind, std::vector<ProcessFacts>& processes,
                     Missing& missing);

  // nvml_sample_more.cc: what only some counters files want, and GPM
  void sample_links(Gpu& gpu, NvlinkSample& sample);
  void sum_link_errors(Gpu& gpu, NvlinkSample& sample);
  void sample_held(Gpu& gpu, HeldSample& sample);
  void sample_gpm(Gpu& gpu, int gi_id, const SampleWants& wants, GpmSample& sample);
  void read_gpm(abi::GpmSample first, abi::GpmSample second, Gpu& gpu, bool is_instance,
                const SampleWants& wants, GpmSample& sample);

  // nvml_events.cc
  bool looks_for_losses();
  void note_losses(std::vector<GpuEvent>& events);
  GpuEvent event_of(const abi::EventData& data);

  std::unique_ptr<Library> library_;
  const Functions& f_;
  Options options_;
  bool is_open_ = false;
  bool is_ended_ = false;  // a call said so; the session is closed before the next
  bool tells_reload_ = false;
  TimeUs last_loss_look_ = 0;
  std::uint64_t generation_ = 0;
  abi::EventSet events_ = nullptr;
  std::vector<Gpu> gpus_;                           // by index
  std::map<int, GpuFacts> remembered_;              // by index, over sessions
  std::unique_ptr<abi::GpmMetricsGet> gpm_buffer_;  // 13 KiB: not on the stack, not each time
};

}  // namespace jogak::nvml
