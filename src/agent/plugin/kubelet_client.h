// SPDX-License-Identifier: Apache-2.0
//
// What the agent asks the kubelet: to take a resource (Register), and which container holds what
// (PodResources List). Each call dials anew, for the kubelet may have been restarted behind a
// socket of the same name. Answers come on the loop, unless the client is gone by then.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/model/holders.h"
#include "base/loop.h"
#include "base/result.h"

namespace jogak::agent {

struct RegisterCall {
  std::string kubelet_socket;
  std::string endpoint;  // name of our socket in the kubelet's folder
  std::string resource;
  bool requires_pre_start = false;
};

class KubeletClient {
 public:
  // The loop must outlive the client.
  explicit KubeletClient(Loop& loop);
  ~KubeletClient();

  // Errors: Unavailable (nobody listens, or the kubelet is not ready), Invalid (it refuses).
  using RegisterDone = std::function<void(Result<void>)>;
  void register_resource(const RegisterCall& call, RegisterDone done);

  // All devices of all containers, merged: each (container, resource, id) once, sorted. Errors:
  // Unavailable, and NotFound where this kubelet does not serve the API. The connection is kept for
  // the next time.
  using HoldingsDone = std::function<void(Result<std::vector<Holding>>)>;
  void list_holdings(const std::string& pod_resources_socket, HoldingsDone done);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// The answer of List as bytes of protobuf, read: the pure part of list_holdings(). Invalid: they
// are not such an answer.
Result<std::vector<Holding>> read_holdings(std::string_view list_response);

}  // namespace jogak::agent
