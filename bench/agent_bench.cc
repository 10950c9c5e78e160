// SPDX-License-Identifier: Apache-2.0
//
// The floors of the node agent on the real process: `jogak agent run` on a simulated node of 8 GPUs
// with 7 MIG instances each, 56 pods with a process on each, between the stand-in for the kubelet
// and a scraper, all over real sockets. Prints one table; fails when a floor is missed.
//
//   build/bench/bench/agent_bench [JOGAK [SECONDS [PODS]]]
//
// JOGAK: the program; without it the one of the same build.
// SECONDS: how long it is watched doing nothing but its work (60). PODS: how many come and go at
// the end (10,000).
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <api/device_plugin.grpc.pb.h>
#include <fmt/core.h>
#include <grpcpp/create_channel.h>

#include "base/check.h"
#include "base/mono_clock.h"
#include "bench/measured_agent.h"
#include "test/kubelet/kubelet.h"

namespace jogak::bench {
namespace {

using kubelet::Kubelet;
using kubelet::NodeCounts;

constexpr int kStarts = 20;
constexpr int kKubeletRestarts = 20;
constexpr int kScrapes = 2000;
constexpr int kAllocations = 5000;
constexpr int kLoneAllocations = 40;
constexpr int kScrapeEverySeconds = 15;
const std::string kResource{kSlice};

bool is_all_met = true;

void tell(std::string_view what, double value, std::string_view unit) {
  fmt::print("{:<58} {:>9.3f} {}\n", what, value, unit);
  std::fflush(stdout);
}

void check(std::string_view what, double value, double floor, std::string_view unit) {
  const bool is_met = value < floor;
  is_all_met &= is_met;
  fmt::print("{:<58} {:>9.3f} {} (floor {:g}){}\n", what, value, unit, floor,
             is_met ? "" : "  MISSED");
  std::fflush(stdout);
}

double mib(std::int64_t kib) { return static_cast<double>(kib) / 1024; }

kubelet::PodAsk pod(int number) {
  return {.ns = fmt::format("team-{}", number % 9),
          .name = fmt::format("train-{}-worker", number),
          .containers = {{.name = "main", .devices = {{kResource, 1}}}}};
}

bool is_offered(const Kubelet& kubelet, int healthy = kDevices) {
  return kubelet.counts(kResource) == NodeCounts{.capacity = kDevices, .allocatable = healthy};
}

std::string plugin_socket(const TempFolder& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("device-plugins"))) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("jogak-mig-1g.5gb")) return entry.path().string();
  }
  JOGAK_CHECK(false, "the agent has no socket");
  return {};
}

// ---- the parts ---------------------------------------------------------------------------------

void starts(const std::string& binary, const TempFolder& folder, Kubelet& kubelet) {
  std::vector<std::int64_t> offered, ready;
  std::int64_t own_max = 0;
  for (int i = 0; i < kStarts; ++i) {
    const std::int64_t begin = mono_now_ns();
    MeasuredAgent agent(binary, folder);
    Scraper scraper(agent.port());
    JOGAK_CHECK(kubelet.wait([&] { return is_offered(kubelet); }), "no offer in start {}", i);
    offered.push_back(mono_now_ns() - begin);
    while (scraper.get("/readyz") != 200) {
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    ready.push_back(mono_now_ns() - begin);
    own_max = std::max(own_max, agent.ready_after_ms());
    agent.stop();
    kubelet.wait([&] { return is_offered(kubelet, 0); });
  }
  const Percentiles of_offer = percentiles(offered), of_ready = percentiles(ready);
  tell(fmt::format("start until the kubelet has the devices, p50 of {}", kStarts), of_offer.p50_ms,
       "ms");
  tell("start until /readyz says so, p50", of_ready.p50_ms, "ms");
  tell("start until ready by the agent's own clock, worst", static_cast<double>(own_max), "ms");
  check("start until /readyz says so, worst", of_ready.max_ms, 300, "ms");
}

void scrapes(const MeasuredAgent& agent) {
  constexpr std::string_view kOpen =
      "Accept: application/openmetrics-text;version=1.0.0\r\n"
      "Accept-Encoding: gzip\r\n";
  Scraper scraper(agent.port());
  std::size_t bytes = 0;
  const auto measure = [&](std::string_view headers) {
    bytes = 0;
    return timed(kScrapes, [&](int) {
      JOGAK_CHECK(scraper.get("/metrics", headers) == 200);
      bytes = std::max(bytes, scraper.body().size());
    });
  };
  const Percentiles plain = measure("");
  JOGAK_CHECK(scraper.body().find("pod=\"train-55-worker\"") != std::string_view::npos,
              "the page does not name the pods");
  tell(fmt::format("scrape, text, p50 of {}", kScrapes), plain.p50_ms, "ms");
  check("scrape, text, p99", plain.p99_ms, 2, "ms");
  check("scrape, text, size", static_cast<double>(bytes) / 1000, 200, "kB");
  const Percentiles packed = measure("Accept-Encoding: gzip\r\n");
  check("scrape, text, gzip, p99", packed.p99_ms, 2, "ms");
  tell("scrape, text, gzip, size", static_cast<double>(bytes) / 1000, "kB");
  check("scrape, OpenMetrics, gzip, p99", measure(kOpen).p99_ms, 2, "ms");
}

void idle(const MeasuredAgent& agent, int seconds) {
  Scraper scraper(agent.port());
  const double begin = agent.cpu_seconds();
  const std::int64_t switches = agent.switches();
  for (int second = 0; second < seconds; ++second) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    if (second % kScrapeEverySeconds == 0) {
      JOGAK_CHECK(scraper.get("/metrics", "Accept-Encoding: gzip\r\n") == 200);
    }
  }
  check(
      fmt::format("of a core at 1 Hz, a scrape each {} s, over {} s", kScrapeEverySeconds, seconds),
      100 * (agent.cpu_seconds() - begin) / seconds, 0.3, "%");
  tell("sleeps of its threads, each second",
       static_cast<double>(agent.switches() - switches) / seconds, "");
  tell("threads", agent.threads(), "");
}

