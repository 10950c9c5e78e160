// SPDX-License-Identifier: Apache-2.0
//
// The part of the agent that deals with the kubelet: the device plugin, who holds what, and
// processes that are still on a device.
#include <sys/stat.h>

#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "agent/run/agent_app.h"
#include "base/file.h"

namespace jogak::agent {

namespace {

// The kubelet tells of a container's devices once all of them are allocated.
constexpr TimeUs kAfterAllocate = 300 * kMsInUs;
constexpr std::int64_t kCgroupBytesMax = 65'536;

// Since the kubelet made its socket, which it does at each start; nothing if there is none.
std::optional<TimeUs> age_of(const std::string& socket) {
  struct stat info = {};
  struct timespec now = {};
  if (::stat(socket.c_str(), &info) != 0 || ::clock_gettime(CLOCK_REALTIME, &now) != 0) return {};
  const auto us = [](const struct timespec& at) {
    return static_cast<TimeUs>(at.tv_sec) * kSecondInUs + at.tv_nsec / 1000;
  };
  const TimeUs age = us(now) - us(info.st_mtim);
  return age < 0 ? std::nullopt : std::optional(age);  // a clock that was set back tells nothing
}

using Processes = std::map<std::string, std::vector<nvml::ProcessFacts>>;  // by GPU

}  // namespace

void AgentApp::on_offer(PluginSnapshotPtr offer) {
  if (plugin_ != nullptr) return plugin_->update(std::move(offer));
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
  plugin_->update(std::move(offer));
}

// ---- who holds what --------------------------------------------------------------------------

void AgentApp::on_allocated() {
  if (pod_holds_ != nullptr) pod_holds_->forget_written();
  if (kubelet_ == nullptr) return;
  // What is under way, or about to be, may be from before. The wait does not begin anew: pods that
  // start all the time would put the question off without end.
  asks_again_ = is_asking_holdings_ || asks_soon_;
  if (asks_soon_) return;
  asks_soon_ = true;
  loop_.cancel(holdings_timer_);
  holdings_timer_ = loop_.after(kAfterAllocate, [this] { ask_holdings(); });
}

void AgentApp::ask_holdings() {
  if (is_asking_holdings_) return;
  is_asking_holdings_ = true;
  asks_soon_ = false;
  kubelet_->list_holdings(
      options_.pod_resources_socket,
      [this](Result<std::vector<Holding>> holdings) { on_holdings(std::move(holdings)); });
}

// An answer that is begun now: one that is under way does not count.
void AgentApp::ask_holdings_anew() {
  drops_answer_ = is_asking_holdings_;
  ask_holdings();
}

void AgentApp::on_holdings(Result<std::vector<Holding>> holdings) {
  is_asking_holdings_ = false;
  if (std::exchange(drops_answer_, false)) return ask_holdings();
  loop_.cancel(holdings_timer_);
  const bool was_answered = holdings.has_value();
  holdings = account_.judge(std::move(holdings), age_of(options_.pod_resources_socket));
  had_holdings_ = had_holdings_ || holdings.has_value();
  if (holdings) past_holders_.note(*holdings);
  const bool is_doubted = was_answered && !holdings;
  asks_soon_ = std::exchange(asks_again_, false) || is_doubted;
  holdings_timer_ = loop_.after(asks_soon_ ? kAfterAllocate : options_.holdings_every,
                                [this] { ask_holdings(); });
  node_->on_holdings(std::move(holdings));
}

// ---- leftovers -------------------------------------------------------------------------------

// A pod that sees every GPU without having been given one stays for good; where nobody can tell
// whose a process is, it may be that of the owner before.
bool AgentApp::is_worth_waiting_for(const Leftover& leftover, const ProcessOwners& owners) const {
  const auto owner = owners.find(leftover.pid);
  return owner == owners.end() || past_holders_.held(leftover.device, owner->second);
}

void AgentApp::ask_leftovers(std::vector<PluginDevice> devices, LeftoversDone done) {
  std::set<std::string> gpus;
  for (const PluginDevice& device : devices) gpus.insert(device.gpu_uuid);
  node_->worker().run<Processes>(
      [gpus = std::move(gpus)](nvml::GpuSource& source) -> Result<Processes> {
        Processes processes;
        for (const std::string& gpu : gpus) {
          JOGAK_TRY(processes[gpu], source.processes(gpu));
        }
        return processes;
      },
      [this, alive = is_alive_, devices = std::move(devices),
       done = std::move(done)](const Result<Processes>& processes) {
        if (!*alive) return;
        if (!processes) return done(std::unexpected(processes.error()));
        const auto node = node_->snapshot();
        std::vector<Leftover> leftovers;
        for (const PluginDevice& device : devices) {
          for (Leftover& leftover : leftovers_on(device, processes->at(device.gpu_uuid))) {
            // One that cannot be read has ended, or is not of this host as far as we can see.
            const auto cgroup =
                read_file(fmt::format("/proc/{}/cgroup", leftover.pid), kCgroupBytesMax);
            if (!cgroup) continue;
            leftover.is_pod =
                is_pod_cgroup(*cgroup) && is_worth_waiting_for(leftover, *node->owners);
            leftovers.push_back(std::move(leftover));
          }
        }
        done(std::move(leftovers));
      });
}

}  // namespace jogak::agent
