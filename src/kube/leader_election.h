// SPDX-License-Identifier: Apache-2.0
//
// One of several: holds a Lease (coordination.k8s.io/v1) while it renews it in time. Expiry of
// another's lease is judged by the local clock since the record was last seen to change. Rules and
// defaults: client-go's leaderelection.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/loop.h"
#include "kube/api_client.h"

namespace jogak::kube {

struct LeaseOptions {
  std::string ns = "kube-system";
  std::string name = "jogak-scheduler";
  std::string identity;  // of this process, unlike any other's: host name and a random part
  TimeUs lease_duration = 15 * kSecondInUs;
  TimeUs renew_deadline = 10 * kSecondInUs;
  TimeUs retry_period = 2 * kSecondInUs;
  std::uint64_t seed = 1;  // of jitter
};

class LeaderElection {
 public:
  struct Events {
    std::function<void()> on_lead;                         // it holds the lease now
    std::function<void(const std::string& why)> on_lose;   // stop writing at once
    std::function<void(const std::string& holder)> on_new_leader;
    std::function<void(const Error&)> on_error;            // an attempt failed; it goes on
  };
  // Begins at once; Errors are of the options (renew_deadline < lease_duration and so on).
  static Result<std::unique_ptr<LeaderElection>> make(ApiClient& api, LeaseOptions options,
                                                      Events events);
  ~LeaderElection();

  bool is_leader() const;
  const std::string& holder() const;  // "" while nobody is known
  // Writes are allowed until then: the last renewal that is known to have reached the server, as of
  // when it was sent, and the renew deadline.
  TimeUs valid_until() const;
  // Gives the lease up, so that another need not wait for its end. Calls `done` when it was told to
  // the server or could not be.
  void release(std::function<void()> done);

 private:
  struct Impl;
  explicit LeaderElection(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace jogak::kube
