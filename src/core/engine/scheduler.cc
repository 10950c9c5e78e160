// SPDX-License-Identifier: Apache-2.0
// Classes of pods and their indexes, nominated pods, and what the policy is told.
#include "core/engine/scheduler.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "core/engine/class_index.h"
#include "core/filter/cycle.h"
#include "core/filter/resources_fit.h"
#include "core/preempt/preempt.h"

namespace jogak::core {
namespace {

constexpr std::uint32_t kAnyIdentity = 0xffffffffU;

// Selectors look at the pod only if it or a placed pod carries pod (anti-)affinity, or it has
// spread constraints; otherwise pods of every namespace and label set share one class.
std::uint64_t class_key(const Cluster& cluster, const PodView& view) {
  const bool matters = view.shape->has_pod_constraints || cluster.placed_with_affinity() > 0;
  const std::uint32_t identity = matters ? view.identity_id.value : kAnyIdentity;
  return std::uint64_t{view.shape_id.value} << 32 | identity;
}

}  // namespace

struct Scheduler::Impl {
  struct Entry {
    std::unique_ptr<ClassIndex> index;
    std::uint64_t last_use = 0;
  };

  Impl(Cluster& c, Policy& p, const SchedulerOptions& o) : cluster(c), policy(p), options(o) {}

  Cluster& cluster;
  Policy& policy;
  SchedulerOptions options;
  WorkloadMix mix;
  SyncScratch scratch;
  std::unordered_map<std::uint64_t, Entry> classes;  // looked up; eviction picks by last_use
  std::uint64_t use_clock = 0;
  // What the policy's picture of the cluster follows.
  std::uint64_t topology_version = 0;  // 0: not prepared
  std::uint64_t capacity_version = 0;
  std::uint64_t followed_to = 0;  // of the change log
  std::uint64_t intern_epoch = 0;
  std::vector<NodeId> feasible;
  std::vector<std::int64_t> scores;

