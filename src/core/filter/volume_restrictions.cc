// SPDX-License-Identifier: Apache-2.0
// See volume_restrictions.h. Facts: kube-scheduler 1.36, plugin volumerestrictions.
#include "core/filter/volume_restrictions.h"

#include <algorithm>

#include "base/check.h"
#include "base/digest.h"
#include "core/filter/volume_common.h"

namespace jogak::core {
namespace {

constexpr std::string_view kDisk = "node(s) had no available disk";
constexpr std::string_view kClaimInUse =
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod";

bool share_monitor(const VolumeRef& a, const VolumeRef& b) {
  return std::ranges::any_of(a.monitors, [&b](const std::string& monitor) {
    return std::ranges::find(b.monitors, monitor) != b.monitors.end();
  });
}

// Two pods cannot mount both on one node.
bool conflict(const VolumeRef& a, const VolumeRef& b) {
  if (a.kind != b.kind) return false;
  const bool both_read = a.read_only && b.read_only;
  switch (a.kind) {
    case VolumeKind::Claim:
    case VolumeKind::Ephemeral:
      return false;
    case VolumeKind::AwsEbs:
      return a.name == b.name;
    case VolumeKind::GcePd:
    case VolumeKind::Iscsi:
      return a.name == b.name && !both_read;
    case VolumeKind::Rbd:
      return a.pool == b.pool && a.image == b.image && share_monitor(a, b) && !both_read;
  }
  return false;
}

bool any_conflict(const std::vector<VolumeRef>& mine, const std::vector<VolumeRef>& theirs) {
  return std::ranges::any_of(mine, [&theirs](const VolumeRef& a) {
    return std::ranges::any_of(theirs, [&a](const VolumeRef& b) { return conflict(a, b); });
  });
}

}  // namespace

PreFilter VolumeRestrictionsFilter::build(const Cluster& cluster, const PodView& pod) {
  has_disks_ = false;
  claims_.clear();
  if (!pod.shape->has_volumes) return {};
  for (const VolumeRef& volume : pod.shape->spec.volumes) {
    if (!is_claim(volume)) has_disks_ = true;
    if (volume.kind != VolumeKind::Claim) continue;
    const auto* const claim = find_claim(cluster, pod.identity->ns, volume.name);
    if (claim == nullptr) {
      return refuse_pod(Plugin::VolumeRestrictions, claim_not_found(volume.name));
    }
    const auto& modes = claim->access_modes;
    if (std::ranges::find(modes, "ReadWriteOncePod") == modes.end()) continue;
    if (std::ranges::find(claims_, volume.name, &ExclusiveClaim::name) != claims_.end()) continue;
    claims_.push_back({.name = volume.name});
  }
  if (claims_.empty()) return {};
  for (const Pod& other : cluster.pods()) {
    if (other.state == PodState::Placed) count_pod(cluster, pod, other.shape, other.identity, 1);
  }
  return {};
}

bool VolumeRestrictionsFilter::claims_in_use() const {
  return std::ranges::any_of(claims_, [](const ExclusiveClaim& c) { return c.users > 0; });
}

Verdict VolumeRestrictionsFilter::check(const Cluster& cluster, const PodView& pod, NodeId node,
                                        Reasons* reasons) const {
  if (has_disks_) {
    for (const PodId other : cluster.node(node).pods) {
      const Shape& shape = cluster.shape_of(other);
      if (shape.has_volumes && any_conflict(pod.shape->spec.volumes, shape.spec.volumes)) {
        return refuse(Plugin::VolumeRestrictions, Code::Unschedulable, reasons, kDisk);
      }
    }
  }
  if (claims_in_use()) {
    return refuse(Plugin::VolumeRestrictions, Code::Unschedulable, reasons, kClaimInUse);
  }
  return {};
}

void VolumeRestrictionsFilter::pod_moved(const Cluster& cluster, const PodView& pod, PodId moved,
                                         NodeId, int delta) {
  const Pod& p = cluster.pod(moved);
  count_pod(cluster, pod, p.shape, p.identity, delta);
}

void VolumeRestrictionsFilter::count_pod(const Cluster& cluster, const PodView& pod, ShapeId shape,
                                         IdentityId identity, int delta) {
  if (claims_.empty() || !cluster.shape(shape).has_volumes) return;
  if (cluster.identity(identity).ns != pod.identity->ns) return;
  for (const VolumeRef& volume : cluster.shape(shape).spec.volumes) {
    if (volume.kind != VolumeKind::Claim) continue;
    const auto claim = std::ranges::find(claims_, volume.name, &ExclusiveClaim::name);
    if (claim == claims_.end()) continue;
    claim->users += delta;
    JOGAK_CHECK(claim->users >= 0);
  }
}

std::uint64_t VolumeRestrictionsFilter::digest() const {
  Digest digest;
  digest.add(has_disks_);
  for (const ExclusiveClaim& c : claims_) digest.add(c.name).add(c.users);
  return digest.value();
}

}  // namespace jogak::core
