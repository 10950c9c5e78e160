// SPDX-License-Identifier: Apache-2.0
// Events and moves of the cluster state, with the journal that undoes moves exactly.
#include "core/model/cluster.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace jogak::core {
namespace {

std::uint64_t name_key(std::string_view ns, std::string_view name) {
  return Digest().add(ns).add(name).value();
}

// How many log entries are kept: a reader further behind starts over, which costs it one look at
// every node, so the log need not be much longer than that.
std::size_t log_limit(std::size_t node_slots) {
  return std::max<std::size_t>(65536, 2 * node_slots);
}

// Empties the slots that are not used, and gives their ids to `free`.
template <class T, class Id>
std::size_t free_unused(std::deque<T>& all, const std::vector<bool>& used,
                        std::unordered_multimap<std::uint64_t, Id>& by_digest,
                        std::vector<Id>& free) {
  std::size_t freed = 0;
  // tidy: unordered-loop: which are freed does not depend on the order, and `free` is sorted below
  for (auto it = by_digest.begin(); it != by_digest.end();) {
    const Id id = it->second;
    if (used[id.value]) {
      ++it;
      continue;
    }
    all[id.value] = T{};
    free.push_back(id);
    it = by_digest.erase(it);
    ++freed;
  }
  std::ranges::sort(free, std::greater<>());
  return freed;
}

}  // namespace

// ---- nodes ----------------------------------------------------------------------------------

std::optional<NodeId> Cluster::find_node(std::string_view name) const {
  Symbol symbol;
  if (!symbols_.find(name, symbol)) return std::nullopt;
  const auto it = node_by_name_.find(symbol.value);
  if (it == node_by_name_.end()) return std::nullopt;
  return it->second;
}

Result<NodeId> Cluster::upsert_node(const NodeSpec& spec) {
  JOGAK_CHECK(marks_.empty(), "event inside a transaction");
  JOGAK_TRY_VOID(check_node(spec));
  const Symbol name = symbols_.intern(spec.name);
  NodeId id;
  const auto it = node_by_name_.find(name.value);
  const bool is_new = it == node_by_name_.end();
  const std::uint64_t digest = spec_digest(spec);
  if (!is_new) {
    id = it->second;
    if (nodes_[id.value].spec_digest == digest) return id;  // a heartbeat: nothing we read changed
  } else {
    if (free_nodes_.empty()) {
      id = NodeId{static_cast<std::uint32_t>(nodes_.size())};
      nodes_.emplace_back();
    } else {
      id = free_nodes_.back();
      free_nodes_.pop_back();
      nodes_[id.value] = Node{};
    }
    nodes_[id.value].name = name;
    nodes_[id.value].alive = true;
    node_by_name_.emplace(name.value, id);
    ++alive_nodes_;
    ++topology_version_;
  }
  set_node_facts(nodes_[id.value], spec, is_new);
  nodes_[id.value].spec_digest = digest;
  adopt_orphans(id);
  note_over(nodes_[id.value], true);
  log_change(id, kNoPod, 0);
  return id;
}

void Cluster::note_over(Node& node, bool observed) {
  const bool over = node.cpu_requested > node.cpu_allocatable ||
                    node.memory_requested > node.memory_allocatable ||
                    node.storage_requested > node.storage_allocatable ||
                    node.pod_count() > node.pods_allocatable ||
                    std::ranges::any_of(node.scalars, [](const ScalarAmount& s) {
                      return s.requested > s.allocatable;
                    });
  node.observed_over = over && (observed || node.observed_over);
}

