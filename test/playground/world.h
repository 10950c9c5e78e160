// SPDX-License-Identifier: Apache-2.0
//
// A whole playground under virtual time, and a checker that recounts from the server's objects
// alone: what it says never comes from the scheduler or a kubelet.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/sim_loop.h"
#include "playground/playground.h"

namespace jogak::playground::testing {

// What became of a pod that is gone.
struct Gone {
  Doc last;
  bool was_disrupted = false;  // DisruptionTarget=True: preempted, evicted, or its node went away
};

class World {
 public:
  // CHECKs that the playground starts and takes the nodes.
  explicit World(std::vector<Doc> nodes, PlaygroundOptions options = {});
  ~World();

  Playground& playground() { return *playground_; }
  api::Api& api() { return playground_->api(); }
  const live::SchedulerDriver& scheduler() const { return *playground_->scheduler(); }
  SimLoop& loop() { return loop_; }

  // CHECKs that the objects are taken.
  void apply(std::string_view manifests);
  void add(Doc object);
  void run_for(TimeUs span) { loop_.run_for(span); }

  std::vector<Doc> pods() { return api().list("pods"); }
  Doc pod(std::string_view name);  // of default; a null Doc when there is none
  std::size_t count(std::string_view prefix, std::string_view phase);
  std::set<std::string> nodes_of(std::string_view prefix);  // of pods that run
  // An annotation of a node, "" removes it.
  void annotate_node(std::string_view name, std::string_view key, std::string_view value);

  // Devices of that node fell ill: pods that were on their way may come too late.
  void may_refuse(std::string_view node) { refusing_.emplace(node); }

  const std::map<std::string, Gone>& gone() const { return gone_; }  // by uid

  // Rules that hold at every moment: what is wrong, "" for nothing.
  //  - no node gives more than it has (cpu, memory, pods, devices), counted by its pods that are
  //    not over; no device that an annotation names belongs to two of them
  //  - no kubelet refused a pod that the scheduler sent, except where may_refuse() was said
  //  - the scheduler made no plan that breaks a rule and could read everything
  std::string broken_rule();
  // At rest: pods that wait although a node has room for them, or room made by pods of lower
  // priority. For pods without rules of their own on nodes that all may use.
  std::string needless_wait();

 private:
  SimLoop loop_;
  std::unique_ptr<Playground> playground_;
  std::map<std::string, Gone> gone_;
  std::set<std::string, std::less<>> refusing_;
  std::shared_ptr<void> following_;
};

// A node of `jogak up` with that much; `gpus` may be 0.
Doc simulated_node(std::string_view name, int cpu, int gpus);
// A pod that runs for ever; priority by class name, "" for none.
Doc simple_pod(std::string_view name, int cpu, int gpus, std::string_view priority_class = "");
Doc priority_class(std::string_view name, int value);

}  // namespace jogak::playground::testing
