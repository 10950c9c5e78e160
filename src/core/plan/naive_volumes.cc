// SPDX-License-Identifier: Apache-2.0
// Volume rules of naive_rules.h. Laxer than the filters on purpose where a rule needs a search or a
// guess: claims that are not bound yet, in-tree volumes moved to CSI.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "core/plan/naive_labels.h"
#include "core/plan/naive_rules.h"

namespace jogak::core::naive {
namespace {

using Volume = std::pair<std::string, std::string>;  // CSI driver, handle

bool by_claim(const VolumeRef& v) {
  return v.kind == VolumeKind::Claim || v.kind == VolumeKind::Ephemeral;
}

const PersistentVolumeClaimSpec* claim_of(const Cluster& cluster, PodId pod, const VolumeRef& v) {
  const auto& claims = cluster.objects().pvcs;
  const auto it = claims.find(cluster.identity_of(pod).ns + "/" + v.name);
  return it == claims.end() ? nullptr : &it->second;
}

const PersistentVolumeSpec* volume_of(const Cluster& cluster, const PersistentVolumeClaimSpec& c) {
  const auto it = cluster.objects().pvs.find(c.volume_name);
  return it == cluster.objects().pvs.end() ? nullptr : &it->second;
}

bool same_disk(const VolumeRef& a, const VolumeRef& b) {
  if (a.kind != b.kind || by_claim(a)) return false;
  if (a.kind == VolumeKind::AwsEbs) return a.name == b.name;
  if (a.read_only && b.read_only) return false;
  if (a.kind != VolumeKind::Rbd) return a.name == b.name;
  const bool shared = std::ranges::any_of(
      a.monitors, [&](const std::string& m) { return std::ranges::count(b.monitors, m) > 0; });
  return shared && a.pool == b.pool && a.image == b.image;
}

// "a__b" in a volume's zone label means a or b.
bool in_zone_set(std::string set, const std::string& zone) {
  set += "__";
  std::size_t from = 0;
  for (std::size_t at = set.find("__"); at != std::string::npos; at = set.find("__", from)) {
    if (set.substr(from, at - from) == zone) return true;
    from = at + 2;
  }
  return false;
}

std::string reach_rule(const PersistentVolumeSpec& pv, const LabelMap& labels,
                       const std::string& node) {
  if (pv.node_affinity && !some_term_holds(*pv.node_affinity, labels, node)) {
    return fmt::format("volumes: {} cannot be reached from node {}", pv.name, node);
  }
  // Old name, new name: a volume may still be marked with the old one.
  constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
      {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
      {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"}};
  // A node that tells nothing about zones reaches every volume.
  const bool silent = std::ranges::none_of(kKeys, [&](const auto& key) {
    return labels.contains(key.first) || labels.contains(key.second);
  });
  if (silent) return {};
  const LabelMap wanted = labels_of(pv.labels);
  for (const auto& [old_key, new_key] : kKeys) {
    for (const std::string_view key : {old_key, new_key}) {
      const auto want = wanted.find(key);
      if (want == wanted.end()) continue;
      auto have = labels.find(key);
      if (have == labels.end()) have = labels.find(new_key);
      if (have == labels.end() || !in_zone_set(want->second, have->second)) {
        return fmt::format("volumes: {} is in another {} than node {}", pv.name, key, node);
      }
    }
  }
  return {};
}

std::string claim_rule(const Cluster& cluster, PodId pod, const VolumeRef& v, NodeId node) {
  const PersistentVolumeClaimSpec* claim = claim_of(cluster, pod, v);
  if (claim == nullptr) return "volumes: claim " + v.name + " does not exist";
  if (claim->deleting) return "volumes: claim " + v.name + " is being deleted";
  const bool exclusive = std::ranges::count(claim->access_modes, "ReadWriteOncePod") > 0;
  for (std::uint32_t i = 0; exclusive && i < cluster.pods().size(); ++i) {
    const PodId other{i};
    if (cluster.pod(other).state != PodState::Placed) continue;
    for (const VolumeRef& theirs : cluster.shape_of(other).spec.volumes) {
      if (theirs.kind == VolumeKind::Claim && claim_of(cluster, other, theirs) == claim) {
        return fmt::format("volumes: claim {} belongs to {} alone", v.name,
                           cluster.pod_full_name(other));
      }
    }
  }
  if (claim->volume_name.empty()) return {};
  const PersistentVolumeSpec* pv = volume_of(cluster, *claim);
  if (pv == nullptr) return "volumes: " + claim->volume_name + " does not exist";
  return reach_rule(*pv, labels_of(cluster, node),
                    std::string(cluster.text(cluster.node(node).name)));
}

void add_csi_volumes(const Cluster& cluster, PodId pod, std::set<Volume>& out) {
  for (const VolumeRef& v : cluster.shape_of(pod).spec.volumes) {
    if (!by_claim(v)) continue;
    const PersistentVolumeClaimSpec* claim = claim_of(cluster, pod, v);
    const PersistentVolumeSpec* pv = claim == nullptr ? nullptr : volume_of(cluster, *claim);
    if (pv != nullptr && pv->csi) out.insert({pv->csi->driver, pv->csi->handle});
    // Not bound yet: its class will provision one more.
    if (claim == nullptr || !claim->volume_name.empty() || !claim->storage_class) continue;
    const auto& classes = cluster.objects().storage_classes;
    const auto by = classes.find(*claim->storage_class);
    if (by != classes.end()) out.insert({by->second.provisioner, claim->ns + "/" + claim->name});
  }
}

std::string limit_rule(const Cluster& cluster, PodId pod, NodeId node) {
  const std::string name(cluster.text(cluster.node(node).name));
  const auto csi_node = cluster.objects().csi_nodes.find(name);
  if (csi_node == cluster.objects().csi_nodes.end()) return {};
  std::set<Volume> there;
  for (const PodId other : cluster.node(node).pods) add_csi_volumes(cluster, other, there);
  for (const auto& [key, attachment] : cluster.objects().attachments) {
    const auto pv = cluster.objects().pvs.find(attachment.pv_name);
    if (attachment.node != name || pv == cluster.objects().pvs.end() || !pv->second.csi) continue;
    there.insert({pv->second.csi->driver, pv->second.csi->handle});
  }
  std::set<Volume> after = there;
  add_csi_volumes(cluster, pod, after);
  for (const CsiNodeSpec::Driver& driver : csi_node->second.drivers) {
    const auto uses = [&](const Volume& v) { return v.first == driver.name; };
    const auto now = std::ranges::count_if(there, uses);
    const auto then = std::ranges::count_if(after, uses);
    if (driver.limit && then > now && then > *driver.limit) {
      return fmt::format("volumes: node {} may attach {} of {}, not {}", name, *driver.limit,
                         driver.name, then);
    }
  }
  return {};
}

}  // namespace

std::string volume_rules(const Cluster& cluster, PodId pod, NodeId node) {
  const auto& volumes = cluster.shape_of(pod).spec.volumes;
  if (volumes.empty()) return {};
  for (const VolumeRef& ours : volumes) {
    if (by_claim(ours)) {
      if (std::string broken = claim_rule(cluster, pod, ours, node); !broken.empty()) {
        return broken;
      }
      continue;
    }
    for (const PodId other : cluster.node(node).pods) {
      for (const VolumeRef& theirs : cluster.shape_of(other).spec.volumes) {
        if (same_disk(ours, theirs)) {
          return fmt::format("volumes: disk {} is used by {}", ours.name,
                             cluster.pod_full_name(other));
        }
      }
    }
  }
  return limit_rule(cluster, pod, node);
}

}  // namespace jogak::core::naive
