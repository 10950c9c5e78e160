// SPDX-License-Identifier: Apache-2.0
//
// A whole cluster in one process: API server, controllers, simulated kubelets and the scheduler, on
// one loop, real or virtual.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apiserver/controllers/controllers.h"
#include "apiserver/kubelet/kubelets.h"
#include "apiserver/server/server.h"
#include "base/doc.h"
#include "base/loop.h"
#include "base/result.h"
#include "live/scheduler_driver.h"

namespace jogak::playground {

struct PlaygroundOptions {
  api::ServerOptions server;
  controllers::ControllerOptions controllers;
  kubelet::KubeletOptions kubelets;
  live::DriverOptions scheduler;
  bool has_controllers = true, has_kubelets = true, has_scheduler = true;
  // Simulated nodes run the node agent, where the annotation jogak.io/simulated-gpus names GPUs.
  // Without kubelets there is none.
  bool has_agents = true;
};

class Playground {
 public:
  static Result<std::unique_ptr<Playground>> make(Loop& loop, PlaygroundOptions options);
  ~Playground();

  api::Server& server();
  // A client by the name "jogak".
  api::Api& api();
  // Every simulated node has said what it has.
  bool is_settled() const;
  // null when it was switched off.
  const live::SchedulerDriver* scheduler() const;

  // Creates objects in an order that works (namespaces and classes first, pods last), whatever
  // order they come in. What a server owns (uid, resourceVersion, managedFields) is left out;
  // status is kept; owners are found again by their old uid or dropped. An object that is there
  // already is left alone. Errors name the object.
  Result<std::size_t> load(std::vector<Doc> objects);

 private:
  struct Impl;
  explicit Playground(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace jogak::playground
