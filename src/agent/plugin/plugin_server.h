// SPDX-License-Identifier: Apache-2.0
//
// The gRPC service of one resource on its own unix socket. gRPC's threads answer from an immutable
// snapshot that the owner publishes, so no answer waits for another or for the owner; only
// PreStartContainer asks the owner, and waits for its reply without holding a thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/plugin/allocate.h"
#include "base/result.h"

namespace jogak::agent {

class PluginServer {
 public:
  using Done = std::function<void(Result<void>)>;
  // Called on gRPC's threads, never after the destructor has returned.
  struct Events {
    std::function<void()> on_watch_start, on_watch_end;
    // A container is about to start with these ids. `done` is called once, on the thread that owns
    // the server; it may outlive the server. Null: every start is fine.
    std::function<void(std::vector<std::string> ids, Done done)> pre_start;
    std::function<void(std::string_view call, std::string problem)> on_problem;
    // Each Allocate, before it is looked at and when its answer is ready to be sent.
    std::function<void(std::string_view step)> on_step;
  };

  // Listens when it returns. Unavailable: the socket could not be made. Invalid: its path is longer
  // than a unix socket's can be.
  static Result<std::unique_ptr<PluginServer>> start(const std::string& socket_path,
                                                     const std::string& resource,
                                                     PluginSnapshotPtr snapshot, Events events);
  // Ends every call and removes the socket; waits until gRPC's threads are out.
  ~PluginServer();

  // Any thread. Watchers hear of it where the list of this resource changed.
  void publish(PluginSnapshotPtr snapshot);
  // What Register says with the resource.
  bool requires_pre_start() const;

 private:
  struct Impl;
  explicit PluginServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::agent
