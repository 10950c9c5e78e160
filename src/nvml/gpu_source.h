// SPDX-License-Identifier: Apache-2.0
//
// What the agent knows of GPUs, and the one interface it learns it through. Values only: nothing
// here knows NVML. The implementation on the C library (real or simulated) is nvml_source.h;
// nvml::Worker (worker.h) runs a source on its own thread and posts the answers to a loop. A value
// that could not be read says why, so that "this model has no such sensor", "the GPU is gone" and
// "the call failed" never look alike.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/loop.h"
#include "base/result.h"

namespace jogak::nvml {

// Why a reading has no value.
enum class Missing : std::uint8_t {
  NotRead,       // nobody asked
  NotSupported,  // this model, driver or mode has no such value; will not change by itself
  NoPermission,  // the driver refuses this user
  NoData,        // supported, and nothing was measured yet
  Lost,          // the GPU does not answer any more
  Failed,        // the call failed otherwise, or hung
};
std::string_view missing_text(Missing missing);  // "not supported", ...

// A value, or why there is none. Reads as an optional.
template <class T>
class Reading {
 public:
  constexpr Reading() = default;
  constexpr Reading(T value) : value_(std::move(value)) {}   // NOLINT(google-explicit-constructor)
  constexpr Reading(Missing missing) : missing_(missing) {}  // NOLINT(google-explicit-constructor)

  constexpr bool has_value() const { return value_.has_value(); }
  constexpr explicit operator bool() const { return has_value(); }
  constexpr const T& operator*() const { return *value_; }
  constexpr const T* operator->() const { return &*value_; }
  constexpr T value_or(T fallback) const { return value_.value_or(std::move(fallback)); }
  // Meaningful only without a value.
  constexpr Missing missing() const { return missing_; }
  constexpr std::optional<T> optional() const { return value_; }

  friend constexpr bool operator==(const Reading& a, const Reading& b) {
    return a.value_ == b.value_ && (a.has_value() || a.missing_ == b.missing_);
  }

