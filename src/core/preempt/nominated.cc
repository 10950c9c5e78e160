// SPDX-License-Identifier: Apache-2.0
// Facts: kube-scheduler 1.36 filters a node twice, with the nominated pods and without them.
#include "core/preempt/nominated.h"

#include <algorithm>
#include <utility>

#include "core/filter/gpu_devices.h"
#include "core/policy/policy.h"
#include "core/preempt/preempt.h"

namespace jogak::core {
namespace {

// The devices a waiting pod would be given on the node now. Which policy runs is not known here, so
// the plainest choice stands for it: the question is whether room is left, not where.
std::vector<GpuHold> plain_choice(const Cluster& cluster, const Shape& shape, const Node& node) {
  std::vector<GpuHold> holds;
  switch (shape.spec.gpu.kind) {
    case GpuAsk::None:
      break;
    case GpuAsk::Whole:
      choose_first_free(node, shape.spec.gpu.count, holds);
      break;
    case GpuAsk::ShareMilli:
    case GpuAsk::ShareMib:
      choose_tightest(node, shape.spec.gpu, holds);
      break;
    case GpuAsk::Mig:
      choose_mig(cluster, node, shape, holds);
      break;
  }
  return holds;
}

}  // namespace

bool awaits_nominated_seat(const Cluster& cluster, PodId pod) {
  const Pod& p = cluster.pod(pod);
  return p.state == PodState::Pending && p.nominated.valid() &&
         cluster.shape_of(pod).spec.gates.empty();
}

std::vector<PodId> nominated_before(const Cluster& cluster, NodeId node, std::int32_t priority,
                                    PodId self) {
  std::vector<PodId> pods;
  for (const PodId pod : cluster.nominated_pods()) {
    if (pod == self || cluster.pod(pod).nominated != node) continue;
    if (cluster.shape_of(pod).spec.priority < priority) continue;
    if (awaits_nominated_seat(cluster, pod)) pods.push_back(pod);
  }
  return pods;
}

std::vector<PodId> nominated_below(const Cluster& cluster, NodeId node, std::int32_t priority) {
  std::vector<std::pair<std::string, PodId>> named;
  for (const PodId pod : cluster.nominated_pods()) {
    if (cluster.pod(pod).nominated != node || !awaits_nominated_seat(cluster, pod)) continue;
    if (cluster.shape_of(pod).spec.priority >= priority) continue;
    named.emplace_back(cluster.pod_full_name(pod), pod);
  }
  std::ranges::sort(named);
  std::vector<PodId> pods;
  for (const auto& [name, pod] : named) pods.push_back(pod);
  return pods;
}

void place_guess(Cluster& cluster, PodId pod, NodeId node) {
  const Shape& shape = cluster.shape_of(pod);
  const Node& at = cluster.node(node);
  if (shape.spec.gpu.kind == GpuAsk::None || at.gpus.empty()) {
    cluster.place(pod, node, {});
    return;
  }
  if (gpu_devices_filter(cluster, PodView::of(cluster, pod), at, nullptr).fits()) {
    cluster.place(pod, node, plain_choice(cluster, shape, at));
  } else {
    cluster.place_unknown(pod, node);
  }
}

Verdict check_with_nominated(Cluster& cluster, const PodView& pod, FilterCycle& cycle, NodeId node,
                             Reasons* reasons) {
  const std::vector<PodId> before =
      nominated_before(cluster, node, pod.shape->spec.priority, pod.id);
  if (before.empty()) return cycle.check(node, reasons);
  // With them first: it must fit beside them, and also (affinity to one of them) if they never
  // come.
  const Cluster::Checkpoint mark = cluster.checkpoint();
  for (const PodId other : before) {
    place_guess(cluster, other, node);
    cycle.pod_moved(other, node, +1);
  }
  const Verdict with = cycle.check(node, reasons);
  for (const PodId other : before) {
    cycle.pod_moved(other, node, -1);
    cluster.unplace(other);
  }
  cluster.rollback_to(mark);
  return with.fits() ? cycle.check(node, reasons) : with;
}

}  // namespace jogak::core
