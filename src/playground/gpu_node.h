// SPDX-License-Identifier: Apache-2.0
//
// One simulated GPU node: a simulated machine, the real agent on it, and what both mean for the
// simulated kubelet and the Node object. Pods that run put processes on their GPUs.
//
//   Node object ── annotations, labels ──> GpuNode ── faults, processes ──> nvml::sim::Machine
//        ^                                    |                                   |
//        └── labels, annotations, conditions ─┴── wish ── agent::NodeAgent <── NVML
//   Kubelets <── offer, prefer, allocate ─────────────────────┘
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/mig/config_label.h"
#include "agent/run/mig_ask.h"
#include "agent/run/node_agent.h"
#include "apiserver/kubelet/device_host.h"
#include "apiserver/registry/api.h"
#include "base/log.h"
#include "net/http.h"
#include "nvml/sim/machine.h"

namespace jogak::playground {

// On a node: faults of its GPUs that stand, "0=xid:79,1=lost" (docs/nvml-sim.md has the kinds).
// Whoever takes one out of the line, or the line away, heals.
inline constexpr std::string_view kGpuFault = "jogak.io/gpu-fault";
// On a pod: how busy it keeps each GPU that it holds, in percent.
inline constexpr std::string_view kGpuUtil = "jogak.io/gpu-util";

// What the agent of one node found, for others with the same GPUs: only their UUIDs differ.
struct GpuPattern {
  std::vector<std::string> uuids;
  agent::NodeWish wish;
  agent::NodePatches patches;  // of a node that no agent wrote on yet
  std::vector<kubelet::HostResource> resources;
};

// What nodes share. All of it outlives them.
struct GpuNodeContext {
  api::Api& api;  // writes as the agent
  Log& log;
  const agent::AgentOptions& options;
  // The loop's time at the beginning of this turn: a machine asks for it many times over.
  const std::function<TimeUs()>& turn_time;
  std::uint64_t seed = 1;
  // The devices of the node changed.
  std::function<void(const std::string& node)> on_change;
  // It told its devices for the first time.
  std::function<void(const std::string& node)> on_settled;
};

class GpuNode : public kubelet::NodeDevices {
 public:
  // `gpus` as read_gpus() takes it. Asleep: without a machine and an agent, until something happens
  // to it. Hundreds of nodes at which nothing ever happens are to cost little.
  GpuNode(const GpuNodeContext& context, std::string name, std::string gpus,
          agent::PluginConfig config);
  ~GpuNode() override;

  enum class Mig : std::uint8_t { Off, On };
  // A node that comes with a wish for MIG has its mode on already, as after its first reboot.
  static Mig first_mig(const Doc& node);
  // Wakes it, with its boards in that MIG mode.
  void start(Mig mig);
  // Asleep, with what another found.
  void adopt(const GpuPattern& pattern);
  // What the agent found. It is awake and settled.
  GpuPattern pattern() const;
  bool is_awake() const { return agent_ != nullptr; }
  // Somebody pulled its plug: the machine stays as it is, and nobody looks after it.
  bool is_down() const { return is_down_; }
  // Nothing has happened to it.
  bool is_as_new() const;
  // It is as new.
  void sleep();

  // The Node object as it is now.
  void see(const Doc& node);
  // The MIG instances that the pods on it want, of all that have not ended.
  void set_asks(std::vector<agent::MigAsk> asks);
  // What the agent's port would answer: /metrics, /health and so on, from a sample taken now. It is
  // not down.
  void serve(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer);

  // It told its devices, and no change of their layout is under way.
  bool is_settled() const;

  // Pods that ran before this process did find the instances that they hold.
  bool is_ready() const override { return has_settled_ && (!is_awake() || offer_ != nullptr); }
  bool wake() override;
  bool manages(std::string_view resource) const override;
  const std::vector<kubelet::HostResource>& resources() const override { return resources_; }
  std::vector<std::string> prefer(const std::string& resource,
                                  const std::vector<std::string>& available,
                                  const std::vector<std::string>& must_include, int size) override;
  Result<std::map<std::string, std::string>> allocate(const std::string& resource,
                                                      const std::vector<std::string>& ids) override;
  void set_pod(const kubelet::DevicePod& pod) override;
  void forget_pod(const std::string& uid) override;

 private:
  struct Pod {
    kubelet::DevicePod pod;
    std::vector<std::int64_t> pids;
    std::string told_holds;  // as the pod's annotation says
  };

  void start_agent();
  void restart_agent();
  void fall_silent();
  void come_back(const Doc& node);
  void reboot();
  void settle_soon();
  void on_offer(agent::PluginSnapshotPtr offer);
  void on_wish(const agent::NodeWish& wish);
  void write(const agent::NodeWish& wish);
  void write(const agent::NodePatches& patches);
  void on_holds(const std::map<agent::PodName, std::string>& holds);
  agent::ProcessOwners owners(const std::vector<std::int64_t>& pids) const;
  void apply_faults();
  void keep_looking();
  void look_at_config(const Doc& node);
  void look_at_mig(const Doc& node);
  void tell_labels();
  void tell_holdings_soon();
  void tell_holdings();
  void tell_holdings_now();
  void start_processes(Pod& pod);
  void end_processes(Pod& pod);
  void warn(std::string_view reason, std::string_view message);
  void tell(const agent::NodeNote& note);
  void warn_soon(std::string_view reason, const std::string& message);
  template <class Fn>
  auto guarded(Fn fn);

  const GpuNodeContext& context_;
  const std::string name_;
  const std::string gpus_;
  agent::PluginConfig config_;
  std::string config_text_;       // as the annotation says
  bool is_other_config_ = false;  // than at first
  bool is_down_ = false;
  std::shared_ptr<nvml::sim::Machine> machine_;
  agent::PluginSnapshotPtr offer_;
  std::vector<kubelet::HostResource> resources_;
  bool has_settled_ = false;                       // once
  agent::NodeWish wish_;                           // the last
  std::map<std::string, Pod, std::less<>> pods_;   // by uid
  std::map<std::int64_t, agent::Holder> holders_;  // by pid
  std::int64_t next_pid_ = 4000;
  std::shared_ptr<agent::MigJournalStore> mig_journal_;
  agent::MigLabels mig_labels_;
  bool was_written_ = false;  // by an agent, at any time: its annotations say so
  bool is_uncut_ = false;     // the machine was made, and the label's layout not yet
  std::vector<agent::MigAsk> asks_;
  TimerId reboot_timer_ = 0;
  std::string faults_;  // as the annotation says
  bool has_faults_ = false;
  TimeUs looks_until_ = 0;
  TimerId look_timer_ = 0;
  bool tells_holdings_ = false;
  bool has_ended_some_ = false;                // processes, since the agent was told
  std::unique_ptr<agent::Exporter> exporter_;  // made at the first scrape
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<agent::NodeAgent> agent_;  // last: it tells the members above
};

}  // namespace jogak::playground
