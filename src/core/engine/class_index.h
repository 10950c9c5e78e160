// SPDX-License-Identifier: Apache-2.0
// What the scheduler remembers of one class of pods (equal shape, and equal identity where
// selectors matter): a verdict and a score per node, kept current from the cluster's change log,
// and the best node at hand in a tree. Rules that look beyond one node (topology spread, pod
// affinity) are held as counts per topology value; nodes that share all values such a rule reads
// form a domain, and each domain has a tree of its own, so that a rule is asked once per domain,
// not once per node.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/engine/max_tree.h"
#include "core/filter/inter_pod_affinity.h"
#include "core/filter/local_filters.h"
#include "core/filter/pod_topology_spread.h"
#include "core/filter/pod_view.h"
#include "core/policy/policy.h"

namespace jogak::core {

inline constexpr std::size_t kPluginCount = 32;
using RefusalCounts = std::array<std::uint32_t, kPluginCount>;  // live nodes by refusing Plugin

// Shared by all classes of one scheduler: which nodes the running sync() has already refreshed.
struct SyncScratch {
  std::vector<std::uint64_t> seen;  // by node slot
  std::uint64_t stamp = 0;
};

class ClassIndex {
 public:
  // `view` may outlive its pod: only its shape and identity are used. Reads every node once. The
  // references outlive the index.
  ClassIndex(const Cluster& cluster, Policy& policy, SyncScratch& scratch, const PodView& view);

  // Follows the change log up to now; rebuilds itself where that is not enough.
  void sync();

  // Best node, kNoNode if none. Requires sync().
  NodeId best();
  std::int64_t best_score() const { return best_score_; }
  // Nodes that pass every filter, in node order. O(nodes).
  void feasible(std::vector<NodeId>& out);
  std::uint32_t feasible_count();
  RefusalCounts refusals();

  // Hides a node from best(), feasible() and feasible_count() until reveal(): for nodes that refuse
  // only because of nominated pods. No sync() in between.
  void hide(NodeId node);
  void reveal(NodeId node);

  std::size_t bytes() const;

 private:
  struct Place {  // where a node's leaf is
    std::uint32_t domain = 0;
    std::uint32_t leaf = 0;
  };
  struct Domain {
    MaxTree tree;
    std::vector<NodeId> nodes;  // by leaf, in node order; empty where there is only one domain
    std::uint32_t local_feasible = 0;
  };

  // Without rules there is one domain, and a node's leaf is its rank: nothing is stored per node.
  Place place(NodeId node) const;
  NodeId node_at(const Domain& domain, std::size_t leaf) const;
  void rebuild();
  void rescore();
  void prefetch(NodeId node) const;
  std::vector<Symbol> rule_keys() const;
  void build_domains();
  void apply(const Change& change);
  // Recomputes the node's own verdict and score. `facts_changed`: static filters too.
  void refresh(NodeId node, bool facts_changed);
  void count_local(Domain& domain, bool fits);
  std::int64_t score_of(const Node& node);
  bool has_rules() const { return spread_.active() || affinity_.active(); }
  Verdict rules(NodeId node) const;

  const Cluster& cluster_;
  Policy& policy_;
  PodView view_;
  PodTopologySpreadFilter spread_;
  InterPodAffinityFilter affinity_;
  bool refused_whole_ = false;  // a PreFilter refused the pod as such
  Plugin refused_by_ = Plugin::None;
  std::vector<Verdict> static_;  // by node slot
  std::vector<Verdict> local_;   // by node slot: static, else dynamic
  std::vector<Place> place_;     // by node slot; only with rules
  std::vector<Symbol> keys_;     // topology keys the rules read, sorted
  std::vector<Domain> domains_;
  RefusalCounts local_refusals_{};
  std::uint32_t local_feasible_ = 0;
  std::int64_t best_score_ = 0;
  std::uint64_t log_position_ = 0;
  std::uint64_t topology_version_ = 0;
  std::uint64_t labels_version_ = 0;
  std::uint64_t objects_version_ = 0;
  std::uint64_t epoch_ = 0;
  SyncScratch& scratch_;
};

}  // namespace jogak::core
