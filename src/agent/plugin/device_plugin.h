// SPDX-License-Identifier: Apache-2.0
//
// The device plugin of a node: a server for each resource, registered with the kubelet and kept so.
//
//   update(snapshot) -> for each resource -> PluginServer  <- kubelet: ListAndWatch, Allocate, ...
//                                        `-> Register      -> kubelet.sock
//
//   a resource:  Serving -> Registering -> Registered
//                   ^            | refused, nobody there: again, soon
//                   `------------+-- our socket vanished, the kubelet's was made anew, or the
//                                    kubelet stopped watching (if it does not come: Serving, anew)
//
// A resource that once was offered stays served with an empty list: the node then shows 0 of it.
// Every server listens on a name of its own, so that two agents (an update that overlaps) do not
// take each other's socket. All on the loop's thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/plugin/allocate.h"
#include "agent/plugin/kubelet_client.h"
#include "agent/plugin/kubelet_watch.h"
#include "agent/plugin/leftover.h"
#include "agent/plugin/plugin_server.h"
#include "base/log.h"
#include "net/epoll_loop.h"

namespace jogak::agent {

struct DevicePluginOptions {
  // The kubelet's socket; ours go into its folder, also when nothing is registered.
  std::string kubelet_socket = "/var/lib/kubelet/device-plugins/kubelet.sock";
  bool registers = true;
  // How long a container's start waits for a process of an earlier owner to end; the kubelet gives
  // up after 30 s.
  TimeUs leftover_wait = 15 * kSecondInUs;
  TimeUs leftover_ask_every = 100 * kMsInUs;
  // What is about to happen ("serve", "register", "allocate", "allocated"), on whatever thread it
  // happens: tests end the process there.
  std::function<void(std::string_view step)> on_step = nullptr;
};

class DevicePlugin {
 public:
  // Answers (on the loop) which processes are on these devices. An error, or null in its place,
  // means that nobody can tell: the container then starts.
  using LeftoversDone = std::function<void(Result<std::vector<Leftover>>)>;
  using AskLeftovers = std::function<void(std::vector<PluginDevice> devices, LeftoversDone done)>;

  DevicePlugin(net::EpollLoop& loop, Log& log, DevicePluginOptions options,
               AskLeftovers ask_leftovers = nullptr);
  ~DevicePlugin();
  DevicePlugin(const DevicePlugin&) = delete;
  DevicePlugin& operator=(const DevicePlugin&) = delete;

  // What is offered from now on. Cheap where nothing changed.
  void update(PluginSnapshotPtr snapshot);

  struct ResourceStatus {
    std::string name;
    std::string socket;
    bool is_registered = false;
    bool is_watched = false;  // the kubelet hears of changes
    std::size_t devices = 0, healthy = 0;
    std::string problem;  // "" none; why it is not registered
    std::uint64_t registrations = 0;
  };
  std::vector<ResourceStatus> status() const;  // by name
  // All resources are registered and watched.
  bool is_ready() const;

 private:
  struct Served;
  struct Start;  // of a container, waiting for leftovers to end

  bool asks_before_start(const std::string& name) const;
  void serve(Served& served);
  void register_resource(Served& served);
  void register_later(Served& served);
  void on_registered(Served& served, const Result<void>& result);
  void on_watch(const std::string& resource, std::uint64_t server, bool is_start);
  void on_folder_change(KubeletWatch::Change change);
  void remove_old_sockets() const;
  void pre_start(const std::string& resource, std::vector<std::string> ids,
                 PluginServer::Done done);
  void ask_leftovers(const std::shared_ptr<Start>& start);
  void on_leftovers(const std::shared_ptr<Start>& start,
                    const Result<std::vector<Leftover>>& leftovers);

  net::EpollLoop& loop_;
  Log& log_;
  const DevicePluginOptions options_;
  const AskLeftovers ask_leftovers_;
  std::string folder_, kubelet_name_;
  std::shared_ptr<bool> is_alive_;  // what gRPC's threads have posted may come after us
  PluginSnapshotPtr snapshot_;
  std::uint64_t servers_ = 0;
  std::unique_ptr<KubeletClient> client_;
  std::map<std::string, std::unique_ptr<Served>, std::less<>> served_;
  std::unique_ptr<KubeletWatch> watch_;
};

}  // namespace jogak::agent
