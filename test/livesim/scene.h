// SPDX-License-Identifier: Apache-2.0
//
// One scheduler on one small cluster, for specs that name their state: no faults unless the spec
// says so, every rule watched.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "test/livesim/checkers.h"
#include "test/livesim/replica.h"
#include "test/livesim/world.h"

namespace jogak::livesim {

class Scene {
 public:
  Scene();
  ~Scene();

  World& world() { return world_; }
  Checkers& checkers() { return checkers_; }
  Replica& replica() { return *replica_; }
  FaultRates& faults() { return world_.network().rates; }

  void node(const NodeSpec& spec) { world_.add_node(spec); }
  void pod(const PodSpec& spec) { world_.add_pod(spec); }
  // As it stands in a manifest, with names and requests of the spec's own.
  void pod_json(std::string_view json);
  void run_for(TimeUs span) { world_.run_for(span); }
  // The process dies and another begins, with nothing but what the server knows.
  void restart();

  const PodFacts* find(std::string_view name) const;
  // Node of the pod, "" while it waits, "gone" when it is not there.
  std::string node_of(std::string_view name) const;
  std::size_t bound(std::string_view prefix) const;
  // PodScheduled of the pod: "REASON: message", "" for none.
  std::string said(std::string_view name);
  // Every broken rule, "" for none; looks at the rules of rest too.
  std::string broken();

 private:
  World world_;
  Checkers checkers_;
  std::unique_ptr<Replica> replica_;
  int processes_ = 0;
};

}  // namespace jogak::livesim
