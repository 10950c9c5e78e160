// SPDX-License-Identifier: Apache-2.0
// Building a class's index once, following the change log after that, and answering from it.
#include "core/engine/class_index.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace jogak::core {
namespace {

// What a class remembers of the nodes that changed lies far apart and is seldom in the cache: it is
// asked for this many log entries early.
constexpr std::uint64_t kPrefetchAhead = 6;

}  // namespace

ClassIndex::ClassIndex(const Cluster& cluster, Policy& policy, SyncScratch& scratch,
                       const PodView& view)
    : cluster_(cluster), policy_(policy), view_(view), scratch_(scratch) {
  view_.id = kNoPod;
  rebuild();
}

ClassIndex::Place ClassIndex::place(NodeId node) const {
  return place_.empty() ? Place{0, cluster_.rank(node)} : place_[node.value];
}

NodeId ClassIndex::node_at(const Domain& domain, std::size_t leaf) const {
  return place_.empty() ? cluster_.node_order()[leaf] : domain.nodes[leaf];
}

// ---- building -------------------------------------------------------------------------------

void ClassIndex::rebuild() {
  topology_version_ = cluster_.topology_version();
  labels_version_ = cluster_.labels_version();
  objects_version_ = cluster_.objects_version();
  epoch_ = policy_.epoch();
  log_position_ = cluster_.change_end();
  refused_whole_ = false;
  const PreFilter spread = spread_.build(cluster_, view_);
  const PreFilter affinity = affinity_.build(cluster_, view_);
  if (!spread.verdict.fits() || !affinity.verdict.fits()) {
    refused_whole_ = true;
    refused_by_ = spread.verdict.fits() ? affinity.verdict.plugin : spread.verdict.plugin;
  }
  const std::size_t slots = cluster_.nodes().size();
  static_.assign(slots, Verdict{});
  local_.assign(slots, Verdict{Plugin::None, Code::Unresolvable});
  local_refusals_ = {};
  local_feasible_ = 0;
  build_domains();
  for (const NodeId node : cluster_.node_order()) {
    // Everything starts as refused by "nobody"; refresh() moves it to where it belongs.
    ++local_refusals_[static_cast<std::size_t>(Plugin::None)];
    refresh(node, true);
  }
}

