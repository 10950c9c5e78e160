// SPDX-License-Identifier: Apache-2.0
// A scheduler that is slow and obvious: the rules of Kubernetes and of the device ledger written
// down once more over plain NodeSpec and PodSpec values, with nothing kept between two questions.
// It uses no code of filters, engine or cluster state (of the MIG tables only the numbers), so that
// what it says and what the fast search says are two opinions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/model/spec.h"

namespace jogak::reference {

// A pod and where it is.
struct RefPod {
  core::PodSpec spec;
  std::string node;       // empty: waiting
  std::string nominated;  // node it is promised room on; empty: none
  std::vector<core::GpuHold> holds;
  bool holds_known = true;
};

class ReferenceScheduler {
 public:
  void set_namespace(const core::NamespaceSpec& spec) { namespaces_[spec.name] = spec.labels; }
  void set_node(const core::NodeSpec& spec);
  void remove_node(const std::string& name);
  void set_pod(const core::PodSpec& spec);
  void remove_pod(const std::string& ns, const std::string& name);
  void set_terminating(const std::string& ns, const std::string& name);
  void nominate(const std::string& ns, const std::string& name, const std::string& node);
  // The pod runs there now.
  void place(const std::string& ns, const std::string& name, const std::string& node,
             const std::vector<core::GpuHold>& holds);

  // Names of the nodes on which the waiting pod may run, in node order.
  std::vector<std::string> feasible(const std::string& ns, const std::string& name) const;
  // Per node the rule that refuses the pod, for people.
  std::string explain(const std::string& ns, const std::string& name) const;

 private:
  using Key = std::pair<std::string, std::string>;  // namespace, name
  // The pods that count as running in one hypothetical view of the cluster.
  using Running = std::vector<const RefPod*>;

  std::vector<const core::NodeSpec*> nodes_in_order() const;
  // The rule that refuses, empty if none does.
  std::string refusal_beside_nominated(const RefPod& pod, const core::NodeSpec& node) const;
  std::string refusal(const RefPod& pod, const core::NodeSpec& node, const Running& running) const;
  Running running() const;

  bool cordon_excused(const core::PodShape& shape, const core::NodeSpec& node) const;
  bool tolerated(const core::PodShape& shape, const core::NodeSpec& node) const;
  bool wanted(const core::PodShape& shape, const core::NodeSpec& node) const;
  bool ports_free(const core::PodShape& shape, const core::NodeSpec& node,
                  const Running& running) const;
  bool resources_left(const core::PodShape& shape, const core::NodeSpec& node,
                      const Running& running) const;
  bool spread_kept(const RefPod& pod, const core::NodeSpec& node, const Running& running) const;
  bool affinity_kept(const RefPod& pod, const core::NodeSpec& node, const Running& running) const;
  bool selects(const core::PodAffinityTerm& term, const std::string& owner_ns,
               const RefPod& other) const;
  const std::string* topology(const std::string& node, const std::string& key) const;

  std::map<std::string, core::NodeSpec> nodes_;
  std::map<Key, RefPod> pods_;
  std::map<std::string, core::Labels> namespaces_;
};

// ---- devices (reference_devices.cc) ----

// Can the request be served by the node's devices beside these pods, which all run on the node?
bool devices_left(const core::GpuRequest& ask, const core::NodeSpec& node,
                  const std::vector<const RefPod*>& on_node);

// Once a pod's devices cannot be what was said, they stay unknown until somebody says it again.
void settle_holds(RefPod& pod, const core::NodeSpec& node);

// The devices a promised seat of a pod that asks for whole ones (or none) is taken to use: the
// first that fit, nullopt if there are not enough.
std::optional<std::vector<core::GpuHold>> guess_devices(const core::GpuRequest& ask,
                                                        const core::NodeSpec& node,
                                                        const std::vector<const RefPod*>& on_node);

}  // namespace jogak::reference
