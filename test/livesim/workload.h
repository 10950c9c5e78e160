// SPDX-License-Identifier: Apache-2.0
//
// Random life of a small cluster: which kinds of thing a run has is drawn first, then one action
// after another. It never waits for the schedulers, and acts on what the store holds at that
// moment.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/rng.h"
#include "test/livesim/world.h"

namespace jogak::livesim {

struct WorkloadOptions {
  int nodes = 4;
  bool has_devices = false;  // nodes that state their devices; shares
  bool has_foreign = false, has_volumes = false, has_priorities = false, has_budgets = false;
  bool has_gates = false, has_ends = false, has_zones = false, has_node_changes = false;

  std::string text() const;
};

WorkloadOptions draw_workload(Rng& rng);

class Workload {
 public:
  Workload(World& world, WorkloadOptions options, std::uint64_t seed);

  // Nodes and the first pods.
  void start();
  // One random action; the foreign scheduler has its turn too.
  void act();
  // All nodes are there and open, gates fall.
  void heal();

 private:
  int number(int bound);
  NodeSpec draw_node(int index);
  std::string some_node();
  const PodFacts* some_pod(bool bound_only);
  PodSpec draw_pod();
  void add_pod();
  void remove_pod();
  void replace_pod();
  void open_gate();
  void change_node();
  void replace_node();
  void sicken();
  void budget();
  void foreign_turn();

  World& world_;
  WorkloadOptions options_;
  Rng rng_;
  std::map<std::string, NodeSpec> nodes_;  // as they are now or shall be again
  std::map<std::string, TimeUs> away_;     // removed, back then
  int next_ = 0;
};

}  // namespace jogak::livesim