std::vector<Symbol> ClassIndex::rule_keys() const {
  std::vector<Symbol> keys;
  if (spread_.active()) spread_.domain_keys(keys);
  affinity_.domain_keys(keys);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

// Nodes with the same values for every key the rules read share a domain.
void ClassIndex::build_domains() {
  domains_.clear();
  place_.clear();
  keys_ = rule_keys();
  // A key that counts nobody yet may count somebody after the next move, without another rebuild.
  if (!has_rules() && keys_.empty()) {
    domains_.resize(1);
    domains_.front().tree.reset(cluster_.node_order().size());
    return;
  }
  place_.resize(cluster_.nodes().size());
  std::map<std::vector<std::uint32_t>, std::uint32_t> by_values;  // looked up; order is first use
  std::vector<std::uint32_t> values;
  for (const NodeId id : cluster_.node_order()) {
    values.clear();
    for (const Symbol key : keys_) {
      const Symbol* value = cluster_.node(id).label(key);
      values.push_back(value != nullptr ? value->value + 1 : 0);  // 0: no such label
    }
    const auto [at, fresh] =
        by_values.try_emplace(values, static_cast<std::uint32_t>(domains_.size()));
    if (fresh) domains_.emplace_back();
    Domain& domain = domains_[at->second];
    place_[id.value] = {at->second, static_cast<std::uint32_t>(domain.nodes.size())};
    domain.nodes.push_back(id);
  }
  for (Domain& domain : domains_) domain.tree.reset(domain.nodes.size());
}

// ---- following changes ----------------------------------------------------------------------

void ClassIndex::sync() {
  // What rules remember of labels and namespaces is not followed but read again. A pod without
  // constraints is under rules too where placed pods may have something against it.
  const bool under_rules =
      view_.shape->has_pod_constraints || cluster_.placed_with_affinity() > 0 || has_rules();
  const bool rules_moved = objects_version_ != cluster_.objects_version() ||
                           labels_version_ != cluster_.labels_version();
  if (topology_version_ != cluster_.topology_version() || log_position_ < cluster_.change_begin() ||
      (under_rules && rules_moved)) {
    rebuild();
    return;
  }
  const std::uint64_t end = cluster_.change_end();
  std::uint64_t facts_end = log_position_;
  for (std::uint64_t i = log_position_; i < end; ++i) {
    const Change& change = cluster_.change(i);
    if (change.delta == 0) facts_end = i + 1;
  }
  if (has_rules() || cluster_.placed_with_affinity() > 0) {
    for (std::uint64_t i = log_position_; i < end; ++i) apply(cluster_.change(i));
    if (rule_keys() != keys_) {
      rebuild();  // a pod brought a topology key that no rule had read so far
      return;
    }
  }
  for (std::uint64_t i = log_position_; i < facts_end; ++i) {
    const Change& change = cluster_.change(i);
    if (change.delta == 0) refresh(change.node, true);
  }
  // However often a node changed, its own verdict is asked once.
  scratch_.seen.resize(cluster_.nodes().size(), 0);
  ++scratch_.stamp;
  for (std::uint64_t i = log_position_; i < end; ++i) {
    if (i + kPrefetchAhead < end) prefetch(cluster_.change(i + kPrefetchAhead).node);
    const NodeId node = cluster_.change(i).node;
    if (scratch_.seen[node.value] == scratch_.stamp) continue;
    scratch_.seen[node.value] = scratch_.stamp;
    refresh(node, false);
  }
  log_position_ = end;
  if (epoch_ != policy_.epoch()) rescore();
}

void ClassIndex::prefetch(NodeId node) const {
  __builtin_prefetch(&static_[node.value]);
  __builtin_prefetch(&local_[node.value], 1);
  const Place at = place(node);
  domains_[at.domain].tree.prefetch(at.leaf);
}

void ClassIndex::rescore() {
  epoch_ = policy_.epoch();
  for (const NodeId id : cluster_.node_order()) {
    if (!local_[id.value].fits()) continue;
    const Place at = place(id);
    domains_[at.domain].tree.set(at.leaf, score_of(cluster_.node(id)));
  }
}

void ClassIndex::count_local(Domain& domain, bool fits) {
  const std::uint32_t step = fits ? 1U : ~0U;  // +1 or -1, modulo 2^32
  domain.local_feasible += step;
  local_feasible_ += step;
}

void ClassIndex::apply(const Change& change) {
  if (!change.pod.valid()) return;
  if (spread_.active()) {
    spread_.count_pod(cluster_, view_, change.identity, change.terminating, change.node,
                      change.delta);
  }
  // Also while inactive: a pod with anti-affinity against this class makes it active.
  affinity_.count_pod(cluster_, view_, change.shape, change.identity, change.node, change.delta);
}

std::int64_t ClassIndex::score_of(const Node& node) {
  if (policy_.scope() == ScoreScope::Global) return 0;
  const std::int64_t score = policy_.score(cluster_, *view_.shape, node);
  JOGAK_DCHECK(score != MaxTree::kNone);
  return score;
}

void ClassIndex::refresh(NodeId id, bool facts_changed) {
  const Node& node = cluster_.node(id);
  JOGAK_DCHECK(node.alive);
  if (facts_changed) static_[id.value] = static_filters(cluster_, view_, node);
  Verdict verdict = static_[id.value];
  // Declared features are a fact, but that filter runs after the fit: a node that fails both shows
  // the fit's refusal.
  if (verdict.fits() || verdict.plugin == Plugin::NodeDeclaredFeatures) {
    verdict = first_refusal(verdict, dynamic_local_filters(cluster_, view_, node));
  }
  const Place at = place(id);
  Domain& domain = domains_[at.domain];
  Verdict& old = local_[id.value];
  if (old.fits() != verdict.fits()) count_local(domain, verdict.fits());
  if (!old.fits()) --local_refusals_[static_cast<std::size_t>(old.plugin)];
  if (!verdict.fits()) ++local_refusals_[static_cast<std::size_t>(verdict.plugin)];
  old = verdict;
  domain.tree.set(at.leaf, verdict.fits() ? score_of(node) : MaxTree::kNone);
}

// ---- answers --------------------------------------------------------------------------------

Verdict ClassIndex::rules(NodeId node) const {
  if (spread_.active()) {
    const Verdict verdict = spread_.check(cluster_, view_, node, nullptr);
    if (!verdict.fits()) return verdict;
  }
  if (affinity_.active()) return affinity_.check(cluster_, view_, node, nullptr);
  return {};
}

NodeId ClassIndex::best() {
  NodeId best;
  best_score_ = MaxTree::kNone;
  if (refused_whole_) return best;
  std::uint32_t best_rank = 0;
  const bool ruled = has_rules();
  for (Domain& domain : domains_) {
    const std::int64_t top = domain.tree.top();
    if (top == MaxTree::kNone || top < best_score_) continue;
    const NodeId node = node_at(domain, domain.tree.first_top());
    const std::uint32_t rank = cluster_.rank(node);
    if (best.valid() && top == best_score_ && rank > best_rank) continue;
    if (ruled && !rules(node).fits()) continue;  // holds for the whole domain
    best = node;
    best_score_ = top;
    best_rank = rank;
  }
  return best;
}

void ClassIndex::feasible(std::vector<NodeId>& out) {
  out.clear();
  if (refused_whole_) return;
  std::vector<std::int8_t> open(domains_.size(), has_rules() ? -1 : 1);
  for (const NodeId node : cluster_.node_order()) {
    const Place at = place(node);
    if (domains_[at.domain].tree.value(at.leaf) == MaxTree::kNone) continue;
    std::int8_t& state = open[at.domain];
    if (state < 0) state = rules(node).fits() ? 1 : 0;
    if (state == 1) out.push_back(node);
  }
}

std::uint32_t ClassIndex::feasible_count() {
  if (refused_whole_) return 0;
  if (!has_rules()) return local_feasible_;
  std::uint32_t count = 0;
  for (const Domain& domain : domains_) {
    if (domain.local_feasible > 0 && rules(domain.nodes.front()).fits()) {
      count += domain.local_feasible;
    }
  }
  return count;
}

RefusalCounts ClassIndex::refusals() {
  RefusalCounts counts = local_refusals_;
  if (refused_whole_) {
    counts = {};
    counts[static_cast<std::size_t>(refused_by_)] =
        static_cast<std::uint32_t>(cluster_.node_count());
    return counts;
  }
  if (!has_rules()) return counts;
  for (const Domain& domain : domains_) {
    const Verdict verdict = rules(domain.nodes.front());
    if (!verdict.fits()) counts[static_cast<std::size_t>(verdict.plugin)] += domain.local_feasible;
  }
  return counts;
}

void ClassIndex::hide(NodeId node) {
  if (!local_[node.value].fits()) return;
  const Place at = place(node);
  domains_[at.domain].tree.set(at.leaf, MaxTree::kNone);
  count_local(domains_[at.domain], false);
}

void ClassIndex::reveal(NodeId node) {
  if (!local_[node.value].fits()) return;
  const Place at = place(node);
  domains_[at.domain].tree.set(at.leaf, score_of(cluster_.node(node)));
  count_local(domains_[at.domain], true);
}

std::size_t ClassIndex::bytes() const {
  std::size_t sum = static_.capacity() * sizeof(Verdict) + local_.capacity() * sizeof(Verdict) +
                    place_.capacity() * sizeof(Place);
  for (const Domain& domain : domains_) {
    sum += domain.tree.bytes() + domain.nodes.capacity() * sizeof(NodeId);
  }
  return sum;
}

}  // namespace jogak::core
