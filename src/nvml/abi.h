// SPDX-License-Identifier: Apache-2.0
//
// NVML as it is in memory: the types, layouts and constants of its C interface on 64-bit Linux, in
// our own words (header 13.3). Both sides use them: the loader of the real library and the
// simulated one. Enumerations are 4 bytes and travel as uint32_t, because a newer driver may answer
// with values that nobody here knows. abi_layout.cc checks every size and offset.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jogak::nvml::abi {

// Handles are pointers that only the library can follow.
struct DeviceTag;
struct GpuInstanceTag;
struct ComputeInstanceTag;
struct EventSetTag;
struct GpmSampleTag;
struct UnitTag;
using Device = DeviceTag*;
using GpuInstance = GpuInstanceTag*;
using ComputeInstance = ComputeInstanceTag*;
using EventSet = EventSetTag*;
using GpmSample = GpmSampleTag*;
using Unit = UnitTag*;
using Enum = std::uint32_t;

enum class Return : std::int32_t {
  Success = 0,
  Uninitialized = 1,
  InvalidArgument = 2,
  NotSupported = 3,
  NoPermission = 4,
  AlreadyInitialized = 5,
  NotFound = 6,
  InsufficientSize = 7,
  InsufficientPower = 8,
  DriverNotLoaded = 9,
  Timeout = 10,
  IrqIssue = 11,
  LibraryNotFound = 12,
  FunctionNotFound = 13,
  CorruptedInforom = 14,
  GpuIsLost = 15,
  ResetRequired = 16,
  OperatingSystem = 17,
  LibRmVersionMismatch = 18,
  InUse = 19,
  Memory = 20,
  NoData = 21,
  VgpuEccNotSupported = 22,
  InsufficientResources = 23,
  FreqNotSupported = 24,
  ArgumentVersionMismatch = 25,
  Deprecated = 26,
  NotReady = 27,
  GpuNotFound = 28,
  InvalidState = 29,
  ResetTypeNotSupported = 30,
  Unknown = 999,
};

// The first field of a versioned struct.
template <class T>
constexpr std::uint32_t version_of(std::uint32_t version) {
  return static_cast<std::uint32_t>(sizeof(T)) | version << 24U;
}

inline constexpr std::size_t kUuidSize = 80;
inline constexpr std::size_t kUuidV2Size = 96;
inline constexpr std::size_t kNameSize = 64;
inline constexpr std::size_t kNameV2Size = 96;
inline constexpr std::size_t kSerialSize = 30;
inline constexpr std::size_t kVbiosSize = 32;
inline constexpr std::size_t kInforomSize = 16;
inline constexpr std::size_t kPartNumberSize = 80;
inline constexpr std::size_t kDriverVersionSize = 80;
inline constexpr std::size_t kNvmlVersionSize = 80;
inline constexpr std::size_t kPciBusIdSize = 32;
inline constexpr std::uint32_t kNvlinksMax = 36;
inline constexpr std::uint32_t kNoInstance = 0xFFFFFFFFU;
inline constexpr std::uint64_t kNoValue64 = 0xFFFFFFFFFFFFFFFFULL;
inline constexpr std::uint32_t kAllLinks = 0xFFFFFFFFU;
inline constexpr std::uint32_t kPciVendor = 0x10DE;

// Flags of nvmlInitWithFlags.
inline constexpr std::uint32_t kInitNoGpus = 1, kInitNoAttach = 2, kInitForce = 4;

union Value {
  double real;
  std::int32_t si;
  std::uint32_t ui;
  unsigned long ul;
  std::uint64_t ull;
  std::int64_t sll;
  std::uint16_t us;
};

union UuidValue {
  char text[41];
  std::uint8_t bytes[16];
};

struct PciInfo {
  char bus_id_legacy[16];
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t pci_device_id;
  std::uint32_t pci_sub_system_id;
  char bus_id[32];
};

