// SPDX-License-Identifier: Apache-2.0
//
// `jogak agent run` as a whole: one loop owns the model of the node, everything else reads its
// snapshots or hands it facts.
//
//   GpuWatch (NVML thread) ──┐                   ┌─> DevicePlugin ── kubelet
//   PodResources ────────────┼─> NodeModel ──────┼─> Exporter ────── /metrics
//   /proc, log folders ──────┘   (snapshots)     ├─> NodeWriter ──── labels, conditions
//                                                └─> PodHoldsWriter, features file, CDI files
//
// Each part works without the others; what cannot be had (no kubelet, no API server, no driver) is
// tried again, and the rest goes on.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "agent/exporter/exporter.h"
#include "agent/labels/node_writer.h"
#include "agent/model/node_model.h"
#include "agent/model/process_owners.h"
#include "agent/plugin/annotations.h"
#include "agent/plugin/cdi.h"
#include "agent/plugin/device_plugin.h"
#include "agent/run/gpu_watch.h"
#include "agent/run/options.h"
#include "agent/run/pod_holds.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/result.h"
#include "kube/api_client.h"
#include "net/epoll_loop.h"
#include "net/http_server.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

class AgentApp {
 public:
  // The agent cannot go on; told once, on the loop.
  using OnFailure = std::function<void(const Error& error)>;

  // All of it on the loop's thread. `api` may be null: nothing is told to an API server. Loop, log
  // and api outlive the app.
  AgentApp(net::EpollLoop& loop, Log& log, std::unique_ptr<nvml::GpuSource> source,
           kube::ApiClient* api, AgentOptions options, OnFailure on_failure);
  // Ends everything cleanly: sockets are removed, calls end.
  ~AgentApp();
  AgentApp(const AgentApp&) = delete;
  AgentApp& operator=(const AgentApp&) = delete;

  // Conflict or Invalid: the address cannot be listened on.
  Result<void> start();

  // "" ready; else what is missing.
  std::string not_ready() const;
  // Of the server; 0 without one.
  std::uint16_t port() const;
  const NodeModel& model() const { return model_; }

 private:
  using LeftoversDone = DevicePlugin::LeftoversDone;

  void add_series();
  void on_news(GpuWatch::News news);
  void publish();
  void update_plugin(const NodeSnapshot& node);
  void update_cdi(const nvml::NodeFacts& facts);
  void update_node(const NodeSnapshot& node);
  void write_features(const NodeSnapshot& node);
  void find_host(const nvml::NodeFacts& facts);
  void look_for_ready();
  void start_plugin();
  void finish_mig_change();

  void on_allocated();
  void ask_holdings();
  void on_holdings(Result<std::vector<Holding>> holdings);
  void ask_leftovers(std::vector<PluginDevice> devices, LeftoversDone done);

  net::HttpHandler handler();

  net::EpollLoop& loop_;
  Log& log_;
  kube::ApiClient* const api_;
  const AgentOptions options_;
  const OnFailure on_failure_;
  const TimeUs began_;
  bool is_ready_ = false;
  TimeUs ready_after_ = 0;
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);

  Registry registry_;
  NodeModel model_;
  ProcessOwnerFinder owners_;
  LabelOptions label_options_;

  // Of the last snapshot that the plugin and the node were told of.
  std::shared_ptr<const nvml::NodeFacts> told_facts_;
  UnhealthyReasons told_unhealthy_;
  HostFiles host_;
  std::set<std::string> told_problems_;  // of the inventory and the labels, for the log
  std::string told_cdi_problem_;
  bool had_pids_ = false;
  bool has_recovered_mig_ = false;

  std::unique_ptr<Exporter> exporter_;
  std::unique_ptr<net::HttpServer> server_;
  std::unique_ptr<DevicePlugin> plugin_;
  std::unique_ptr<KubeletClient> kubelet_;
  std::unique_ptr<NodeWriter> node_writer_;
  std::unique_ptr<PodHoldsWriter> pod_holds_;
  TimerId holdings_timer_ = 0;
  bool is_asking_holdings_ = false;
  bool asks_again_ = false;  // as soon as the answer under way is there
  std::string holdings_problem_;
  std::unique_ptr<GpuWatch> watch_;
};

}  // namespace jogak::agent
