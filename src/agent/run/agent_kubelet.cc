// SPDX-License-Identifier: Apache-2.0
//
// The part of the agent that deals with the kubelet and with what its pods do: the device plugin,
// who holds what, processes that are still there, and a change of MIG layouts that was cut short.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "agent/mig/manager.h"
#include "agent/mig/pod_holders.h"
#include "agent/run/agent_app.h"
#include "base/file.h"

namespace jogak::agent {

namespace {

// The kubelet tells of a container's devices once all of them are allocated.
constexpr TimeUs kAfterAllocate = 300 * kMsInUs;
constexpr std::int64_t kCgroupBytesMax = 65'536;

using Processes = std::map<std::string, std::vector<nvml::ProcessFacts>>;  // by GPU

}  // namespace

void AgentApp::start_plugin() {
  plugin_ = std::make_unique<DevicePlugin>(
      loop_, log_,
      DevicePluginOptions{.kubelet_socket = options_.kubelet_socket,
                          .registers = options_.registers,
                          .on_step =
                              [this, alive = is_alive_](std::string_view step) {
                                // On gRPC's threads, which end before the plugin does.
                                if (step != "allocated") return;
                                loop_.post([this, alive] {
                                  if (*alive) on_allocated();
                                });
                              }},
      [this](std::vector<PluginDevice> devices, LeftoversDone done) {
        ask_leftovers(std::move(devices), std::move(done));
      });
}

// ---- who holds what --------------------------------------------------------------------------

void AgentApp::on_allocated() {
  if (pod_holds_ != nullptr) pod_holds_->forget_written();
  if (kubelet_ == nullptr) return;
  asks_again_ = is_asking_holdings_;  // what is under way may be from before
  loop_.cancel(holdings_timer_);
  holdings_timer_ = loop_.after(kAfterAllocate, [this] { ask_holdings(); });
}

void AgentApp::ask_holdings() {
  if (is_asking_holdings_) return;
  is_asking_holdings_ = true;
  kubelet_->list_holdings(
      options_.pod_resources_socket,
      [this](Result<std::vector<Holding>> holdings) { on_holdings(std::move(holdings)); });
}

void AgentApp::on_holdings(Result<std::vector<Holding>> holdings) {
  is_asking_holdings_ = false;
  loop_.cancel(holdings_timer_);
  const TimeUs pause = std::exchange(asks_again_, false) ? kAfterAllocate : options_.holdings_every;
  holdings_timer_ = loop_.after(pause, [this] { ask_holdings(); });
  const TimeUs now = loop_.now();
  if (holdings) {
    if (!std::exchange(holdings_problem_, "").empty()) {
      log_.info("the kubelet says again which pod holds what");
    }
    model_.on_holdings(*std::move(holdings), now);
    if (pod_holds_ != nullptr && told_facts_ != nullptr) {
      const auto node = model_.snapshot(now);
      pod_holds_->want(holds_annotations(*node->facts, *node->holdings));
    }
  } else {
    if (holdings_problem_ != holdings.error().what) {
      log_.warn("the kubelet cannot say which pod holds what; trying again",
                {{"error", holdings.error().what}});
    }
    holdings_problem_ = holdings.error().what;
    model_.on_holdings_failure(holdings.error(), now);
  }
  if (told_facts_ != nullptr && !std::exchange(has_recovered_mig_, true)) finish_mig_change();
}

// ---- leftovers -------------------------------------------------------------------------------

void AgentApp::ask_leftovers(std::vector<PluginDevice> devices, LeftoversDone done) {
  std::set<std::string> gpus;
  for (const PluginDevice& device : devices) gpus.insert(device.gpu_uuid);
  watch_->worker().run<Processes>(
      [gpus = std::move(gpus)](nvml::GpuSource& source) -> Result<Processes> {
        Processes processes;
        for (const std::string& gpu : gpus) {
          JOGAK_TRY(processes[gpu], source.processes(gpu));
        }
        return processes;
      },
      [devices = std::move(devices), done = std::move(done)](const Result<Processes>& processes) {
        if (!processes) return done(std::unexpected(processes.error()));
        std::vector<Leftover> leftovers;
        for (const PluginDevice& device : devices) {
          for (Leftover& leftover : leftovers_on(device, processes->at(device.gpu_uuid))) {
            // One that cannot be read has ended, or is not of this host as far as we can see.
            const auto cgroup =
                read_file(fmt::format("/proc/{}/cgroup", leftover.pid), kCgroupBytesMax);
            if (!cgroup) continue;
            leftover.is_pod = is_pod_cgroup(*cgroup);
            leftovers.push_back(std::move(leftover));
          }
        }
        done(std::move(leftovers));
      });
}

// ---- MIG -------------------------------------------------------------------------------------

// Whoever died in the middle of a change left a journal: the change is finished, or undone, before
// anybody takes half a layout for one that was wanted.
void AgentApp::finish_mig_change() {
  std::error_code error;
  if (options_.mig_journal.empty() || !std::filesystem::exists(options_.mig_journal, error)) return;
  const auto node = model_.snapshot(loop_.now());
  using Reports = std::vector<MigGpuReport>;
  watch_->worker().run<Reports>(
      [path = options_.mig_journal,
       holders = pod_holders(*node->facts, *node->holders)](nvml::GpuSource& source) {
        MigJournalFile store(path);
        return MigManager(source, store).recover(holders);
      },
      [this](const Result<Reports>& reports) {
        if (!reports) {
          log_.error("a change of MIG layouts that was cut short could not be finished",
                     {{"error", reports.error().what}});
          return;
        }
        for (const MigGpuReport& report : *reports) {
          log_.info("a change of MIG layouts that was cut short",
                    {{"gpu", report.uuid},
                     {"state", state_text(report.state)},
                     {"reason", report.reason}});
        }
        if (!reports->empty()) watch_->look_again();
      });
}

}  // namespace jogak::agent
