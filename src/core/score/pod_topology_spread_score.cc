// SPDX-License-Identifier: Apache-2.0
// See pod_topology_spread_score.h. Facts: kube-scheduler 1.36, plugins podtopologyspread (scoring)
// and helper.DefaultSelector.
#include "core/score/pod_topology_spread_score.h"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "core/filter/pod_topology_spread.h"
#include "core/filter/selector.h"
#include "core/filter/topology_domains.h"

namespace jogak::core {
namespace {

constexpr std::string_view kHostname = "kubernetes.io/hostname";
constexpr std::string_view kZone = "topology.kubernetes.io/zone";
constexpr std::int64_t kMaxScore = 100;
constexpr std::int64_t kIgnored = -1;

// ---- logarithms in fixed point ------------------------------------------------------------------

__extension__ using Wide = __int128;
constexpr int kFraction = 60;  // bits after the point
constexpr Wide kOne = Wide{1} << kFraction;

// ln((1+z)/(1-z)) / 2 for 0 <= z <= 1/3: z + z^3/3 + z^5/5 + ...
Wide atanh_fixed(Wide z) {
  const Wide square = (z * z) >> kFraction;
  Wide power = z;
  Wide sum = 0;
  for (std::int64_t odd = 1; power != 0; odd += 2) {
    sum += power / odd;
    power = (power * square) >> kFraction;
  }
  return sum;
}

// ln(n) for n >= 1, as n = 2^k * m with 1 <= m < 2.
Wide ln_fixed(std::int64_t n) {
  int k = 0;
  while ((n >> (k + 1)) > 0) ++k;
  const Wide m = (Wide{n} << kFraction) >> k;
  const Wide z = ((m - kOne) << kFraction) / (m + kOne);
  return 2 * (atanh_fixed(z) + k * atanh_fixed(kOne / 3));
}

// ---- constraints --------------------------------------------------------------------------------

struct SoftConstraint {
  std::int64_t max_skew = 1;
  bool hostname = false;
  std::optional<LabelSelector> selector;
  SpreadConstraint policy;  // key and node policies
  TopologyDomains domains;
  std::vector<bool> scored;        // by domain: some scored node has the value
  std::vector<bool> counted_node;  // by NodeId: pods there count for their domain
  // By domain, the last one for nodes without the key; by NodeId where each host is a domain.
  std::vector<std::int64_t> pods;
  std::int64_t size = 0;  // distinct values among scored nodes
  AnswerCache matches;    // by identity

