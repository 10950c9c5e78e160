// SPDX-License-Identifier: Apache-2.0
//
// A NodeAgent on a simulated machine under virtual time, with everything it tells written down.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/run/node_agent.h"
#include "base/log.h"
#include "base/sim_loop.h"
#include "nvml/sim/machine.h"

namespace jogak::agent::testing {

struct NodeRig {
  // The machine as nvml::testing::machine_text() takes it; its time begins with the loop's.
  // The journal is that of the rig whatever `host` has.
  explicit NodeRig(std::string_view machine_text, AgentOptions options = defaults(),
                   HostView host = {});

  // Plugin, exporter, labels and reports.
  static AgentOptions defaults();
  // Asks only when told to, and has no exporter.
  static AgentOptions quiet();
  ~NodeRig() { *is_alive_ = false; }

  void start() { node->start(); }
  // The agent dies where it is, and another one starts on the same GPUs, with the same journal.
  void restart();
  std::string gpu_uuid(int gpu) const;
  // Each device of a resource in the last offer: "healthy", or the reason why it is not.
  std::vector<std::string> offered(std::string_view resource) const;
  std::vector<std::string> offered_ids(std::string_view resource) const;
  // Whether a condition of the last wish tells of a problem.
  bool condition(std::string_view type) const;
  // The kubelet says from now on that a pod ("ns/name") holds it too; and that no pod holds any.
  void hold(const std::string& resource, const std::string& id, const std::string& pod);
  void hold_nothing();
  // The Node as the API server has it: what was wished is on it at once, unless told otherwise.
  void label(const std::string& name, const std::string& value);  // "" takes it away
  std::string node_label(const std::string& name) const;
  std::string node_annotation(const std::string& name) const;
  // An API server that was away is back: what was wished last is on the node.
  void catch_up() {
    writes_node = true;
    if (!wishes.empty()) write_node();
  }
  // Profiles of a GPU's instances as the driver has them, sorted.
  std::vector<std::string> instances(int gpu);
  // Of lines that have this text.
  int logged(std::string_view text) const;

  SimLoop loop;
  CapturedLog lines;
  Log log{loop, lines};
  std::shared_ptr<nvml::sim::Machine> machine;
  std::shared_ptr<MemoryJournal> journal = std::make_shared<MemoryJournal>();
  std::vector<PluginSnapshotPtr> offers;
  std::vector<NodeWish> wishes;
  std::map<PodName, std::string> holds;
  std::vector<std::vector<MpsDaemon>> mps;  // each time that others were wanted
  std::vector<NodeNote> notes;
  std::vector<std::string> failures;
  std::vector<Holding> holdings;
  Result<void> kubelet = {};  // or why it cannot be asked
  int asked = 0;              // for holdings
  bool writes_node = true;
  Labels labels;
  std::map<std::string, std::string> annotations;
  std::unique_ptr<NodeAgent> node;

 private:
  void make_node();
  void write_node();
  AgentOptions options_;
  HostView host_;
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace jogak::agent::testing
