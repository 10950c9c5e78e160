// SPDX-License-Identifier: Apache-2.0
//
// What the agent's exporter costs on a dense node: 8 GPUs cut into 7 instances each, 56 pods.
// Scrapes over loopback from a server that gets a new sample each 10 ms; the processor time of a
// second's pure work (8 samples into the model, a snapshot, both texts); and what is kept after
// days of churn. Prints one table, and fails when a floor is missed.
//
//   build/bench/bench/exporter_bench [DAYS]
#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "agent/exporter/exporter.h"
#include "agent/model/node_model.h"
#include "agent/model/testing/made_node.h"
#include "base/check.h"
#include "base/mono_clock.h"
#include "net/epoll_loop.h"
#include "net/http_server.h"

namespace jogak::bench {
namespace {

using agent::Exporter;
using agent::NodeModel;

constexpr TimeUs kStart = 1'700'000'000 * kSecondInUs;
constexpr int kScrapes = 3000;
constexpr agent::testing::MadeNode kNode = {.gpus = 8, .instances = 7};

agent::ExporterOptions options() {
  agent::ExporterOptions options;
  options.render.hostname = "gpu-node-0001.example.com";
  return options;
}

// The pure part of an agent on a made node.
class Agent {
 public:
  Agent()
      : facts_(agent::testing::made_facts(kNode)),
        exporter_(options(), nullptr, [this] { return now_; }) {
    model_.on_facts(facts_, now_);
    churn(0);
  }
  void second() {
    now_ += kSecondInUs;
    model_.on_tick(now_);
    for (const nvml::GpuFacts& gpu : facts_.gpus) {
      model_.on_sample(agent::testing::made_sample(gpu, now_));
    }
    exporter_.publish(*model_.snapshot(now_));
  }
  void churn(int round) { model_.on_holdings(agent::testing::made_holdings(facts_, round), now_); }
  void fault(std::uint64_t code) {
    model_.on_event(
        {.uuid = facts_.gpus[0].uuid, .kind = nvml::GpuEventKind::Xid, .code = code, .time = now_});
  }
  Exporter& exporter() { return exporter_; }

