// SPDX-License-Identifier: Apache-2.0
// See inter_pod_affinity_score.h. Facts: kube-scheduler 1.36, plugin interpodaffinity (scoring),
// with default arguments; namespace selectors are judged by the labels of the namespace (kubernetes
// issue 141526).
#include "core/score/inter_pod_affinity_score.h"

#include <algorithm>
#include <unordered_map>

#include "core/filter/inter_pod_affinity.h"
#include "core/filter/topology_domains.h"

namespace jogak::core {
namespace {

constexpr std::int64_t kMaxScore = 100;
// InterPodAffinityArgs.hardPodAffinityWeight: what a placed pod's required affinity towards this
// pod is worth.
constexpr std::int64_t kHardPodAffinityWeight = 1;

struct KeyScores {
  TopologyDomains domains;
  std::vector<std::int64_t> sums;  // by domain
};

// What one kind of placed pod (shape and identity) adds to its domain of a key.
struct Addition {
  std::size_t key = 0;  // index of KeyScores
  std::int64_t weight = 0;
};

class AffinitySums {
 public:
  AffinitySums(const Cluster& cluster, const PodView& pod) : cluster_(cluster), pod_(pod) {}

  void add_pod(const Pod& other) {
    for (const Addition& a : additions(other.shape, other.identity)) {
      KeyScores& key = keys_[a.key];
      const std::int32_t domain = key.domains.of(other.node);
      if (domain == TopologyDomains::kMissing) continue;
      key.sums[static_cast<std::size_t>(domain)] += a.weight;
      any_ = true;
    }
  }

  // False: no term of anybody selected anybody, so there is nothing to score.
  bool any() const { return any_; }

  std::int64_t of(NodeId node) const {
    std::int64_t sum = 0;
    for (const KeyScores& key : keys_) {
      const std::int32_t domain = key.domains.of(node);
      if (domain != TopologyDomains::kMissing) sum += key.sums[static_cast<std::size_t>(domain)];
    }
    return sum;
  }

 private:
  const std::vector<Addition>& additions(ShapeId shape, IdentityId identity) {
    const std::uint64_t kind = (std::uint64_t{shape.value} << 32) | identity.value;
    const auto [it, is_new] = additions_.try_emplace(kind);
    if (!is_new) return it->second;
    std::vector<Addition>& out = it->second;
    const Identity& other = cluster_.identity(identity);
    const PodShape& mine = pod_.shape->spec;
    const PodShape& theirs = cluster_.shape(shape).spec;
    for (const auto& t : mine.preferred_affinity) add(out, t, *pod_.identity, other, t.weight);
    for (const auto& t : mine.preferred_anti_affinity) {
      add(out, t, *pod_.identity, other, -t.weight);
    }
    for (const auto& t : theirs.required_affinity) {
      add(out, t, other, *pod_.identity, kHardPodAffinityWeight);
    }
    for (const auto& t : theirs.preferred_affinity) add(out, t, other, *pod_.identity, t.weight);
    for (const auto& t : theirs.preferred_anti_affinity) {
      add(out, t, other, *pod_.identity, -t.weight);
    }
    return out;
  }

  void add(std::vector<Addition>& out, const PodAffinityTerm& term, const Identity& owner,
           const Identity& target, std::int64_t weight) {
    Symbol key;
    if (!cluster_.symbols().find(term.topology_key, key)) return;  // no node has it
    if (!affinity_term_selects(cluster_, term, owner.ns, target)) return;
    out.push_back({.key = key_index(key), .weight = weight});
  }

  std::size_t key_index(Symbol key) {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i].domains.key() == key) return i;
    }
    KeyScores& scores = keys_.emplace_back();
    scores.domains.build(cluster_, cluster_.text(key));
    scores.sums.assign(scores.domains.size(), 0);
    return keys_.size() - 1;
  }

  const Cluster& cluster_;
  const PodView& pod_;
  std::vector<KeyScores> keys_;
  std::unordered_map<std::uint64_t, std::vector<Addition>> additions_;
  bool any_ = false;
};

// 100 * part / range as kube-scheduler gets it: the quotient is rounded before it is scaled and
// cut, so that 29/100 gives 28. A quotient and a product are exact to the last bit on every
// machine.
std::int64_t percent(std::int64_t part, std::int64_t range) {
  using Real = double;  // tidy: kube-float (reproduces the integers of the original)
  const Real quotient = static_cast<Real>(part) / static_cast<Real>(range);
  return static_cast<std::int64_t>(static_cast<Real>(kMaxScore) * quotient);
}

void normalise(std::vector<std::int64_t>& scores) {
  const auto [least, most] = std::ranges::minmax(scores);
  const std::int64_t range = most - least;
  for (std::int64_t& score : scores) score = range == 0 ? 0 : percent(score - least, range);
}

}  // namespace

std::optional<std::vector<std::int64_t>> inter_pod_affinity_score(
    const Cluster& cluster, const PodView& pod, std::span<const NodeId> feasible) {
  const PodShape& mine = pod.shape->spec;
  if (mine.preferred_affinity.empty() && mine.preferred_anti_affinity.empty() &&
      cluster.placed_with_affinity() == 0) {
    return std::nullopt;
  }
  AffinitySums sums(cluster, pod);
  for (const Pod& other : cluster.pods()) {
    if (other.state == PodState::Placed) sums.add_pod(other);
  }
  if (!sums.any()) return std::nullopt;
  std::vector<std::int64_t> scores;
  scores.reserve(feasible.size());
  for (const NodeId node : feasible) scores.push_back(sums.of(node));
  if (!scores.empty()) normalise(scores);
  return scores;
}

}  // namespace jogak::core
