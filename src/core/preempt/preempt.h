// SPDX-License-Identifier: Apache-2.0
// DefaultPreemption of kube-scheduler 1.36: which pods would have to go for this one to fit, node
// by node, and which node loses least. Tries happen in a transaction on the cluster and are undone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/filter/cycle.h"

namespace jogak::core {

struct NodeVerdict {
  NodeId node;
  Verdict verdict;
  Reasons reasons;
};

struct PreemptionCandidate {
  NodeId node;
  std::vector<PodId> victims;              // most important first
  std::vector<PodId> already_terminating;  // among the victims; not to be deleted again
  std::int64_t pdb_violations = 0;
};

enum class NominationChange : std::uint8_t { Keep, Set, Clear };

struct PreemptionResult {
  bool eligible = false;
  std::string not_eligible;                     // why not
  std::vector<PreemptionCandidate> candidates;  // in node order
  std::vector<NodeVerdict> rejected;            // tried without success
  std::vector<std::size_t> best;                // indices of the winners; more than one: a tie
  NominationChange nomination = NominationChange::Keep;
  std::string message;  // what PostFilter adds to the pod's message
  // For candidate best[i]: lower-priority pods nominated there that lose their nomination.
  std::vector<std::vector<PodId>> loses_nomination;
};

// `verdicts`: of every node in node order, none feasible, as the cycle found them. The cluster is
// changed only inside a transaction and is as before on return.
PreemptionResult find_preemption(Cluster& cluster, const PodView& pod,
                                 const std::vector<NodeVerdict>& verdicts);

// True if the node passes both with and without the pods of equal or higher priority nominated to
// it. Uses the transaction as above.
Verdict check_with_nominated(Cluster& cluster, const PodView& pod, FilterCycle& cycle, NodeId node,
                             Reasons* reasons);

}  // namespace jogak::core