void Cluster::remove_node(NodeId id) {
  JOGAK_CHECK(marks_.empty(), "event inside a transaction");
  JOGAK_CHECK(id.value < nodes_.size() && nodes_[id.value].alive);
  while (!nodes_[id.value].pods.empty()) {
    const PodId pod = nodes_[id.value].pods.back();
    Pod& p = pods_[pod.value];
    // It says itself which devices it holds, and will say so again after a restart: if the node
    // comes back they are its own still, as far as the node has them then.
    std::vector<GpuHold> holds = p.holds;
    const bool known = p.holds_known;
    do_unplace(pod);
    p.state = PodState::Orphan;
    p.orphan_node = nodes_[id.value].name;
    p.holds = std::move(holds);
    p.holds_known = known;
    orphans_.push_back(pod);
  }
  for (std::size_t i = nominated_.size(); i-- > 0;) {
    if (pods_[nominated_[i].value].nominated == id) do_nominate(nominated_[i], kNoNode);
  }
  Node& node = nodes_[id.value];
  for (const ImageId image : node.images) --images_[image.value].node_count;
  node_by_name_.erase(node.name.value);
  node = Node{};
  touch(node);
  free_nodes_.push_back(id);
  --alive_nodes_;
  ++topology_version_;
  log_change(id, kNoPod, 0);
}

void Cluster::adopt_orphans(NodeId id) {
  const Symbol name = nodes_[id.value].name;
  std::vector<PodId> adopted;
  for (const PodId pod : orphans_) {
    if (pods_[pod.value].orphan_node == name) adopted.push_back(pod);
  }
  if (adopted.empty()) return;
  std::erase_if(orphans_, [&](PodId p) { return pods_[p.value].orphan_node == name; });
  for (const PodId pod : adopted) {
    Pod& p = pods_[pod.value];
    p.state = PodState::Pending;
    p.orphan_node = Symbol{};
    place_observed(pod, id, std::exchange(p.holds, {}), p.holds_known);
  }
}

std::span<const NodeId> Cluster::node_order() const {
  if (order_version_ != topology_version_) {
    order_.clear();
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].alive) order_.push_back(NodeId{i});
    }
    std::sort(order_.begin(), order_.end(), [this](NodeId a, NodeId b) {
      const Node& x = nodes_[a.value];
      const Node& y = nodes_[b.value];
      return x.order != y.order ? x.order < y.order : text(x.name) < text(y.name);
    });
    rank_.assign(nodes_.size(), 0);
    for (std::uint32_t r = 0; r < order_.size(); ++r) rank_[order_[r].value] = r;
    order_version_ = topology_version_;
  }
  return order_;
}

std::uint32_t Cluster::rank(NodeId id) const {
  if (order_version_ != topology_version_) static_cast<void>(node_order());
  return rank_[id.value];
}

// ---- pods -----------------------------------------------------------------------------------

std::optional<PodId> Cluster::find_pod(std::string_view ns, std::string_view name) const {
  const auto [first, last] = pod_by_name_.equal_range(name_key(ns, name));
  for (auto it = first; it != last; ++it) {
    const Pod& pod = pods_[it->second.value];
    if (pod.name == name && identities_[pod.identity.value].ns == ns) return it->second;
  }
  return std::nullopt;
}

std::string Cluster::pod_full_name(PodId id) const {
  return identity_of(id).ns + "/" + pods_[id.value].name;
}

PodId Cluster::new_pod_slot() {
  if (free_pods_.empty()) {
    pods_.emplace_back();
    return PodId{static_cast<std::uint32_t>(pods_.size() - 1)};
  }
  const PodId id = free_pods_.back();
  free_pods_.pop_back();
  const std::uint32_t generation = pods_[id.value].generation;
  pods_[id.value] = Pod{};
  pods_[id.value].generation = generation + 1;
  return id;
}

PodId Cluster::add_pending(std::string_view name, std::string_view uid, ShapeId shape,
                           IdentityId identity) {
  JOGAK_CHECK(marks_.empty(), "event inside a transaction");
  const PodId id = new_pod_slot();
  Pod& pod = pods_[id.value];
  pod.name = name;
  pod.uid = uid;
  pod.shape = shape;
  pod.identity = identity;
  pod.state = PodState::Pending;
  pod_by_name_.emplace(name_key(identities_[identity.value].ns, name), id);
  return id;
}

