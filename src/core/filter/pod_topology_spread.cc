// SPDX-License-Identifier: Apache-2.0
// See pod_topology_spread.h. Facts: kube-scheduler 1.36, plugin podtopologyspread, with the
// counting of its preemption dry run repaired (only what was counted is taken away).
#include "core/filter/pod_topology_spread.h"

#include <algorithm>

#include "base/check.h"
#include "base/digest.h"
#include "core/filter/selector.h"

namespace jogak::core {
namespace {

constexpr std::string_view kMissingLabel =
    "node(s) didn't match pod topology spread constraints (missing required label)";
constexpr std::string_view kSkew = "node(s) didn't match pod topology spread constraints";

}  // namespace

std::optional<LabelSelector> spread_selector(const SpreadConstraint& constraint,
                                             const Labels& pod_labels) {
  std::optional<LabelSelector> selector = constraint.selector;
  for (const std::string& key : constraint.match_label_keys) {
    const std::string* const value = find_label(pod_labels, key);
    if (value == nullptr) continue;
    if (!selector) selector.emplace();
    selector->requirements.push_back({key, SelectorOp::In, {*value}});
  }
  return selector;
}

bool spread_counts(const std::optional<LabelSelector>& selector, std::string_view ns,
                   const Identity& other) {
  return selector && !selector->requirements.empty() && other.ns == ns &&
         matches(*selector, other.labels);
}

bool spread_includes_node(const Cluster& cluster, const PodShape& pod,
                          const SpreadConstraint& constraint, const Node& node) {
  if (constraint.honor_node_affinity && !required_node_affinity_matches(cluster, pod, node)) {
    return false;
  }
  return !constraint.honor_node_taints || tolerates_node(pod, node);
}

// Counts move by one, so that the smallest count moves by at most one too.
void PodTopologySpreadFilter::Constraint::add(std::int32_t domain, int delta) {
  const auto d = static_cast<std::size_t>(domain);
  JOGAK_DCHECK(exists[d] && (delta == 1 || delta == -1));
  const auto before = static_cast<std::size_t>(pods[d]);
  pods[d] += delta;
  JOGAK_CHECK(pods[d] >= 0, "a pod left a domain in which it was not counted");
  const auto after = static_cast<std::size_t>(pods[d]);
  if (after >= with_pods.size()) with_pods.resize(after + 1);
  --with_pods[before];
  ++with_pods[after];
  smallest = std::min(smallest, pods[d]);
  if (with_pods[static_cast<std::size_t>(smallest)] == 0) ++smallest;
}

void PodTopologySpreadFilter::settle(Constraint& c) {
  std::int64_t largest = 0;
  c.existing = 0;
  for (std::size_t d = 0; d < c.pods.size(); ++d) {
    if (!c.exists[d]) continue;
    c.smallest = c.existing == 0 ? c.pods[d] : std::min(c.smallest, c.pods[d]);
    largest = std::max(largest, c.pods[d]);
    ++c.existing;
  }
  c.with_pods.assign(static_cast<std::size_t>(largest) + 1, 0);
  for (std::size_t d = 0; d < c.pods.size(); ++d) {
    if (c.exists[d]) ++c.with_pods[static_cast<std::size_t>(c.pods[d])];
  }
}

PreFilter PodTopologySpreadFilter::build(const Cluster& cluster, const PodView& pod) {
  constraints_.clear();
  std::vector<const SpreadConstraint*> hard;
  for (const SpreadConstraint& constraint : pod.shape->spec.spread) {
    if (constraint.hard) hard.push_back(&constraint);
  }
  if (!hard.empty()) build_counts(cluster, pod, hard);
  return {};
}

void PodTopologySpreadFilter::build_counts(const Cluster& cluster, const PodView& pod,
                                           const std::vector<const SpreadConstraint*>& hard) {
  const std::size_t slots = cluster.nodes().size();
  constraints_.resize(hard.size());
  for (std::size_t i = 0; i < hard.size(); ++i) {
    Constraint& c = constraints_[i];
    c.max_skew = hard[i]->max_skew;
    c.min_domains = static_cast<std::size_t>(std::max(hard[i]->min_domains, 1));
    c.selector = spread_selector(*hard[i], pod.identity->labels);
    c.self = c.selector && matches(*c.selector, pod.identity->labels) ? 1 : 0;
    c.domains.build(cluster, hard[i]->topology_key);
    c.counted_node.assign(slots, false);
    c.pods.assign(c.domains.size(), 0);
    c.exists.assign(c.domains.size(), false);
  }

  for (const NodeId id : cluster.node_order()) {
    const auto lacks = [id](const Constraint& c) {
      return c.domains.of(id) == TopologyDomains::kMissing;
    };
    if (std::ranges::any_of(constraints_, lacks)) continue;
    for (std::size_t i = 0; i < hard.size(); ++i) {
      if (!spread_includes_node(cluster, pod.shape->spec, *hard[i], cluster.node(id))) continue;
      Constraint& c = constraints_[i];
      c.counted_node[id.value] = true;
      c.exists[static_cast<std::size_t>(c.domains.of(id))] = true;
    }
  }
  // Pods in the order in which they lie in memory, not node by node: that is many times faster.
  for (const Pod& other : cluster.pods()) {
    if (other.state != PodState::Placed || other.terminating) continue;
    for (Constraint& c : constraints_) {
      if (!counts(cluster, pod, c, other.identity, other.node)) continue;
      ++c.pods[static_cast<std::size_t>(c.domains.of(other.node))];
    }
  }
  for (Constraint& c : constraints_) settle(c);
}

Verdict PodTopologySpreadFilter::check(const Cluster&, const PodView&, NodeId node,
                                       Reasons* reasons) const {
  for (const Constraint& c : constraints_) {
    const std::int32_t domain = c.domains.of(node);
    if (domain == TopologyDomains::kMissing) {
      return refuse(Plugin::PodTopologySpread, Code::Unresolvable, reasons, kMissingLabel);
    }
    if (c.pods[static_cast<std::size_t>(domain)] + c.self - c.minimum() > c.max_skew) {
      return refuse(Plugin::PodTopologySpread, Code::Unschedulable, reasons, kSkew);
    }
  }
  return {};
}

void PodTopologySpreadFilter::pod_moved(const Cluster& cluster, const PodView& pod, PodId moved,
                                        NodeId node, int delta) {
  const Pod& p = cluster.pod(moved);
  count_pod(cluster, pod, p.identity, p.terminating, node, delta);
}

void PodTopologySpreadFilter::count_pod(const Cluster& cluster, const PodView& pod,
                                        IdentityId identity, bool terminating, NodeId node,
                                        int delta) {
  if (terminating) return;
  for (Constraint& c : constraints_) {
    if (counts(cluster, pod, c, identity, node)) c.add(c.domains.of(node), delta);
  }
}

bool PodTopologySpreadFilter::counts(const Cluster& cluster, const PodView& pod, Constraint& c,
                                     IdentityId identity, NodeId node) {
  return c.counted_node[node.value] && c.matches.get(identity.value, [&] {
    return spread_counts(c.selector, pod.identity->ns, cluster.identity(identity));
  });
}

bool PodTopologySpreadFilter::depends_on_hostname() const {
  return std::ranges::any_of(constraints_,
                             [](const Constraint& c) { return c.domains.per_node(); });
}

void PodTopologySpreadFilter::domain_keys(std::vector<Symbol>& out) const {
  for (const Constraint& c : constraints_) {
    if (!c.domains.known()) continue;
    const Symbol key = c.domains.key();
    if (std::ranges::find(out, key) == out.end()) out.push_back(key);
  }
}

std::uint64_t PodTopologySpreadFilter::digest() const {
  Digest digest;
  for (const Constraint& c : constraints_) {
    digest.add(c.self).add(c.existing).add(c.minimum());
    for (std::size_t d = 0; d < c.pods.size(); ++d) {
      digest.add(c.pods[d]).add(static_cast<bool>(c.exists[d]));
    }
  }
  return digest.value();
}

}  // namespace jogak::core
