// SPDX-License-Identifier: Apache-2.0
// The facts of an explanation: evaluation, groups of refusals, the policy's choice.
#include "cli/explain.h"

#include <algorithm>
#include <memory>

#include "base/check.h"
#include "core/policy/policy.h"

namespace jogak::cli {

namespace {

// The same pod, waiting. Its node, devices and (should it be on its way out) its end are forgotten.
core::PodId as_pending(core::Cluster& cluster, core::PodId id) {
  const core::Pod& pod = cluster.pod(id);
  const core::Identity& identity = cluster.identity_of(id);
  core::PodSpec spec;
  spec.ns = identity.ns;
  spec.name = pod.name;
  spec.uid = pod.uid;
  spec.labels = identity.labels;
  spec.owner_kind = identity.owner_kind;
  spec.owner_name = identity.owner_name;
  spec.shape = cluster.shape_of(id).spec;
  spec.start_time = pod.start_time;
  const auto result = cluster.upsert_pod(spec);
  JOGAK_CHECK(result.has_value(), "{}", result.error().what);
  return *result;
}

std::string node_of(const core::Cluster& cluster, core::PodId id) {
  const core::Pod& pod = cluster.pod(id);
  if (pod.state == core::PodState::Placed) {
    return std::string(cluster.text(cluster.node(pod.node).name));
  }
  if (pod.state == core::PodState::Orphan) return std::string(cluster.text(pod.orphan_node));
  return {};
}

std::int64_t free_amount(const core::Cluster& cluster, const core::Node& node,
                         std::string_view resource) {
  if (resource == "cpu") return node.cpu_allocatable - node.cpu_requested;
  if (resource == "memory") return node.memory_allocatable - node.memory_requested;
  if (resource == "ephemeral-storage") return node.storage_allocatable - node.storage_requested;
  const auto id = cluster.find_scalar(resource);
  const core::ScalarAmount* const amount = id ? node.scalar(*id) : nullptr;
  return amount == nullptr ? 0 : amount->allocatable - amount->requested;
}

std::vector<AskedResource> asked_resources(const core::Cluster& cluster, core::PodId pod) {
  std::vector<AskedResource> result;
  for (const auto& [name, amount] : cluster.shape_of(pod).spec.requests) {
    if (amount == 0) continue;
    AskedResource& asked = result.emplace_back();
    asked.name = name;
    asked.asked = amount;
    for (const core::NodeId id : cluster.node_order()) {
      const std::int64_t free = free_amount(cluster, cluster.node(id), name);
      if (free <= asked.most_free) continue;
      asked.most_free = free;
      asked.node = id;
    }
  }
  return result;
}

std::vector<RefusedGroup> group_refusals(const core::Evaluation& evaluation) {
  std::vector<RefusedGroup> groups;
  for (const core::NodeVerdict& node : evaluation.nodes) {
    if (node.verdict.fits()) continue;
    const auto at = std::ranges::find_if(groups, [&node](const RefusedGroup& group) {
      return group.verdict == node.verdict && group.reasons == node.reasons;
    });
    RefusedGroup& group = at == groups.end() ? groups.emplace_back() : *at;
    group.verdict = node.verdict;
    group.reasons = node.reasons;
    group.nodes.push_back(node.node);
  }
  std::ranges::stable_sort(groups, std::ranges::greater(),
                           [](const RefusedGroup& group) { return group.nodes.size(); });
  return groups;
}

void let_policy_choose(core::Cluster& cluster, core::Policy& policy, const core::PodView& pod,
                       Explanation& explanation) {
  const std::vector<core::NodeId>& feasible = explanation.evaluation.feasible;
  policy.prepare(cluster, {});
  explanation.scores.assign(feasible.size(), 0);
  if (explanation.policy == "kube") {
    explanation.scores = explanation.evaluation.totals;
  } else if (policy.scope() == core::ScoreScope::Global) {
    policy.score_all(cluster, pod, feasible, explanation.scores);
  } else {
    for (std::size_t i = 0; i < feasible.size(); ++i) {
      explanation.scores[i] = policy.score(cluster, *pod.shape, cluster.node(feasible[i]));
    }
  }
  // The first of equals, since `feasible` is in node order.
  const auto best = std::ranges::max_element(explanation.scores);
  const auto at = static_cast<std::size_t>(best - explanation.scores.begin());
  explanation.node = feasible[at];
  policy.choose(cluster, *pod.shape, cluster.node(feasible[at]), explanation.holds);
}

}  // namespace

Result<Explanation> explain(core::Cluster& cluster, core::PodId pod, std::string_view policy_name) {
  JOGAK_TRY(const std::unique_ptr<core::Policy> policy, core::make_policy(policy_name, 1));
  Explanation result;
  result.pod = cluster.pod_full_name(pod);
  result.policy = policy->name();
  result.bound_node = node_of(cluster, pod);
  if (!result.bound_node.empty()) pod = as_pending(cluster, pod);
  result.asked = asked_resources(cluster, pod);
  result.evaluation = core::evaluate(cluster, pod);
  result.refused = group_refusals(result.evaluation);
  if (result.evaluation.outcome == core::Outcome::Scheduled) {
    result.ask = cluster.shape_of(pod).spec.gpu.kind;
    let_policy_choose(cluster, *policy, core::PodView::of(cluster, pod), result);
  }
  return result;
}

}  // namespace jogak::cli