 private:
  std::optional<T> value_;
  Missing missing_ = Missing::NotRead;
};

// Where an instance lies, in memory slices of the GPU.
struct MigPlacement {
  int start = 0;
  int size = 0;
  friend auto operator<=>(const MigPlacement&, const MigPlacement&) = default;
};

// One kind of GPU instance that this GPU can be cut into, as its driver tells it.
struct MigProfileFacts {
  int id = 0;           // the driver's profile id (19 for 1g on A100), the argument of creation
  int query_index = 0;  // NVML's constant that was asked for (0 = 1_SLICE, 9 = 1_SLICE_REV2)
  std::string name;     // "1g.5gb+me"
  int slices = 0;       // compute slices
  std::int64_t memory_mib = 0;
  int count_max = 0;  // instances that fit on an empty GPU
  int multiprocessors = 0;
  int copy_engines = 0, decoders = 0, encoders = 0, jpeg_engines = 0, ofa_engines = 0;
  std::vector<MigPlacement> placements;  // all possible ones, occupied or not
  friend bool operator==(const MigProfileFacts&, const MigProfileFacts&) = default;
};

// A compute instance: what a pod gets. A GPU instance with several compute instances gives several
// rows with one gi_id. A GPU instance without any (left by a crash) gives one row with ci_id -1 and
// no uuid.
struct MigInstanceFacts {
  int gi_id = -1;
  int ci_id = -1;
  int index = -1;          // of nvmlDeviceGetMigDeviceHandleByIndex; has gaps
  std::string uuid;        // "MIG-..."; new at every creation
  int profile_id = 0;      // of the GPU instance
  std::string profile;     // "1g.5gb"; "1c.3g.20gb" for a part of a GPU instance
  std::string gi_profile;  // "3g.20gb"
  MigPlacement placement;  // of the GPU instance
  int ci_profile_id = -1;
  int ci_slices = 0;
  std::int64_t memory_mib = 0;
  int multiprocessors = 0;
  friend bool operator==(const MigInstanceFacts&, const MigInstanceFacts&) = default;
};

// How two GPUs of a node reach each other, nearest first.
enum class LinkKind : std::uint8_t {
  Self,              // X
  SameBoard,         // "internal": two GPUs of one board
  SingleSwitch,      // PIX: one PCIe bridge
  MultipleSwitches,  // PXB: several PCIe bridges
  HostBridge,        // PHB
  Node,              // NODE: host bridges of one NUMA node
  System,            // SYS: across NUMA nodes
  Unknown,
};
std::string_view link_kind_text(LinkKind kind);  // "X", "PIX", ...: as nvidia-smi topo -m

// One cell of the topology matrix.
struct LinkFacts {
  LinkKind pcie = LinkKind::Unknown;
  int nvlinks = 0;  // active NVLinks that join the two (NV12 in the matrix); 0: none
  // NVML's word on peer access over NVLink: 0 works, 1 to 6 why not.
  Reading<int> p2p_nvlink;
  friend bool operator==(const LinkFacts&, const LinkFacts&) = default;
};

enum class FabricState : std::uint8_t { NotSupported, NotStarted, InProgress, Completed };

struct FabricFacts {
  FabricState state = FabricState::NotSupported;
  int status = 0;            // nvmlReturn of the registration, meaningful when Completed
  std::string cluster_uuid;  // "" when none
  std::uint32_t clique_id = 0;
  std::uint32_t health_mask = 0;
  int health_summary = 0;  // 0 not told, 1 healthy, 2 unhealthy, 3 limited capacity
  friend bool operator==(const FabricFacts&, const FabricFacts&) = default;
};

struct ClocksMhz {
  Reading<std::int64_t> graphics, sm, memory, video;
  friend bool operator==(const ClocksMhz&, const ClocksMhz&) = default;
};

// What does not change while the GPU stays as it is: read at start, after a MIG change and after a
// driver reload.
struct GpuFacts {
  int index = 0;             // order of the PCI bus
  std::string uuid;          // "GPU-..."; never empty, except where the GPU was lost before it
                             // could be named
  bool is_lost = false;      // the rest may be what was known before
  std::string lost_reason;   // "" or one line
  std::string name;          // "NVIDIA A100-SXM4-40GB"
  std::string brand;         // "NVIDIA"
  std::string architecture;  // "Ampere"; "" unknown
  std::string pci_bus_id;    // "00000000:07:00.0", upper case, domain of 8 digits
  std::uint32_t pci_device_id = 0;  // device << 16 | vendor: 0x20B010DE
  std::uint32_t pci_subsystem_id = 0;
  Reading<std::string> serial, vbios, board_part_number, inforom_version;
  Reading<std::string> inforom_oem, inforom_ecc, inforom_power;  // versions of its objects
  Reading<int> minor;  // N of /dev/nvidiaN; may differ from the index
  Reading<int> module_id;
  Reading<int> numa_node;       // of the CPUs near the GPU
  std::string cpu_affinity;     // "0-23,48-71"; "" unknown
  std::int64_t memory_mib = 0;  // the whole board, rounded down
  std::int64_t bar1_mib = 0;
  int compute_major = 0, compute_minor = 0;
  ClocksMhz clocks_max;
  Reading<std::int64_t> power_limit_mw;            // what is enforced, by whatever limits most
  Reading<std::int64_t> power_limit_requested_mw;  // what was set
  Reading<std::int64_t> power_limit_min_mw, power_limit_max_mw, power_limit_default_mw;
  Reading<bool> persistence_mode;
  Reading<bool> ecc_enabled, ecc_pending;
  Reading<int> compute_mode;  // 0 default, 2 prohibited, 3 exclusive process
  Reading<int> virtualization_mode;
  Reading<int> addressing_mode;  // 0 none, 1 HMM, 2 ATS
  Reading<int> pcie_generation_max, pcie_width_max;
  Reading<int> temperature_shutdown_c, temperature_slowdown_c, temperature_memory_max_c,
      temperature_gpu_max_c;
  bool has_gpm = false;
  int nvlinks = 0;  // NVLinks that are up, to whatever
  int nvlinks_to_switch = 0;
  int nvlinks_max = 0;  // that the board has; with MIG on all of them are down
  Reading<FabricFacts> fabric;

