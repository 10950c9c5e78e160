// SPDX-License-Identifier: Apache-2.0
//
// `jogak agent run` as a whole: the agent of the node (node_agent.h) between the real kubelet, the
// real API server and an HTTP port.
//
//   kubelet ── DevicePlugin, KubeletClient ──┐
//   API server ── NodeWriter, PodHoldsWriter,│
//                 ClusterWatch ──────────────┼── NodeAgent ── GpuSource (NVML thread)
//   HTTP: /metrics, /livez, /readyz ─────────┘
//
// Each part works without the others; what cannot be had (no kubelet, no API server, no driver) is
// tried again, and the rest goes on.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/exporter/web_guard.h"
#include "agent/labels/node_events.h"
#include "agent/labels/node_writer.h"
#include "agent/mps/control.h"
#include "agent/plugin/device_plugin.h"
#include "agent/plugin/kubelet_client.h"
#include "agent/run/cluster_watch.h"
#include "agent/run/holdings_account.h"
#include "agent/run/node_agent.h"
#include "agent/run/options.h"
#include "agent/run/past_holders.h"
#include "agent/run/pod_holds.h"
#include "base/log.h"
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

  // The labels are written, where that is all it was to do; on the loop.
  std::function<void()> on_done;

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
  // The configuration, where it may change, and all of the GPUs, whatever the intervals: what
  // SIGHUP asks for.
  void read_anew();

  // "" ready; else what is missing.
  std::string not_ready() const;
  // Of the server; 0 without one.
  std::uint16_t port() const;

 private:
  using LeftoversDone = DevicePlugin::LeftoversDone;

  NodePorts ports();
  void add_series();
  void look_for_ready();
  void start_node();

  void watch_cluster();
  void on_node(const Labels& labels, const std::map<std::string, std::string>& annotations);
  bool read_config();
  void end_oneshot();

  void want_mps(std::vector<MpsDaemon> daemons);
  std::string mps_folder() const;
  MpsPorts mps_ports();
  void add_mps_series();
  std::string mps_problem() const;

  void on_offer(PluginSnapshotPtr offer);
  void on_allocated();
  void ask_holdings();
  void ask_holdings_anew();
  void on_holdings(Result<std::vector<Holding>> holdings);
  bool is_worth_waiting_for(const Leftover& leftover, const ProcessOwners& owners) const;
  void ask_leftovers(std::vector<PluginDevice> devices, LeftoversDone done);

  net::HttpHandler handler();
  void on_web_problem(const std::string& problem);

  net::EpollLoop& loop_;
  Log& log_;
  kube::ApiClient* const api_;
  const AgentOptions options_;
  OnFailure on_failure_;
  const TimeUs began_;
  bool is_ready_ = false;
  TimeUs ready_after_ = 0;
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);

  std::unique_ptr<WebGuard> web_guard_;  // null: plain HTTP for everybody
  std::unique_ptr<net::HttpServer> server_;
  std::unique_ptr<DevicePlugin> plugin_;
  std::unique_ptr<KubeletClient> kubelet_;
  std::unique_ptr<NodeWriter> node_writer_;
  std::unique_ptr<NodeEvents> events_;
  std::unique_ptr<PodHoldsWriter> pod_holds_;
  std::unique_ptr<ClusterWatch> cluster_;
  std::optional<std::string> config_label_;
  std::string config_problem_;
  TimerId config_timer_ = 0, start_timer_ = 0;
  bool has_started_ = false;
  TimerId holdings_timer_ = 0;
  bool is_asking_holdings_ = false;
  HoldingsAccount account_;
  bool asks_soon_ = false;     // the timer is that of an allocation
  bool asks_again_ = false;    // soon after the answer under way
  bool drops_answer_ = false;  // the one under way, which is too old
  bool had_holdings_ = false;
  PastHolders past_holders_;
  std::unique_ptr<NodeAgent> node_;
  std::unique_ptr<MpsControl> mps_;  // null: there is nothing to be kept or undone
};

}  // namespace jogak::agent
