// SPDX-License-Identifier: Apache-2.0
//
// The agent of a node over simulated weeks, in virtual time: the whole NodeAgent on a simulated
// machine of 8 GPUs, sampled each second, its page made each time. Pods come and go, processes
// with them, MIG layouts change, GPUs are lost and come back, XIDs are told, the driver is
// reloaded, the kubelet is away. Prints the heap at each midnight; fails when it grows.
//
//   build/bench/bench/agent_week_bench [DAYS [SECONDS]]
//
// SECONDS: between two samples (1).
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "agent/exporter/counters.h"
#include "agent/mig/manager.h"
#include "agent/run/node_agent.h"
#include "base/check.h"
#include "base/log.h"
#include "base/mono_clock.h"
#include "base/rng.h"
#include "base/sim_loop.h"
#include "nvml/nvml_source.h"
#include "nvml/sim/machine.h"

namespace jogak::bench {
namespace {

using nvml::sim::FaultKind;
using nvml::sim::FaultSpec;

constexpr TimeUs kMinute = 60 * kSecondInUs;
constexpr TimeUs kDay = 24 * 60 * kMinute;
constexpr int kGpus = 8;
constexpr int kCut = 4;  // GPUs that are cut; the others are given out whole
constexpr double kGrownKibMax = 256;

std::string machine_text() {
  std::string text =
      "apiVersion: jogak.io/v1\nkind: NvmlSimulation\nidentity: agent-week\n"
      "driver: {driverVersion: 550.90.07, cudaMajor: 12, cudaMinor: 4}\ngpus:\n";
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    text += "- model: A100-SXM4-40GB\n  load: {shape: sine, low: 10, high: 95, period: 2m}\n";
    if (gpu < kCut) text += "  migEnabled: true\n";
  }
  return text;
}

// Counts, and keeps nothing.
class CountingSink final : public LogSink {
 public:
  void write(const LogEvent& /*event*/) override { ++lines; }
  std::int64_t lines = 0;
};

class Week {
 public:
  explicit Week(TimeUs sample_every) : random_(1, "week") {
    auto spec = nvml::sim::read_machine("week.yaml", machine_text());
    JOGAK_CHECK(spec.has_value(), "{}", spec.error().what);
    auto made = nvml::sim::Machine::create(
        *std::move(spec), {.now = [this, began = loop_.now()] { return loop_.now() - began; }});
    JOGAK_CHECK(made.has_value(), "{}", made.error().what);
    machine_ = *std::move(made);
    agent::AgentOptions options;
    options.node_name = "gpu-node-0001.example.com";
    options.worker.has_thread = false;
    options.sample_every = sample_every;
    options.plugin.mig_strategy = agent::MigStrategy::Mixed;
    options.render.counters = agent::default_counters(options.render.naming);
    agent::HostView host;
    host.mig_journal = journal_;
    agent::NodePorts ports;
    ports.offer = [this](const agent::PluginSnapshotPtr&) { ++offers_; };
    ports.wish = [this](const agent::NodeWish&) { ++wishes_; };
    ports.holds = [this](const std::map<agent::PodName, std::string>&) { ++holds_; };
    node_ = std::make_unique<agent::NodeAgent>(
        loop_, log_, nvml::NvmlSource::of_machine(machine_, [this] { return loop_.now(); }),
        std::move(options), std::move(host), std::move(ports));
    node_->start();
    each(20 * kSecondInUs, [this] { change_pods(); });
    each(30 * kMinute, [this] { cut(); });
    each(23 * kMinute, [this] { break_or_heal(); });
    each(9 * 60 * kMinute, [this] { reload(); });
    each(131 * kMinute, [this] { kubelet_away(); });
  }

  void run_for(TimeUs span) { loop_.run_for(span); }
  std::string counts() const {
    return fmt::format(
        "{} pods, {} cuts ({} refused), {} faults, {} reloads; told {} offers, {} wishes, {} lists "
        "of holders, "
        "{} log lines",
        pods_, cuts_, refused_, breaks_, reloads_, offers_, wishes_, holds_, sink_.lines);
  }

 private:
  void each(TimeUs every, const std::function<void()>& what) {
    loop_.after(every, [this, every, what] {
      what();
      each(every, what);
    });
  }

  // A pod goes and others come, with names that were never there before.
  void change_pods() {
    if (holdings_.size() > 4) end_pod(random_.below(holdings_.size()));
    const auto& offer = node_->offer();
    if (offer == nullptr) return;
    int room = 2;
    for (const agent::PluginResource& resource : offer->inventory.resources) {
      for (const agent::PluginDevice& device : resource.devices) {
        if (!device.is_healthy || is_held(device.id) || room-- <= 0) continue;
        hold(resource.name, device);
      }
    }
    node_->on_holdings(holdings_);
  }

