// SPDX-License-Identifier: Apache-2.0
//
// HTTP/1.1 by hand and /proc by hand: nothing of ours is between the agent and its figures.
#include "bench/measured_agent.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"
#include "base/mono_clock.h"

extern "C" char** environ;

namespace jogak::bench {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kStartNsMax = 20'000'000'000;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The number after `name`, wherever that begins a line; 0 where there is none.
std::int64_t number_after(std::string_view text, std::string_view name) {
  std::size_t at = text.starts_with(name) ? 0 : text.find("\n" + std::string(name));
  if (at == std::string_view::npos) return 0;
  at = text.find_first_of("0123456789", at + name.size());
  return at == std::string_view::npos ? 0 : std::strtoll(text.data() + at, nullptr, 10);
}

// The digits that follow `mark` in a file that is being written.
std::int64_t wait_for_number(const std::string& path, std::string_view mark) {
  const std::int64_t end = mono_now_ns() + kStartNsMax;
  while (mono_now_ns() < end) {
    const std::string text = text_of(path);
    const std::size_t at = text.find(mark);
    if (at != std::string::npos && text.find('\n', at) != std::string::npos) {
      return std::strtoll(text.c_str() + at + mark.size(), nullptr, 10);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  JOGAK_CHECK(false, "the agent did not start: {}", text_of(path));
  return 0;
}

}  // namespace

Sleepers::Sleepers(int count) {
  for (int i = 0; i < count; ++i) {
    const pid_t pid = ::fork();
    JOGAK_CHECK(pid >= 0);
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) ::pause();
    }
    pids_.push_back(pid);
  }
}

