// SPDX-License-Identifier: Apache-2.0
//
// Small texts of a simulated machine: made-up but stable identities, PCI addresses, lists of CPUs,
// and the names of readings that a file may fix.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jogak::nvml::sim {

// "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx", the same for the same key.
std::string uuid_of(std::string_view key);
// 13 digits.
std::string serial_of(std::string_view key);

struct BusId {
  std::uint32_t domain = 0, bus = 0, device = 0, function = 0;
};
// "00000000:07:00.0" or "0000:07:00.0", either case.
std::optional<BusId> parse_bus_id(std::string_view text);

// "0-3,8" as bits of 64-bit words.
std::optional<std::vector<std::uint64_t>> parse_cpu_list(std::string_view text);
std::string cpu_list_text(const std::vector<std::uint64_t>& words);

// Keys of GpuSpec::readings.
const std::vector<std::string>& reading_names();
bool is_reading(std::string_view name);

}  // namespace jogak::nvml::sim
