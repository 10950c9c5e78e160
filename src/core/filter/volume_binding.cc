// SPDX-License-Identifier: Apache-2.0
// See volume_binding.h. Facts: kube-scheduler 1.36, plugin volumebinding; component-helpers
// storage/volume FindMatchingVolume.
#include "core/filter/volume_binding.h"

#include <algorithm>

#include "core/filter/selector.h"
#include "core/filter/volume_common.h"

namespace jogak::core {
namespace {

constexpr std::string_view kNodeConflict = "node(s) didn't match PersistentVolume's node affinity";
constexpr std::string_view kNoVolume = "node(s) didn't find available persistent volumes to bind";
constexpr std::string_view kNoSpace = "node(s) did not have enough free storage";
constexpr std::string_view kVolumeGone =
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
constexpr std::string_view kImmediate = "pod has unbound immediate PersistentVolumeClaims";
constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";

bool reaches(const Cluster& cluster, const PersistentVolumeSpec& pv, const Node& node) {
  return !pv.node_affinity || node_matches_any(cluster, node, *pv.node_affinity);
}

bool reserved_for(const PersistentVolumeSpec& pv, const PersistentVolumeClaimSpec& claim) {
  return pv.claim_name == claim.name && pv.claim_ns == claim.ns &&
         (pv.claim_uid.empty() || pv.claim_uid == claim.uid);
}

// What must hold of any volume for the claim, also of one that was reserved for it.
bool could_hold(const PersistentVolumeSpec& pv, const PersistentVolumeClaimSpec& claim) {
  return pv.storage_class == storage_class_of(claim) && pv.volume_mode == claim.volume_mode &&
         pv.attributes_class == claim.attributes_class && !pv.deleting &&
         pv.capacity_bytes >= claim.request_bytes;
}

bool is_free_for(const PersistentVolumeSpec& pv, const PersistentVolumeClaimSpec& claim) {
  if (pv.phase != "Available" || !pv.claim_name.empty()) return false;
  if (claim.selector && !matches(*claim.selector, pv.labels)) return false;
  return std::ranges::all_of(claim.access_modes, [&pv](const std::string& mode) {
    return std::ranges::find(pv.access_modes, mode) != pv.access_modes.end();
  });
}

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string not_owner(const Cluster& cluster, const PodView& pod,
                      const PersistentVolumeClaimSpec& claim) {
  const std::string name = pod.id.valid() ? cluster.pod_full_name(pod.id) : pod.identity->ns + "/";
  return "PVC " + claim.ns + "/" + claim.name + " was not created for pod " + name +
         " (pod is not owner)";
}

}  // namespace

std::string VolumeBindingFilter::claim_problem(const Cluster& cluster, const PodView& pod,
                                               const VolumeRef& volume) {
  const bool ephemeral = volume.kind == VolumeKind::Ephemeral;
  const auto* const claim = find_claim(cluster, pod.identity->ns, volume.name);
  if (claim == nullptr) {
    if (!ephemeral) return claim_not_found(volume.name);
    return "waiting for ephemeral volume controller to create the persistentvolumeclaim " +
           quoted(volume.name);
  }
  if (claim->phase == "Lost") {
    return "persistentvolumeclaim " + quoted(claim->name) +
           " bound to non-existent persistentvolume " + quoted(claim->volume_name);
  }
  if (claim->deleting) return "persistentvolumeclaim " + quoted(claim->name) + " is being deleted";
  if (ephemeral && !claim_belongs_to(*claim, uid_of(cluster, pod))) {
    return not_owner(cluster, pod, *claim);
  }
  return {};
}

PreFilter VolumeBindingFilter::build(const Cluster& cluster, const PodView& pod) {
  bound_.clear();
  waiting_.clear();
  if (!pod.shape->has_volumes) return {};
  const auto& volumes = pod.shape->spec.volumes;
  for (const VolumeRef& volume : volumes) {
    if (!is_claim(volume)) continue;
    std::string problem = claim_problem(cluster, pod, volume);
    if (!problem.empty()) return refuse_pod(Plugin::VolumeBinding, std::move(problem));
  }
  for (const VolumeRef& volume : volumes) {
    if (!is_claim(volume)) continue;
    const auto& claim = *find_claim(cluster, pod.identity->ns, volume.name);
    if (!claim.volume_name.empty() && claim.bind_completed) {
      bound_.push_back(find_volume(cluster, claim.volume_name));
      continue;
    }
    // A claim that names its volume is bound by the volume controller, whatever its class says.
    const auto* const storage_class = find_storage_class(cluster, storage_class_of(claim));
    if (!claim.volume_name.empty() || storage_class == nullptr ||
        !storage_class->wait_for_first_consumer) {
      bound_.clear();
      waiting_.clear();
      return refuse_pod(Plugin::VolumeBinding, std::string(kImmediate));
    }
    waiting_.push_back(waiting_claim(cluster, claim, *storage_class));
  }
  return {};
}

VolumeBindingFilter::Waiting VolumeBindingFilter::waiting_claim(
    const Cluster& cluster, const PersistentVolumeClaimSpec& claim,
    const StorageClassSpec& storage_class) {
  Waiting out;
  out.claim = &claim;
  out.storage_class = &storage_class;
  for (const auto& [name, pv] : cluster.objects().pvs) {
    if (!could_hold(pv, claim)) continue;
    if (reserved_for(pv, claim)) {
      out.reserved.push_back(&pv);
    } else if (is_free_for(pv, claim)) {
      out.fitting.push_back(&pv);
    }
  }
  std::ranges::stable_sort(out.fitting, {}, &PersistentVolumeSpec::capacity_bytes);

  const auto& drivers = cluster.objects().csi_drivers;
  const auto driver = drivers.find(storage_class.provisioner);
  out.tracked =
      driver != drivers.end() && driver->second.storage_capacity && claim.request_bytes > 0;
  if (!out.tracked) return out;
  for (const auto& [name, capacity] : cluster.objects().csi_capacities) {
    if (capacity.storage_class != storage_class.name || !capacity.node_topology) continue;
    const auto limit =
        capacity.maximum_volume_bytes ? capacity.maximum_volume_bytes : capacity.capacity_bytes;
    if (limit && *limit >= claim.request_bytes) out.enough_at.push_back(&*capacity.node_topology);
  }
  return out;
}

const PersistentVolumeSpec* VolumeBindingFilter::match(
    const Cluster& cluster, const Waiting& waiting, const Node& node,
    const std::vector<const PersistentVolumeSpec*>& taken) {
  const auto is_taken = [&taken](const PersistentVolumeSpec* pv) {
    return std::ranges::find(taken, pv) != taken.end();
  };
  // A volume reserved for the claim is the only one it may get.
  for (const PersistentVolumeSpec* pv : waiting.reserved) {
    if (!is_taken(pv)) return reaches(cluster, *pv, node) ? pv : nullptr;
  }
  const auto it = std::ranges::find_if(waiting.fitting, [&](const PersistentVolumeSpec* pv) {
    return !is_taken(pv) && reaches(cluster, *pv, node);
  });
  return it == waiting.fitting.end() ? nullptr : *it;
}

VolumeBindingFilter::Answer VolumeBindingFilter::provision(
    const Cluster& cluster, const std::vector<const Waiting*>& claims, const Node& node) {
  for (const Waiting* claim : claims) {
    const StorageClassSpec& storage_class = *claim->storage_class;
    if (storage_class.provisioner.empty() || storage_class.provisioner == kNoProvisioner) {
      return {.bindable = false};
    }
    if (!storage_class.allowed_topologies.empty() &&
        !node_matches_any(cluster, node, storage_class.allowed_topologies)) {
      return {.bindable = false};
    }
    const bool enough =
        !claim->tracked || std::ranges::any_of(claim->enough_at, [&](const LabelSelector* where) {
          return node_matches(cluster, node, *where);
        });
    if (!enough) return {.enough_storage = false};
  }
  return {};
}

std::optional<VolumeBindingFilter::Service> VolumeBindingFilter::serve(const Cluster& cluster,
                                                                       const Node& node) const {
  Service service;
  std::vector<const Waiting*> to_match;
  for (const Waiting& waiting : waiting_) {
    const std::string& selected = waiting.claim->selected_node;
    if (!selected.empty() && selected != cluster.text(node.name)) return std::nullopt;
    (selected.empty() ? to_match : service.to_provision).push_back(&waiting);
  }
  // Small claims first, so that each takes the smallest volume it can.
  std::ranges::stable_sort(to_match, {}, [](const Waiting* w) { return w->claim->request_bytes; });
  for (const Waiting* waiting : to_match) {
    if (const auto* const pv = match(cluster, *waiting, node, service.taken)) {
      service.matched.push_back(waiting);
      service.taken.push_back(pv);
    } else {
      service.to_provision.push_back(waiting);
    }
  }
  return service;
}

VolumeBindingFilter::Answer VolumeBindingFilter::serve_waiting(const Cluster& cluster,
                                                               const Node& node) const {
  const auto service = serve(cluster, node);
  if (!service) return {.bindable = false};
  return provision(cluster, service->to_provision, node);
}

std::vector<VolumeBindingFilter::ClaimPlan> VolumeBindingFilter::plan(const Cluster& cluster,
                                                                      NodeId node) const {
  std::vector<ClaimPlan> plans;
  const auto service = serve(cluster, cluster.node(node));
  if (!service) return plans;
  for (std::size_t i = 0; i < service->matched.size(); ++i) {
    plans.push_back({.claim = service->matched[i]->claim, .volume = service->taken[i]});
  }
  for (const Waiting* waiting : service->to_provision) {
    plans.push_back({.claim = waiting->claim, .volume = nullptr});
  }
  return plans;
}

Verdict VolumeBindingFilter::check(const Cluster& cluster, const PodView&, NodeId id,
                                   Reasons* reasons) const {
  const Node& node = cluster.node(id);
  Verdict verdict;
  const auto no = [&](std::string_view why) {
    verdict = refuse(Plugin::VolumeBinding, Code::Unresolvable, reasons, why);
  };
  for (const PersistentVolumeSpec* pv : bound_) {
    if (pv != nullptr && reaches(cluster, *pv, node)) continue;
    no(pv == nullptr ? kVolumeGone : kNodeConflict);
    break;
  }
  const Answer answer = serve_waiting(cluster, node);
  if (!answer.bindable) no(kNoVolume);
  if (!answer.enough_storage) no(kNoSpace);
  return verdict;
}

}  // namespace jogak::core
