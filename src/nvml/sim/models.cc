// SPDX-License-Identifier: Apache-2.0
//
// The tables behind models.h. A row of kModels is a board; rows of a MIG table are its profiles,
// in the order of NVML's query constants.
#include "nvml/sim/models.h"

#include <array>
#include <span>
#include <utility>

namespace jogak::nvml::sim {

namespace {

struct MigRow {
  int query_index, id;
  std::string_view name;
  int slices, size;  // compute slices; memory slices of a placement
  std::int64_t memory_mib;
  int count, sm, copy, decoders, encoders, jpeg, ofa;
  std::string_view starts;  // digits
};

constexpr MigRow kA100At40[] = {
    {0, 19, "1g.5gb", 1, 1, 4864, 7, 14, 1, 0, 0, 0, 0, "0123456"},
    {1, 14, "2g.10gb", 2, 2, 9856, 3, 28, 2, 1, 0, 0, 0, "024"},
    {2, 9, "3g.20gb", 3, 4, 19968, 2, 42, 3, 2, 0, 0, 0, "04"},
    {3, 5, "4g.20gb", 4, 4, 19968, 1, 56, 4, 2, 0, 0, 0, "0"},
    {4, 0, "7g.40gb", 7, 8, 40192, 1, 98, 7, 5, 0, 1, 1, "0"},
    {7, 20, "1g.5gb+me", 1, 1, 4864, 1, 14, 1, 1, 0, 1, 1, "0123456"},
    {9, 15, "1g.10gb", 1, 2, 9856, 4, 14, 1, 1, 0, 0, 0, "0246"},
};
constexpr MigRow kA100At80[] = {
    {0, 19, "1g.10gb", 1, 1, 9728, 7, 14, 1, 0, 0, 0, 0, "0123456"},
    {1, 14, "2g.20gb", 2, 2, 19968, 3, 28, 2, 1, 0, 0, 0, "024"},
    {2, 9, "3g.40gb", 3, 4, 40192, 2, 42, 3, 2, 0, 0, 0, "04"},
    {3, 5, "4g.40gb", 4, 4, 40192, 1, 56, 4, 2, 0, 0, 0, "0"},
    {4, 0, "7g.80gb", 7, 8, 80384, 1, 98, 7, 5, 0, 1, 1, "0"},
    {7, 20, "1g.10gb+me", 1, 1, 9728, 1, 14, 1, 1, 0, 1, 1, "0123456"},
    {9, 15, "1g.20gb", 1, 2, 19968, 4, 14, 1, 1, 0, 0, 0, "0246"},
};
constexpr MigRow kH100At80[] = {
    {0, 19, "1g.10gb", 1, 1, 9984, 7, 16, 1, 1, 0, 1, 0, "0123456"},
    {1, 14, "2g.20gb", 2, 2, 20096, 3, 32, 2, 2, 0, 2, 0, "024"},
    {2, 9, "3g.40gb", 3, 4, 40448, 2, 60, 3, 3, 0, 3, 0, "04"},
    {3, 5, "4g.40gb", 4, 4, 40448, 1, 64, 4, 4, 0, 4, 0, "0"},
    {4, 0, "7g.80gb", 7, 8, 81152, 1, 132, 8, 7, 0, 7, 1, "0"},
    {7, 20, "1g.10gb+me", 1, 1, 9984, 1, 16, 1, 1, 0, 1, 1, "0123456"},
    {9, 15, "1g.20gb", 1, 2, 20096, 4, 26, 1, 1, 0, 1, 0, "0246"},
};
constexpr MigRow kH200[] = {
    {0, 19, "1g.18gb", 1, 1, 16384, 7, 16, 1, 1, 0, 1, 0, "0123456"},
    {1, 14, "2g.35gb", 2, 2, 33024, 3, 32, 2, 2, 0, 2, 0, "024"},
    {2, 9, "3g.71gb", 3, 4, 71168, 2, 60, 3, 3, 0, 3, 0, "04"},
    {3, 5, "4g.71gb", 4, 4, 71168, 1, 64, 4, 4, 0, 4, 0, "0"},
    {4, 0, "7g.141gb", 7, 8, 142848, 1, 132, 8, 7, 0, 7, 1, "0"},
    {7, 20, "1g.18gb+me", 1, 1, 16384, 1, 16, 1, 1, 0, 1, 1, "0123456"},
    {9, 15, "1g.35gb", 1, 2, 33024, 4, 26, 1, 1, 0, 1, 0, "0246"},
};
// 1g and 2g are as drivers were seen to tell them. Of 3g to 7g the names, shares of memory and copy
// engines are those of NVIDIA's MIG user guide (profiles of B200 180 GB); 89 GiB were seen for 3g,
// and the multiprocessors of 3g are an estimate.
constexpr MigRow kB200[] = {
    {0, 19, "1g.23gb", 1, 1, 22528, 7, 18, 2, 1, 0, 1, 0, "0123456"},
    {1, 14, "2g.45gb", 2, 2, 45312, 3, 36, 4, 2, 0, 2, 0, "024"},
    {2, 9, "3g.90gb", 3, 4, 91136, 2, 66, 6, 3, 0, 3, 0, "04"},
    {3, 5, "4g.90gb", 4, 4, 91136, 1, 72, 8, 4, 0, 4, 0, "0"},
    {4, 0, "7g.180gb", 7, 8, 182784, 1, 148, 16, 7, 0, 7, 1, "0"},
    {7, 20, "1g.23gb+me", 1, 1, 22528, 1, 18, 2, 1, 0, 1, 1, "0123456"},
    {9, 15, "1g.45gb", 1, 2, 45312, 4, 30, 2, 1, 0, 1, 0, "0246"},
};
constexpr MigRow kA30[] = {
    {0, 14, "1g.6gb", 1, 1, 5952, 4, 14, 1, 0, 0, 0, 0, "0123"},
    {1, 5, "2g.12gb", 2, 2, 11968, 2, 28, 2, 2, 0, 0, 0, "02"},
    {3, 0, "4g.24gb", 4, 4, 24000, 1, 56, 4, 4, 0, 1, 1, "0"},
    {7, 21, "1g.6gb+me", 1, 1, 5952, 1, 14, 1, 1, 0, 1, 1, "0123"},
    {8, 6, "2g.12gb+me", 2, 2, 11968, 1, 28, 2, 2, 0, 1, 1, "02"},
};

struct Model {
  std::string_view key, name, architecture, part_number, vbios, inforom;
  std::uint32_t device_id, subsystem_id;
  int compute_major, compute_minor, sm, cores, bus_bits;
  std::int64_t memory_mib, reserved_mib, bar1_mib;
  ClocksSpec clocks_max, clocks_idle;
  int power_default_w, power_min_w, power_max_w, power_idle_w;
  int pcie_generation;
  int shutdown_c, slowdown_c, memory_max_c, gpu_max_c, idle_c;
  NvlinkSpec nvlink;
  MigSupport mig;
  int mig_slices;
  std::span<const MigRow> mig_rows;
  int banks;
  bool has_gpm, has_encoder;
};

// Chips, memory, power and links are those of NVIDIA's data sheets; PCI ids, board numbers, clocks
// and limits those that drivers were seen to tell (outputs of nvidia-smi -q that people published).
// Boards of Ada tell how far they are from their limits: the degrees of L4 are a temperature and
// that distance. Those of L40S, the clocks at rest of L4, L40S and A10, and A10's clock of video
// and its reserve are estimates.
const std::array kModels = {
    Model{.key = "A100-SXM4-40GB",
          .name = "NVIDIA A100-SXM4-40GB",
          .architecture = "Ampere",
          .part_number = "692-2G506-0200-003",
          .vbios = "92.00.45.00.03",
          .inforom = "G506.0200.00.04",
          .device_id = 0x20B010DE,
          .subsystem_id = 0x144E10DE,
          .compute_major = 8,
          .compute_minor = 0,
          .sm = 108,
          .cores = 6912,
          .bus_bits = 5120,
          .memory_mib = 40960,
          .reserved_mib = 573,
          .bar1_mib = 65536,
          .clocks_max = {1410, 1410, 1215, 1290},
          .clocks_idle = {210, 210, 1215, 585},
          .power_default_w = 400,
          .power_min_w = 100,
          .power_max_w = 400,
          .power_idle_w = 52,
          .pcie_generation = 4,
          .shutdown_c = 92,
          .slowdown_c = 89,
          .memory_max_c = 95,
          .gpu_max_c = 85,
          .idle_c = 31,
          .nvlink = {.count = 12, .version = 3, .speed_mbps = 25000, .to_switch = true},
          .mig = MigSupport::AfterReset,
          .mig_slices = 7,
          .mig_rows = kA100At40,
          .banks = 640,
          .has_gpm = false,
          .has_encoder = false},
    Model{.key = "A100-SXM4-80GB",
          .name = "NVIDIA A100-SXM4-80GB",
          .architecture = "Ampere",
          .part_number = "692-2G506-0210-002",
          .vbios = "92.00.45.00.05",
          .inforom = "G506.0210.00.04",
          .device_id = 0x20B210DE,
          .subsystem_id = 0x146310DE,
          .compute_major = 8,
          .compute_minor = 0,
          .sm = 108,
          .cores = 6912,
          .bus_bits = 5120,
          .memory_mib = 81920,
          .reserved_mib = 625,
          .bar1_mib = 131072,
          .clocks_max = {1410, 1410, 1593, 1290},
          .clocks_idle = {210, 210, 1593, 585},
          .power_default_w = 400,
          .power_min_w = 100,
          .power_max_w = 400,
          .power_idle_w = 60,
          .pcie_generation = 4,
          .shutdown_c = 92,
          .slowdown_c = 89,
          .memory_max_c = 95,
          .gpu_max_c = 85,
          .idle_c = 31,
          .nvlink = {.count = 12, .version = 3, .speed_mbps = 25000, .to_switch = true},
          .mig = MigSupport::AfterReset,
          .mig_slices = 7,
          .mig_rows = kA100At80,
          .banks = 640,
          .has_gpm = false,
          .has_encoder = false},
    Model{.key = "H100-SXM5-80GB",
          .name = "NVIDIA H100 80GB HBM3",
          .architecture = "Hopper",
          .part_number = "692-2G520-0200-000",
          .vbios = "96.00.74.00.1A",
          .inforom = "G520.0200.00.05",
          .device_id = 0x233010DE,
          .subsystem_id = 0x16C110DE,
          .compute_major = 9,
          .compute_minor = 0,
          .sm = 132,
          .cores = 16896,
          .bus_bits = 5120,
          .memory_mib = 81559,
          .reserved_mib = 551,
          .bar1_mib = 131072,
          .clocks_max = {1980, 1980, 2619, 1545},
          .clocks_idle = {345, 345, 2619, 765},
          .power_default_w = 700,
          .power_min_w = 200,
          .power_max_w = 700,
          .power_idle_w = 70,
          .pcie_generation = 5,
          .shutdown_c = 95,
          .slowdown_c = 92,
          .memory_max_c = 95,
          .gpu_max_c = 87,
          .idle_c = 30,
          .nvlink = {.count = 18, .version = 4, .speed_mbps = 26562, .to_switch = true},
          .mig = MigSupport::AtOnce,
          .mig_slices = 7,
          .mig_rows = kH100At80,
          .banks = 2560,
          .has_gpm = true,
          .has_encoder = false},
    Model{.key = "H200-SXM5-141GB",
          .name = "NVIDIA H200",
          .architecture = "Hopper",
          .part_number = "692-2G520-0280-000",
          .vbios = "96.00.A5.00.01",
          .inforom = "G520.0280.00.05",
          .device_id = 0x233510DE,
          .subsystem_id = 0x18BE10DE,
          .compute_major = 9,
          .compute_minor = 0,
          .sm = 132,
          .cores = 16896,
          .bus_bits = 6144,
          .memory_mib = 143771,
          .reserved_mib = 607,
          .bar1_mib = 262144,
          .clocks_max = {1980, 1980, 3201, 1545},
          .clocks_idle = {345, 345, 3201, 765},
          .power_default_w = 700,
          .power_min_w = 200,
          .power_max_w = 700,
          .power_idle_w = 76,
          .pcie_generation = 5,
          .shutdown_c = 95,
          .slowdown_c = 92,
          .memory_max_c = 95,
          .gpu_max_c = 87,
          .idle_c = 29,
          .nvlink = {.count = 18, .version = 4, .speed_mbps = 26562, .to_switch = true},
          .mig = MigSupport::AtOnce,
          .mig_slices = 7,
          .mig_rows = kH200,
          .banks = 3072,
          .has_gpm = true,
          .has_encoder = false},
    Model{.key = "B200-180GB",
          .name = "NVIDIA B200",
          .architecture = "Blackwell",
          .part_number = "692-2G525-0220-000",
          .vbios = "97.00.88.00.1F",
          .inforom = "G525.0220.00.03",
          .device_id = 0x290110DE,
          .subsystem_id = 0x199910DE,
          .compute_major = 10,
          .compute_minor = 0,
          .sm = 148,
          .cores = 18944,
          .bus_bits = 8192,
          .memory_mib = 183359,
          .reserved_mib = 721,
          .bar1_mib = 262144,
          .clocks_max = {1965, 1965, 3996, 1965},
          .clocks_idle = {120, 120, 3996, 600},
          .power_default_w = 1000,
          .power_min_w = 200,
          .power_max_w = 1000,
          .power_idle_w = 140,
          .pcie_generation = 5,
          .shutdown_c = 95,
          .slowdown_c = 92,
          .memory_max_c = 95,
          .gpu_max_c = 87,
          .idle_c = 30,
          .nvlink = {.count = 18, .version = 5, .speed_mbps = 53125, .to_switch = true},
          .mig = MigSupport::AtOnce,
          .mig_slices = 7,
          .mig_rows = kB200,
          .banks = 4096,
          .has_gpm = true,
          .has_encoder = false},
    Model{.key = "A30",
          .name = "NVIDIA A30",
          .architecture = "Ampere",
          .part_number = "900-21001-0040-000",
          .vbios = "92.00.66.00.0B",
          .inforom = "1001.0205.00.03",
          .device_id = 0x20B710DE,
          .subsystem_id = 0x153210DE,
          .compute_major = 8,
          .compute_minor = 0,
          .sm = 56,
          .cores = 3584,
          .bus_bits = 3072,
          .memory_mib = 24576,
          .reserved_mib = 359,
          .bar1_mib = 32768,
          .clocks_max = {1440, 1440, 1215, 1305},
          .clocks_idle = {210, 210, 1215, 585},
          .power_default_w = 165,
          .power_min_w = 100,
          .power_max_w = 165,
          .power_idle_w = 29,
          .pcie_generation = 4,
          .shutdown_c = 92,
          .slowdown_c = 89,
          .memory_max_c = 95,
          .gpu_max_c = 85,
          .idle_c = 30,
          .nvlink = {},
          .mig = MigSupport::AfterReset,
          .mig_slices = 4,
          .mig_rows = kA30,
          .banks = 384,
          .has_gpm = false,
          .has_encoder = false},
    Model{.key = "T4",
          .name = "Tesla T4",
          .architecture = "Turing",
          .part_number = "900-2G183-0000-001",
          .vbios = "90.04.96.00.9F",
          .inforom = "G183.0200.00.02",
          .device_id = 0x1EB810DE,
          .subsystem_id = 0x12A210DE,
          .compute_major = 7,
          .compute_minor = 5,
          .sm = 40,
          .cores = 2560,
          .bus_bits = 256,
          .memory_mib = 15360,
          .reserved_mib = 449,
          .bar1_mib = 256,
          .clocks_max = {1590, 1590, 5001, 1470},
          .clocks_idle = {300, 300, 405, 540},
          .power_default_w = 70,
          .power_min_w = 60,
          .power_max_w = 70,
          .power_idle_w = 9,
          .pcie_generation = 3,
          .shutdown_c = 96,
          .slowdown_c = 93,
          .memory_max_c = 0,
          .gpu_max_c = 85,
          .idle_c = 32,
          .nvlink = {},
          .mig = MigSupport::None,
          .mig_slices = 0,
          .mig_rows = {},
          .banks = 0,
          .has_gpm = false,
          .has_encoder = true},
    Model{.key = "V100-SXM2-32GB",
          .name = "Tesla V100-SXM2-32GB",
          .architecture = "Volta",
          .part_number = "900-2G503-0010-000",
          .vbios = "88.00.48.00.02",
          .inforom = "G503.0203.00.05",
          .device_id = 0x1DB510DE,
          .subsystem_id = 0x124910DE,
          .compute_major = 7,
          .compute_minor = 0,
          .sm = 80,
          .cores = 5120,
          .bus_bits = 4096,
          .memory_mib = 32768,
          .reserved_mib = 264,
          .bar1_mib = 32768,
          .clocks_max = {1530, 1530, 877, 1372},
          .clocks_idle = {135, 135, 877, 555},
          .power_default_w = 300,
          .power_min_w = 150,
          .power_max_w = 300,
          .power_idle_w = 42,
          .pcie_generation = 3,
          .shutdown_c = 90,
          .slowdown_c = 87,
          .memory_max_c = 85,
          .gpu_max_c = 83,
          .idle_c = 32,
          .nvlink = {.count = 6, .version = 2, .speed_mbps = 25781, .to_switch = false},
          .mig = MigSupport::None,
          .mig_slices = 0,
          .mig_rows = {},
          .banks = 0,
          .has_gpm = false,
          .has_encoder = true},
    Model{.key = "L40S",
          .name = "NVIDIA L40S",
          .architecture = "Ada",
          .part_number = "900-2G133-A880-000",
          .vbios = "95.02.66.00.15",
          .inforom = "G133.0242.00.03",
          .device_id = 0x26B910DE,
          .subsystem_id = 0x185110DE,
          .compute_major = 8,
          .compute_minor = 9,
          .sm = 142,
          .cores = 18176,
          .bus_bits = 384,
          .memory_mib = 46068,
          .reserved_mib = 592,
          .bar1_mib = 65536,
          .clocks_max = {2520, 2520, 9001, 1965},
          .clocks_idle = {210, 210, 405, 1185},
          .power_default_w = 350,
          .power_min_w = 100,
          .power_max_w = 350,
          .power_idle_w = 33,
          .pcie_generation = 4,
          .shutdown_c = 92,
          .slowdown_c = 89,
          .memory_max_c = 0,
          .gpu_max_c = 87,
          .idle_c = 30,
          .nvlink = {},
          .mig = MigSupport::None,
          .mig_slices = 0,
          .mig_rows = {},
          .banks = 192,
          .has_gpm = false,
          .has_encoder = true},
    Model{.key = "L4",
          .name = "NVIDIA L4",
          .architecture = "Ada",
          .part_number = "900-2G193-0000-001",
          .vbios = "95.04.29.00.06",
          .inforom = "G193.0200.00.01",
          .device_id = 0x27B810DE,
          .subsystem_id = 0x16CA10DE,
          .compute_major = 8,
          .compute_minor = 9,
          .sm = 58,
          .cores = 7424,
          .bus_bits = 192,
          .memory_mib = 23034,
          .reserved_mib = 434,
          .bar1_mib = 32768,
          .clocks_max = {2040, 2040, 6251, 1770},
          .clocks_idle = {210, 210, 405, 795},
          .power_default_w = 72,
          .power_min_w = 40,
          .power_max_w = 72,
          .power_idle_w = 12,
          .pcie_generation = 4,
          .shutdown_c = 89,
          .slowdown_c = 86,
          .memory_max_c = 0,
          .gpu_max_c = 84,
          .idle_c = 34,
          .nvlink = {},
          .mig = MigSupport::None,
          .mig_slices = 0,
          .mig_rows = {},
          .banks = 96,
          .has_gpm = false,
          .has_encoder = true},
    Model{.key = "A10",
          .name = "NVIDIA A10",
          .architecture = "Ampere",
          .part_number = "900-2G133-0020-000",
          .vbios = "94.02.5C.00.04",
          .inforom = "G133.0210.00.04",
          .device_id = 0x223610DE,
          .subsystem_id = 0x148210DE,
          .compute_major = 8,
          .compute_minor = 6,
          .sm = 72,
          .cores = 9216,
          .bus_bits = 384,
          .memory_mib = 23028,
          .reserved_mib = 495,
          .bar1_mib = 32768,
          .clocks_max = {1695, 1695, 6251, 1575},
          .clocks_idle = {210, 210, 405, 555},
          .power_default_w = 150,
          .power_min_w = 100,
          .power_max_w = 150,
          .power_idle_w = 16,
          .pcie_generation = 4,
          .shutdown_c = 98,
          .slowdown_c = 95,
          .memory_max_c = 0,
          .gpu_max_c = 88,
          .idle_c = 30,
          .nvlink = {},
          .mig = MigSupport::None,
          .mig_slices = 0,
          .mig_rows = {},
          .banks = 192,
          .has_gpm = false,
          .has_encoder = true},
};

MigProfileSpec profile_of(const MigRow& row) {
  MigProfileSpec profile{.query_index = row.query_index,
                         .id = row.id,
                         .name = std::string(row.name),
                         .slices = row.slices,
                         .memory_mib = row.memory_mib,
                         .count_max = row.count,
                         .multiprocessors = row.sm,
                         .copy_engines = row.copy,
                         .decoders = row.decoders,
                         .encoders = row.encoders,
                         .jpeg_engines = row.jpeg,
                         .ofa_engines = row.ofa,
                         .placements = {}};
  for (const char digit : row.starts) {
    profile.placements.push_back({.start = digit - '0', .size = row.size});
  }
  return profile;
}

GpuSpec gpu_of(const Model& model) {
  GpuSpec gpu;
  gpu.model = model.key;
  gpu.name = model.name;
  const bool is_tesla = model.compute_major < 8;
  gpu.brand = is_tesla ? "Tesla" : "NVIDIA";
  gpu.architecture = model.architecture;
  gpu.vbios = model.vbios;
  gpu.part_number = model.part_number;
  gpu.inforom = model.inforom;
  gpu.pci_device_id = model.device_id;
  gpu.pci_subsystem_id = model.subsystem_id;
  gpu.compute_major = model.compute_major;
  gpu.compute_minor = model.compute_minor;
  gpu.multiprocessors = model.sm;
  gpu.cores = model.cores;
  gpu.bus_width_bits = model.bus_bits;
  gpu.memory_mib = model.memory_mib;
  gpu.reserved_mib = model.reserved_mib;
  gpu.bar1_mib = model.bar1_mib;
  gpu.clocks_max = model.clocks_max;
  gpu.clocks_idle = model.clocks_idle;
  gpu.power_limit_default_mw = gpu.power_limit_mw = model.power_default_w * 1000;
  gpu.power_limit_min_mw = model.power_min_w * 1000;
  gpu.power_limit_max_mw = model.power_max_w * 1000;
  gpu.power_idle_mw = model.power_idle_w * 1000;
  gpu.pcie_generation = model.pcie_generation;
  gpu.pcie_width = 16;
  gpu.shutdown_c = model.shutdown_c;
  gpu.slowdown_c = model.slowdown_c;
  gpu.memory_max_c = model.memory_max_c;
  gpu.gpu_max_c = model.gpu_max_c;
  gpu.idle_c = model.idle_c;
  gpu.has_memory_temperature = model.memory_max_c > 0;
  gpu.has_row_remap = model.banks > 0;
  gpu.banks = model.banks;
  gpu.has_jpeg_ofa = !is_tesla;  // Turing has one for JPEG, which NVML says nothing of
  gpu.has_encoder = model.has_encoder;
  gpu.has_gpm = model.has_gpm;
  gpu.nvlink = model.nvlink;
  gpu.mig_support = model.mig;
  gpu.mig_slices = model.mig_slices;
  for (const MigRow& row : model.mig_rows) gpu.mig_profiles.push_back(profile_of(row));
  return gpu;
}

constexpr std::pair<std::uint32_t, std::string_view> kBrands[] = {
    {0, "Unknown"},     {1, "Quadro"},      {2, "Tesla"},       {3, "NVS"},
    {4, "GRID"},        {5, "GeForce"},     {6, "Titan"},       {7, "NVIDIA vApps"},
    {8, "NVIDIA vPC"},  {9, "NVIDIA vCS"},  {10, "NVIDIA vWS"}, {11, "NVIDIA Cloud Gaming"},
    {12, "Quadro RTX"}, {13, "NVIDIA RTX"}, {14, "NVIDIA"},     {15, "GeForce RTX"},
    {16, "Titan RTX"},
};
constexpr std::pair<std::uint32_t, std::string_view> kArchitectures[] = {
    {2, "Kepler"}, {3, "Maxwell"}, {4, "Pascal"}, {5, "Volta"},      {6, "Turing"},
    {7, "Ampere"}, {8, "Ada"},     {9, "Hopper"}, {10, "Blackwell"}, {13, "Rubin"},
};

}  // namespace

std::optional<GpuSpec> find_model(std::string_view name) {
  for (const Model& model : kModels) {
    if (model.key == name) return gpu_of(model);
  }
  return std::nullopt;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const Model& model : kModels) names.emplace_back(model.key);
  return names;
}

std::uint32_t brand_value(std::string_view name) {
  for (const auto& [value, text] : kBrands) {
    if (text == name) return value;
  }
  return 0;
}

std::string brand_name(std::uint32_t value) {
  for (const auto& [known, text] : kBrands) {
    if (known == value) return std::string(text);
  }
  return "Unknown";
}

std::uint32_t architecture_value(std::string_view name) {
  for (const auto& [value, text] : kArchitectures) {
    if (text == name) return value;
  }
  return 0xFFFFFFFFU;
}

std::string architecture_name(std::uint32_t value) {
  for (const auto& [known, text] : kArchitectures) {
    if (known == value) return std::string(text);
  }
  return "";
}

}  // namespace jogak::nvml::sim
