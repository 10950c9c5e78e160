// SPDX-License-Identifier: Apache-2.0
// A random cluster and workload for schedulers that are wrong on purpose.
#pragma once

#include <cstdint>
#include <memory>

#include "base/rng.h"
#include "core/engine/scheduler.h"
#include "core/model/cluster.h"

namespace jogak::negative {

struct Trial {
  explicit Trial(std::uint64_t seed);

  // A new pending pod of any kind.
  core::PodId arrive();
  // What an honest scheduler decides. Nothing is booked.
  core::Decision decide(core::PodId pod) { return scheduler.decide(pod); }
  // Some placed pod ends.
  void depart();

  Rng rng;
  core::Cluster cluster;
  std::unique_ptr<core::Policy> policy;
  core::Scheduler scheduler;
  int pods = 0;
};

}  // namespace jogak::negative