Result<PodId> Cluster::upsert_pod(const PodSpec& spec) {
  JOGAK_TRY_VOID(check_pod(spec));
  const ShapeId shape = intern_shape(spec.shape);
  const IdentityId identity =
      intern_identity({spec.ns, spec.labels, spec.owner_kind, spec.owner_name});
  if (const auto old = find_pod(spec.ns, spec.name)) {
    if (is_same_place(pods_[old->value], spec, shape, identity)) {
      set_pod_state(*old, spec);
      return *old;
    }
    remove_pod(*old);
  }
  const PodId id = add_pending(spec.name, spec.uid, shape, identity);
  Pod& pod = pods_[id.value];
  pod.terminating = spec.terminating;
  pod.preemption_victim = spec.preemption_victim;
  pod.start_time = spec.start_time;
  if (!spec.bound_node.empty()) {
    const bool asks = spec.shape.gpu.kind != GpuAsk::None;
    std::vector<GpuHold> holds;
    if (asks && spec.holds) holds = *spec.holds;
    const bool known = !asks || spec.holds.has_value();
    std::ranges::sort(holds, {}, [](const GpuHold& h) { return std::tie(h.gpu, h.mig_start); });
    if (const auto node = find_node(spec.bound_node)) {
      place_observed(id, *node, std::move(holds), known);
      note_over(nodes_[node->value], true);
    } else {
      pod.state = PodState::Orphan;
      pod.orphan_node = symbols_.intern(spec.bound_node);
      pod.holds = std::move(holds);
      pod.holds_known = known;
      orphans_.push_back(id);
    }
  } else if (!spec.nominated_node.empty()) {
    if (const auto node = find_node(spec.nominated_node)) do_nominate(id, *node);
  }
  return id;
}

// The pod asks for the same and holds the same: what was seen of it is a matter of its state alone.
bool Cluster::is_same_place(const Pod& pod, const PodSpec& spec, ShapeId shape,
                            IdentityId identity) const {
  if (pod.uid != spec.uid || pod.shape != shape || pod.identity != identity) return false;
  if (pod.state == PodState::Pending) return spec.bound_node.empty();
  if (pod.state != PodState::Placed || text(nodes_[pod.node.value].name) != spec.bound_node) {
    return false;
  }
  if (spec.shape.gpu.kind == GpuAsk::None) return true;
  if (!spec.holds) return !pod.holds_known;
  std::vector<GpuHold> holds = *spec.holds;
  std::ranges::sort(holds, {}, [](const GpuHold& h) { return std::tie(h.gpu, h.mig_start); });
  return pod.holds_known && holds == pod.holds;
}

void Cluster::set_pod_state(PodId id, const PodSpec& spec) {
  set_terminating(id, spec.terminating);
  Pod& pod = pods_[id.value];
  pod.preemption_victim = spec.preemption_victim;
  pod.start_time = spec.start_time;
  if (pod.state != PodState::Pending) return;
  const auto node = find_node(spec.nominated_node);
  const NodeId nominated = node.value_or(kNoNode);
  if (nominated != pod.nominated) do_nominate(id, nominated);
}

void Cluster::remove_pod(PodId id) {
  JOGAK_CHECK(marks_.empty(), "event inside a transaction");
  Pod& pod = pods_[id.value];
  JOGAK_CHECK(pod.state != PodState::Gone);
  if (pod.state == PodState::Placed) {
    Node& node = nodes_[pod.node.value];
    do_unplace(id);
    note_over(node, false);
  }
  if (pod.state == PodState::Orphan) std::erase(orphans_, id);
  do_nominate(id, kNoNode);
  const auto [first, last] =
      pod_by_name_.equal_range(name_key(identities_[pod.identity.value].ns, pod.name));
  for (auto it = first; it != last; ++it) {
    if (it->second == id) {
      pod_by_name_.erase(it);
      break;
    }
  }
  const std::uint32_t generation = pod.generation;
  pod = Pod{};
  pod.generation = generation;
  free_pods_.push_back(id);
}

