// SPDX-License-Identifier: Apache-2.0
// The cycle for one pod, step by step as kube-scheduler runs it, with nothing cached and nothing
// skipped: the yardstick for everything faster.
#include "core/plan/evaluation.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "core/filter/node_affinity.h"
#include "core/filter/node_name.h"
#include "core/filter/node_unschedulable.h"
#include "core/filter/taint_toleration.h"
#include "core/plan/message.h"

namespace jogak::core {
namespace {

void evaluate_gates(const Shape& shape, Evaluation& e) {
  std::string list;
  for (const std::string& gate : shape.spec.gates) {
    if (!list.empty()) list += ' ';
    list += gate;
  }
  e.outcome = Outcome::Gated;
  e.prefilter.verdict = {Plugin::SchedulingGates, Code::Unresolvable};
  e.prefilter.reasons.push_back(fmt::format("waiting for scheduling gates: [{}]", list));
  // No message: the API server wrote the condition when the pod was made.
}

void refuse_whole_pod(const Cluster& cluster, Evaluation& e) {
  for (const NodeId node : cluster.node_order()) {
    e.nodes.push_back({node, e.prefilter.verdict, e.prefilter.reasons});
  }
}

// The original looks at the nominated node before it applies a PreFilter's list of nodes. Such a
// list comes from NodeAffinity, so a node outside it is refused by that filter or by one before it.
bool nominated_outside_list(const PreFilter& prefilter, NodeId node, NodeId nominated) {
  return node == nominated && prefilter.only_nodes &&
         !std::ranges::binary_search(*prefilter.only_nodes, node);
}

Verdict check_outside_list(const Cluster& cluster, const PodView& pod, const Node& node,
                           Reasons& reasons) {
  for (const auto filter : {node_unschedulable_filter, node_name_filter, taint_toleration_filter,
                            node_affinity_filter}) {
    if (const Verdict v = filter(cluster, pod, node, &reasons); !v.fits()) return v;
  }
  JOGAK_CHECK(false, "node affinity left the node out and does not refuse it");
  return {};
}

void filter_nodes(Cluster& cluster, const PodView& pod, FilterCycle& cycle, Evaluation& e) {
  const NodeId nominated = cluster.pod(pod.id).nominated;
  for (const NodeId node : cluster.node_order()) {
    NodeVerdict v{node, {}, {}};
    if (nominated_outside_list(e.prefilter, node, nominated)) {
      v.verdict = check_outside_list(cluster, pod, cluster.node(node), v.reasons);
    } else {
      v.verdict = check_with_nominated(cluster, pod, cycle, node, &v.reasons);
    }
    if (v.verdict.fits()) e.feasible.push_back(node);
    e.nodes.push_back(std::move(v));
  }
  if (std::ranges::find(e.feasible, nominated) != e.feasible.end()) {
    e.nominated_shortcut = true;
    e.feasible.assign(1, nominated);
  }
}

const NodeVerdict* first_error(const Evaluation& e) {
  if (e.nominated_shortcut) return nullptr;  // nobody asked the other nodes
  const auto at = std::ranges::find_if(
      e.nodes, [](const NodeVerdict& v) { return v.verdict.code == Code::Error; });
  return at == e.nodes.end() ? nullptr : &*at;
}

void report_error(std::string_view phase, Verdict verdict, const Reasons& reasons, Evaluation& e) {
  e.outcome = Outcome::Error;
  e.message = fmt::format("running {} plugin \"{}\": {}", phase, plugin_name(verdict.plugin),
                          fmt::join(reasons, ", "));
}

void choose_best(const Cluster& cluster, const PodView& pod, const ScoreConfig& config,
                 Evaluation& e) {
  e.outcome = Outcome::Scheduled;
  e.totals.assign(e.feasible.size(), 0);
  if (e.feasible.size() < 2) {
    e.top = e.feasible;
    return;
  }
  e.scores = kube_scores(cluster, pod, e.feasible, config);
  for (const PluginScores& plugin : e.scores) {
    JOGAK_CHECK(plugin.values.size() == e.feasible.size());
    for (std::size_t i = 0; i < e.totals.size(); ++i) e.totals[i] += plugin.values[i];
  }
  const std::int64_t best = *std::ranges::max_element(e.totals);
  for (std::size_t i = 0; i < e.totals.size(); ++i) {
    if (e.totals[i] == best) e.top.push_back(e.feasible[i]);
  }
}

void explain_refusal(Cluster& cluster, const PodView& pod, Evaluation& e) {
  e.outcome = Outcome::Unschedulable;
  std::string why;
  if (!e.prefilter.verdict.fits()) {
    why = fmt::format("{}", fmt::join(e.prefilter.reasons, ", "));
  } else {
    ReasonCounts counts;
    for (const NodeVerdict& v : e.nodes) counts.add(v.reasons);
    why = counts.text();
  }
  e.message = unavailable_message(cluster.node_count(), why);
  e.preemption_attempted = true;
  e.preemption = find_preemption(cluster, pod, e.nodes);
  if (!e.preemption->message.empty()) e.message += " " + e.preemption->message;
}

}  // namespace

Evaluation evaluate(Cluster& cluster, PodId id, const ScoreConfig& config) {
  JOGAK_CHECK(cluster.pod(id).state == PodState::Pending, "only a waiting pod can be evaluated");
  Evaluation e;
  const PodView pod = PodView::of(cluster, id);
  if (!pod.shape->spec.gates.empty()) {
    evaluate_gates(*pod.shape, e);
    return e;
  }
  if (cluster.pod(id).terminating) {
    e.outcome = Outcome::SkippedDeleting;
    e.message = "skip schedule deleting pod: " + cluster.pod_full_name(id);
    return e;
  }
  if (cluster.node_count() == 0) {
    e.message = kNoNodesMessage;
    return e;
  }
  FilterCycle cycle(cluster, pod);
  e.prefilter = cycle.prefilter();
  if (e.prefilter.verdict.fits()) {
    filter_nodes(cluster, pod, cycle, e);
  } else {
    refuse_whole_pod(cluster, e);
  }
  if (e.prefilter.verdict.code == Code::Error) {
    report_error("PreFilter", e.prefilter.verdict, e.prefilter.reasons, e);
  } else if (const NodeVerdict* broken = first_error(e); broken != nullptr) {
    report_error("Filter", broken->verdict, broken->reasons, e);
  } else if (!e.feasible.empty()) {
    choose_best(cluster, pod, config, e);
  } else {
    explain_refusal(cluster, pod, e);
  }
  return e;
}

}  // namespace jogak::core
