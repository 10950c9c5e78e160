// SPDX-License-Identifier: Apache-2.0
//
// What the embedded API server does in a second, seen from outside: ready time, memory of a large
// cluster, pod creations with 20 watchers and how late these see them, bindings, idle cost. It
// starts `jogak up` as a process of its own and talks to it over loopback; both share the machine.
//
//   build/bench/bench/apiserver_bench build/bench/src/cli/jogak
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/mono_clock.h"

namespace jogak::bench {
namespace {

constexpr int kConnections = 8, kWatchers = 20;
constexpr std::uint16_t kPort = 18'443;
constexpr std::string_view kMark = "sent-";  // then 19 digits: when the pod's creator sent it
constexpr std::int64_t kNsPerMs = 1'000'000, kNsPerSecond = 1'000'000'000;

int connect_loopback() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(kPort);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    ::close(fd);
    return -1;
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

// A keep-alive connection that reads answers by their Content-Length.
class Client {
 public:
  Client() : fd_(connect_loopback()) { JOGAK_CHECK(fd_ >= 0); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { ::close(fd_); }

  int status(std::string_view method, std::string_view path, std::string_view body) {
    const std::string request = fmt::format(
        "{} {} HTTP/1.1\r\nHost: x\r\nUser-Agent: bench/1\r\nAuthorization: Bearer bench\r\n"
        "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
        method, path, body.size(), body);
    JOGAK_CHECK(::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(request.size()));
    std::string head;
    std::size_t end = std::string::npos;
    while (end == std::string::npos) {
      const ssize_t got = ::recv(fd_, buffer_.data(), buffer_.size(), 0);
      JOGAK_CHECK(got > 0);
      head.append(buffer_.data(), static_cast<std::size_t>(got));
      end = head.find("\r\n\r\n");
    }
    const std::size_t at = head.find("Content-Length: ") + 16;
    const std::size_t size = std::stoul(head.substr(at, 12));
    for (std::size_t got = head.size() - end - 4; got < size;) {
      const ssize_t more = ::recv(fd_, buffer_.data(), buffer_.size(), 0);
      JOGAK_CHECK(more > 0);
      got += static_cast<std::size_t>(more);
    }
    return std::stoi(head.substr(9, 3));
  }

 private:
  int fd_;
  std::array<char, 64 * 1024> buffer_;
};

// The server process.
class Server {
 public:
  Server(const std::string& program, const std::vector<std::string>& more) {
    const std::filesystem::path kubeconfig = std::filesystem::temp_directory_path() /
                                             fmt::format("jogak-bench-{}.kubeconfig", ::getpid());
    std::vector<std::string> words = {program,
                                      "up",
                                      "--http",
                                      "--token",
                                      "bench",
                                      "--port",
                                      std::to_string(kPort),
                                      "--kubeconfig",
                                      kubeconfig.string()};
    words.insert(words.end(), more.begin(), more.end());
    const std::int64_t begin = mono_now_ns();
    std::fflush(stdout);  // else the child prints it, too
    pid_ = ::fork();
    if (pid_ == 0) {
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      std::freopen("/dev/null", "w", stdout);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    int fd = -1;
    while ((fd = connect_loopback()) < 0) std::this_thread::yield();
    ::close(fd);
    JOGAK_CHECK(Client().status("GET", "/readyz", "") == 200);
    ready_ms_ = static_cast<double>(mono_now_ns() - begin) / kNsPerMs;
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }

  double ready_ms() const { return ready_ms_; }
  double memory_mib(std::string_view of = "VmRSS:") const {
    std::ifstream file(fmt::format("/proc/{}/status", pid_));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(of)) return std::stod(line.substr(of.size())) / 1024;
    }
    return 0;
  }
  double cpu_seconds() const {
    std::ifstream file(fmt::format("/proc/{}/stat", pid_));
    std::string text((std::istreambuf_iterator<char>(file)), {});
    text.erase(0, text.rfind(')') + 2);
    std::int64_t ticks = 0;
    std::size_t at = 0;
    for (int field = 3; field <= 15; ++field) {
      const std::size_t end = text.find(' ', at);
      if (field >= 14) ticks += std::stoll(text.substr(at, end - at));
      at = end + 1;
    }
    return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

 private:
  pid_t pid_ = 0;
  double ready_ms_ = 0;
};

std::string pod_json(std::string_view name, std::int64_t sent) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","labels":{{"app":"bench"}},)"
      R"("annotations":{{"bench":"{}{:019}"}}}},"spec":{{"containers":[{{"name":"c",)"
      R"("image":"i:1","resources":{{"requests":{{"cpu":"1","memory":"1Gi","nvidia.com/gpu":1}},)"
      R"("limits":{{"nvidia.com/gpu":1}}}}}}],"schedulerName":"none"}}}})",
      name, kMark, sent);
}

// Watch streams on one thread: how late each event came, by the mark in it.
class Watchers {
 public:
  explicit Watchers(int count) : epoll_(::epoll_create1(0)) {
    for (int i = 0; i < count; ++i) {
      const int fd = connect_loopback();
      const std::string request =
          "GET /api/v1/pods?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: x\r\n"
          "Authorization: Bearer bench\r\n\r\n";
      JOGAK_CHECK(::send(fd, request.data(), request.size(), 0) ==
                  static_cast<ssize_t>(request.size()));
      epoll_event event{.events = EPOLLIN, .data = {.u32 = static_cast<std::uint32_t>(i)}};
      ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
      fds_.push_back(fd);
      tails_.emplace_back();
    }
    thread_ = std::thread([this] { run(); });
  }
  Watchers(const Watchers&) = delete;
  Watchers& operator=(const Watchers&) = delete;
  ~Watchers() {
    is_over_ = true;
    thread_.join();
    for (const int fd : fds_) ::close(fd);
    ::close(epoll_);
  }