void Cluster::set_terminating(PodId id, bool is_terminating) {
  JOGAK_CHECK(marks_.empty(), "event inside a transaction");
  Pod& pod = pods_[id.value];
  if (pod.terminating == is_terminating) return;
  if (pod.state != PodState::Placed) {
    pod.terminating = is_terminating;
    return;
  }
  // Spread counts it or not while resources stay booked: tell readers as a move out and in.
  log_change(pod.node, id, -1);
  pod.terminating = is_terminating;
  log_change(pod.node, id, +1);
  touch(nodes_[pod.node.value]);
}

std::size_t Cluster::collect_interned() {
  JOGAK_CHECK(marks_.empty(), "event inside a transaction");
  std::vector<bool> shapes(shapes_.size()), identities(identities_.size());
  for (const Pod& pod : pods_) {
    if (pod.state == PodState::Gone) continue;
    shapes[pod.shape.value] = true;
    identities[pod.identity.value] = true;
  }
  std::size_t freed = 0;
  freed += free_unused(shapes_, shapes, shape_by_digest_, free_shapes_);
  freed += free_unused(identities_, identities, identity_by_digest_, free_identities_);
  if (freed == 0) return 0;
  // Whoever remembers an id of the freed must start over.
  ++intern_epoch_;
  ++topology_version_;
  change_base_ += changes_.size();
  changes_.clear();
  return freed;
}

// ---- moves ----------------------------------------------------------------------------------

void Cluster::do_place(PodId id, NodeId node_id, std::vector<GpuHold> holds, bool known) {
  Pod& pod = pods_[id.value];
  Node& node = nodes_[node_id.value];
  JOGAK_CHECK(pod.state == PodState::Pending && node.alive);
  pod.state = PodState::Placed;
  pod.node = node_id;
  pod.holds = std::move(holds);
  pod.holds_known = known;
  pod.slot_in_node = static_cast<std::uint32_t>(node.pods.size());
  node.pods.push_back(id);
  book(pod, node, +1);
  if (shapes_[pod.shape.value].has_affinity_terms) ++placed_with_affinity_;
  touch(node);
  log_change(node_id, id, +1);
}

void Cluster::place_observed(PodId id, NodeId node, std::vector<GpuHold> holds, bool known) {
  if (known && !plausible(shape_of(id).spec.gpu, nodes_[node.value], holds)) {
    holds.clear();
    known = false;
  }
  do_place(id, node, std::move(holds), known);
}

void Cluster::do_unplace(PodId id) {
  Pod& pod = pods_[id.value];
  JOGAK_CHECK(pod.state == PodState::Placed);
  Node& node = nodes_[pod.node.value];
  log_change(pod.node, id, -1);
  const PodId last = node.pods.back();
  node.pods[pod.slot_in_node] = last;
  pods_[last.value].slot_in_node = pod.slot_in_node;
  node.pods.pop_back();
  book(pod, node, -1);
  if (shapes_[pod.shape.value].has_affinity_terms) --placed_with_affinity_;
  touch(node);
  pod.state = PodState::Pending;
  pod.node = kNoNode;
  pod.holds.clear();
  pod.holds_known = true;
}

void Cluster::do_nominate(PodId id, NodeId node) {
  Pod& pod = pods_[id.value];
  if (pod.nominated == node) return;
  const auto at = std::lower_bound(nominated_.begin(), nominated_.end(), id);
  if (pod.nominated.valid() && !node.valid()) nominated_.erase(at);
  if (!pod.nominated.valid() && node.valid()) nominated_.insert(at, id);
  pod.nominated = node;
}

