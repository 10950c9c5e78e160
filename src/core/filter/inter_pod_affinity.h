// SPDX-License-Identifier: Apache-2.0
// InterPodAffinity, the required part: the pod's own affinity and anti-affinity towards the pods
// that are placed, and their required anti-affinity towards it. Pods are counted per (topology key,
// value) as they are placed and taken, so that a verdict is a few array look-ups.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/filter/cycle.h"
#include "core/filter/topology_domains.h"

namespace jogak::core {

// The term of a pod in namespace `owner_ns` selects the other pod: its namespace (by list, by the
// labels of the namespace object, or the owner's own where the term says nothing) and its labels.
bool affinity_term_selects(const Cluster& cluster, const PodAffinityTerm& term,
                           std::string_view owner_ns, const Identity& other);

class InterPodAffinityFilter {
 public:
  PreFilter build(const Cluster& cluster, const PodView& pod);
  // May change when pods move: a pod with anti-affinity against this one makes it active.
  bool active() const { return !affinity_.empty() || !anti_.empty() || against_total_ > 0; }
  Verdict check(const Cluster& cluster, const PodView& pod, NodeId node, Reasons* reasons) const;
  void pod_moved(const Cluster& cluster, const PodView& pod, PodId moved, NodeId node, int delta);
  // The same for a reader of the change log, where the pod itself may be gone by now. Terminating
  // pods count like others.
  void count_pod(const Cluster& cluster, const PodView& pod, ShapeId shape, IdentityId identity,
                 NodeId node, int delta);

  // Some term in force has (nearly) one domain per node.
  bool depends_on_hostname() const;
  // Nodes with equal values for these keys get equal verdicts. More keys may come when pods move.
  void domain_keys(std::vector<Symbol>& out) const;
  // Equal for equal counts: what the moves must keep equal to a fresh build.
  std::uint64_t digest() const;

 private:
  struct Counts {
    TopologyDomains domains;
    std::vector<std::int64_t> pods;  // by domain
    std::int64_t total = 0;          // over all domains

    void build(const Cluster& cluster, std::string_view key);
    void add(NodeId node, int delta);
    bool any_at(NodeId node) const;
  };
  struct AntiTerm {
    const PodAffinityTerm* term = nullptr;  // of the decided pod's interned shape
    Counts counts;
    AnswerCache selects;  // by identity
  };

  bool selects_all(const Cluster& cluster, const PodView& pod, const Identity& other) const;
  bool affinity_satisfied(NodeId node) const;
  // Which of the placed pod's anti-affinity terms are against the decided pod: indices of against_,
  // one per term. One answer per shape and identity of the placed pod.
  const std::vector<std::uint32_t>& terms_against(const Cluster& cluster, const PodView& pod,
                                                  ShapeId shape, IdentityId identity);
  std::uint32_t against_index(const Cluster& cluster, Symbol key);

  std::vector<Counts> affinity_;  // one per topology key of the own affinity terms
  std::int64_t affinity_total_ = 0;
  bool matches_itself_ = false;  // selected by all of its own affinity terms
  AnswerCache selected_by_all_;  // by identity
  std::vector<AntiTerm> anti_;
  std::vector<Counts> against_;  // one per topology key of others' anti-affinity
  std::int64_t against_total_ = 0;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> terms_against_;
};

}  // namespace jogak::core
