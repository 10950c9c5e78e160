// SPDX-License-Identifier: Apache-2.0
//
// Mounts and block devices of containers, which use the volumes of their pod.
#include <algorithm>
#include <string>
#include <string_view>

#include "apiserver/kinds/pod_validate.h"

namespace jogak::api {

namespace {

bool is_claim(const Doc& volume) {
  return volume.has("persistentVolumeClaim") || volume.has("ephemeral");
}

bool has_entry(const Doc& list, std::string_view key, const Doc& value) {
  return std::ranges::any_of(list.items(),
                             [&](const Doc& item) { return shown(item[key]) == shown(value); });
}

// Whether an earlier item has the same value of `key`.
bool is_repeated(const Doc& list, std::size_t until, std::string_view key) {
  const auto& items = list.items();
  return std::any_of(
      items.begin(), items.begin() + static_cast<std::ptrdiff_t>(until),
      [&](const Doc& item) { return item[key].as_string() == items[until][key].as_string(); });
}

void check_propagation(const Doc& container, const Doc& mount, const Spot& at,
                       FieldErrors& errors) {
  const Doc& mode = mount["mountPropagation"];
  check_one_of(mode, {"Bidirectional", "HostToContainer", "None"}, at, errors);
  if (mode.as_string() == "Bidirectional" &&
      !container["securityContext"]["privileged"].as_bool()) {
    errors.forbidden(at,
                     "Bidirectional mount propagation is available only to privileged containers");
  }
}

void check_recursive_read_only(const Doc& mount, const Spot& at, FieldErrors& errors) {
  const Doc& mode = mount["recursiveReadOnly"];
  check_one_of(mode, {"Disabled", "Enabled", "IfPossible"}, at, errors);
  if (mode.is_null() || !is_any_of(mode.as_string(), {"Enabled", "IfPossible"})) {
    return;
  }
  if (!mount["readOnly"].as_bool()) {
    errors.forbidden(at, "may only be specified when readOnly is true");
  }
  if (mount.has("mountPropagation") && mount["mountPropagation"].as_string() != "None") {
    errors.forbidden(at, "may only be specified when mountPropagation is None or not specified");
  }
}

void check_mount(const Doc& container, const Doc& mount, const Spot& list, const Spot& spot,
                 FieldErrors& errors) {
  const Doc& devices = container["volumeDevices"];
  if (has_entry(devices, "name", mount["name"])) {
    errors.invalid(spot.child("name"), mount["name"], "must not already exist in volumeDevices");
  }
  if (has_entry(devices, "devicePath", mount["mountPath"])) {
    errors.invalid(spot.child("mountPath"), mount["mountPath"],
                   "must not already exist as a path in volumeDevices");
  }
  if (!mount["subPath"].as_string().empty()) {
    check_descending_path(mount["subPath"], list.child("subPath"), errors);
  }
  if (!mount["subPathExpr"].as_string().empty()) {
    if (!mount["subPath"].as_string().empty()) {
      errors.invalid(spot.child("subPathExpr"), mount["subPathExpr"],
                     "subPathExpr and subPath are mutually exclusive");
    }
    check_descending_path(mount["subPathExpr"], list.child("subPathExpr"), errors);
  }
  check_propagation(container, mount, list.child("mountPropagation"), errors);
  check_recursive_read_only(mount, list.child("recursiveReadOnly"), errors);
}

}  // namespace

void validate_volume_mounts(const Doc& container, const PodVolumes& volumes, const Spot& at,
                            FieldErrors& errors) {
  const Doc& mounts = container["volumeMounts"];
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    const Doc& mount = mounts.items()[i];
    const Spot spot = at.index(i);
    require_text(mount, "name", spot, errors);
    if (volumes.find(mount["name"].as_string()) == nullptr) {
      errors.not_found(spot.child("name"), shown(mount["name"]));
    }
    require_text(mount, "mountPath", spot, errors);
    if (is_repeated(mounts, i, "mountPath")) {
      errors.invalid(spot.child("mountPath"), shown(mount["mountPath"]), "must be unique");
    }
    check_mount(container, mount, at, spot, errors);
  }
}

void validate_volume_devices(const Doc& container, const PodVolumes& volumes, const Spot& at,
                             FieldErrors& errors) {
  const Doc& devices = container["volumeDevices"];
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Doc& device = devices.items()[i];
    const Spot spot = at.index(i);
    const Doc* volume = volumes.find(device["name"].as_string());
    require_text(device, "name", spot, errors);
    if (is_repeated(devices, i, "name") && !device["name"].as_string().empty()) {
      errors.invalid(spot.child("name"), device["name"], "must be unique");
    }
    if (volume == nullptr) {
      errors.not_found(spot.child("name"), shown(device["name"]));
    } else if (!is_claim(*volume)) {
      errors.invalid(spot.child("name"), device["name"],
                     "can only use volume source type of PersistentVolumeClaim or Ephemeral for "
                     "block mode");
    }
    require_text(device, "devicePath", spot, errors);
    if (is_repeated(devices, i, "devicePath")) {
      errors.invalid(spot.child("devicePath"), shown(device["devicePath"]), "must be unique");
    }
    FieldErrors steps;
    check_no_backsteps(device["devicePath"], at, steps);
    if (!steps.empty()) {
      errors.invalid(spot.child("devicePath"), device["devicePath"],
                     "can not contain backsteps ('..')");
    }
    if (has_entry(container["volumeMounts"], "name", device["name"])) {
      errors.invalid(spot.child("name"), device["name"], "must not already exist in volumeMounts");
    }
    if (has_entry(container["volumeMounts"], "mountPath", device["devicePath"])) {
      errors.invalid(spot.child("devicePath"), device["devicePath"],
                     "must not already exist as a path in volumeMounts");
    }
  }
}

}  // namespace jogak::api
