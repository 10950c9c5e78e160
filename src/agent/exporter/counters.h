// SPDX-License-Identifier: Apache-2.0
//
// dcgm-exporter's counters file: which fields are published, as what, and with which help text.
//
//   # a comment, or a blank line
//   DCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).
//   DCGM_FI_DRIVER_VERSION, label, Driver version
//
// Three columns; blanks around them go; the help text may hold commas or stand in quotes. Types are
// gauge, counter and label (the value becomes a label of every series of its GPU). Errors read
// `FILE:LINE: what is wrong, and the cure`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/exporter/fields.h"
#include "base/result.h"

namespace jogak::agent {

enum class CounterType : std::uint8_t { Gauge, Counter, Label };

struct CounterSpec {
  const Field* field = nullptr;  // null: a field of DCGM that NVML cannot give; it has no series
  std::string name;
  CounterType type = CounterType::Gauge;
  std::string help;
  friend bool operator==(const CounterSpec&, const CounterSpec&) = default;
};

struct Counters {
  std::vector<CounterSpec> specs;     // in the order of the file, each name once
  std::vector<std::string> warnings;  // `FILE:LINE: ...`, for the log
};

inline constexpr std::size_t kCountersBytesMax = std::size_t{1} << 20;

Result<Counters> parse_counters(std::string_view file, std::string_view text);

// What each sample must hold for these counters; processes are always wanted.
nvml::SampleWants sample_wants(const Counters& counters);

// What is published when nobody says otherwise: the set of dcgm-exporter, in either generation of
// names. A counters file by itself, and a good start for one of one's own.
enum class Naming : std::uint8_t { Classic, Modern };
Result<Naming> parse_naming(std::string_view text);  // "classic", "modern"
std::string_view default_counters_text(Naming naming);
Counters default_counters(Naming naming);

}  // namespace jogak::agent