 private:
  TimeUs now_ = kStart;
  nvml::NodeFacts facts_;
  NodeModel model_;
  Exporter exporter_;
};

// A connection that stays open, as Prometheus keeps it.
class Scraper {
 public:
  explicit Scraper(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    JOGAK_CHECK(::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Scraper() { ::close(fd_); }
  Scraper(const Scraper&) = delete;
  Scraper& operator=(const Scraper&) = delete;

  // Bytes of the body.
  std::size_t scrape(std::string_view headers) {
    const std::string request =
        fmt::format("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{}\r\n", headers);
    JOGAK_CHECK(::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) ==
                static_cast<ssize_t>(request.size()));
    std::string answer;
    std::size_t head = std::string::npos;
    std::size_t body = 0;
    while (head == std::string::npos || answer.size() < head + 4 + body) {
      const ssize_t got = ::recv(fd_, buffer_, sizeof buffer_, 0);
      JOGAK_CHECK(got > 0);
      answer.append(buffer_, static_cast<std::size_t>(got));
      if (head != std::string::npos) continue;
      head = answer.find("\r\n\r\n");
      if (head == std::string::npos) continue;
      const std::size_t length = answer.find("Content-Length: ");
      JOGAK_CHECK(answer.starts_with("HTTP/1.1 200") && length < head);
      body = std::strtoul(answer.c_str() + length + 16, nullptr, 10);
    }
    return body;
  }

 private:
  int fd_;
  char buffer_[1 << 16];
};

struct Latency {
  double p50_ms = 0, p99_ms = 0;
  std::size_t bytes = 0;
};

Latency measure(std::uint16_t port, std::string_view headers) {
  Scraper scraper(port);
  std::vector<std::int64_t> times;
  Latency latency;
  for (int i = 0; i < kScrapes; ++i) {
    const std::int64_t begin = mono_now_ns();
    latency.bytes = std::max(latency.bytes, scraper.scrape(headers));
    times.push_back(mono_now_ns() - begin);
  }
  std::ranges::sort(times);
  latency.p50_ms = static_cast<double>(times[times.size() / 2]) / 1e6;
  latency.p99_ms = static_cast<double>(times[times.size() * 99 / 100]) / 1e6;
  return latency;
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

bool check(std::string_view what, double value, double floor, std::string_view unit) {
  const bool is_met = value < floor;
  fmt::print("{:<44} {:>10.3f} {:<3} (floor {:g}){}\n", what, value, unit, floor,
             is_met ? "" : "  MISSED");
  return is_met;
}

bool scrapes() {
  Agent agent;
  agent.second();
  net::EpollLoop loop;
  auto server = net::HttpServer::listen(loop, {}, agent.exporter().handler());
  JOGAK_CHECK(server.has_value());
  // A new text 100 times a second: no scrape is spared the first compression of one.
  std::function<void()> publish = [&] {
    agent.second();
    loop.after(10 * kMsInUs, publish);
  };
  loop.after(10 * kMsInUs, publish);
  const std::uint16_t port = (*server)->port();
  Latency plain, open, packed;
  std::thread client([&] {
    plain = measure(port, "");
    open = measure(port, "Accept: application/openmetrics-text;version=1.0.0\r\n");
    packed = measure(port, "Accept-Encoding: gzip\r\n");
    loop.stop();
  });
  loop.run();
  client.join();
  fmt::print(
      "8 GPUs x 7 instances, 56 pods; {} scrapes each, p50: text {:.3f} ms, OpenMetrics "
      "{:.3f} ms, gzip {:.3f} ms\n",
      kScrapes, plain.p50_ms, open.p50_ms, packed.p50_ms);
  bool is_met = check("scrape p99, text", plain.p99_ms, 2, "ms");
  is_met &= check("scrape p99, OpenMetrics", open.p99_ms, 2, "ms");
  is_met &= check("scrape p99, text, gzip", packed.p99_ms, 2, "ms");
  is_met &= check("scrape size, text", static_cast<double>(plain.bytes) / 1000, 200, "kB");
  fmt::print("{:<44} {:>10.3f} kB\n", "scrape size, gzip",
             static_cast<double>(packed.bytes) / 1000);
  return is_met;
}

bool pure_work() {
  Agent agent;
  constexpr int kSeconds = 3000;
  agent.second();
  const double begin = cpu_seconds();
  for (int i = 0; i < kSeconds; ++i) agent.second();
  return check("pure work at 1 Hz, of a core", 100 * (cpu_seconds() - begin) / kSeconds, 0.3, "%");
}

bool churn(int days) {
  Agent agent;
  std::size_t before = 0;
  for (int second = 1; second <= days * 24 * 3600; ++second) {
    agent.second();
    if (second % 30 == 0) agent.churn(second);
    if (second % 101 == 0) agent.fault(static_cast<std::uint64_t>(second % 300));
    if (second == 3600) before = mallinfo2().uordblks;
  }
  const std::size_t after = mallinfo2().uordblks;
  const double grown = after > before ? static_cast<double>(after - before) / 1024 : 0;
  fmt::print("{:<44} {:>10.3f} KiB\n", "heap of model and texts",
             static_cast<double>(after) / 1024);
  return check(fmt::format("heap grown from hour 1 to day {}", days), grown, 256, "KiB");
}

}  // namespace
}  // namespace jogak::bench

int main(int argc, char** argv) {
  const int days = argc > 1 ? std::atoi(argv[1]) : 1;
  bool is_met = jogak::bench::scrapes();
  is_met &= jogak::bench::pure_work();
  is_met &= jogak::bench::churn(std::clamp(days, 1, 365));
  return is_met ? 0 : 1;
}
