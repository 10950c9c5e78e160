// SPDX-License-Identifier: Apache-2.0
//
// process_* as every Prometheus client shows it, read from /proc/self at the scrape.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/parse_number.h"
#include "ops/series.h"

namespace jogak::ops {

namespace {

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
    if (text.empty()) return out;
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    out.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::optional<double> number(std::string_view text) {
  const auto value = parse_int(text, 0, INT64_MAX);
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

// Fields of /proc/self/stat behind the name of the program, which may hold anything; the first of
// them is field 3 in proc(5).
std::optional<double> stat_field(std::size_t field) {
  const auto text = read_file("/proc/self/stat");
  if (!text) return std::nullopt;
  const std::size_t end = text->rfind(')');
  if (end == std::string::npos) return std::nullopt;
  const auto fields = words(std::string_view(*text).substr(end + 1));
  return field - 3 < fields.size() ? number(fields[field - 3]) : std::nullopt;
}

std::optional<double> cpu_seconds() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return std::nullopt;
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

std::optional<double> resident_bytes() {
  const auto pages = stat_field(24);
  return pages ? std::optional(*pages * static_cast<double>(::sysconf(_SC_PAGESIZE)))
               : std::nullopt;
}

std::optional<double> virtual_bytes() { return stat_field(23); }

// Since 1970.
std::optional<double> start_seconds() {
  const auto ticks = stat_field(22);
  const auto text = read_file("/proc/stat");
  if (!ticks || !text) return std::nullopt;
  const std::size_t at = text->find("btime ");
  if (at == std::string::npos) return std::nullopt;
  const auto fields = words(std::string_view(*text).substr(at + 6, 20));
  const auto boot = fields.empty() ? std::nullopt : number(fields[0]);
  if (!boot) return std::nullopt;
  return *boot + *ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::optional<double> open_fds() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error) return std::nullopt;
  return static_cast<double>(std::distance(begin(files), end(files)));
}

std::optional<double> max_fds() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

Registry::Sampler sampler(std::optional<double> (*read)()) {
  return [read] {
    std::vector<Sample> samples;
    if (const auto value = read()) samples.push_back({{}, *value});
    return samples;
  };
}

}  // namespace

void add_process_series(Registry& registry, const std::string& version) {
  registry.sampled_counters("process_cpu_seconds_total", "CPU time used.", {},
                            sampler(cpu_seconds));
  registry.sampled_gauges("process_resident_memory_bytes", "Memory in use.", {},
                          sampler(resident_bytes));
  registry.sampled_gauges("process_virtual_memory_bytes", "Addresses in use.", {},
                          sampler(virtual_bytes));
  registry.sampled_gauges("process_start_time_seconds", "When it started.", {},
                          sampler(start_seconds));
  registry.sampled_gauges("process_open_fds", "Open files and sockets.", {}, sampler(open_fds));
  registry.sampled_gauges("process_max_fds", "How many may be open.", {}, sampler(max_fds));
  registry.gauges("jogak_build_info", "1, with what runs here.", {"version"})
      .with({version})
      .set(1);
}

}  // namespace jogak::ops