struct PciInfoExtV1 {
  std::uint32_t version;
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t pci_device_id;
  std::uint32_t pci_sub_system_id;
  std::uint32_t base_class;
  std::uint32_t sub_class;
  char bus_id[32];
};

struct Utilization {
  std::uint32_t gpu;
  std::uint32_t memory;
};

struct Memory {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};

struct MemoryV2 {
  std::uint32_t version;
  std::uint64_t total;
  std::uint64_t reserved;
  std::uint64_t free;
  std::uint64_t used;
};

struct Bar1Memory {
  std::uint64_t total;
  std::uint64_t free;
  std::uint64_t used;
};

struct TemperatureV1 {
  std::uint32_t version;
  std::uint32_t sensor_type;
  std::int32_t temperature;
};

struct MarginTemperatureV1 {
  std::uint32_t version;
  std::int32_t margin_temperature;
};

struct ViolationTime {
  std::uint64_t reference_time;
  std::uint64_t violation_time;
};

struct Sample {
  std::uint64_t timestamp;
  Value sample_value;
};

struct FieldValue {
  std::uint32_t field_id;
  std::uint32_t scope_id;
  std::int64_t timestamp;
  std::int64_t latency_usec;
  std::uint32_t value_type;
  Return result;
  Value value;
};

struct EventData {
  Device device;
  std::uint64_t event_type;
  std::uint64_t event_data;
  std::uint32_t gpu_instance_id;
  std::uint32_t compute_instance_id;
};

struct ProcessInfoV1 {
  std::uint32_t pid;
  std::uint64_t used_gpu_memory;
};

struct ProcessInfoV2 {
  std::uint32_t pid;
  std::uint64_t used_gpu_memory;
  std::uint32_t gpu_instance_id;
  std::uint32_t compute_instance_id;
};

struct ProcessDetailV1 {
  std::uint32_t pid;
  std::uint64_t used_gpu_memory;
  std::uint32_t gpu_instance_id;
  std::uint32_t compute_instance_id;
  std::uint64_t used_gpu_cc_protected_memory;
};

struct ProcessDetailListV1 {
  std::uint32_t version;
  std::uint32_t mode;
  std::uint32_t num_proc_array_entries;
  ProcessDetailV1* proc_array;
};

struct ProcessUtilizationSample {
  std::uint32_t pid;
  std::uint64_t timestamp;
  std::uint32_t sm_util;
  std::uint32_t mem_util;
  std::uint32_t enc_util;
  std::uint32_t dec_util;
};

struct ProcessUtilizationInfoV1 {
  std::uint64_t timestamp;
  std::uint32_t pid;
  std::uint32_t sm_util;
  std::uint32_t mem_util;
  std::uint32_t enc_util;
  std::uint32_t dec_util;
  std::uint32_t jpg_util;
  std::uint32_t ofa_util;
};

struct ProcessesUtilizationInfoV1 {
  std::uint32_t version;
  std::uint32_t process_samples_count;
  std::uint64_t last_seen_time_stamp;
  ProcessUtilizationInfoV1* proc_util_array;
};

struct AccountingStats {
  std::uint32_t gpu_utilization;
  std::uint32_t memory_utilization;
  std::uint64_t max_memory_usage;
  std::uint64_t time;
  std::uint64_t start_time;
  std::uint32_t is_running;
  std::uint32_t reserved[5];
};

struct EccErrorCounts {
  std::uint64_t l1_cache;
  std::uint64_t l2_cache;
  std::uint64_t device_memory;
  std::uint64_t register_file;
};

struct EccSramErrorStatusV1 {
  std::uint32_t version;
  std::uint64_t aggregate_unc_parity;
  std::uint64_t aggregate_unc_sec_ded;
  std::uint64_t aggregate_cor;
  std::uint64_t volatile_unc_parity;
  std::uint64_t volatile_unc_sec_ded;
  std::uint64_t volatile_cor;
  std::uint64_t aggregate_unc_bucket_l2;
  std::uint64_t aggregate_unc_bucket_sm;
  std::uint64_t aggregate_unc_bucket_pcie;
  std::uint64_t aggregate_unc_bucket_mcu;
  std::uint64_t aggregate_unc_bucket_other;
  std::uint32_t is_threshold_exceeded;
};

