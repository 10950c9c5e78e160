// SPDX-License-Identifier: Apache-2.0
// See node_volume_limits.h. Facts: kube-scheduler 1.36, plugin nodevolumelimits, with one repair: a
// volume of this pod that is still attached to the node does not count a second time.
#include "core/filter/node_volume_limits.h"

#include <algorithm>
#include <iterator>

namespace jogak::core {
namespace {

constexpr std::string_view kTooMany = "node(s) exceed max volume count";

void sort_unique(std::vector<CsiVolume>& volumes) {
  std::ranges::sort(volumes);
  const auto rest = std::ranges::unique(volumes);
  volumes.erase(rest.begin(), rest.end());
}

void drop_not_counting(std::vector<CsiVolume>& volumes, const CsiNodeSpec* csi_node) {
  std::erase_if(volumes, [csi_node](const CsiVolume& v) { return !counts_on(v, csi_node); });
  // On a node that migrated the plugin, an in-tree name and a CSI name are the same volume.
  for (CsiVolume& volume : volumes) volume.migrated_from.clear();
  sort_unique(volumes);
}

std::int64_t count_of(const std::vector<CsiVolume>& volumes, std::string_view driver) {
  return std::ranges::count(volumes, driver, &CsiVolume::driver);
}

}  // namespace

PreFilter NodeVolumeLimitsFilter::build(const Cluster& cluster, const PodView& pod) {
  mine_.clear();
  attachments_.clear();
  if (!pod.shape->has_volumes) return {};
  csi_volumes(cluster, pod.shape->spec, pod.identity->ns, uid_of(cluster, pod), mine_);
  sort_unique(mine_);
  if (mine_.empty()) return {};
  for (const auto& [name, attachment] : cluster.objects().attachments) {
    const PersistentVolumeSpec* const pv = find_volume(cluster, attachment.pv_name);
    Symbol node;
    if (pv == nullptr || !pv->csi || !cluster.symbols().find(attachment.node, node)) continue;
    attachments_[node.value].push_back({pv->csi->driver, pv->csi->handle, pv->csi->migrated_from});
  }
  return {};
}

std::vector<CsiVolume> NodeVolumeLimitsFilter::attached(const Cluster& cluster, const Node& node,
                                                        const CsiNodeSpec* csi_node) const {
  std::vector<CsiVolume> volumes;
  for (const PodId other : node.pods) {
    const Shape& shape = cluster.shape_of(other);
    if (!shape.has_volumes) continue;
    csi_volumes(cluster, shape.spec, cluster.identity_of(other).ns, cluster.pod(other).uid,
                volumes);
  }
  if (const auto it = attachments_.find(node.name.value); it != attachments_.end()) {
    volumes.insert(volumes.end(), it->second.begin(), it->second.end());
  }
  drop_not_counting(volumes, csi_node);
  return volumes;
}

Verdict NodeVolumeLimitsFilter::check(const Cluster& cluster, const PodView&, NodeId id,
                                      Reasons* reasons) const {
  const Node& node = cluster.node(id);
  const CsiNodeSpec* const csi_node = find_csi_node(cluster, node);
  if (csi_node == nullptr) return {};
  const bool limited = std::ranges::any_of(csi_node->drivers, [this](const auto& driver) {
    return driver.limit && count_of(mine_, driver.name) > 0;
  });
  if (!limited) return {};

  std::vector<CsiVolume> wanted = mine_;
  drop_not_counting(wanted, csi_node);
  const std::vector<CsiVolume> there = attached(cluster, node, csi_node);
  std::vector<CsiVolume> added;
  std::ranges::set_difference(wanted, there, std::back_inserter(added));
  for (const CsiNodeSpec::Driver& driver : csi_node->drivers) {
    const std::int64_t more = count_of(added, driver.name);
    if (driver.limit && more > 0 && count_of(there, driver.name) + more > *driver.limit) {
      return refuse(Plugin::NodeVolumeLimits, Code::Unschedulable, reasons, kTooMany);
    }
  }
  return {};
}

}  // namespace jogak::core
