// SPDX-License-Identifier: Apache-2.0
// One pod looked at in full: every node's verdict with reasons, every score, the message users
// know, and preemption. It is what `jogak explain` prints and what the golden tests compare; the
// incremental search must agree with it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/filter/cycle.h"
#include "core/preempt/preempt.h"
#include "core/score/score.h"

namespace jogak::core {

enum class Outcome : std::uint8_t { Scheduled, Unschedulable, Gated, SkippedDeleting, Error };

struct Evaluation {
  Outcome outcome = Outcome::Unschedulable;
  PreFilter prefilter;
  std::vector<NodeVerdict> nodes;    // node order; for a PreFilter refusal all carry it
  bool nominated_shortcut = false;   // the pod's nominated node passed; no other was considered
  std::vector<NodeId> feasible;      // node order
  std::vector<PluginScores> scores;  // kube's, over `feasible`; empty with fewer than two
  std::vector<std::int64_t> totals;  // per feasible node
  std::vector<NodeId> top;           // all with the best total, node order
  std::string message;               // text of the PodScheduled condition; empty when scheduled
  std::optional<PreemptionResult> preemption;
  bool preemption_attempted = false;
};

// Exactly kube-scheduler's verdict. The cluster is unchanged on return.
Evaluation evaluate(Cluster& cluster, PodId pod, const ScoreConfig& config = {});

}  // namespace jogak::core
