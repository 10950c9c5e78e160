// SPDX-License-Identifier: Apache-2.0
//
// What the live driver tells whoever counts: each call is a fact that has just happened, on the
// driver's loop, cheap to take in. The driver works the same without anybody listening; it keeps
// no numbers for others. live/scheduler_metrics.h turns the facts into series.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/loop.h"
#include "base/result.h"

namespace jogak::live {

// How one try to place a pod ended (label `result` of kube-scheduler's series).
enum class AttemptResult : std::uint8_t { Scheduled, Unschedulable, Error };

// Where a pod waits (label `queue`), kube-scheduler's words.
enum class QueueKind : std::uint8_t { Active, Backoff, Unschedulable, Gated };
inline constexpr std::size_t kQueueKinds = 4;

class DriverObserver {
 public:
  virtual ~DriverObserver() = default;

  // A try ended. `decide` is the time of the decision alone, `whole` that from taking the pod off
  // the queue to the binding's outcome (Scheduled) or to the refusal; both are spans. `profile` is
  // the scheduler name that the pod asked for.
  struct Attempt {
    std::string_view profile;
    AttemptResult result = AttemptResult::Scheduled;
    TimeUs decide = 0, whole = 0;
    // For the log: "ns/name"; the node, or why not.
    std::string_view pod = {}, detail = {};
  };
  virtual void attempted(const Attempt& attempt) = 0;

  // The server took the binding. `attempts` counts tries of this pod, this one too; `since_seen` is
  // the span since the pod was first seen without a place and without gates.
  struct Bound {
    std::string_view profile;
    int attempts = 1;
    TimeUs since_seen = 0;
  };
  virtual void bound(const Bound& bound) = 0;
  // The server did not, or nobody knows.
  virtual void bind_failed(Errc code) = 0;
  // Bindings sent whose outcome is not known yet.
  virtual void binds_in_flight(std::size_t count) = 0;

  // An Unschedulable attempt: the filters that refused nodes, without repetition, by kube's plugin
  // names. The pod waits as one refused by them until refused_no_more() with the same.
  virtual void refused(std::string_view profile, std::span<const std::string_view> plugins) = 0;
  virtual void refused_no_more(std::string_view profile,
                               std::span<const std::string_view> plugins) = 0;

  // Preemption was considered for a pod; `victims` is 0 when it does not help.
  virtual void preemption_tried(std::size_t victims) = 0;

  // Pods entered a queue, because of `event`: "PodAdd", "PodUpdate", "ScheduleAttemptFailure",
  // "BackoffComplete", "AssignedPodDelete", "NodeAdd", "NodeUpdate", ... (a small, fixed set).
  virtual void queued(QueueKind queue, std::string_view event, std::size_t pods) = 0;
  // Lengths of the queues now, by QueueKind. Told after each turn in which one changed.
  virtual void queue_lengths(const std::array<std::size_t, kQueueKinds>& lengths) = 0;

  // The independent check stopped a plan, or an object could not be read: faults, in words.
  virtual void plan_invalid(std::string_view pod, std::string_view why) = 0;
  virtual void unreadable(std::string_view kind, std::string_view object, std::string_view why) = 0;
};

}  // namespace jogak::live
