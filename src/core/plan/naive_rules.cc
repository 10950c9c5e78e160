// SPDX-License-Identifier: Apache-2.0
// Walks over all nodes and pods for every question: clarity is the only aim here.
#include "core/plan/naive_rules.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "core/plan/naive_labels.h"

namespace jogak::core::naive {
namespace {

std::string name_of(const Cluster& cluster, NodeId node) {
  return std::string(cluster.text(cluster.node(node).name));
}

// ---- host ports ----

bool same_port(const HostPort& a, const HostPort& b) {
  const bool any_ip = a.ip == "0.0.0.0" || b.ip == "0.0.0.0";
  return a.port == b.port && a.protocol == b.protocol && (any_ip || a.ip == b.ip);
}

std::string ports_rule(const Cluster& cluster, const PodShape& shape, NodeId node) {
  for (const PodId other : cluster.node(node).pods) {
    for (const HostPort& theirs : cluster.shape_of(other).spec.host_ports) {
      for (const HostPort& ours : shape.host_ports) {
        if (same_port(ours, theirs)) {
          return fmt::format("ports: {} of node {} belongs to {}", ours.port,
                             name_of(cluster, node), cluster.pod_full_name(other));
        }
      }
    }
  }
  return {};
}

// ---- inter-pod affinity ----

// Value of the topology key on the node.
std::optional<std::string> domain(const Cluster& cluster, NodeId node, const std::string& key) {
  for (const NodeLabel& label : cluster.node(node).labels) {
    if (cluster.text(label.key) == key) return std::string(cluster.text(label.value));
  }
  return std::nullopt;
}

bool selects(const Cluster& cluster, const PodAffinityTerm& term, const std::string& owner_ns,
             const Identity& other) {
  if (!term.selector || !holds(term.selector->requirements, labels_of(other.labels))) return false;
  if (term.namespaces.empty() && !term.namespace_selector) return other.ns == owner_ns;
  if (std::ranges::count(term.namespaces, other.ns) > 0) return true;
  return term.namespace_selector &&
         holds(term.namespace_selector->requirements, namespace_labels(cluster, other.ns));
}

bool selects_by_all(const Cluster& cluster, const std::vector<PodAffinityTerm>& terms,
                    const std::string& owner_ns, const Identity& other) {
  return std::ranges::all_of(
      terms, [&](const PodAffinityTerm& t) { return selects(cluster, t, owner_ns, other); });
}

std::vector<PodId> placed_pods(const Cluster& cluster) {
  std::vector<PodId> placed;
  for (std::uint32_t i = 0; i < cluster.pods().size(); ++i) {
    if (cluster.pods()[i].state == PodState::Placed) placed.push_back(PodId{i});
  }
  return placed;
}

bool same_domain(const Cluster& cluster, const std::string& key, NodeId a, NodeId b) {
  const auto value = domain(cluster, a, key);
  return value && value == domain(cluster, b, key);
}

std::string affinity_rule(const Cluster& cluster, PodId pod, NodeId node,
                          const std::vector<PodId>& placed) {
  const auto& terms = cluster.shape_of(pod).spec.required_affinity;
  const Identity& self = cluster.identity_of(pod);
  // A pod on a node without any of the topology keys is in no domain: it keeps nobody company.
  const auto is_somewhere = [&](PodId other) {
    return std::ranges::any_of(terms, [&](const PodAffinityTerm& term) {
      return domain(cluster, cluster.pod(other).node, term.topology_key) != std::nullopt;
    });
  };
  std::vector<PodId> company;
  for (const PodId other : placed) {
    if (selects_by_all(cluster, terms, self.ns, cluster.identity_of(other)) &&
        is_somewhere(other)) {
      company.push_back(other);
    }
  }
  // The first of a series that wants to be together has nobody to join.
  const bool first = company.empty() && selects_by_all(cluster, terms, self.ns, self);
  for (const PodAffinityTerm& term : terms) {
    const bool joined = std::ranges::any_of(company, [&](PodId other) {
      return same_domain(cluster, term.topology_key, node, cluster.pod(other).node);
    });
    if (joined || (first && domain(cluster, node, term.topology_key))) continue;
    return fmt::format("pod-affinity: nobody it wants shares {} with node {}", term.topology_key,
                       name_of(cluster, node));
  }
  return {};
}

std::string anti_affinity_rule(const Cluster& cluster, PodId pod, NodeId node,
                               const std::vector<PodId>& placed) {
  const auto& ours = cluster.shape_of(pod).spec.required_anti_affinity;
  const Identity& self = cluster.identity_of(pod);
  for (const PodId other : placed) {
    const Identity& them = cluster.identity_of(other);
    const auto& theirs = cluster.shape_of(other).spec.required_anti_affinity;
    const auto clash = [&](const PodAffinityTerm& term, const Identity& owner,
                           const Identity& target) {
      return selects(cluster, term, owner.ns, target) &&
             same_domain(cluster, term.topology_key, node, cluster.pod(other).node);
    };
    for (const PodAffinityTerm& term : ours) {
      if (clash(term, self, them)) {
        return fmt::format("pod-anti-affinity: it refuses {} in one {}",
                           cluster.pod_full_name(other), term.topology_key);
      }
    }
    for (const PodAffinityTerm& term : theirs) {
      if (clash(term, them, self)) {
        return fmt::format("pod-anti-affinity: {} refuses it in one {}",
                           cluster.pod_full_name(other), term.topology_key);
      }
    }
  }
  return {};
}

// ---- topology spread ----

bool matches_affinity(const PodShape& shape, const LabelMap& labels, std::string_view node_name) {
  if (!holds(shape.node_selector, labels)) return false;
  return !shape.node_affinity || some_term_holds(*shape.node_affinity, labels, node_name);
}

bool tolerates(const PodShape& shape, const Node& node) {
  return std::ranges::all_of(node.taints, [&](const Taint& taint) {
    return taint.effect == TaintEffect::PreferNoSchedule || tolerated(taint, shape.tolerations);
  });
}

// Nodes that take part in counting for one constraint.
bool counts_node(const Cluster& cluster, const PodShape& shape, const SpreadConstraint& c,
                 NodeId node) {
  const LabelMap labels = labels_of(cluster, node);
  for (const SpreadConstraint& any : shape.spread) {
    if (any.hard && !labels.contains(any.topology_key)) return false;
  }
  if (c.honor_node_affinity && !matches_affinity(shape, labels, name_of(cluster, node))) {
    return false;
  }
  return !c.honor_node_taints || tolerates(shape, cluster.node(node));
}

std::string spread_rule(const Cluster& cluster, PodId pod, NodeId node,
                        const std::vector<PodId>& placed) {
  const PodShape& shape = cluster.shape_of(pod).spec;
  const Identity& self = cluster.identity_of(pod);
  const LabelMap own = labels_of(self.labels);
  for (const SpreadConstraint& c : shape.spread) {
    if (!c.hard) continue;
    std::vector<Requirement> wanted;
    if (c.selector) wanted = c.selector->requirements;
    for (const std::string& key : c.match_label_keys) {
      if (own.contains(key)) wanted.push_back({key, SelectorOp::In, {own.at(key)}});
    }
    std::map<std::string, std::int64_t> count;
    for (const NodeId other : cluster.node_order()) {
      if (counts_node(cluster, shape, c, other)) count[*domain(cluster, other, c.topology_key)];
    }
    for (const PodId other : placed) {
      const Identity& them = cluster.identity_of(other);
      // An empty selector counts nobody, though the pod itself matches it.
      if (!c.selector || wanted.empty() || them.ns != self.ns) continue;
      if (cluster.pod(other).terminating || !holds(wanted, labels_of(them.labels))) continue;
      const NodeId at = cluster.pod(other).node;
      if (counts_node(cluster, shape, c, at)) ++count[*domain(cluster, at, c.topology_key)];
    }
    const auto here = domain(cluster, node, c.topology_key);
    if (!here) return fmt::format("spread: node has no {}", c.topology_key);
    std::int64_t least = count.empty() ? 0 : count.begin()->second;
    for (const auto& [value, pods] : count) least = std::min(least, pods);
    if (std::ssize(count) < c.min_domains) least = 0;
    const std::int64_t in_domain = count.contains(*here) ? count.at(*here) : 0;
    const std::int64_t one_more = c.selector && holds(wanted, own) ? 1 : 0;
    if (in_domain + one_more - least > c.max_skew) {
      return fmt::format("spread: {} {} would hold {}, the least has {}", c.topology_key, *here,
                         in_domain + one_more, least);
    }
  }
  return {};
}

}  // namespace

std::int64_t asked(const PodShape& shape, std::string_view resource) {
  for (const auto& [name, amount] : shape.requests) {
    if (name == resource) return amount;
  }
  return 0;
}

std::map<std::string, std::int64_t, std::less<>> capacity(const Cluster& cluster,
                                                          const Node& node) {
  std::map<std::string, std::int64_t, std::less<>> has = {
      {"cpu", node.cpu_allocatable},
      {"memory", node.memory_allocatable},
      {"ephemeral-storage", node.storage_allocatable},
  };
  for (const ScalarAmount& s : node.scalars) has.emplace(cluster.scalar_name(s.id), s.allocatable);
  return has;
}

std::string node_rules(const Cluster& cluster, PodId pod, NodeId id) {
  const PodShape& shape = cluster.shape_of(pod).spec;
  const Node& node = cluster.node(id);
  const std::string name = name_of(cluster, id);
  const Taint cordon{"node.kubernetes.io/unschedulable", "", TaintEffect::NoSchedule};
  if (node.unschedulable && !tolerated(cordon, shape.tolerations)) {
    return "unschedulable: node " + name + " is cordoned";
  }
  if (!tolerates(shape, node)) return "taints: node " + name + " has one it does not tolerate";
  if (!shape.node_name.empty() && shape.node_name != name) {
    return "node-name: it asks for node " + shape.node_name;
  }
  if (!matches_affinity(shape, labels_of(cluster, id), name)) {
    return "node-affinity: node " + name + " is not one it may use";
  }
  for (const std::string& feature : shape.required_features) {
    const bool has =
        std::ranges::any_of(node.features, [&](Symbol s) { return cluster.text(s) == feature; });
    if (!has) return fmt::format("features: node {} does not declare {}", name, feature);
  }
  return {};
}

std::string capacity_rules(const Cluster& cluster, PodId pod, NodeId id) {
  const Node& node = cluster.node(id);
  const PodShape& shape = cluster.shape_of(pod).spec;
  std::vector<PodId> company(node.pods.begin(), node.pods.end());
  for (const PodId other : cluster.nominated_pods()) {
    const Pod& p = cluster.pod(other);
    const PodShape& theirs = cluster.shape_of(other).spec;
    if (other != pod && p.nominated == id && p.state == PodState::Pending && theirs.gates.empty() &&
        theirs.priority >= shape.priority) {
      company.push_back(other);
    }
  }
  if (std::ssize(company) + 1 > node.pods_allocatable) {
    return fmt::format("capacity: node {} is full of pods", name_of(cluster, id));
  }
  const auto has = capacity(cluster, node);
  for (const auto& [resource, amount] : shape.requests) {
    if (amount == 0 || resource == "pods") continue;
    std::int64_t sum = amount;
    for (const PodId other : company) sum += asked(cluster.shape_of(other).spec, resource);
    const std::int64_t limit = has.contains(resource) ? has.at(resource) : 0;
    if (sum > limit) {
      return fmt::format("capacity: {} of node {} would be {} of {}", resource,
                         name_of(cluster, id), sum, limit);
    }
  }
  return ports_rule(cluster, shape, id);
}

std::string pod_rules(const Cluster& cluster, PodId pod, NodeId node) {
  const Shape& shape = cluster.shape_of(pod);
  // The counter saves a walk over all pods; validate_cluster() proves it.
  if (cluster.placed_with_affinity() == 0 && shape.spec.required_affinity.empty() &&
      shape.spec.required_anti_affinity.empty() && shape.spec.spread.empty()) {
    return {};
  }
  const std::vector<PodId> placed = placed_pods(cluster);
  std::string broken = affinity_rule(cluster, pod, node, placed);
  if (broken.empty()) broken = anti_affinity_rule(cluster, pod, node, placed);
  if (broken.empty()) broken = spread_rule(cluster, pod, node, placed);
  return broken;
}

}  // namespace jogak::core::naive
