// SPDX-License-Identifier: Apache-2.0
//
// See names.h. Identities are hashes, so that a test, a recording and a dashboard agree about a GPU
// that does not exist.
#include "nvml/sim/names.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace jogak::nvml::sim {

namespace {

constexpr std::uint32_t kCpusMax = 4096;

std::uint64_t hash_of(std::string_view key, std::uint64_t salt) {
  std::uint64_t hash = 0xCBF29CE484222325ULL ^ salt;
  for (const char c : key) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3ULL;
  }
  // FNV leaves equal high bits for keys that differ at the end.
  hash ^= hash >> 33U;
  hash *= 0xFF51AFD7ED558CCDULL;
  hash ^= hash >> 33U;
  hash *= 0xC4CEB9FE1A85EC53ULL;
  return hash ^ hash >> 33U;
}

std::optional<std::uint32_t> hex_of(std::string_view text, std::size_t digits_max) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  if (text.empty() || text.size() > digits_max) return std::nullopt;
  const auto [rest, error] = std::from_chars(text.data(), end, value, 16);
  if (rest != end || error != std::errc{}) return std::nullopt;
  return value;
}

std::optional<std::uint32_t> cpu_of(std::string_view text) {
  std::uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, 10);
  if (text.empty() || rest != end || error != std::errc{} || value >= kCpusMax) return std::nullopt;
  return value;
}

}  // namespace

std::string uuid_of(std::string_view key) {
  const std::uint64_t high = hash_of(key, 0x9E37);
  const std::uint64_t low = hash_of(key, 0x79B9);
  return fmt::format("{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}", high >> 32U, high >> 16U & 0xFFFFU,
                     high & 0xFFFU, low >> 48U & 0xFFFU, low & 0xFFFFFFFFFFFFULL);
}

std::string serial_of(std::string_view key) {
  return fmt::format("{:013d}", hash_of(key, 0x7F4A) % 10'000'000'000'000ULL);
}

std::optional<BusId> parse_bus_id(std::string_view text) {
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first + 1);
  const std::size_t point = text.find('.', second + 1);
  if (first == std::string_view::npos || second == std::string_view::npos ||
      point == std::string_view::npos) {
    return std::nullopt;
  }
  const auto domain = hex_of(text.substr(0, first), 8);
  const auto bus = hex_of(text.substr(first + 1, second - first - 1), 2);
  const auto device = hex_of(text.substr(second + 1, point - second - 1), 2);
  const auto function = hex_of(text.substr(point + 1), 1);
  if (!domain || !bus || !device || !function || *device > 31 || *function > 7) return std::nullopt;
  return BusId{.domain = *domain, .bus = *bus, .device = *device, .function = *function};
}

std::optional<std::vector<std::uint64_t>> parse_cpu_list(std::string_view text) {
  std::vector<std::uint64_t> words;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    const auto first = cpu_of(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : cpu_of(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    if (words.size() <= *last / 64) words.resize(*last / 64 + 1);
    for (std::uint32_t cpu = *first; cpu <= *last; ++cpu) {
      words[cpu / 64] |= std::uint64_t{1} << cpu % 64;
    }
    if (comma + 1 == text.size()) return std::nullopt;
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return words;
}

std::string cpu_list_text(const std::vector<std::uint64_t>& words) {
  std::string text;
  const std::size_t bits = words.size() * 64;
  const auto has = [&](std::size_t cpu) { return (words[cpu / 64] >> cpu % 64 & 1U) != 0; };
  for (std::size_t cpu = 0; cpu < bits; ++cpu) {
    if (!has(cpu)) continue;
    std::size_t last = cpu;
    while (last + 1 < bits && has(last + 1)) ++last;
    if (!text.empty()) text += ',';
    text += cpu == last ? std::to_string(cpu) : fmt::format("{}-{}", cpu, last);
    cpu = last;
  }
  return text;
}

const std::vector<std::string>& reading_names() {
  static const std::vector<std::string> names = {
      "gpuPercent",       "memoryPercent", "encoderPercent",  "decoderPercent",     "jpegPercent",
      "ofaPercent",       "usedMib",       "temperatureC",    "memoryTemperatureC", "fanPercent",
      "performanceState", "powerMw",       "powerInstantMw",  "graphicsMhz",        "smMhz",
      "memoryMhz",        "videoMhz",      "throttleReasons", "pcieTxKbps",         "pcieRxKbps",
      "bar1UsedMib",
  };
  return names;
}

bool is_reading(std::string_view name) {
  return std::ranges::find(reading_names(), name) != reading_names().end();
}

}  // namespace jogak::nvml::sim
