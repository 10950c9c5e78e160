// SPDX-License-Identifier: Apache-2.0
//
// Facts: pkg/controller/volume/persistentvolume of Kubernetes.
#include "apiserver/controllers/volume_match.h"

#include <algorithm>
#include <utility>

#include "apiserver/object/meta.h"
#include "apiserver/object/selector.h"

namespace jogak::controllers {

namespace {

constexpr std::string_view kClassNote = "volume.beta.kubernetes.io/storage-class";

const std::string& mode_of(const Doc& spec) {
  static const std::string kFilesystem = "Filesystem";
  const std::string& mode = spec["volumeMode"].as_string();
  return mode.empty() ? kFilesystem : mode;
}

bool is_big_enough(const VolumeView& volume, const Doc& claim) {
  const auto wanted =
      api::Amount::parse(claim.get("spec", "resources", "requests", "storage").as_string());
  return !wanted.has_value() || volume.capacity >= *wanted;
}

}  // namespace

VolumeView volume_view(const Doc& volume) {
  VolumeView view;
  const Doc& spec = volume["spec"];
  view.name = api::name_of(volume);
  view.storage_class = storage_class_of(volume);
  view.mode = mode_of(spec);
  view.phase = volume.get("status", "phase").as_string();
  view.attributes_class = spec["volumeAttributesClassName"].as_string();
  for (const Doc& mode : spec["accessModes"].items()) view.access_modes.push_back(mode.as_string());
  view.capacity =
      api::Amount::parse(spec.get("capacity", "storage").as_string()).value_or(api::Amount());
  view.labels = api::meta(volume)["labels"];
  view.claim_ns = spec.get("claimRef", "namespace").as_string();
  view.claim_name = spec.get("claimRef", "name").as_string();
  view.claim_uid = spec.get("claimRef", "uid").as_string();
  view.is_deleting = api::is_deleting(volume);
  return view;
}

std::string storage_class_of(const Doc& object) {
  const Doc& note = api::meta(object)["annotations"][kClassNote];
  return note.is_null() ? object.get("spec", "storageClassName").as_string() : note.as_string();
}

bool is_bound_to(const VolumeView& volume, const Doc& claim) {
  return !volume.claim_name.empty() && volume.claim_name == api::name_of(claim) &&
         volume.claim_ns == api::namespace_of(claim) &&
         (volume.claim_uid.empty() || volume.claim_uid == api::uid_of(claim));
}

bool can_serve(const VolumeView& volume, const Doc& claim) {
  const Doc& spec = claim["spec"];
  const bool has_modes = std::ranges::all_of(spec["accessModes"].items(), [&](const Doc& mode) {
    return std::ranges::find(volume.access_modes, mode.as_string()) != volume.access_modes.end();
  });
  return has_modes && volume.mode == mode_of(spec) && is_big_enough(volume, claim) &&
         volume.storage_class == storage_class_of(claim) &&
         volume.attributes_class == spec["volumeAttributesClassName"].as_string();
}

const VolumeView* find_volume(const Volumes& volumes, const Doc& claim, bool waits) {
  const Doc& selector = claim.get("spec", "selector");
  const auto wanted = api::LabelSelector::from_object(selector);
  const VolumeView* best = nullptr;
  const auto rank = [](const VolumeView& volume) {
    return std::pair(volume.access_modes.size(), volume.capacity);
  };
  for (const auto& [name, volume] : volumes) {
    if (volume.is_deleting) continue;
    if (is_bound_to(volume, claim)) {
      if (volume.mode == mode_of(claim["spec"]) && is_big_enough(volume, claim)) return &volume;
      continue;
    }
    if (waits || !volume.claim_name.empty() || volume.phase != "Available") continue;
    if (!can_serve(volume, claim)) continue;
    if (!selector.is_null() && !wanted.matches(volume.labels)) continue;
    if (best == nullptr || rank(volume) < rank(*best)) best = &volume;
  }
  return best;
}

}  // namespace jogak::controllers
