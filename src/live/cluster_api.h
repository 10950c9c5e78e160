// SPDX-License-Identifier: Apache-2.0
//
// What the live driver needs of a cluster: objects as JSON that change, and a few writes. Behind it
// is an API server over HTTP (live/kube_cluster.h), or one in the same process; the driver cannot
// tell.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/loop.h"
#include "base/result.h"

namespace jogak::live {

struct PodRef {
  std::string ns, name, uid;
};

struct Binding {
  PodRef pod;
  std::string node;
  // Value of the annotation jogak.io/gpu-holds, "" for none: which devices the pod was given.
  std::string gpu_holds;
};

// A claim that waits for its first consumer: the node it is to be served on, or the volume.
struct ClaimPlan {
  std::string ns, name, uid;  // of the claim
  std::string node;
  std::string volume;  // "" : to be provisioned for the node
  friend bool operator==(const ClaimPlan&, const ClaimPlan&) = default;
};

// An Event about a pod, as users see it in `kubectl describe pod`.
struct PodNote {
  PodRef pod;
  std::string type;    // Normal or Warning
  std::string reason;  // Scheduled, FailedScheduling, Preempted
  std::string action;  // Binding, Scheduling, Preempting
  std::string message;
  std::string reporter;  // the scheduler name that the pod asked for
  PodRef related = {};   // of Preempted: for whom
};

class ClusterApi {
 public:
  virtual ~ClusterApi() = default;

  virtual Loop& loop() = 0;

  struct ObjectChange {
    bool is_deleted = false;
    std::string_view ns, name;
    std::string_view json;  // whole object; when deleted its last state, or empty
  };
  struct Follower {
    std::function<void(const ObjectChange&)> on_change;
    std::function<void()> on_synced;  // once: all that was there at the start has been told
  };
  // Every object of a resource ("pods", "poddisruptionbudgets.policy"), then each change, in order,
  // on the loop; until the returned handle is destroyed.
  virtual std::shared_ptr<void> follow(std::string_view resource, Follower follower) = 0;

  // The outcome of a write, on the loop, possibly before the call returns. Errors: NotFound (the
  // pod is gone), Conflict (it is bound, changed or another one), Unavailable (it did not happen;
  // try again later), Timeout (it may have happened), Invalid (it will never work: not permitted).
  using Done = std::function<void(Result<void>)>;
  virtual void bind(const Binding& binding, Done done) = 0;
  // PodScheduled=False with reason and message; nominated node: nullptr leaves it, "" clears it.
  struct Refusal {
    PodRef pod;
    std::string reason = {}, message = {};
    const std::string* nominated_node = nullptr;
    bool has_condition = true;  // false: the nomination alone is written
    bool is_update = false;     // PodScheduled is False already
  };
  virtual void refuse(const Refusal& refusal, Done done) = 0;
  // Marks a victim (condition DisruptionTarget) and deletes it with its own grace. `message` is the
  // condition's.
  virtual void preempt(const PodRef& victim, const std::string& message, Done done) = 0;
  // Marks the claim's node for whoever provisions, or claims the volume for it.
  virtual void plan_claim(const ClaimPlan& plan, Done done) = 0;
  // The pod as the server has it now, past any cache; NotFound when it is gone.
  virtual void read_pod(const PodRef& pod, std::function<void(Result<std::string> json)> done) = 0;
  virtual void note(const PodNote& note) = 0;
};

}  // namespace jogak::live