struct RowRemapperHistogramValues {
  std::uint32_t max;
  std::uint32_t high;
  std::uint32_t partial;
  std::uint32_t low;
  std::uint32_t none;
};

struct RemappedRowsInfoV2 {
  std::uint32_t corr_active_remaps;
  std::uint32_t corr_inactive_remaps;
  std::uint32_t unc_active_remaps;
  std::uint32_t unc_inactive_remaps;
  std::uint32_t is_pending;
  std::uint32_t has_failed;
};

struct RepairStatusV1 {
  std::uint32_t version;
  std::uint32_t is_channel_repair_pending;
  std::uint32_t is_tpc_repair_pending;
};

struct UnrepairableMemoryStatusV1 {
  std::uint32_t is_memory_unrepairable;
};

struct DeviceAttributes {
  std::uint32_t multiprocessor_count;
  std::uint32_t shared_copy_engine_count;
  std::uint32_t shared_decoder_count;
  std::uint32_t shared_encoder_count;
  std::uint32_t shared_jpeg_count;
  std::uint32_t shared_ofa_count;
  std::uint32_t gpu_instance_slice_count;
  std::uint32_t compute_instance_slice_count;
  std::uint64_t memory_size_mib;
};

struct GpuInstancePlacement {
  std::uint32_t start;
  std::uint32_t size;
};

struct GpuInstanceProfileInfo {
  std::uint32_t id;
  std::uint32_t is_p2p_supported;
  std::uint32_t slice_count;
  std::uint32_t instance_count;
  std::uint32_t multiprocessor_count;
  std::uint32_t copy_engine_count;
  std::uint32_t decoder_count;
  std::uint32_t encoder_count;
  std::uint32_t jpeg_count;
  std::uint32_t ofa_count;
  std::uint64_t memory_size_mib;
};

struct GpuInstanceProfileInfoV2 {
  std::uint32_t version;
  std::uint32_t id;
  std::uint32_t is_p2p_supported;
  std::uint32_t slice_count;
  std::uint32_t instance_count;
  std::uint32_t multiprocessor_count;
  std::uint32_t copy_engine_count;
  std::uint32_t decoder_count;
  std::uint32_t encoder_count;
  std::uint32_t jpeg_count;
  std::uint32_t ofa_count;
  std::uint64_t memory_size_mib;
  char name[96];
};

struct GpuInstanceProfileInfoV3 {
  std::uint32_t version;
  std::uint32_t id;
  std::uint32_t slice_count;
  std::uint32_t instance_count;
  std::uint32_t multiprocessor_count;
  std::uint32_t copy_engine_count;
  std::uint32_t decoder_count;
  std::uint32_t encoder_count;
  std::uint32_t jpeg_count;
  std::uint32_t ofa_count;
  std::uint64_t memory_size_mib;
  char name[96];
  std::uint32_t capabilities;
};

struct GpuInstanceInfo {
  Device device;
  std::uint32_t id;
  std::uint32_t profile_id;
  GpuInstancePlacement placement;
};

struct ComputeInstancePlacement {
  std::uint32_t start;
  std::uint32_t size;
};

struct ComputeInstanceProfileInfo {
  std::uint32_t id;
  std::uint32_t slice_count;
  std::uint32_t instance_count;
  std::uint32_t multiprocessor_count;
  std::uint32_t shared_copy_engine_count;
  std::uint32_t shared_decoder_count;
  std::uint32_t shared_encoder_count;
  std::uint32_t shared_jpeg_count;
  std::uint32_t shared_ofa_count;
};