  void end_pod(std::size_t at) {
    machine_->end_process(pids_[at]);
    pids_.erase(pids_.begin() + static_cast<std::ptrdiff_t>(at));
    holdings_.erase(holdings_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  bool is_held(const std::string& id) const {
    return std::ranges::find(holdings_, id, &agent::Holding::device_id) != holdings_.end();
  }

  void hold(const std::string& resource, const agent::PluginDevice& device) {
    ++pods_;
    holdings_.push_back({.resource = resource,
                         .device_id = device.id,
                         .holder = {.pod_namespace = fmt::format("team-{}", pods_ % 17),
                                    .pod = fmt::format("train-{}", pods_),
                                    .container = "main",
                                    .pod_uid = ""}});
    pids_.push_back(1000 + pods_);
    for (const nvml::sim::GpuState& gpu : machine_->gpus()) {
      if (gpu.spec.uuid != device.gpu_uuid) continue;
      machine_->start_process(gpu.index,
                              {.pid = pids_.back(), .name = "python3", .memory_mib = 2000},
                              device.gi_id, device.gi_id < 0 ? -1 : 0);
    }
  }

  // One of the cut GPUs is cut anew, with nobody on it.
  void cut() {
    const auto facts = node_->snapshot()->facts;
    const auto gpu = static_cast<std::size_t>(random_.below(kCut));
    if (gpu >= facts->gpus.size() || facts->gpus[gpu].is_lost) return;
    const nvml::GpuFacts& fact = facts->gpus[gpu];
    for (std::size_t i = holdings_.size(); i-- > 0;) {
      const bool is_here = std::ranges::any_of(fact.mig_instances, [&](const auto& instance) {
        return instance.uuid == holdings_[i].device_id;
      });
      if (is_here) end_pod(i);
    }
    static constexpr std::string_view kProfiles[] = {"1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"};
    static constexpr int kCounts[] = {7, 3, 2, 1};
    const auto layout = static_cast<std::size_t>(random_.below(std::size(kCounts)));
    ++cuts_;
    agent::MigGoal goal;
    goal.uuid = fact.uuid;
    goal.wanted = {{std::string(kProfiles[layout]), kCounts[layout]}};
    using Reports = std::vector<agent::MigGpuReport>;
    node_->worker().run<Reports>(
        [goal, journal = journal_](nvml::GpuSource& source) {
          return agent::MigManager(source, *journal).apply(std::array{goal}, {});
        },
        [this](const Result<Reports>& reports) {
          if (!reports || agent::overall(*reports) > agent::MigState::Done) ++refused_;
        });
    node_->look();
  }

  // In turns: a GPU is lost, it is back, one tells an XID that asks for a reset, it was reset.
  void break_or_heal() {
    const bool is_healing = ++breaks_ % 2 == 0;
    if (is_healing) return machine_->stand({});
    FaultSpec fault;
    fault.kind = breaks_ % 4 == 1 ? FaultKind::Lost : FaultKind::Xid;
    fault.code = fault.kind == FaultKind::Xid ? 48 : 0;
    fault.gpu = static_cast<int>(random_.below(kGpus));
    machine_->stand({fault});
  }

  void reload() {
    ++reloads_;
    FaultSpec fault;
    fault.kind = FaultKind::DriverReload;
    fault.lasting = 5 * kSecondInUs;
    machine_->inject(fault);
  }

  void kubelet_away() {
    node_->on_holdings(fail(Errc::Unavailable, "the kubelet's socket: connection refused"));
  }

  SimLoop loop_;
  CountingSink sink_;
  Log log_{loop_, sink_};
  Rng random_;
  std::shared_ptr<nvml::sim::Machine> machine_;
  std::shared_ptr<agent::MemoryJournal> journal_ = std::make_shared<agent::MemoryJournal>();
  std::vector<agent::Holding> holdings_;
  std::vector<std::int64_t> pids_;  // of the holdings
  std::int64_t pods_ = 0, cuts_ = 0, refused_ = 0, breaks_ = 0, reloads_ = 0;
  std::int64_t offers_ = 0, wishes_ = 0, holds_ = 0;
  std::unique_ptr<agent::NodeAgent> node_;
};

int run(int days, TimeUs sample_every) {
  Week week(sample_every);
  const std::int64_t begin = mono_now_ns();
  std::vector<double> heaps;
  for (int day = 1; day <= days; ++day) {
    week.run_for(kDay);
    heaps.push_back(static_cast<double>(mallinfo2().uordblks) / 1024);
    fmt::print("day {}: heap {:.0f} KiB; {}\n", day, heaps.back(), week.counts());
    std::fflush(stdout);
  }
  const double seconds = static_cast<double>(mono_now_ns() - begin) / 1e9;
  const double grown = heaps.back() - heaps.front();
  fmt::print("{} days in {:.0f} s; grown since the first midnight: {:.0f} KiB (floor {:g}){}\n",
             days, seconds, grown, kGrownKibMax, grown < kGrownKibMax ? "" : "  MISSED");
  return grown < kGrownKibMax ? 0 : 1;
}

}  // namespace
}  // namespace jogak::bench

int main(int argc, char** argv) {
  const auto number = [&](int at, int fallback) {
    return argc > at ? std::max(1, std::atoi(argv[at])) : fallback;
  };
  return jogak::bench::run(std::max(2, number(1, 7)), number(2, 1) * jogak::kSecondInUs);
}
