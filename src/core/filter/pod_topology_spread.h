// SPDX-License-Identifier: Apache-2.0
// PodTopologySpread, the hard part (whenUnsatisfiable: DoNotSchedule): pods that match a
// constraint's selector are counted per domain, and a node is refused where one more would make its
// domain exceed the smallest one by more than maxSkew.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/filter/cycle.h"
#include "core/filter/topology_domains.h"

namespace jogak::core {

// The constraint's selector with the pod's own values of matchLabelKeys ANDed in; nullopt: matches
// nothing.
std::optional<LabelSelector> spread_selector(const SpreadConstraint& constraint,
                                             const Labels& pod_labels);

// Counted for a pod of namespace `ns`: pods of that namespace which match. An empty selector counts
// nobody, although the pod itself does match it. Terminating pods are the caller's to leave out.
bool spread_counts(const std::optional<LabelSelector>& selector, std::string_view ns,
                   const Identity& other);

// The node takes part in counting: nodeAffinityPolicy and nodeTaintsPolicy.
bool spread_includes_node(const Cluster& cluster, const PodShape& pod,
                          const SpreadConstraint& constraint, const Node& node);

class PodTopologySpreadFilter {
 public:
  PreFilter build(const Cluster& cluster, const PodView& pod);
  bool active() const { return !constraints_.empty(); }
  Verdict check(const Cluster& cluster, const PodView& pod, NodeId node, Reasons* reasons) const;
  void pod_moved(const Cluster& cluster, const PodView& pod, PodId moved, NodeId node, int delta);
  // The same for a reader of the change log, where the pod itself may be gone by now.
  void count_pod(const Cluster& cluster, const PodView& pod, IdentityId identity, bool terminating,
                 NodeId node, int delta);

  // Some constraint has (nearly) one domain per node, so that a move changes few nodes' verdicts
  // but nodes share none.
  bool depends_on_hostname() const;
  // Nodes with equal values for these keys get equal verdicts.
  void domain_keys(std::vector<Symbol>& out) const;
  // Equal for equal counts: what the moves must keep equal to a fresh build.
  std::uint64_t digest() const;

 private:
  struct Constraint {
    std::int64_t max_skew = 1;
    std::int64_t self = 0;  // 1: the pod matches its own selector
    std::size_t min_domains = 1;
    std::optional<LabelSelector> selector;
    TopologyDomains domains;
    std::vector<bool> counted_node;  // by NodeId: pods there count
    std::vector<std::int64_t> pods;  // by domain
    std::vector<bool> exists;        // by domain: some counted node has the value
    std::size_t existing = 0;
    std::vector<std::int32_t> with_pods;  // [n]: existing domains with n pods
    std::int64_t smallest = 0;            // pods in the smallest existing domain
    AnswerCache matches;                  // by identity

    void add(std::int32_t domain, int delta);
    std::int64_t minimum() const { return existing < min_domains ? 0 : smallest; }
  };

  void build_counts(const Cluster& cluster, const PodView& pod,
                    const std::vector<const SpreadConstraint*>& hard);
  static void settle(Constraint& constraint);
  // A live pod of this identity on the node counts for the constraint.
  static bool counts(const Cluster& cluster, const PodView& pod, Constraint& constraint,
                     IdentityId identity, NodeId node);

  std::vector<Constraint> constraints_;
};

}  // namespace jogak::core
