// SPDX-License-Identifier: Apache-2.0
// All of the plugin's life is on the loop's thread, its end too.
#include "test/kubelet/agent_thread.h"

#include <future>
#include <utility>

namespace jogak::kubelet {

AgentThread::AgentThread(const std::string& kubelet_socket, NodeState state, TimeUs leftover_wait)
    : log_(loop_, sink_), state_(std::move(state)) {
  thread_ = std::thread([this] { loop_.run(); });
  on_loop([&] {
    plugin_ = std::make_unique<agent::DevicePlugin>(
        loop_, log_,
        agent::DevicePluginOptions{.kubelet_socket = kubelet_socket,
                                   .registers = true,
                                   .leftover_wait = leftover_wait,
                                   .leftover_ask_every = 10 * kMsInUs},
        [this](const std::vector<agent::PluginDevice>&, const auto& done) {
          ++asks_;
          done(state_.leftovers);
        });
  });
  change([](NodeState&) {});
}

AgentThread::~AgentThread() {
  on_loop([this] { plugin_.reset(); });
  loop_.stop();
  thread_.join();
}

void AgentThread::on_loop(const std::function<void()>& task) {
  std::promise<void> done;
  loop_.post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

void AgentThread::change(const std::function<void(NodeState& state)>& edit) {
  on_loop([&] {
    edit(state_);
    plugin_->update(
        agent::make_snapshot(state_.facts, state_.config, state_.host, state_.unhealthy));
  });
}

std::vector<agent::DevicePlugin::ResourceStatus> AgentThread::status() {
  std::vector<agent::DevicePlugin::ResourceStatus> result;
  on_loop([&] { result = plugin_->status(); });
  return result;
}

bool AgentThread::is_ready() {
  bool result = false;
  on_loop([&] { result = plugin_->is_ready(); });
  return result;
}

int AgentThread::leftover_asks() {
  int result = 0;
  on_loop([&] { result = asks_; });
  return result;
}

}  // namespace jogak::kubelet