void memory(const MeasuredAgent& agent, std::string_view when) {
  const Memory now = agent.memory();
  check(fmt::format("VmRSS, {}", when), mib(now.rss_kib), 25, "MiB");
  tell("  of it not of files (RssAnon)", mib(now.anon_kib), "MiB");
  tell("  of it of files, shared with others (RssFile)", mib(now.file_kib), "MiB");
  tell("  its share (Pss)", mib(now.pss_kib), "MiB");
  tell("  its own, written (Private_Dirty)", mib(now.dirty_kib), "MiB");
}

void allocations(const TempFolder& folder) {
  namespace api = ::v1beta1;
  const auto stub = api::DevicePlugin::NewStub(
      grpc::CreateChannel("unix:" + plugin_socket(folder), grpc::InsecureChannelCredentials()));
  std::vector<std::string> ids;
  {
    grpc::ClientContext context;
    const auto stream = stub->ListAndWatch(&context, api::Empty());
    api::ListAndWatchResponse list;
    JOGAK_CHECK(stream->Read(&list));
    for (const auto& device : list.devices()) ids.push_back(device.id());
    context.TryCancel();
    (void)stream->Finish();
  }
  const auto call = [&](int i) {
    api::AllocateRequest request;
    request.add_container_requests()->add_devices_ids(
        ids[static_cast<std::size_t>(i) % ids.size()]);
    api::AllocateResponse response;
    grpc::ClientContext context;
    JOGAK_CHECK(stub->Allocate(&context, request, &response).ok());
  };
  const Percentiles all = timed(kAllocations, call);
  tell(fmt::format("Allocate, p50 of {}", kAllocations), all.p50_ms, "ms");
  check("Allocate, p99", all.p99_ms, 2, "ms");
  tell("Allocate, worst", all.max_ms, "ms");
  // The kubelet's calls are rare: nobody's caches are warm, and threads sleep.
  std::vector<std::int64_t> lone;
  for (int i = 0; i < kLoneAllocations; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(700 + i * 137 % 1300));
    const std::int64_t begin = mono_now_ns();
    call(i);
    lone.push_back(mono_now_ns() - begin);
  }
  const Percentiles of_lone = percentiles(lone);
  tell(fmt::format("Allocate after a pause, p50 of {}", kLoneAllocations), of_lone.p50_ms, "ms");
  tell("Allocate after a pause, worst", of_lone.max_ms, "ms");
  const auto prefer = timed(kAllocations, [&](int) {
    api::PreferredAllocationRequest request;
    auto& ask = *request.add_container_requests();
    for (const std::string& id : ids) ask.add_available_deviceids(id);
    ask.set_allocation_size(4);
    api::PreferredAllocationResponse response;
    grpc::ClientContext context;
    JOGAK_CHECK(stub->GetPreferredAllocation(&context, request, &response).ok());
  });
  tell("GetPreferredAllocation of 4 of 56, p99", prefer.p99_ms, "ms");
}