struct ComputeInstanceProfileInfoV2 {
  std::uint32_t version;
  std::uint32_t id;
  std::uint32_t slice_count;
  std::uint32_t instance_count;
  std::uint32_t multiprocessor_count;
  std::uint32_t shared_copy_engine_count;
  std::uint32_t shared_decoder_count;
  std::uint32_t shared_encoder_count;
  std::uint32_t shared_jpeg_count;
  std::uint32_t shared_ofa_count;
  char name[96];
};

struct ComputeInstanceProfileInfoV3 {
  std::uint32_t version;
  std::uint32_t id;
  std::uint32_t slice_count;
  std::uint32_t instance_count;
  std::uint32_t multiprocessor_count;
  std::uint32_t shared_copy_engine_count;
  std::uint32_t shared_decoder_count;
  std::uint32_t shared_encoder_count;
  std::uint32_t shared_jpeg_count;
  std::uint32_t shared_ofa_count;
  char name[96];
  std::uint32_t capabilities;
};

struct ComputeInstanceInfo {
  Device device;
  GpuInstance gpu_instance;
  std::uint32_t id;
  std::uint32_t profile_id;
  ComputeInstancePlacement placement;
};

struct GpuFabricInfo {
  std::uint8_t cluster_uuid[16];
  Return status;
  std::uint32_t clique_id;
  std::uint8_t state;
};

struct GpuFabricInfoV2 {
  std::uint32_t version;
  std::uint8_t cluster_uuid[16];
  Return status;
  std::uint32_t clique_id;
  std::uint8_t state;
  std::uint32_t health_mask;
};

struct GpuFabricInfoV3 {
  std::uint32_t version;
  std::uint8_t cluster_uuid[16];
  Return status;
  std::uint32_t clique_id;
  std::uint8_t state;
  std::uint32_t health_mask;
  std::uint8_t health_summary;
};

struct GpmMetric {
  std::uint32_t metric_id;
  Return result;
  double value;
  const char* short_name;
  const char* long_name;
  const char* unit;
};

struct GpmMetricsGet {
  std::uint32_t version;
  std::uint32_t num_metrics;
  GpmSample sample1;
  GpmSample sample2;
  GpmMetric metrics[333];
};

struct GpmSupport {
  std::uint32_t version;
  std::uint32_t is_supported_device;
};

struct PlatformInfoV1 {
  std::uint32_t version;
  std::uint8_t ib_guid[16];
  std::uint8_t rack_guid[16];
  std::uint8_t chassis_physical_slot_number;
  std::uint8_t compute_slot_index;
  std::uint8_t node_index;
  std::uint8_t peer_type;
  std::uint8_t module_id;
};

struct PlatformInfoV2 {
  std::uint32_t version;
  std::uint8_t ib_guid[16];
  std::uint8_t chassis_serial_number[16];
  std::uint8_t slot_number;
  std::uint8_t tray_index;
  std::uint8_t host_id;
  std::uint8_t peer_type;
  std::uint8_t module_id;
};

struct DeviceAddressingModeV1 {
  std::uint32_t version;
  std::uint32_t value;
};

struct DeviceCapabilitiesV1 {
  std::uint32_t version;
  std::uint32_t cap_mask;
};

struct UuidV1 {
  std::uint32_t version;
  std::uint32_t type;
  UuidValue value;
};

struct SystemDriverBranchInfoV1 {
  std::uint32_t version;
  char branch[80];
};

struct ExcludedDeviceInfo {
  PciInfo pci_info;
  char uuid[80];
};

struct NvLinkUtilizationControl {
  std::uint32_t units;
  std::uint32_t pktfilter;
};

struct PowerValueV2 {
  std::uint32_t version;
  std::uint8_t scope;
  std::uint32_t value_mw;
};

struct C2cModeInfoV1 {
  std::uint32_t is_enabled;
};

// What driver series 535 wrote for a while where ProcessInfoV2 was due.
using ProcessInfoLong = ProcessDetailV1;

}  // namespace jogak::nvml::abi
