// SPDX-License-Identifier: Apache-2.0
//
// A machine with GPUs as a simulation file describes it: what is there, what it does as time goes
// by, and what breaks when. Plain values, complete: what the file leaves out was filled in from the
// model (models.h). Times are microseconds since the simulation began.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.h"
#include "base/result.h"

namespace jogak::nvml::sim {

// A number that changes with time, between low and high.
enum class Shape : std::uint8_t { Constant, Square, Sine, Ramp };
struct Wave {
  Shape shape = Shape::Constant;
  int low = 0, high = 0;  // Constant: high
  TimeUs period = 60 * kSecondInUs;
  TimeUs phase = 0;  // how far into its period it begins
  friend bool operator==(const Wave&, const Wave&) = default;
};
double wave_at(const Wave& wave, TimeUs time);
// The integral from 0 to time, in value times seconds.
double wave_integral(const Wave& wave, TimeUs time);

struct PlacementSpec {
  int start = 0, size = 0;
  friend auto operator<=>(const PlacementSpec&, const PlacementSpec&) = default;
};

struct MigProfileSpec {
  int query_index = 0;
  int id = 0;
  std::string name;
  int slices = 0;
  std::int64_t memory_mib = 0;
  int count_max = 0;
  int multiprocessors = 0, copy_engines = 0, decoders = 0, encoders = 0, jpeg_engines = 0,
      ofa_engines = 0;
  std::vector<PlacementSpec> placements;
  friend bool operator==(const MigProfileSpec&, const MigProfileSpec&) = default;
};

// How a change of the MIG mode comes into force.
enum class MigSupport : std::uint8_t { None, AfterReset, AtOnce };

struct MigInstanceSpec {
  std::string profile;
  int start = -1;                   // -1: as the driver likes
  std::vector<int> compute_slices;  // one compute instance each; empty: one that covers it all
  std::string uuid;                 // of its only compute instance; "": made up
  bool has_compute_instances = true;
  friend bool operator==(const MigInstanceSpec&, const MigInstanceSpec&) = default;
};

enum class ProcessKind : std::uint8_t { Compute, Graphics, Mps };
struct ProcessSpec {
  std::int64_t pid = 0;
  std::string name;
  ProcessKind kind = ProcessKind::Compute;
  std::int64_t memory_mib = 0;
  int instance = -1;  // of GpuSpec::mig_instances; -1: the whole GPU
  int sm_percent = 0, memory_percent = 0, encoder_percent = 0, decoder_percent = 0;
  TimeUs from = 0, until = 0;  // until 0: for ever
  int sway_percent = 0;        // how far sm_percent goes up and down; not in files
  friend bool operator==(const ProcessSpec&, const ProcessSpec&) = default;
};

// What a process uses of the SMs while it runs.
Wave sm_wave(const ProcessSpec& process);
int sm_percent_at(const ProcessSpec& process, TimeUs time);
// In percent times seconds, of what it ran between the two moments.
double sm_seconds(const ProcessSpec& process, TimeUs from, TimeUs to);

struct ClocksSpec {
  std::int64_t graphics = 0, sm = 0, memory = 0, video = 0;  // MHz
  friend bool operator==(const ClocksSpec&, const ClocksSpec&) = default;
};

struct NvlinkSpec {
  int count = 0;
  int version = 0;
  std::int64_t speed_mbps = 0;  // of one link, MB/s
  bool to_switch = false;       // all links end in NVSwitches: every pair is joined
  friend bool operator==(const NvlinkSpec&, const NvlinkSpec&) = default;
};

// What is known of the way to one other GPU; level is a word of nvidia-smi's matrix.
enum class PathLevel : std::uint8_t { Default, Psb, Pix, Pxb, Phb, Node, Sys };
struct PeerSpec {
  int gpu = 0;
  PathLevel level = PathLevel::Default;
  int nvlinks = 0;  // without switches: direct links
  friend bool operator==(const PeerSpec&, const PeerSpec&) = default;
};

struct FabricSpec {
  int state = 0;  // 0 none, 1 not started, 2 in progress, 3 completed
  int status = 0;
  std::string cluster_uuid;
  std::uint32_t clique_id = 0, health_mask = 0;
  friend bool operator==(const FabricSpec&, const FabricSpec&) = default;
};

// Counters as they stand when the simulation begins.
struct CountersSpec {
  std::int64_t ecc_corrected_volatile = 0, ecc_uncorrected_volatile = 0,
               ecc_corrected_aggregate = 0, ecc_uncorrected_aggregate = 0;
  std::int64_t rows_corrected = 0, rows_uncorrected = 0;
  bool rows_pending = false, rows_failed = false;
  std::int64_t retired_single_bit = 0, retired_double_bit = 0;
  bool retirement_pending = false;
  std::int64_t nvlink_crc_flit = 0, nvlink_crc_data = 0, nvlink_replay = 0, nvlink_recovery = 0;
  std::int64_t pcie_replays = 0;
  std::int64_t energy_mj = 0;
  int recovery_action = 0;
  friend bool operator==(const CountersSpec&, const CountersSpec&) = default;
};

struct GpuSpec {
  std::string model;  // the catalogue's name, "" when everything was given
  std::string name, brand, architecture;
  std::string uuid, serial, vbios, part_number, inforom;
  std::string bus_id;  // "00000000:07:00.0"
  std::uint32_t pci_device_id = 0, pci_subsystem_id = 0;
  int minor = -1, module_id = -1, numa_node = -1;
  std::string cpus;      // "0-23,48-71"
  int board = -1;        // GPUs of one board share the number
  int pcie_switch = -1;  // GPUs behind one PCIe switch share the number
  int compute_major = 0, compute_minor = 0;
  int multiprocessors = 0, cores = 0, bus_width_bits = 0;
  std::int64_t memory_mib = 0, reserved_mib = 0, bar1_mib = 0;
  ClocksSpec clocks_max, clocks_idle;
  std::int64_t power_limit_mw = 0, power_limit_default_mw = 0, power_limit_min_mw = 0,
               power_limit_max_mw = 0, power_idle_mw = 0;
  int pcie_generation = 0, pcie_width = 0;
  int shutdown_c = 0, slowdown_c = 0, memory_max_c = 0, gpu_max_c = 0, idle_c = 0;
  bool has_memory_temperature = false;
  int fans = 0;
  bool has_ecc = true, ecc_enabled = true;
  bool has_row_remap = true;  // else page retirement
  int banks = 0;              // of the row remapper's histogram
  bool has_jpeg_ofa = true, has_encoder = true, has_decoder = true;
  bool has_gpm = false;
  bool persistence = true;
  int compute_mode = 0, virtualization_mode = 0, addressing_mode = 0;
  NvlinkSpec nvlink;
  std::vector<PeerSpec> peers;
  FabricSpec fabric;
  MigSupport mig_support = MigSupport::None;
  bool mig_enabled = false, mig_pending = false;
  int mig_slices = 0;  // compute slices of the whole; also the most MIG devices
  std::vector<MigProfileSpec> mig_profiles;
  std::vector<MigInstanceSpec> mig_instances;
  Wave load;  // percent of the GPU
  Wave encoder_load, decoder_load;
  // Readings that are what they are, whatever the load says: "temperature", "powerMw", ...
  std::map<std::string, std::int64_t, std::less<>> readings;
  CountersSpec counters;
  std::vector<ProcessSpec> processes;
  std::vector<std::string> unsupported;  // functions this GPU answers with "not supported"
  friend bool operator==(const GpuSpec&, const GpuSpec&) = default;
};

enum class FaultKind : std::uint8_t {
  Xid,             // code
  Lost,            // the GPU stops answering, for `lasting` or for ever
  Ecc,             // count errors; code 0 corrected, 1 uncorrected
  Thermal,         // hot, with slowdown, for `lasting`; code: degrees
  PowerBrake,      // for `lasting`
  RowRemap,        // count rows; code bits: 1 uncorrected, 2 pending, 4 failure
  RecoveryAction,  // code
  NvlinkErrors,    // count of CRC errors
  NvlinkDown,      // code: the link; for `lasting`
  Reset,           // the GPU is reset: pending modes take effect, instances are gone
  DriverReload,    // the driver is away for `lasting`
  SlowCall,        // the function `call` takes `delay` longer, for `lasting`
  FailCall,        // the function `call` answers `code`, for `lasting`
  EventWaitError,  // the next wait for events answers `code`
};
struct FaultSpec {
  FaultKind kind = FaultKind::Xid;
  TimeUs at = 0;
  TimeUs lasting = 0;  // 0: for ever (where it can end)
  int gpu = -1;        // -1: all
  int instance = -1;   // of GpuSpec::mig_instances, for Xid
  std::int64_t code = 0, count = 1;
  std::string call;
  TimeUs delay = 0;
  std::string driver_version;  // after a reload; "": the same
  friend bool operator==(const FaultSpec&, const FaultSpec&) = default;
};

struct MachineSpec {
  std::string driver_version, nvml_version, driver_branch;
  int cuda_major = 0, cuda_minor = 0;
  bool has_driver = true;                    // false: every call says so
  bool has_long_process_records = false;     // 32 bytes through the _v3 calls, as early R535
  std::vector<std::string> missing_symbols;  // what an older library does not export
  std::vector<GpuSpec> gpus;
  std::vector<FaultSpec> faults;  // by time
  // Where MIG modes and instances outlive the process; "": they do not.
  std::string state_file;
  friend bool operator==(const MachineSpec&, const MachineSpec&) = default;
};

inline constexpr int kGpusMax = 64;

// Reads a simulation file (docs/nvml-sim.md). UUIDs and serials that it does not give are made from
// `identity`, or else from its own field of that name: two machines of one file need two. Errors:
// Invalid, "FILE:LINE: path: what".
Result<MachineSpec> read_machine(const std::string& file, std::string_view text,
                                 std::string_view identity = {});

// A file that read_machine() reads back as an equal value. Every field of each GPU is written, so
// that it does not depend on the catalogue.
std::string write_machine(const MachineSpec& machine, std::string_view comment);

}  // namespace jogak::nvml::sim