void registrations(Kubelet& kubelet) {
  std::vector<std::int64_t> times;
  for (int i = 0; i < kKubeletRestarts; ++i) {
    kubelet.stop();
    std::this_thread::sleep_for(std::chrono::milliseconds(100 * (i % 12)));
    const std::int64_t begin = mono_now_ns();
    kubelet.start();
    JOGAK_CHECK(kubelet.wait([&] { return is_offered(kubelet); }), "not registered again");
    times.push_back(mono_now_ns() - begin);
  }
  const Percentiles all = percentiles(times);
  tell(fmt::format("registered again after a kubelet's restart, p50 of {}", kKubeletRestarts),
       all.p50_ms, "ms");
  check("registered again after a kubelet's restart, worst", all.max_ms, 1000, "ms");
}

// Pods come and go on a node that is three quarters full, a GPU is lost and comes back, the kubelet
// restarts, somebody scrapes.
void churn(const TempFolder& folder, const MeasuredAgent& agent, Kubelet& kubelet, int pods) {
  constexpr int kKept = 40;
  const auto set_faults = [&](const std::string& line) {
    const std::string path = folder.path("faults");
    std::ofstream(path + ".new") << line << "\n";
    std::filesystem::rename(path + ".new", path);
  };
  Scraper scraper(agent.port());
  std::vector<std::int64_t> rss;
  const int step = std::max(pods / 10, 1);
  int refused = 0;
  for (int i = 0; i < pods; ++i) {
    const auto gone = pod(kDevices + i - kKept);
    kubelet.remove(gone.ns, gone.name);
    if (!kubelet.run(pod(kDevices + i))) ++refused;
    if (i % 50 == 0) JOGAK_CHECK(scraper.get("/metrics") == 200);
    if (i % step == step / 4) set_faults("0=lost");
    if (i % step == step / 2) set_faults("");
    if (i % step == step - 1) {
      kubelet.stop();
      kubelet.start();
      JOGAK_CHECK(kubelet.wait([&] { return kubelet.counts(kResource).capacity == kDevices; }),
                  "not registered again");
      rss.push_back(agent.memory().anon_kib);
    }
  }
  // A GPU that was lost is offered again once it has answered for ten seconds.
  JOGAK_CHECK(kubelet.wait([&] { return is_offered(kubelet); }, 30'000), "a GPU did not come back");
  std::string line;
  for (const std::int64_t kib : rss) line += fmt::format(" {:.2f}", mib(kib));
  fmt::print("RssAnon after each tenth of {} pods, MiB:{}; {} pods found no slice\n", pods, line,
             refused);
  check("RssAnon grown from the third tenth to the last", mib(rss.back() - rss[rss.size() / 4]),
        0.5, "MiB");
}

int run(const std::string& binary, int seconds, int pods) {
  const Sleepers sleepers(kDevices);
  const TempFolder folder;
  std::ofstream(folder.path("machine.yaml")) << dense_machine(sleepers.pids());
  ::setenv("JOGAK_NVML_SIM_FAULTS", folder.path("faults").c_str(), 1);
  Kubelet kubelet(folder.path(), 1);
  kubelet.start();
  starts(binary, folder, kubelet);
  MeasuredAgent agent(binary, folder);
  JOGAK_CHECK(kubelet.wait([&] { return is_offered(kubelet); }));
  for (int i = 0; i < kDevices; ++i) {
    const auto ran = kubelet.run(pod(i));
    JOGAK_CHECK(ran.has_value(), "pod {}: {}", i, ran.error().what);
  }
  std::this_thread::sleep_for(std::chrono::seconds(2));  // the kubelet is asked, a sample is taken
  scrapes(agent);
  idle(agent, seconds);
  memory(agent, "56 pods");
  allocations(folder);
  registrations(kubelet);
  memory(agent, fmt::format("after {} kubelet restarts", kKubeletRestarts));
  for (int i = 0; i < 16; ++i) kubelet.remove(pod(i).ns, pod(i).name);
  churn(folder, agent, kubelet, pods);
  memory(agent, fmt::format("after {} pods", pods));
  check("the most it ever had (VmHWM)", mib(agent.memory().peak_kib), 25, "MiB");
  for (const std::string& complaint : kubelet.complaints()) {
    fmt::print("the kubelet complains: {}\n", complaint);
    is_all_met = false;
  }
  agent.stop();
  return is_all_met ? 0 : 1;
}

}  // namespace
}  // namespace jogak::bench

int main(int argc, char** argv) {
  const auto number = [&](int at, int fallback) {
    return argc > at ? std::max(10, std::atoi(argv[at])) : fallback;
  };
  const auto beside = std::filesystem::path(argv[0]).parent_path() / "../src/cli/jogak";
  return jogak::bench::run(argc > 1 ? argv[1] : beside.string(), number(2, 60), number(3, 10'000));
}
