// SPDX-License-Identifier: Apache-2.0
//
// The fields of DCGM that NVML can give, by the names that dcgm-exporter's counters file uses, in
// both generations: the classic names that dashboards query (percent, MiB, MHz, mJ) and the names
// in base units that DCGM 4.7 brought (ratio, bytes, hertz, joules). A name carries its unit, so
// the same reading appears once per name. Ids are DCGM's.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "agent/model/node_model.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

// What a value is read from.
struct FieldSource {
  const NodeSnapshot& node;
  const GpuView& gpu;
  const nvml::GpuFacts& facts;
  const nvml::GpuSample& sample;
  const nvml::MigInstanceSample* mig = nullptr;  // null: the GPU as a whole
  int part = 0;                                  // Field::part
};

struct FieldValue {
  bool is_integer = true;
  std::int64_t integer = 0;
  double real = 0;
};

enum class FieldScope : std::uint8_t {
  Gpu,       // measured of a whole GPU; its instances may repeat it (MigParent)
  Board,     // the same, and never told of an instance: no driver measures it there
  Instance,  // of a GPU, and of each instance by itself
};

enum class FieldKind : std::uint8_t {
  Number,
  Label,  // text that does not change, usable as a label only
  // Several series with labels of their own, made from the model.
  XidLast,           // err_code, err_msg
  XidCount,          // xid, window_size_in_ms
  XidTotal,          // xid
  ClockEventsCount,  // clock_event, window_size_in_ms
  ClockEventsTotal,  // clock_event
  HealthStatus,      // health_watch, health_error_code
  P2pStatus,         // peer_gpu, link_status
};

// What a sample must have beyond the cheap readings (nvml::SampleWants).
enum class FieldCost : std::uint8_t { None, Gpm, GpmEngines, GpmLinks, Links, Held, Pcie };

struct Field {
  int id = 0;
  std::string name;
  FieldKind kind = FieldKind::Number;
  FieldScope scope = FieldScope::Gpu;
  std::optional<FieldValue> (*number)(const FieldSource& source) = nullptr;
  std::optional<std::string> (*text)(const nvml::NodeFacts& node,
                                     const nvml::GpuFacts& gpu) = nullptr;
  // Of whom processes have a share, for GPUs that several pods use at once.
  enum class Share : std::uint8_t { None, Sm, Memory, MemoryCopy, Encoder, Decoder };
  Share share = Share::None;
  // From the share (percent, or bytes of memory) to this field's unit.
  FieldValue (*from_share)(std::int64_t value) = nullptr;
  bool is_fact = false;  // a number that may also be a label
  FieldCost cost = FieldCost::None;
  int part = 0;  // number of the engine or link that the name has in it
};

// Sorted by name.
std::span<const Field> fields();
// Null: no such field here.
const Field* find_field(std::string_view name);
// A DCGM field that exists and does not come from here (switches, CPUs, vGPU, DCGM's own jobs): a
// counters file may name it, and it has no series.
bool is_known_elsewhere(std::string_view name);

// Word of NVML's peer status, as dcgm-exporter has it: "OK", "TopologyNotSupported".
std::string_view p2p_status_text(int status);

// What DCGM's health checks call a fact: the watch and the error. Nothing: it is no incident there.
struct HealthWords {
  std::string_view watch;  // one of health_watches()
  std::string_view error;  // "DCGM_FR_..."
};
std::optional<HealthWords> health_words(const HealthFact& fact);
std::span<const std::string_view> health_watches();

// Name of a bit of the clock event reasons, as dcgm-exporter has it: "gpu_idle".
std::string_view clock_event_text(std::uint64_t bit);

}  // namespace jogak::agent
