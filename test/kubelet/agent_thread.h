// SPDX-License-Identifier: Apache-2.0
//
// A device plugin on a loop of its own thread, as it runs in the agent; and the node it describes,
// which tests change. Calls wait until the loop has done them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/plugin/device_plugin.h"
#include "base/log.h"
#include "net/epoll_loop.h"
#include "nvml/gpu_source.h"

namespace jogak::kubelet {

struct NodeState {
  nvml::NodeFacts facts = {};
  agent::PluginConfig config = {};
  agent::HostFiles host = {};
  agent::UnhealthyReasons unhealthy = {};
  std::vector<agent::Leftover> leftovers = {};  // whatever device is asked about
};

class AgentThread {
 public:
  AgentThread(const std::string& kubelet_socket, NodeState state, TimeUs leftover_wait = 5'000'000);
  ~AgentThread();
  AgentThread(const AgentThread&) = delete;
  AgentThread& operator=(const AgentThread&) = delete;

  // Changes the node, and offers what it is then.
  void change(const std::function<void(NodeState& state)>& edit);
  std::vector<agent::DevicePlugin::ResourceStatus> status();
  bool is_ready();
  // How often it was asked for leftovers.
  int leftover_asks();

 private:
  void on_loop(const std::function<void()>& task);

  net::EpollLoop loop_;
  CapturedLog sink_;
  Log log_;
  NodeState state_;
  int asks_ = 0;
  std::unique_ptr<agent::DevicePlugin> plugin_;
  std::thread thread_;
};

}  // namespace jogak::kubelet