  std::size_t seen() const { return seen_; }
  // Milliseconds; of those sent after `since`.
  std::vector<double> delays(std::int64_t since) {
    std::vector<double> list;
    for (const auto& [sent, late] : delays_) {
      if (sent >= since) list.push_back(static_cast<double>(late) / kNsPerMs);
    }
    std::ranges::sort(list);
    return list;
  }

 private:
  void run() {
    std::vector<char> buffer(1 << 20);
    std::array<epoll_event, 32> events;
    while (!is_over_) {
      const int count = ::epoll_wait(epoll_, events.data(), events.size(), 50);
      for (int i = 0; i < count; ++i) {
        const std::size_t which = events[static_cast<std::size_t>(i)].data.u32;
        const ssize_t got = ::recv(fds_[which], buffer.data(), buffer.size(), 0);
        if (got <= 0) continue;
        scan(tails_[which], {buffer.data(), static_cast<std::size_t>(got)}, mono_now_ns());
      }
    }
  }

  void scan(std::string& tail, std::string_view bytes, std::int64_t now) {
    tail += bytes;
    std::size_t at = 0;
    constexpr std::size_t kWhole = kMark.size() + 19;
    for (;;) {
      const std::size_t found = tail.find(kMark, at);
      if (found == std::string::npos || found + kWhole > tail.size()) break;
      const std::int64_t sent = std::stoll(tail.substr(found + kMark.size(), 19));
      delays_.emplace_back(sent, now - sent);
      ++seen_;
      at = found + kWhole;
    }
    tail.erase(0, std::max(at, tail.size() > kWhole ? tail.size() - kWhole : 0));
  }

