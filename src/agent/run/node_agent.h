// SPDX-License-Identifier: Apache-2.0
//
// The agent of one node without its surroundings: what it does is a function of what the driver,
// the kubelet and the API server tell it, so it runs on a real loop and under virtual time, once
// per process or a few hundred times.
//
//   GpuSource ── GpuWatch ──┐                  ┌─> offer   what the kubelet may hand out
//   on_holdings() ──────────┼─> NodeModel ─────┼─> wish    labels, annotations, conditions
//   HostView ───────────────┘   (snapshots)    ├─> holds   which pod holds which GPUs
//   on_node(), on_asks() ── MigWork ────^      └─> exporter(): /metrics
//
// AgentApp (agent_app.h) puts it between the real kubelet, the real API server and an HTTP port.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/exporter/exporter.h"
#include "agent/health/fault_notes.h"
#include "agent/labels/feature_labels.h"
#include "agent/labels/node_patch.h"
#include "agent/model/node_model.h"
#include "agent/mps/plan.h"
#include "agent/plugin/allocate.h"
#include "agent/plugin/annotations.h"
#include "agent/plugin/inventory.h"
#include "agent/run/gpu_watch.h"
#include "agent/run/host_view.h"
#include "agent/run/mig_work.h"
#include "agent/run/options.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

// What the agent tells. Each may be null; called on the loop, never within the constructor.
struct NodePorts {
  // Only when the offer changed. What a container is given is in it: allocate(), prefer().
  std::function<void(PluginSnapshotPtr offer)> offer = nullptr;
  // The whole of it, whenever it may have changed.
  std::function<void(NodeWish wish)> wish = nullptr;
  // All pods that hold whole GPUs, at each answer of the kubelet's.
  std::function<void(std::map<PodName, std::string> holds)> holds = nullptr;
  // on_holdings() is to follow, with an answer that the kubelet begins now. Null: nobody can be
  // asked, and what pods hold is not known beyond what on_holdings() says.
  std::function<void()> ask_holdings = nullptr;
  // The MPS control daemons that shares need, whenever they may be others; on_mps() is to follow.
  // Null: nobody knows of daemons, and shares are offered without.
  std::function<void(std::vector<MpsDaemon> daemons)> want_mps = nullptr;
  // What people should be told of: faults of GPUs, what became of a MIG configuration.
  std::function<void(NodeNote note)> note = nullptr;
  // The agent cannot go on. Told once.
  std::function<void(const Error& error)> failure = nullptr;
};

class NodeAgent {
 public:
  // Loop and log outlive it.
  NodeAgent(Loop& loop, Log& log, std::unique_ptr<nvml::GpuSource> source, AgentOptions options,
            HostView host, NodePorts ports);
  // Waits for the NVML thread, if there is one. Nothing is told after it.
  ~NodeAgent();
  NodeAgent(const NodeAgent&) = delete;
  NodeAgent& operator=(const NodeAgent&) = delete;

  void start();
  // Facts, events and a sample of each GPU, whatever the intervals; `done` when all was told.
  void look(std::function<void()> done = nullptr);

  // What the kubelet says of its pods, or that it cannot be asked.
  void on_holdings(Result<std::vector<Holding>> holdings);
  // The labels and annotations of the Node as they are now, whoever wrote them.
  void on_node(const Labels& labels, const std::map<std::string, std::string>& annotations);
  // The MIG instances that the pods of this node want, of all that have not ended.
  void on_asks(std::vector<MigAsk> asks) { mig_->on_asks(std::move(asks)); }
  // All pods of this node; only for the labels of series (RenderOptions).
  void on_pods(PodTable pods) { model_.on_pods(std::move(pods)); }
  // Of the daemons that were asked by now, by resource: "" is ready, else why not. Their GPUs are
  // offered as unhealthy until they are; before each was asked once, nothing is offered.
  void on_mps(std::map<std::string, std::string> problems);
  // From now on instead of options().plugin.
  void set_config(PluginConfig config);

  // The GPUs were listed once, and what they are was told.
  bool has_facts() const { return told_facts_ != nullptr; }
  std::size_t gpus() const { return told_facts_ == nullptr ? 0 : told_facts_->gpus.size(); }
  std::shared_ptr<const NodeSnapshot> snapshot() { return model_.snapshot(loop_.now()); }
  // The last that was told; null before.
  const PluginSnapshotPtr& offer() const { return offer_; }
  // Null where options.listen is off. Its page is of the last news.
  Exporter* exporter() { return exporter_.get(); }
  // For series beyond those of the GPUs; what is added must live as long as the agent.
  Registry& registry() { return registry_; }
  nvml::Worker& worker() { return watch_->worker(); }
  const AgentOptions& options() const { return options_; }
  const MigWork& mig() const { return *mig_; }

 private:
  void on_news(GpuWatch::News news);
  void on_counters(const Result<Counters>& counters);
  void publish(bool are_facts_read);
  void tell_faults(const NodeSnapshot& node);
  bool find_host(const nvml::NodeFacts& facts);  // whether the files are others
  void update_cdi(const nvml::NodeFacts& facts);
  void add_without_cdi(const nvml::NodeFacts& facts, UnhealthyReasons& unhealthy) const;
  void retry_files();
  void update_mps(const std::shared_ptr<const nvml::NodeFacts>& facts);
  bool awaits_mps() const;
  void withhold_shares(UnhealthyReasons& unhealthy) const;
  void update_offer(const NodeSnapshot& node);
  void update_wish(const NodeSnapshot& node, bool has_changed);
  void write_features(const NodeSnapshot& node);
  MigWorkPorts mig_ports();

  Loop& loop_;
  Log& log_;
  AgentOptions options_;
  const HostView host_view_;
  const NodePorts ports_;
  bool has_failed_ = false;

  Registry registry_;
  NodeModel model_;
  LabelOptions label_options_;

  // Of the last snapshot that was told.
  std::shared_ptr<const nvml::NodeFacts> told_facts_;
  UnhealthyReasons told_unhealthy_;
  std::uint64_t told_health_ = 0;
  FaultNotes fault_notes_;
  std::uint64_t noted_health_ = 0;
  PluginSnapshotPtr offer_;
  HostFiles host_;
  std::set<std::string> told_problems_;         // of the inventory and the labels, for the log
  std::string cdi_problem_, features_problem_;  // "" the files are as they should be
  std::string features_file_;                   // that was written
  std::set<std::string> in_cdi_;                // UUIDs that the CDI files name
  TimerId files_timer_ = 0;
  std::string holdings_problem_;
  std::optional<MigWork::Told> told_mig_;
  std::shared_ptr<const nvml::NodeFacts> mps_facts_;  // that mps_daemons_ is made from
  std::vector<MpsDaemon> mps_daemons_;
  bool was_mps_wanted_ = false;
  std::map<std::string, std::string> mps_problems_;
  bool had_facts_ = false, had_holdings_ = false;
  bool had_pids_ = false;

  std::unique_ptr<Exporter> exporter_;
  std::unique_ptr<GpuWatch> watch_;  // it tells the members above
  std::unique_ptr<MigWork> mig_;
};

}  // namespace jogak::agent