  bool mig_capable = false;
  bool mig_enabled = false;                     // the current mode
  bool mig_pending = false;                     // the mode after the next reset
  int mig_devices_max = 0;                      // bound of MigInstanceFacts::index
  std::vector<MigProfileFacts> mig_profiles;    // by query index; only what the driver knows
  std::vector<MigInstanceFacts> mig_instances;  // by gi_id, ci_id

  std::vector<LinkFacts> links;  // to NodeFacts::gpus[i]; the row of the topology matrix
  friend bool operator==(const GpuFacts&, const GpuFacts&) = default;
};

struct NodeFacts {
  std::string driver_version;  // "550.90.07"
  std::string nvml_version;
  int cuda_major = 0, cuda_minor = 0;  // what the driver supports
  std::uint64_t generation = 0;        // grows at every driver (re)load; stale handles are of older
  std::vector<GpuFacts> gpus;          // by index
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

struct ProcessFacts {
  std::int64_t pid = 0;  // as the host counts
  std::string name;      // "" unknown
  enum class Kind : std::uint8_t { Compute, Graphics, Mps };
  Kind kind = Kind::Compute;
  Reading<std::int64_t> memory_bytes;
  int gi_id = -1, ci_id = -1;  // -1: not on a MIG instance
  Reading<int> sm_percent, memory_percent, encoder_percent, decoder_percent;
  friend bool operator==(const ProcessFacts&, const ProcessFacts&) = default;
};

struct MemorySample {
  Reading<std::int64_t> total_bytes, used_bytes, free_bytes;
  Reading<std::int64_t> reserved_bytes;  // used_bytes is without it, where it is known
  friend bool operator==(const MemorySample&, const MemorySample&) = default;
};

// Errors counted since the driver was loaded (volatile) or ever (aggregate).
struct EccSample {
  Reading<std::int64_t> corrected_volatile, uncorrected_volatile, corrected_aggregate,
      uncorrected_aggregate;
  friend bool operator==(const EccSample&, const EccSample&) = default;
};

struct RowsSample {
  Reading<std::int64_t> corrected, uncorrected;  // remapped rows
  Reading<bool> is_pending, has_failed;
  Reading<std::int64_t> retired_single_bit, retired_double_bit;  // pages; before Ampere
  Reading<bool> retirement_pending;
  // Banks by what they have left for repairs.
  Reading<std::int64_t> banks_max, banks_high, banks_partial, banks_low, banks_none;
  friend bool operator==(const RowsSample&, const RowsSample&) = default;
};

// One NVLink, or all of them together. Bytes since the driver was loaded.
struct LinkCounters {
  Reading<std::int64_t> crc_flit_errors, crc_data_errors, replay_errors, recovery_errors;
  Reading<std::int64_t> tx_bytes, rx_bytes;
  friend bool operator==(const LinkCounters&, const LinkCounters&) = default;
};

struct NvlinkSample : LinkCounters {
  std::vector<LinkCounters> links;  // by number; empty unless SampleWants::links
  friend bool operator==(const NvlinkSample&, const NvlinkSample&) = default;
};

// How long clocks were held down, nanoseconds since driver load, by cause.
struct HeldSample {
  Reading<std::int64_t> power_cap_ns, sync_boost_ns, sw_thermal_ns, hw_thermal_ns, power_brake_ns;
  Reading<std::int64_t> app_clocks_ns, base_clocks_ns;  // below these clocks, whatever the cause
  friend bool operator==(const HeldSample&, const HeldSample&) = default;
};

// Profiling metrics (GPM: Hopper and newer). Shares are 0 to 1, rates bytes per second.
struct GpmSample {
  Reading<double> graphics_active, sm_active, sm_occupancy, tensor_active, dram_active, fp64_active,
      fp32_active, fp16_active, tensor_hmma_active, tensor_imma_active, tensor_dfma_active,
      integer_active;
  Reading<double> pcie_tx_bytes_per_s, pcie_rx_bytes_per_s, nvlink_tx_bytes_per_s,
      nvlink_rx_bytes_per_s;
  // By number of the engine or link; empty unless SampleWants::gpm_engines or ::gpm_links.
  std::vector<Reading<double>> decoders, jpeg_engines, ofa_engines;
  std::vector<Reading<double>> link_tx_bytes_per_s, link_rx_bytes_per_s;
  friend bool operator==(const GpmSample&, const GpmSample&) = default;
};

struct MigInstanceSample {
  int gi_id = -1, ci_id = -1;
  std::string uuid;
  MemorySample memory;
  GpmSample gpm;
  friend bool operator==(const MigInstanceSample&, const MigInstanceSample&) = default;
};

// Bits of GpuSample::throttle_reasons.
inline constexpr std::uint64_t kThrottleIdle = 0x1;
inline constexpr std::uint64_t kThrottleApplicationClocks = 0x2;
inline constexpr std::uint64_t kThrottleSwPowerCap = 0x4;
inline constexpr std::uint64_t kThrottleHwSlowdown = 0x8;
inline constexpr std::uint64_t kThrottleSyncBoost = 0x10;
inline constexpr std::uint64_t kThrottleSwThermal = 0x20;
inline constexpr std::uint64_t kThrottleHwThermal = 0x40;
inline constexpr std::uint64_t kThrottleHwPowerBrake = 0x80;
inline constexpr std::uint64_t kThrottleDisplayClocks = 0x100;

// What changes all the time.
struct GpuSample {
  std::string uuid;
  TimeUs time = 0;       // when the reading began, microseconds since 1970
  bool is_lost = false;  // then every reading is Missing::Lost
  Reading<int> gpu_percent, memory_percent, encoder_percent, decoder_percent, jpeg_percent,
      ofa_percent;
  MemorySample memory;
  Reading<std::int64_t> bar1_used_bytes, bar1_free_bytes;
  ClocksMhz clocks;
  Reading<int> temperature_c, memory_temperature_c;
  Reading<int> fan_percent;
  Reading<int> performance_state;  // 0 fastest
  Reading<std::int64_t> power_mw;
  Reading<std::int64_t> power_instant_mw;
  Reading<std::int64_t> energy_mj;  // since driver load
  Reading<std::int64_t> pcie_tx_bytes_per_s, pcie_rx_bytes_per_s;
  Reading<std::int64_t> pcie_replays;
  Reading<int> pcie_generation, pcie_width;
  EccSample ecc;
  RowsSample rows;
  NvlinkSample nvlink;
  Reading<std::uint64_t> throttle_reasons;  // kThrottle* bits
  // Time held back, nanoseconds since driver load.
  Reading<std::int64_t> violation_power_ns, violation_thermal_ns, violation_sync_boost_ns,
      violation_board_limit_ns, violation_low_utilisation_ns, violation_reliability_ns;
  HeldSample held;               // only with SampleWants::held
  Reading<int> recovery_action;  // 0 none, 1 reset GPU, 2 reboot node, 3 drain P2P...
  GpmSample gpm;
  std::vector<MigInstanceSample> mig;  // the order of GpuFacts::mig_instances
  Reading<std::vector<ProcessFacts>> processes;
  friend bool operator==(const GpuSample&, const GpuSample&) = default;
};

enum class GpuEventKind : std::uint8_t {
  Xid,  // code is the XID
  EccSingleBit,
  EccDoubleBit,
  MigChange,       // instances or mode changed: read the facts again
  GpuLost,         // the GPU does not answer any more
  GpuRecovered,    // a lost GPU answers again
  RecoveryAction,  // code is the action, as GpuSample::recovery_action
  DriverReload,    // every handle is new; uuid is empty
  Other,           // code is NVML's event type bit
};
std::string_view event_kind_text(GpuEventKind kind);

struct GpuEvent {
  std::string uuid;  // of the GPU; "" when it concerns the node
  GpuEventKind kind = GpuEventKind::Other;
  std::uint64_t code = 0;
  int gi_id = -1, ci_id = -1;  // -1: the whole GPU
  TimeUs time = 0;             // when it was received
  friend bool operator==(const GpuEvent&, const GpuEvent&) = default;
};

// What sample() should read beyond the cheap values.
struct SampleWants {
  bool processes = true;
  bool pcie_throughput = false;  // real drivers block for about 20 ms per direction
  bool gpm = true;               // where the GPU has it
  bool gpm_engines = false;      // each video, JPEG and optical-flow engine
  bool gpm_links = false;        // each NVLink
  bool links = false;            // counters of each NVLink
  bool held = false;
  friend bool operator==(const SampleWants&, const SampleWants&) = default;
};

// Calls block and may be slow: from the NVML thread only (see worker.h). No call throws. Errors:
//   Unavailable  no library, no driver, driver and library of different versions
//   NotFound     no such GPU, profile or instance (any more): read the facts again
//   Gone         the GPU is lost
//   Conflict     in use, or the place is taken, or a reset is needed first
//   Invalid      not supported, no permission, or arguments that can never be right
//   Timeout      the call hung
class GpuSource {
 public:
  GpuSource() = default;
  GpuSource(const GpuSource&) = delete;
  GpuSource& operator=(const GpuSource&) = delete;
  virtual ~GpuSource() = default;

