// SPDX-License-Identifier: Apache-2.0
//
// `jogak agent run` as a process of its own on a simulated dense node, 8 GPUs with 7 MIG instances
// each and a real process on every one, beside the tests' stand-in for the kubelet; and what the
// system says it costs. Calls block. What cannot be measured ends the program.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/temp_folder.h"

namespace jogak::bench {

inline constexpr int kGpus = 8;
inline constexpr int kInstances = 7;  // of each GPU
inline constexpr int kDevices = kGpus * kInstances;
inline constexpr std::string_view kSlice = "nvidia.com/mig-1g.5gb";

// Processes that sleep, so that somebody has a pid.
class Sleepers {
 public:
  explicit Sleepers(int count);
  ~Sleepers();
  Sleepers(const Sleepers&) = delete;
  Sleepers& operator=(const Sleepers&) = delete;
  const std::vector<pid_t>& pids() const { return pids_; }

 private:
  std::vector<pid_t> pids_;
};

// The simulation file of the node; each process is on an instance of its own.
std::string dense_machine(const std::vector<pid_t>& pids);

struct Memory {
  std::int64_t rss_kib = 0, anon_kib = 0, file_kib = 0, pss_kib = 0, dirty_kib = 0, peak_kib = 0;
};

class MeasuredAgent {
 public:
  // `flags` after those that every run here has. Its log goes into `folder`, which has machine.yaml
  // and is the kubelet's folder.
  MeasuredAgent(std::string binary, const TempFolder& folder,
                const std::vector<std::string>& flags = {});
  ~MeasuredAgent();
  MeasuredAgent(const MeasuredAgent&) = delete;
  MeasuredAgent& operator=(const MeasuredAgent&) = delete;

  std::uint16_t port() const { return port_; }
  pid_t pid() const { return pid_; }
  // Of all its threads, those that ended included.
  double cpu_seconds() const;
  Memory memory() const;
  int threads() const;
  // Times that a thread was put to sleep and woken, of the threads that there are.
  std::int64_t switches() const;
  // Milliseconds from its start until it said that it is ready, by its own clock.
  std::int64_t ready_after_ms() const;
  // Asks it to end and waits.
  void stop();

 private:
  std::string log_path_;
  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
};

// A connection that stays open, as Prometheus keeps it.
class Scraper {
 public:
  explicit Scraper(std::uint16_t port);
  ~Scraper();
  Scraper(const Scraper&) = delete;
  Scraper& operator=(const Scraper&) = delete;
  // Status of GET `path`; the body's bytes are body().size().
  int get(std::string_view path, std::string_view headers = "");
  std::string_view body() const { return std::string_view(answer_).substr(body_at_); }

 private:
  int fd_;
  std::string answer_;
  std::size_t body_at_ = 0;
};

struct Percentiles {
  double p50_ms = 0, p99_ms = 0, max_ms = 0;
};
Percentiles percentiles(std::vector<std::int64_t> times_ns);
// Each call is timed by itself.
Percentiles timed(int count, const std::function<void(int i)>& call);

}  // namespace jogak::bench