void Cluster::place(PodId id, NodeId node, std::span<const GpuHold> holds) {
  JOGAK_CHECK(id.value < pods_.size() && node.value < nodes_.size());
  check_holds(pods_[id.value], nodes_[node.value], holds);
  if (!marks_.empty()) {
    journal_.push_back({UndoKind::Place, true, id, node, 0, nodes_[node.value].version, {}});
  }
  do_place(id, node, {holds.begin(), holds.end()}, true);
}

void Cluster::place_unknown(PodId id, NodeId node) {
  JOGAK_CHECK(id.value < pods_.size() && node.value < nodes_.size());
  if (!marks_.empty()) {
    journal_.push_back({UndoKind::Place, false, id, node, 0, nodes_[node.value].version, {}});
  }
  do_place(id, node, {}, shape_of(id).spec.gpu.kind == GpuAsk::None);
}

void Cluster::place_back(PodId id, NodeId node, std::span<const GpuHold> holds, bool holds_known) {
  JOGAK_CHECK(!marks_.empty(), "only what a transaction took can be put back");
  journal_.push_back({UndoKind::Place, holds_known, id, node, 0, nodes_[node.value].version, {}});
  do_place(id, node, {holds.begin(), holds.end()}, holds_known);
}

void Cluster::unplace(PodId id) {
  const Pod& pod = pods_[id.value];
  JOGAK_CHECK(pod.state == PodState::Placed);
  if (!marks_.empty()) {
    journal_.push_back({UndoKind::Unplace, pod.holds_known, id, pod.node, pod.slot_in_node,
                        nodes_[pod.node.value].version, pod.holds});
  }
  Node& node = nodes_[pod.node.value];
  do_unplace(id);
  if (marks_.empty()) note_over(node, false);  // a transaction may put it back
}

void Cluster::nominate(PodId id, NodeId node) {
  const Pod& pod = pods_[id.value];
  if (!marks_.empty()) {
    journal_.push_back({UndoKind::Nominate, true, id, pod.nominated, 0, 0, {}});
  }
  do_nominate(id, node);
}

// ---- transactions ---------------------------------------------------------------------------

Cluster::Checkpoint Cluster::checkpoint() {
  marks_.push_back(journal_.size());
  return marks_.size() - 1;
}

void Cluster::rollback_to(Checkpoint mark) {
  JOGAK_CHECK(mark < marks_.size(), "no such checkpoint is open");
  while (journal_.size() > marks_[mark]) {
    const Undo undo = std::move(journal_.back());
    journal_.pop_back();
    if (undo.kind == UndoKind::Nominate) {
      do_nominate(undo.pod, undo.node);
      continue;
    }
    Node& node = nodes_[undo.node.value];
    if (undo.kind == UndoKind::Place) {
      do_unplace(undo.pod);
    } else {
      do_place(undo.pod, undo.node, undo.holds, undo.holds_known);
      // Back to its old position; the pod that had moved there returns to the end.
      const PodId other = node.pods[undo.slot];
      std::swap(node.pods[undo.slot], node.pods.back());
      pods_[other.value].slot_in_node = static_cast<std::uint32_t>(node.pods.size() - 1);
      pods_[undo.pod.value].slot_in_node = undo.slot;
    }
    node.version = undo.version;
  }
  marks_.resize(mark);
}

void Cluster::commit() {
  journal_.clear();
  marks_.clear();
}

void Cluster::log_change(NodeId node, PodId pod, int delta) {
  Change change;
  change.node = node;
  change.pod = pod;
  change.delta = delta;
  if (pod.valid()) {
    const Pod& p = pods_[pod.value];
    change.shape = p.shape;
    change.identity = p.identity;
    change.terminating = p.terminating;
  }
  changes_.push_back(change);
  if (changes_.size() > log_limit(nodes_.size())) {
    changes_.pop_front();
    ++change_base_;
  }
}

}  // namespace jogak::core
