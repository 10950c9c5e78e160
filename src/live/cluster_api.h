// SPDX-License-Identifier: Apache-2.0
//
// What the live driver needs of a cluster: objects as JSON that change, and a few writes. Behind it
// is an API server over HTTP, or one in the same process; the driver cannot tell.
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

// An Event about a pod, as users see it in `kubectl describe pod`.
struct PodNote {
  PodRef pod;
  std::string type;    // Normal or Warning
  std::string reason;  // Scheduled, FailedScheduling, Preempted
  std::string action;  // Binding, Scheduling, Preempting
  std::string message;
};

class ClusterApi {
 public:
  virtual ~ClusterApi() = default;

  virtual Loop& loop() = 0;

  struct ObjectChange {
    bool is_deleted = false;
    std::string_view ns, name;
    std::string_view json;  // whole object; its last state when deleted
  };
  using Follower = std::function<void(const ObjectChange&)>;
  // Every object of a resource ("pods", "poddisruptionbudgets.policy"), then each change, in order,
  // on the loop; until the returned handle is destroyed.
  virtual std::shared_ptr<void> follow(std::string_view resource, Follower follower) = 0;

  // The outcome of a write, on the loop, possibly before the call returns. Errors: NotFound (the
  // pod is gone), Conflict (it is bound, changed or another one), Unavailable (try again later).
  using Done = std::function<void(Result<void>)>;
  virtual void bind(const Binding& binding, Done done) = 0;
  // PodScheduled=False with reason and message; nominated node: nullptr leaves it, "" clears it.
  struct Refusal {
    PodRef pod;
    std::string reason, message;
    const std::string* nominated_node = nullptr;
  };
  virtual void refuse(const Refusal& refusal, Done done) = 0;
  // Marks a victim (condition DisruptionTarget) and deletes it with its own grace.
  virtual void preempt(const PodRef& victim, const std::string& message, Done done) = 0;
  virtual void note(const PodNote& note) = 0;
};

}  // namespace jogak::live
