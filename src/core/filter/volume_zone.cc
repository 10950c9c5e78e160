// SPDX-License-Identifier: Apache-2.0
// See volume_zone.h. Facts: kube-scheduler 1.36, plugin volumezone; cloud-provider LabelZonesToSet.
#include "core/filter/volume_zone.h"

#include <algorithm>

#include "core/filter/selector.h"
#include "core/filter/volume_common.h"

namespace jogak::core {
namespace {

constexpr std::string_view kConflict = "node(s) had no available volume zone";
constexpr std::string_view kNoClass = "PersistentVolumeClaim had no pv name and storageClass name";
constexpr std::string_view kNoVolume = "PersistentVolume had no name";

// The old names come first; kCurrentKey gives the name that replaced each.
constexpr std::array<std::string_view, 4> kLabels = {
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
};
constexpr std::array<std::size_t, 4> kCurrentKey = {2, 3, 2, 3};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// "a__b" names two zones. Empty: a zone without name, such a label demands nothing.
std::vector<std::string> zones(std::string_view text) {
  constexpr std::string_view kSeparator = "__";
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(kSeparator, begin), text.size());
    const std::string_view zone = trimmed(text.substr(begin, end - begin));
    if (zone.empty()) return {};
    out.emplace_back(zone);
    begin = end + kSeparator.size();
  }
  return out;
}

}  // namespace

PreFilter VolumeZoneFilter::build(const Cluster& cluster, const PodView& pod) {
  demands_.clear();
  if (!pod.shape->has_volumes) return {};
  const auto no = [this](std::string why) {
    demands_.clear();
    return refuse_pod(Plugin::VolumeZone, std::move(why));
  };
  for (const VolumeRef& volume : pod.shape->spec.volumes) {
    if (volume.kind != VolumeKind::Claim) continue;  // generic ephemeral ones are not looked at
    const auto* const claim = find_claim(cluster, pod.identity->ns, volume.name);
    if (claim == nullptr) return no(claim_not_found(volume.name));
    if (!claim->volume_name.empty()) {
      const PersistentVolumeSpec* const pv = find_volume(cluster, claim->volume_name);
      if (pv == nullptr) return no(volume_not_found(claim->volume_name));
      add_demands(*pv);
      continue;
    }
    const std::string_view class_name = storage_class_of(*claim);
    if (class_name.empty()) return no(std::string(kNoClass));
    const auto* const storage_class = find_storage_class(cluster, class_name);
    if (storage_class == nullptr) return no(storage_class_not_found(class_name));
    if (!storage_class->wait_for_first_consumer) return no(std::string(kNoVolume));
  }
  for (std::size_t i = 0; i < kKeys; ++i) {
    known_[i] = cluster.symbols().find(kLabels[i], keys_[i]);
  }
  return {};
}

void VolumeZoneFilter::add_demands(const PersistentVolumeSpec& pv) {
  for (std::size_t i = 0; i < kKeys; ++i) {
    const std::string* const value = find_label(pv.labels, kLabels[i]);
    if (value == nullptr) continue;
    std::vector<std::string> allowed = zones(*value);
    if (!allowed.empty()) demands_.push_back({.key = i, .values = std::move(allowed)});
  }
}

std::array<const Symbol*, VolumeZoneFilter::kKeys> VolumeZoneFilter::labels_of(
    const Node& node) const {
  std::array<const Symbol*, kKeys> out{};
  for (std::size_t i = 0; i < kKeys; ++i) {
    if (known_[i]) out[i] = node.label(keys_[i]);
  }
  return out;
}

Verdict VolumeZoneFilter::check(const Cluster& cluster, const PodView&, NodeId id,
                                Reasons* reasons) const {
  const auto labels = labels_of(cluster.node(id));
  // A cluster of one zone may do without labels.
  if (std::ranges::all_of(labels, [](const Symbol* s) { return s == nullptr; })) return {};
  for (const Demand& demand : demands_) {
    const Symbol* value = labels[demand.key];
    if (value == nullptr) value = labels[kCurrentKey[demand.key]];
    if (value == nullptr ||
        std::ranges::find(demand.values, cluster.text(*value)) == demand.values.end()) {
      return refuse(Plugin::VolumeZone, Code::Unresolvable, reasons, kConflict);
    }
  }
  return {};
}

}  // namespace jogak::core