  // Everything about the node, read afresh. A lost GPU is listed with is_lost, never an error.
  virtual Result<NodeFacts> facts() = 0;
  virtual Result<GpuSample> sample(const std::string& uuid, const SampleWants& wants) = 0;
  // Waits at most so long for a first event; returns it and what came with it, or none.
  virtual Result<std::vector<GpuEvent>> poll_events(TimeUs timeout) = 0;
  virtual Result<std::vector<ProcessFacts>> processes(const std::string& uuid) = 0;
  // Whether MIG mode or instances are others than those that facts() showed last: somebody else
  // changed them, or a reset did. Much cheaper than facts(), and no event tells of it.
  virtual Result<bool> is_recut(const std::string& uuid) {
    static_cast<void>(uuid);
    return false;
  }

  // One of the values of GpuFacts::compute_mode; facts() shows it afterwards.
  virtual Result<void> set_compute_mode(const std::string& uuid, int mode) = 0;
  // True: in force now. False: it is pending until the GPU is reset.
  virtual Result<bool> set_mig_mode(const std::string& uuid, bool is_enabled) = 0;
  // A GPU instance at exactly this place, with compute instances of these profile ids in it (none
  // given: one that covers it all). Undone when a compute instance cannot be made. Returns the rows
  // that facts() would show for it.
  virtual Result<std::vector<MigInstanceFacts>> create_instance(
      const std::string& uuid, int profile_id, MigPlacement placement,
      const std::vector<int>& ci_profile_ids) = 0;
  // The same with compute instances of so many compute slices each, in this order: of each size the
  // plain kind.
  virtual Result<std::vector<MigInstanceFacts>> create_instance_in_parts(
      const std::string& uuid, int profile_id, MigPlacement placement,
      const std::vector<int>& part_slices) = 0;
  // The compute instances of the GPU instance, then itself. Conflict when a process uses it; what
  // was destroyed until then stays destroyed.
  virtual Result<void> destroy_instance(const std::string& uuid, int gi_id) = 0;
  // One compute instance; the GPU instance stays.
  virtual Result<void> destroy_compute_instance(const std::string& uuid, int gi_id, int ci_id) = 0;
  virtual Result<MigInstanceFacts> create_compute_instance(const std::string& uuid, int gi_id,
                                                           int ci_profile_id) = 0;
};

}  // namespace jogak::nvml
