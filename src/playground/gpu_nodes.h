// SPDX-License-Identifier: Apache-2.0
//
// The GPUs of all simulated nodes: each node whose annotation names GPUs has a machine and an agent
// of its own (gpu_node.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kubelet/device_host.h"
#include "net/http.h"
#include "playground/gpu_node.h"

namespace jogak::playground {

class GpuNodes : public kubelet::DeviceHost {
 public:
  // `api` writes as the agent.
  GpuNodes(std::unique_ptr<api::Api> api, std::uint64_t seed);
  ~GpuNodes() override;

  kubelet::NodeDevices* see_node(const Doc& node) override;
  void forget_node(const std::string& name) override;

  // A request to a port of a node, by way of the API server. False: nobody listens there.
  bool serve(std::string_view node, int port, net::HttpRequest request,
             std::shared_ptr<net::ResponseWriter> writer);
  std::size_t size() const { return nodes_.size(); }
  // All nodes that are not down have told their devices and are cut as their labels say, or said
  // why not.
  bool is_settled() const;

 private:
  // What the agents log is said by labels, conditions and events, too.
  struct NoLog : LogSink {
    void write(const LogEvent& /*event*/) override {}
  };

  // Nodes with the same GPUs: one of them is looked at, the others are told what it found.
  struct Kind {
    std::string source;  // the node that is looked at; "" none yet
    std::optional<GpuPattern> pattern;
    std::vector<std::string> waiting;
  };

  TimeUs turn_time();
  GpuNode* make_node(const Doc& node, const std::string& gpus);
  void see_again(GpuNode& known, const Doc& node);
  void on_pod(const api::Api::Change& change);
  void tell_asks(const std::string& node);
  void tell_later(const std::string& kind, const std::string& node);
  void choose_source(Kind& kind);
  void on_settled(const std::string& node);

  std::unique_ptr<api::Api> api_;
  NoLog sink_;
  Log log_;
  agent::AgentOptions options_;
  TimeUs turn_time_ = 0;  // 0: not asked in this turn
  std::function<TimeUs()> clock_;
  GpuNodeContext context_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  std::map<std::string, Kind, std::less<>> kinds_;  // by GPUs and configuration
  std::set<std::string, std::less<>> good_gpus_;    // texts that are machines
  std::map<std::string, std::unique_ptr<GpuNode>, std::less<>> nodes_;
  std::map<std::string, std::string, std::less<>> refused_;  // by node: the text that is no machine
  // What pods want of MIG instances: by node, by pod. Of pods, their nodes.
  std::map<std::string, std::map<agent::PodName, agent::MigAsk>, std::less<>> asks_;
  std::map<agent::PodName, std::string> asking_;
  std::shared_ptr<void> following_;  // last: it tells the members above
};

}  // namespace jogak::playground
