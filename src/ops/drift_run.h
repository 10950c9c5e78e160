// SPDX-License-Identifier: Apache-2.0
//
// One comparison of memory with the API server (live/drift.h): lists nodes and pods in pages, waits
// for what is under way to arrive, compares. The driver goes on meanwhile.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "base/result.h"
#include "core/model/cluster.h"
#include "kube/api_client.h"
#include "live/drift.h"

namespace jogak::ops {

struct DriftRunOptions {
  std::size_t page_size = 500;
  TimeUs settle_time = 5 * kSecondInUs;  // from the last page to the comparison
  live::DriftCheck::IsAssumed is_assumed = {};
};

class DriftRun {
 public:
  // Begins at once. `done` is called once, on the loop, never before the constructor returns, and
  // may destroy this. Errors are those of the server, with what was asked. `api` and `memory`
  // outlive it.
  using Done = std::function<void(Result<live::DriftReport>)>;
  DriftRun(kube::ApiClient& api, const core::Cluster& memory, DriftRunOptions options, Done done);
  // Nothing follows.
  ~DriftRun();
  DriftRun(const DriftRun&) = delete;
  DriftRun& operator=(const DriftRun&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace jogak::ops
