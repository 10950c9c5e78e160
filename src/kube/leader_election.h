// SPDX-License-Identifier: Apache-2.0
//
// One of several: holds a Lease (coordination.k8s.io/v1) while it renews it in time. Expiry of
// another's lease is judged by the local clock since the record was last seen to change. Rules and
// defaults: client-go's leaderelection.
//
// Why two never lead at once: one leads from when its successful write was SENT for renew_deadline.
// Another sees that write happen no earlier than it was sent, and waits lease_duration, which is
// longer. Writes name the version they replace, so that a write of long ago that arrives late finds
// the record changed and is refused, or finds that nobody else has taken it: then it only makes the
// others wait longer. Its answer is not listened to any more: each attempt ends before
// valid_until(). A lease that was deleted while somebody held it counts until the time it was last
// seen to have runs out; only who starts just then and has never seen it cannot know.
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
    std::function<void()> on_lead;                        // it holds the lease now
    std::function<void(const std::string& why)> on_lose;  // stop writing at once
    std::function<void(const std::string& holder)> on_new_leader;
    std::function<void(const Error&)> on_error;  // an attempt failed; it goes on
  };
  // Begins at once. `api` outlives it. No event before the call returns, none after destruction
  // (which may happen inside an event); on_lead and on_lose take turns. Errors: Invalid, of the
  // options (retry_period < renew_deadline < lease_duration in whole seconds, an identity).
  static Result<std::unique_ptr<LeaderElection>> make(ApiClient& api, LeaseOptions options,
                                                      Events events);
  ~LeaderElection();
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;

  bool is_leader() const;
  const std::string& holder() const;  // "" while nobody is known
  // Writes are allowed until then: the last renewal that is known to have reached the server, as of
  // when it was sent, and the renew deadline. 0 while it does not lead.
  TimeUs valid_until() const;
  // Gives the lease up, so that another need not wait for its end; it does not lead from then on,
  // and no event follows. Calls `done` once, on the loop, when the server was told or could not be
  // within 5 s; not when it is destroyed before. Stop writing first.
  void release(std::function<void()> done);

 private:
  struct Impl;
  explicit LeaderElection(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace jogak::kube
