// SPDX-License-Identifier: Apache-2.0
//
// What is asked before anything else: is this a Kubernetes API server, does it accept us, may we do
// what we will have to? What will not mend by itself ends the start with one line and the cure;
// what may is tried again with a back-off.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "kube/api_client.h"

namespace jogak::ops {

struct PreflightOptions {
  std::string server;           // as messages name it: "10.0.0.1:6443"
  std::string lease_namespace;  // "": no lease is needed
  std::string lease_name = {};
  // Why the last answer was a 401, when somebody knows better than the answer; may be empty.
  std::function<std::string()> refusal = {};
  TimeUs first_wait = kSecondInUs;
  TimeUs wait_max = 30 * kSecondInUs;
};

class Preflight {
 public:
  struct Events {
    std::function<void(const std::string& version)> on_passed;  // "v1.36.3"; the last event
    std::function<void(const Error&)> on_failed;                // for good; the last event
    std::function<void(const Error&, TimeUs wait)> on_retry;    // it goes on after that time
  };
  // Begins at once; no event before the constructor returns, none after destruction (which may
  // happen inside one). `api` outlives it.
  Preflight(kube::ApiClient& api, PreflightOptions options, Events events);
  ~Preflight();
  Preflight(const Preflight&) = delete;
  Preflight& operator=(const Preflight&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace jogak::ops