  std::size_t slot(NodeId node) const {
    const std::int32_t domain = domains.of(node);
    return domain == TopologyDomains::kMissing ? domains.size() : static_cast<std::size_t>(domain);
  }
};

struct SoftConstraints {
  std::vector<SoftConstraint> list;
  // Nodes that lack any of the keys are ignored; not so under the system's defaults, so that nodes
  // without a zone still spread by host.
  bool all_keys_required = true;
};

void add_constraint(const Cluster& cluster, SoftConstraints& out, const SpreadConstraint& spec,
                    std::optional<LabelSelector> selector) {
  SoftConstraint& c = out.list.emplace_back();
  c.max_skew = spec.max_skew;
  c.hostname = spec.topology_key == kHostname;
  c.selector = std::move(selector);
  c.policy = spec;
  c.domains.build(cluster, spec.topology_key);
  c.scored.assign(c.domains.size() + 1, false);
  c.counted_node.assign(cluster.nodes().size(), false);
  c.pods.assign(c.hostname ? cluster.nodes().size() : c.domains.size() + 1, 0);
}

SoftConstraints soft_constraints(const Cluster& cluster, const PodView& pod) {
  SoftConstraints out;
  if (!pod.shape->spec.spread.empty()) {
    for (const SpreadConstraint& spec : pod.shape->spec.spread) {
      if (spec.hard) continue;
      add_constraint(cluster, out, spec, spread_selector(spec, pod.identity->labels));
    }
    return out;
  }
  out.all_keys_required = false;
  const auto selector = default_spread_selector(cluster, *pod.identity);
  if (!selector) return out;
  SpreadConstraint spec;
  spec.hard = false;
  spec.topology_key = kHostname;
  spec.max_skew = 3;
  add_constraint(cluster, out, spec, selector);
  spec.topology_key = kZone;
  spec.max_skew = 5;
  add_constraint(cluster, out, spec, selector);
  return out;
}

bool has_all_keys(const SoftConstraints& constraints, NodeId node) {
  return std::ranges::none_of(constraints.list, [node](const SoftConstraint& c) {
    return c.domains.of(node) == TopologyDomains::kMissing;
  });
}

// The domains that scored nodes belong to. Counting by host happens per node and needs none.
void find_scored_domains(SoftConstraints& constraints, std::span<const NodeId> feasible) {
  std::int64_t scored_nodes = 0;
  for (const NodeId node : feasible) {
    if (constraints.all_keys_required && !has_all_keys(constraints, node)) continue;
    ++scored_nodes;
    for (SoftConstraint& c : constraints.list) {
      if (c.hostname || c.scored[c.slot(node)]) continue;
      c.scored[c.slot(node)] = true;
      ++c.size;
    }
  }
  for (SoftConstraint& c : constraints.list) {
    if (c.hostname) c.size = scored_nodes;
  }
}

// Which nodes count for a domain. Counting by host asks nothing of the node.
void find_counted_nodes(const Cluster& cluster, const PodView& pod, SoftConstraints& constraints) {
  for (const NodeId node : cluster.node_order()) {
    if (constraints.all_keys_required && !has_all_keys(constraints, node)) continue;
    for (SoftConstraint& c : constraints.list) {
      if (c.hostname || !c.scored[c.slot(node)]) continue;
      c.counted_node[node.value] =
          spread_includes_node(cluster, pod.shape->spec, c.policy, cluster.node(node));
    }
  }
}

// Pods in the order in which they lie in memory, not node by node: that is many times faster.
void count_pods(const Cluster& cluster, const PodView& pod, SoftConstraints& constraints) {
  for (const Pod& other : cluster.pods()) {
    if (other.state != PodState::Placed || other.terminating) continue;
    for (SoftConstraint& c : constraints.list) {
      if (!c.hostname && !c.counted_node[other.node.value]) continue;
      if (!c.matches.get(other.identity.value, [&] {
            return spread_counts(c.selector, pod.identity->ns, cluster.identity(other.identity));
          })) {
        continue;
      }
      ++c.pods[c.hostname ? other.node.value : c.slot(other.node)];
    }
  }
}

std::int64_t raw_score(const SoftConstraints& constraints, NodeId node,
                       std::vector<SpreadScoreTerm>& scratch) {
  scratch.clear();
  for (const SoftConstraint& c : constraints.list) {
    if (c.domains.of(node) == TopologyDomains::kMissing) continue;
    const std::int64_t pods = c.pods[c.hostname ? node.value : c.slot(node)];
    scratch.push_back({.pods = pods, .domains = c.size, .max_skew = c.max_skew});
  }
  return spread_raw_score(scratch);
}

void normalise(std::vector<std::int64_t>& scores) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = 0;
  for (const std::int64_t score : scores) {
    if (score == kIgnored) continue;
    least = std::min(least, score);
    most = std::max(most, score);
  }
  for (std::int64_t& score : scores) {
    if (score == kIgnored) {
      score = 0;
    } else {
      score = most == 0 ? kMaxScore : kMaxScore * (most + least - score) / most;
    }
  }
}

// ---- default selector ---------------------------------------------------------------------------

// A plain map of labels: a later value of the same key replaces the earlier one.
void merge(std::vector<Requirement>& into, const std::vector<Requirement>& from) {
  for (const Requirement& requirement : from) {
    const auto same = std::ranges::find(into, requirement.key, &Requirement::key);
    if (same == into.end()) {
      into.push_back(requirement);
    } else {
      *same = requirement;
    }
  }
}

const WorkloadSpec* find_owner(const Cluster& cluster, const Identity& identity) {
  const std::string& kind = identity.owner_kind;
  if (kind != "ReplicationController" && kind != "ReplicaSet" && kind != "StatefulSet") {
    return nullptr;
  }
  const auto& workloads = cluster.objects().workloads;
  const auto it = workloads.find(kind + "/" + identity.ns + "/" + identity.owner_name);
  return it != workloads.end() && it->second.selector ? &it->second : nullptr;
}

}  // namespace

std::optional<LabelSelector> default_spread_selector(const Cluster& cluster,
                                                     const Identity& identity) {
  LabelSelector selector;
  const auto& workloads = cluster.objects().workloads;
  const std::string prefix = "Service/" + identity.ns + "/";
  for (auto it = workloads.lower_bound(prefix);
       it != workloads.end() && it->first.starts_with(prefix); ++it) {
    const auto& service = it->second.selector;
    if (!service || !matches(*service, identity.labels)) continue;
    merge(selector.requirements, service->requirements);
  }
  if (const WorkloadSpec* const owner = find_owner(cluster, identity)) {
    const std::vector<Requirement>& more = owner->selector->requirements;
    if (owner->kind == "ReplicationController") {
      merge(selector.requirements, more);
    } else {
      selector.requirements.insert(selector.requirements.end(), more.begin(), more.end());
    }
  }
  if (selector.requirements.empty()) return std::nullopt;
  return selector;
}

std::int64_t spread_raw_score(std::span<const SpreadScoreTerm> terms) {
  Wide sum = 0;
  for (const SpreadScoreTerm& term : terms) {
    if (term.pods > 0) sum += term.pods * ln_fixed(term.domains + 2);
    sum += Wide{term.max_skew - 1} << kFraction;
  }
  return static_cast<std::int64_t>((sum + kOne / 2) >> kFraction);
}

std::optional<std::vector<std::int64_t>> pod_topology_spread_score(
    const Cluster& cluster, const PodView& pod, std::span<const NodeId> feasible) {
  SoftConstraints constraints = soft_constraints(cluster, pod);
  if (constraints.list.empty()) return std::nullopt;
  find_scored_domains(constraints, feasible);
  find_counted_nodes(cluster, pod, constraints);
  count_pods(cluster, pod, constraints);
  std::vector<SpreadScoreTerm> scratch;
  std::vector<std::int64_t> scores;
  scores.reserve(feasible.size());
  for (const NodeId node : feasible) {
    const bool ignored = constraints.all_keys_required && !has_all_keys(constraints, node);
    scores.push_back(ignored ? kIgnored : raw_score(constraints, node, scratch));
  }
  normalise(scores);
  return scores;
}

}  // namespace jogak::core