  int epoll_;
  std::vector<int> fds_;
  std::vector<std::string> tails_;
  std::vector<std::pair<std::int64_t, std::int64_t>> delays_;
  std::atomic<std::size_t> seen_ = 0;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

double percentile(const std::vector<double>& sorted, double part) {
  if (sorted.empty()) return 0;
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

// Runs `count` requests over kConnections; at most `rate` a second in all (0: as fast as they go).
// Returns how many a second there were.
template <class Make>
double drive(int count, double rate, const Make& make) {
  const std::int64_t begin = mono_now_ns();
  std::atomic<int> next = 0;
  std::vector<std::thread> threads;
  for (int c = 0; c < kConnections; ++c) {
    threads.emplace_back([&] {
      Client client;
      for (int i = next++; i < count; i = next++) {
        if (rate > 0) {
          const auto due = begin + static_cast<std::int64_t>(i / rate * kNsPerSecond);
          const std::int64_t wait = due - mono_now_ns();
          if (wait > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(wait));
        }
        make(client, i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return count / (static_cast<double>(mono_now_ns() - begin) / kNsPerSecond);
}

void create_pod(Client& client, std::string_view prefix, int i) {
  const std::string name = fmt::format("{}-{:06}", prefix, i);
  const int code =
      client.status("POST", "/api/v1/namespaces/default/pods", pod_json(name, mono_now_ns()));
  JOGAK_CHECK(code == 201, "creating {}: {}", name, code);
}

void bind_pod(Client& client, std::string_view prefix, int i, int nodes) {
  const std::string name = fmt::format("{}-{:06}", prefix, i);
  const std::string body =
      fmt::format(R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"{}"}},)"
                  R"("target":{{"kind":"Node","name":"node-{:05}"}}}})",
                  name, i % nodes);
  const int code =
      client.status("POST", fmt::format("/api/v1/namespaces/default/pods/{}/binding", name), body);
  JOGAK_CHECK(code == 201, "binding {}: {}", name, code);
}

double idle_percent(const Server& server, int seconds) {
  const double before = server.cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  return (server.cpu_seconds() - before) / seconds * 100;
}

void start_and_idle(const std::string& program) {
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) times.push_back(Server(program, {}).ready_ms());
  std::ranges::sort(times);
  const Server server(program, {});
  std::this_thread::sleep_for(std::chrono::seconds(3));
  fmt::print("ready, process start to first answer    {:8.1f} ms (median of 5)\n", times[2]);
  fmt::print("idle, default cluster                   {:8.2f} % of a core over 20 s\n",
             idle_percent(server, 20));
}

void load(const std::string& program) {
  const Server server(program, {"--no-kubelets", "--no-controllers"});
  Watchers watchers(kWatchers);
  const std::int64_t begin = mono_now_ns();
  const double before = server.cpu_seconds();
  const double rate =
      drive(10'000, 1000, [](Client& client, int i) { create_pod(client, "a", i); });
  const double cpu = (server.cpu_seconds() - before) / 10;
  while (watchers.seen() < 10'000U * kWatchers) std::this_thread::yield();
  const std::vector<double> delays = watchers.delays(begin);
  fmt::print(
      "creations asked for at 1000/s           {:8.0f} /s with {} watchers, {:.0f} % of a core\n",
      rate, kWatchers, cpu * 100);
  fmt::print(
      "event to watcher at that rate           {:8.2f} ms p50, {:.2f} ms p99, {:.2f} ms max\n",
      percentile(delays, 0.5), percentile(delays, 0.99), delays.back());
  const double most = drive(10'000, 0, [](Client& client, int i) { create_pod(client, "b", i); });
  fmt::print("creations as fast as they go            {:8.0f} /s with {} watchers\n", most,
             kWatchers);
  const double binds =
      drive(10'000, 0, [](Client& client, int i) { bind_pod(client, "b", i, 100); });
  fmt::print("bindings                                {:8.0f} /s with {} watchers\n", binds,
             kWatchers);
}

void bindings_alone(const std::string& program) {
  const Server server(program, {"--no-kubelets", "--no-controllers"});
  const double made = drive(20'000, 0, [](Client& client, int i) { create_pod(client, "c", i); });
  const double binds =
      drive(20'000, 0, [](Client& client, int i) { bind_pod(client, "c", i, 100); });
  fmt::print("creations, bindings without watchers    {:8.0f} /s, {:.0f} /s\n", made, binds);
}

void large(const std::string& program) {
  const Server server(program, {"--nodes", "5000x8xH100-80", "--topology", "racks=100"});
  fmt::print("ready with 5,000 nodes                  {:8.0f} ms\n", server.ready_ms());
  const double empty = server.memory_mib();
  const double rate = drive(50'000, 0, [](Client& client, int i) { create_pod(client, "p", i); });
  fmt::print("50,000 pods into 5,000 nodes            {:8.0f} creations/s\n", rate);
  fmt::print("memory, 5,000 nodes and 50,000 pods     {:8.0f} MiB ({:.0f} with the nodes alone)\n",
             server.memory_mib(), empty);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  fmt::print("idle, 5,000 nodes and 50,000 pods       {:8.2f} % of a core over 20 s\n",
             idle_percent(server, 20));
}

// Nodes with GPUs, until each has what its agent found. CPU time, since the start of many nodes is
// all work: what else runs on the machine makes it no dearer.
void gpu_nodes(const std::string& program, int nodes) {
  const Server server(program, {"--nodes", fmt::format("{}x8xH100-80", nodes)});
  double before = 0;
  double now = server.cpu_seconds();
  while (now - before > 0.02) {
    before = now;
    std::this_thread::sleep_for(std::chrono::seconds(1));
    now = server.cpu_seconds();
  }
  std::this_thread::sleep_for(std::chrono::seconds(4));  // what the start left behind goes
  fmt::print("{} nodes of 8 GPUs, all told          {:8.2f} s of CPU, {:.0f} MiB then {:.0f}\n",
             nodes, now, server.memory_mib("VmHWM:"), server.memory_mib());
}

struct Part {
  std::string_view name;
  void (*run)(const std::string& program);
};
constexpr Part kParts[] = {
    {"idle", start_and_idle},
    {"load", load},
    {"bind", bindings_alone},
    {"large", large},
    {"gpus",
     [](const std::string& program) {
       gpu_nodes(program, 500);
       gpu_nodes(program, 5000);
     }},
};

}  // namespace
}  // namespace jogak::bench

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "usage: apiserver_bench PATH_OF_JOGAK [idle|load|bind|large|gpus]\n");
    return 2;
  }
  for (const jogak::bench::Part& part : jogak::bench::kParts) {
    if (argc == 2 || part.name == argv[2]) part.run(argv[1]);
  }
  return 0;
}