Sleepers::~Sleepers() {
  for (const pid_t pid : pids_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

std::string dense_machine(const std::vector<pid_t>& pids) {
  std::string text =
      "apiVersion: jogak.io/v1\nkind: NvmlSimulation\nidentity: agent-bench\n"
      "driver: {driverVersion: 550.90.07, driverBranch: r550_00, cudaMajor: 12, cudaMinor: 4}\n"
      "host: {numaNodes: 2, cpus: 256}\ngpus:\n";
  std::size_t next = 0;
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    text += "- model: A100-SXM4-40GB\n  migEnabled: true\n";
    text += fmt::format(
        "  load: {{shape: sine, low: 10, high: 95, period: 2m, phase: {}s}}\n  migInstances:\n",
        gpu * 10);
    for (int i = 0; i < kInstances; ++i) {
      text += fmt::format("  - {{profile: 1g.5gb, start: {}}}\n", i);
    }
    text += "  processes:\n";
    for (int i = 0; i < kInstances && next < pids.size(); ++i) {
      text += fmt::format("  - {{pid: {}, name: python3, memoryMib: 3000, instance: {}}}\n",
                          pids[next++], i);
    }
  }
  return text;
}

MeasuredAgent::MeasuredAgent(std::string binary, const TempFolder& folder,
                             const std::vector<std::string>& flags) {
  log_path_ = folder.path("agent.log");
  std::vector<std::string> words = {binary,
                                    "agent",
                                    "run",
                                    "--nvml",
                                    "sim:" + folder.path("machine.yaml"),
                                    "--exporter-address",
                                    "127.0.0.1:0",
                                    "--kubelet-dir",
                                    folder.path(),
                                    "--kubeconfig",
                                    "off",
                                    "--labels",
                                    "file",
                                    "--output-file",
                                    folder.path("features"),
                                    "--cdi-dir",
                                    folder.path("cdi"),
                                    "--device-list-strategy",
                                    "envvar,cdi-cri",
                                    "--mig-strategy",
                                    "mixed",
                                    "--mig-journal",
                                    folder.path("journal.json"),
                                    "--node-name",
                                    "gpu-node-0001.example.com"};
  words.insert(words.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log_path_.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  const int error = ::posix_spawn(&pid_, binary.c_str(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  JOGAK_CHECK(error == 0, "{} cannot be started", binary);
  port_ = static_cast<std::uint16_t>(wait_for_number(log_path_, "http://127.0.0.1:"));
}

MeasuredAgent::~MeasuredAgent() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

double MeasuredAgent::cpu_seconds() const {
  clockid_t clock = 0;
  timespec time{};
  JOGAK_CHECK(::clock_getcpuclockid(pid_, &clock) == 0 && ::clock_gettime(clock, &time) == 0);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

Memory MeasuredAgent::memory() const {
  const std::string status = text_of(fmt::format("/proc/{}/status", pid_));
  const std::string rollup = text_of(fmt::format("/proc/{}/smaps_rollup", pid_));
  return {.rss_kib = number_after(status, "VmRSS:"),
          .anon_kib = number_after(status, "RssAnon:"),
          .file_kib = number_after(status, "RssFile:"),
          .pss_kib = number_after(rollup, "Pss:"),
          .dirty_kib = number_after(rollup, "Private_Dirty:"),
          .peak_kib = number_after(status, "VmHWM:")};
}

int MeasuredAgent::threads() const {
  const std::string status = text_of(fmt::format("/proc/{}/status", pid_));
  return static_cast<int>(number_after(status, "Threads:"));
}

std::int64_t MeasuredAgent::switches() const {
  std::int64_t count = 0;
  for (const auto& thread : fs::directory_iterator(fmt::format("/proc/{}/task", pid_))) {
    count += number_after(text_of(thread.path().string() + "/status"), "voluntary_ctxt_switches:");
  }
  return count;
}

std::int64_t MeasuredAgent::ready_after_ms() const {
  return wait_for_number(log_path_, "\"after_ms\":");
}

void MeasuredAgent::stop() {
  ::kill(pid_, SIGTERM);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  JOGAK_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the agent ended with {}: {}", status,
              text_of(log_path_));
  pid_ = -1;
}

Scraper::Scraper(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  JOGAK_CHECK(::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  const int on = 1;
  ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Scraper::~Scraper() { ::close(fd_); }

int Scraper::get(std::string_view path, std::string_view headers) {
  const std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", path, headers);
  JOGAK_CHECK(::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) ==
              static_cast<ssize_t>(request.size()));
  constexpr std::size_t kPiece = 1 << 16;
  answer_.clear();
  body_at_ = 0;
  std::size_t size = 0;  // of the whole answer, once the head is there
  while (body_at_ == 0 || answer_.size() < size) {
    const std::size_t before = answer_.size();
    answer_.resize(before + kPiece);
    const ssize_t got = ::recv(fd_, answer_.data() + before, kPiece, 0);
    JOGAK_CHECK(got > 0, "the agent closed the connection");
    answer_.resize(before + static_cast<std::size_t>(got));
    if (body_at_ != 0) continue;
    const std::size_t head = answer_.find("\r\n\r\n");
    if (head == std::string::npos) continue;
    const std::size_t length = answer_.find("Content-Length: ");
    JOGAK_CHECK(answer_.starts_with("HTTP/1.1 ") && length < head);
    body_at_ = head + 4;
    size = body_at_ + std::strtoul(answer_.c_str() + length + 16, nullptr, 10);
  }
  return std::atoi(answer_.c_str() + 9);
}

Percentiles percentiles(std::vector<std::int64_t> times_ns) {
  JOGAK_CHECK(!times_ns.empty());
  std::ranges::sort(times_ns);
  const auto at = [&](std::size_t percent) {
    return static_cast<double>(times_ns[(times_ns.size() - 1) * percent / 100]) / 1e6;
  };
  return {.p50_ms = at(50), .p99_ms = at(99), .max_ms = at(100)};
}

Percentiles timed(int count, const std::function<void(int i)>& call) {
  std::vector<std::int64_t> times;
  times.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const std::int64_t begin = mono_now_ns();
    call(i);
    times.push_back(mono_now_ns() - begin);
  }
  return percentiles(std::move(times));
}

}  // namespace jogak::bench
