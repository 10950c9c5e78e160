// SPDX-License-Identifier: Apache-2.0
// Random small clusters and what happens to them, for property and differential tests. Few names
// and small numbers, so that taints, selectors, ports, devices and topology rules meet often. Each
// world first draws which kinds of rule it has at all: rare ones then come in dense combinations.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "core/model/cluster.h"

namespace jogak::core::testing {

// Where a random test starts and how long it goes on: JOGAK_SEED and JOGAK_ROUNDS override.
struct Trial {
  std::uint64_t seed = 1;
  std::uint64_t rounds = 1;
  static Trial from_env(std::uint64_t default_rounds);
  // For failure messages: how to repeat round `round` alone.
  std::string repeat(std::uint64_t round) const;
  std::uint64_t seed_of(std::uint64_t round) const { return seed + round; }
};

struct Event {
  enum class Kind : std::uint8_t { Node, NodeGone, Pod, PodGone, Terminating, Nominate, Namespace };
  Kind kind = Kind::Node;
  NodeSpec node;             // Node
  PodSpec pod;               // Pod; of the others ns and name count
  std::string node_name;     // NodeGone, Nominate (empty: clears)
  NamespaceSpec name_space;  // Namespace
};

// What the event names and the cluster does not know is left out: late and doubled events are
// normal.
void apply(Cluster& cluster, const Event& event);

struct WorldOptions {
  std::int32_t nodes = 6;    // names n0 .. n<nodes-1>
  std::int32_t pods = 24;    // names p0 .. p<pods-1>
  bool exact_holds = false;  // bound pods report legal devices or none at all
  bool mig = true;
  bool as_kubernetes = false;  // only what Kubernetes objects can say
};

class RandomWorld {
 public:
  explicit RandomWorld(std::uint64_t seed, WorldOptions options = {});

  NodeSpec node(std::int32_t index);
  // The node as it was drawn last, with other labels and taints only.
  NodeSpec relabelled(std::int32_t index);
  PodSpec pod(std::int32_t index);  // waiting
  // Binds the pod to a node, which may be unknown, with devices that may be unknown or impossible.
  void bind(PodSpec& pod);
  NamespaceSpec name_space(std::int32_t index);
  Event event();               // any kind
  std::vector<Event> start();  // namespaces and nodes

  Rng& rng() { return rng_; }
  const WorldOptions& options() const { return options_; }

 private:
  struct Kinds {  // what this world has
    bool taints, selectors, ports, scalars, devices, shares, mig, spread, affinity, anti,
        priorities, features, gates, preferences, namespaces;
  };
  std::string pick(std::initializer_list<const char*> from);
  void add_labels(NodeSpec& node);
  void limit_to_kubernetes(NodeSpec& node) const;
  void limit_to_kubernetes(PodSpec& pod) const;
  void add_devices(NodeSpec& node);
  void ask_devices(PodSpec& pod);
  void add_node_rules(PodShape& shape);
  void add_pod_rules(PodShape& shape);
  Requirement node_requirement();
  LabelSelector pod_selector();
  PodAffinityTerm affinity_term();
  SpreadConstraint spread_constraint();
  std::string node_name();

  Rng rng_;
  WorldOptions options_;
  Kinds has_{};
  std::vector<NodeSpec> drawn_;  // by index, as drawn last
};

}  // namespace jogak::core::testing
