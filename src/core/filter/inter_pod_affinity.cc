// SPDX-License-Identifier: Apache-2.0
// See inter_pod_affinity.h. Facts: kube-scheduler 1.36, plugin interpodaffinity, with two repairs:
// namespace selectors are judged by the labels of the namespace in both directions (kubernetes
// issue 141526), and anti-affinity of nominated pods counts also where no placed pod has any.
#include "core/filter/inter_pod_affinity.h"

#include <algorithm>

#include "base/check.h"
#include "base/digest.h"
#include "core/filter/selector.h"

namespace jogak::core {
namespace {

constexpr std::string_view kAffinity = "node(s) didn't match pod affinity rules";
constexpr std::string_view kAntiAffinity = "node(s) didn't match pod anti-affinity rules";
constexpr std::string_view kExisting = "node(s) didn't satisfy existing pods anti-affinity rules";

bool term_covers_namespace(const Cluster& cluster, const PodAffinityTerm& term,
                           std::string_view owner_ns, std::string_view ns) {
  if (term.namespaces.empty() && !term.namespace_selector) return ns == owner_ns;
  if (std::ranges::find(term.namespaces, ns) != term.namespaces.end()) return true;
  if (!term.namespace_selector) return false;
  const auto& namespaces = cluster.objects().namespaces;
  const auto it = namespaces.find(ns);
  return matches(*term.namespace_selector, it == namespaces.end() ? Labels{} : it->second.labels);
}

}  // namespace

bool affinity_term_selects(const Cluster& cluster, const PodAffinityTerm& term,
                           std::string_view owner_ns, const Identity& other) {
  return term.selector && term_covers_namespace(cluster, term, owner_ns, other.ns) &&
         matches(*term.selector, other.labels);
}

void InterPodAffinityFilter::Counts::build(const Cluster& cluster, std::string_view key) {
  domains.build(cluster, key);
  pods.assign(domains.size(), 0);
  total = 0;
}

void InterPodAffinityFilter::Counts::add(NodeId node, int delta) {
  const std::int32_t domain = domains.of(node);
  if (domain == TopologyDomains::kMissing) return;
  std::int64_t& count = pods[static_cast<std::size_t>(domain)];
  count += delta;
  total += delta;
  JOGAK_CHECK(count >= 0, "a pod left a domain in which it was not counted");
}

bool InterPodAffinityFilter::Counts::any_at(NodeId node) const {
  const std::int32_t domain = domains.of(node);
  return domain != TopologyDomains::kMissing && pods[static_cast<std::size_t>(domain)] > 0;
}

PreFilter InterPodAffinityFilter::build(const Cluster& cluster, const PodView& pod) {
  *this = InterPodAffinityFilter();
  const PodShape& spec = pod.shape->spec;
  for (const PodAffinityTerm& term : spec.required_affinity) {
    const bool have = std::ranges::any_of(affinity_, [&](const Counts& c) {
      return c.domains.known() && cluster.text(c.domains.key()) == term.topology_key;
    });
    if (!have) affinity_.emplace_back().build(cluster, term.topology_key);
  }
  for (const PodAffinityTerm& term : spec.required_anti_affinity) {
    AntiTerm& anti = anti_.emplace_back();
    anti.term = &term;
    anti.counts.build(cluster, term.topology_key);
  }
  matches_itself_ = selects_all(cluster, pod, *pod.identity);

  const bool own_terms = !affinity_.empty() || !anti_.empty();
  if (!own_terms && cluster.placed_with_affinity() == 0) return {};
  for (const Pod& other : cluster.pods()) {
    if (other.state != PodState::Placed) continue;
    count_pod(cluster, pod, other.shape, other.identity, other.node, 1);
  }
  return {};
}

bool InterPodAffinityFilter::selects_all(const Cluster& cluster, const PodView& pod,
                                         const Identity& other) const {
  return std::ranges::all_of(pod.shape->spec.required_affinity, [&](const PodAffinityTerm& term) {
    return affinity_term_selects(cluster, term, pod.identity->ns, other);
  });
}

// A pod counts for affinity only if it is selected by all terms together.
bool InterPodAffinityFilter::affinity_satisfied(NodeId node) const {
  bool all_near = true;
  for (const Counts& counts : affinity_) {
    if (counts.domains.of(node) == TopologyDomains::kMissing) return false;
    all_near = all_near && counts.any_at(node);
  }
  // The first pod of a series that wants to be near its own kind may go anywhere.
  return all_near || (affinity_total_ == 0 && matches_itself_);
}

Verdict InterPodAffinityFilter::check(const Cluster&, const PodView&, NodeId node,
                                      Reasons* reasons) const {
  if (!affinity_satisfied(node)) {
    return refuse(Plugin::InterPodAffinity, Code::Unresolvable, reasons, kAffinity);
  }
  if (std::ranges::any_of(anti_, [node](const AntiTerm& a) { return a.counts.any_at(node); })) {
    return refuse(Plugin::InterPodAffinity, Code::Unschedulable, reasons, kAntiAffinity);
  }
  if (against_total_ > 0 &&
      std::ranges::any_of(against_, [node](const Counts& c) { return c.any_at(node); })) {
    return refuse(Plugin::InterPodAffinity, Code::Unschedulable, reasons, kExisting);
  }
  return {};
}

void InterPodAffinityFilter::pod_moved(const Cluster& cluster, const PodView& pod, PodId moved,
                                       NodeId node, int delta) {
  const Pod& p = cluster.pod(moved);
  count_pod(cluster, pod, p.shape, p.identity, node, delta);
}

void InterPodAffinityFilter::count_pod(const Cluster& cluster, const PodView& pod, ShapeId shape,
                                       IdentityId identity, NodeId node, int delta) {
  if (!affinity_.empty() && selected_by_all_.get(identity.value, [&] {
        return selects_all(cluster, pod, cluster.identity(identity));
      })) {
    for (Counts& counts : affinity_) {
      affinity_total_ -= counts.total;
      counts.add(node, delta);
      affinity_total_ += counts.total;
    }
  }
  for (AntiTerm& anti : anti_) {
    if (anti.selects.get(identity.value, [&] {
          return affinity_term_selects(cluster, *anti.term, pod.identity->ns,
                                       cluster.identity(identity));
        })) {
      anti.counts.add(node, delta);
    }
  }
  if (cluster.shape(shape).spec.required_anti_affinity.empty()) return;
  for (const std::uint32_t index : terms_against(cluster, pod, shape, identity)) {
    Counts& counts = against_[index];
    against_total_ -= counts.total;
    counts.add(node, delta);
    against_total_ += counts.total;
  }
}

const std::vector<std::uint32_t>& InterPodAffinityFilter::terms_against(const Cluster& cluster,
                                                                        const PodView& pod,
                                                                        ShapeId shape,
                                                                        IdentityId identity) {
  const std::uint64_t kind = (std::uint64_t{shape.value} << 32) | identity.value;
  const auto [it, is_new] = terms_against_.try_emplace(kind);
  if (!is_new) return it->second;
  const std::string& ns = cluster.identity(identity).ns;
  for (const PodAffinityTerm& term : cluster.shape(shape).spec.required_anti_affinity) {
    Symbol key;
    if (!cluster.symbols().find(term.topology_key, key)) continue;  // no node has it
    if (!affinity_term_selects(cluster, term, ns, *pod.identity)) continue;
    it->second.push_back(against_index(cluster, key));
  }
  return it->second;
}

std::uint32_t InterPodAffinityFilter::against_index(const Cluster& cluster, Symbol key) {
  for (std::uint32_t i = 0; i < against_.size(); ++i) {
    if (against_[i].domains.key() == key) return i;
  }
  against_.emplace_back().build(cluster, cluster.text(key));
  return static_cast<std::uint32_t>(against_.size() - 1);
}

bool InterPodAffinityFilter::depends_on_hostname() const {
  const auto per_node = [](const Counts& c) { return c.domains.per_node(); };
  return std::ranges::any_of(affinity_, per_node) ||
         std::ranges::any_of(anti_,
                             [](const AntiTerm& a) { return a.counts.domains.per_node(); }) ||
         std::ranges::any_of(against_, per_node);
}

void InterPodAffinityFilter::domain_keys(std::vector<Symbol>& out) const {
  const auto add = [&out](const Counts& c) {
    if (!c.domains.known()) return;
    const Symbol key = c.domains.key();
    if (std::ranges::find(out, key) == out.end()) out.push_back(key);
  };
  for (const Counts& c : affinity_) add(c);
  for (const AntiTerm& a : anti_) add(a.counts);
  for (const Counts& c : against_) add(c);
}

std::uint64_t InterPodAffinityFilter::digest() const {
  // Moves may have brought a key that holds nobody any more, and keys come in the order of moves:
  // so counts are summed up without regard to order, zeros left out.
  const auto of = [](std::uint64_t kind, const Counts& c) {
    std::uint64_t sum = 0;
    for (std::size_t d = 0; d < c.pods.size(); ++d) {
      if (c.pods[d] == 0) continue;
      sum += Digest().add(kind).add(c.domains.key().value).add(d).add(c.pods[d]).value();
    }
    return sum;
  };
  std::uint64_t sum = Digest().add(affinity_total_).add(against_total_).value();
  for (const Counts& c : affinity_) sum += of(0, c);
  for (std::size_t i = 0; i < anti_.size(); ++i) sum += of(1 + i, anti_[i].counts);
  for (const Counts& c : against_) sum += of(~std::uint64_t{0}, c);
  return sum;
}

}  // namespace jogak::core