  void prepare();
  void tell_policy();
  ClassIndex& class_for(const PodView& view, std::uint64_t key);
  void drop_oldest();
  Decision decide(const PodView& view);
  void pick_from_index(const PodView& view, Decision& decision);
  void pick_by_scan(const PodView& view, Decision& decision);
  void pick_among_feasible(const PodView& view, Decision& decision);
  void choose_devices(const Shape& shape, const Node& node, std::vector<GpuHold>& holds);
  std::vector<NodeId> nominated_nodes(const PodView& view) const;
};

void Scheduler::Impl::prepare() {
  if (intern_epoch != cluster.intern_epoch()) {
    classes.clear();  // their shapes may be others by now
    intern_epoch = cluster.intern_epoch();
  }
  const bool nodes_changed = topology_version != cluster.topology_version();
  // A device plugin registers after its node did, a device turns sick: known nodes change too.
  const bool capacity_changed = capacity_version != cluster.capacity_version();
  const bool lost_track = policy.follows_changes() && followed_to < cluster.change_begin();
  if (!nodes_changed && !capacity_changed && !lost_track) return tell_policy();
  policy.prepare(cluster, mix);
  topology_version = cluster.topology_version();
  capacity_version = cluster.capacity_version();
  followed_to = cluster.change_end();
  if (!nodes_changed) classes.clear();  // else they see for themselves that they are old
}

void Scheduler::Impl::tell_policy() {
  if (!policy.follows_changes()) return;
  for (; followed_to < cluster.change_end(); ++followed_to) {
    policy.node_changed(cluster, cluster.change(followed_to).node);
  }
}

void Scheduler::Impl::drop_oldest() {
  // tidy: unordered-loop: last_use values are distinct, so the order of the table does not show
  auto oldest = classes.begin();
  // tidy: unordered-loop: as above
  for (auto it = classes.begin(); it != classes.end(); ++it) {
    if (it->second.last_use < oldest->second.last_use) oldest = it;
  }
  classes.erase(oldest);
}

ClassIndex& Scheduler::Impl::class_for(const PodView& view, std::uint64_t key) {
  auto it = classes.find(key);
  if (it == classes.end()) {
    if (classes.size() >= options.class_limit) drop_oldest();
    it =
        classes.emplace(key, Entry{std::make_unique<ClassIndex>(cluster, policy, scratch, view), 0})
            .first;
  } else {
    it->second.index->sync();
  }
  it->second.last_use = ++use_clock;
  return *it->second.index;
}

// Nodes where some other pod of equal or higher priority is promised room.
std::vector<NodeId> Scheduler::Impl::nominated_nodes(const PodView& view) const {
  std::vector<NodeId> nodes;
  for (const PodId id : cluster.nominated_pods()) {
    const Pod& pod = cluster.pod(id);
    const PodShape& shape = cluster.shape(pod.shape).spec;
    if (id == view.id || pod.state != PodState::Pending || !shape.gates.empty()) continue;
    if (shape.priority >= view.shape->spec.priority) nodes.push_back(pod.nominated);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

void Scheduler::Impl::pick_among_feasible(const PodView& view, Decision& decision) {
  decision.feasible_nodes = static_cast<std::uint32_t>(feasible.size());
  if (feasible.empty()) return;
  scores.assign(feasible.size(), 0);
  if (policy.scope() == ScoreScope::Global) {
    policy.score_all(cluster, view, feasible, scores);
  } else {
    for (std::size_t i = 0; i < feasible.size(); ++i) {
      scores[i] = policy.score(cluster, *view.shape, cluster.node(feasible[i]));
    }
  }
  const auto best = std::max_element(scores.begin(), scores.end());  // first of equals
  decision.score = *best;
  decision.node = feasible[static_cast<std::size_t>(best - scores.begin())];
}

void Scheduler::Impl::pick_from_index(const PodView& view, Decision& decision) {
  ClassIndex& index = class_for(view, decision.class_key);
  std::vector<NodeId> hidden;
  if (!cluster.nominated_pods().empty()) {
    for (const NodeId node : nominated_nodes(view)) {
      FilterCycle cycle(cluster, view);
      if (cycle.prefilter().verdict.fits() &&
          check_with_nominated(cluster, view, cycle, node, nullptr).fits()) {
        continue;
      }
      index.hide(node);
      hidden.push_back(node);
    }
  }
  if (policy.scope() == ScoreScope::Global) {
    index.feasible(feasible);
    pick_among_feasible(view, decision);
  } else {
    decision.node = index.best();
    decision.score = decision.node.valid() ? index.best_score() : 0;
    decision.feasible_nodes = decision.node.valid() ? index.feasible_count() : 0;
  }
  for (const NodeId node : hidden) index.reveal(node);
}

void Scheduler::Impl::pick_by_scan(const PodView& view, Decision& decision) {
  feasible.clear();
  FilterCycle cycle(cluster, view);
  const PreFilter& pre = cycle.prefilter();
  if (!pre.verdict.fits()) return;
  const std::vector<NodeId> promised = nominated_nodes(view);
  for (const NodeId node : cluster.node_order()) {
    if (pre.only_nodes &&
        !std::binary_search(pre.only_nodes->begin(), pre.only_nodes->end(), node)) {
      continue;
    }
    const bool asked = std::binary_search(promised.begin(), promised.end(), node);
    const Verdict verdict = asked ? check_with_nominated(cluster, view, cycle, node, nullptr)
                                  : cycle.check(node, nullptr);
    if (verdict.fits()) feasible.push_back(node);
  }
  pick_among_feasible(view, decision);
}

void Scheduler::Impl::choose_devices(const Shape& shape, const Node& node,
                                     std::vector<GpuHold>& holds) {
  if (node.gpus.empty()) return;
  const GpuRequest& ask = shape.spec.gpu;
  const bool is_share = ask.kind == GpuAsk::ShareMilli || ask.kind == GpuAsk::ShareMib;
  if (is_share && node.unknown_gpus > 0) {
    // Holders whose devices nobody reported may need the devices that look free: shares keep away
    // from those, whatever the policy.
    return choose_tightest(node, ask, holds);
  }
  policy.choose(cluster, shape, node, holds);
}

Decision Scheduler::Impl::decide(const PodView& view) {
  prepare();
  Decision decision;
  decision.pod = view.id;
  decision.class_key = class_key(cluster, view);
  const Pod& pod = cluster.pod(view.id);
  if (pod.terminating || !view.shape->spec.gates.empty()) return decision;
  if (pod.nominated.valid() && cluster.node(pod.nominated).alive) {
    // The node that preemption cleared for it comes first and ends the search.
    FilterCycle cycle(cluster, view);
    if (cycle.prefilter().verdict.fits() &&
        check_with_nominated(cluster, view, cycle, pod.nominated, nullptr).fits()) {
      decision.node = pod.nominated;
      decision.feasible_nodes = 1;
    }
  }
  if (!decision.node.valid()) {
    // Volumes are judged across pods and storage objects, which the index does not follow.
    if (options.full_scan || view.shape->has_volumes) {
      pick_by_scan(view, decision);
    } else {
      pick_from_index(view, decision);
    }
  }
  if (decision.node.valid()) {
    choose_devices(*view.shape, cluster.node(decision.node), decision.holds);
  }
  return decision;
}

Scheduler::Scheduler(Cluster& cluster, Policy& policy, SchedulerOptions options)
    : impl_(std::make_unique<Impl>(cluster, policy, options)) {
  JOGAK_CHECK(options.class_limit > 0);
}

Scheduler::~Scheduler() = default;

void Scheduler::set_mix(WorkloadMix mix) {
  impl_->mix = std::move(mix);
  impl_->topology_version = 0;
  impl_->classes.clear();
}

Decision Scheduler::decide(PodId pod) {
  JOGAK_CHECK(impl_->cluster.pod(pod).state == PodState::Pending, "pod is not pending");
  return impl_->decide(PodView::of(impl_->cluster, pod));
}

void Scheduler::accept(const Decision& decision) {
  JOGAK_CHECK(decision.node.valid());
  Cluster& cluster = impl_->cluster;
  const PodView view = PodView::of(cluster, decision.pod);
  JOGAK_CHECK(resources_fit_filter(cluster, view, cluster.node(decision.node), nullptr).fits(),
              "the node has changed since the decision");
  cluster.place(decision.pod, decision.node, decision.holds);
  cluster.nominate(decision.pod, kNoNode);
}

std::vector<std::uint32_t> Scheduler::refusals(PodId pod) {
  const PodView view = PodView::of(impl_->cluster, pod);
  impl_->prepare();
  ClassIndex& index = impl_->class_for(view, class_key(impl_->cluster, view));
  const RefusalCounts counts = index.refusals();
  return {counts.begin(), counts.end()};
}

std::size_t Scheduler::cache_bytes() const {
  std::size_t sum = 0;
  // tidy: unordered-loop: a sum
  for (const auto& [key, entry] : impl_->classes) sum += entry.index->bytes();
  return sum;
}

}  // namespace jogak::core
