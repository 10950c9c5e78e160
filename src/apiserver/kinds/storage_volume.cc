// SPDX-License-Identifier: Apache-2.0
//
// Persistent volumes: pending from the start, with the time of their last phase.
#include <algorithm>
#include <array>
#include <vector>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/kinds/storage_rules.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

void validate_capacity(const Doc& capacity, const Path& at, FieldErrors& errors) {
  if (capacity.empty()) errors.required(at);
  if (!capacity.has("storage") || capacity.size() > 1) {
    errors.not_supported(at, capacity, {"storage"});
  }
  for (const auto& [name, value] : capacity.members()) {
    const Amount amount = quantity_of(value);
    if (amount.is_negative()) {
      errors.invalid(at.key(name), value, "must be a valid resource quantity");
    }
    if (amount <= Amount()) errors.invalid(at.key(name), value, "must be greater than zero");
  }
}

void validate_class(const Doc& name, const Path& at, FieldErrors& errors) {
  add_problems(errors, at, name, check_dns1123_subdomain(name.as_string()));
}

void validate_word(const Doc& spec, std::string_view member,
                   const std::vector<std::string_view>& words, const Path& at,
                   FieldErrors& errors) {
  const Doc* value = spec.find(member);
  if (value == nullptr || std::ranges::find(words, value->as_string()) != words.end()) return;
  errors.not_supported(at.child(member), *value, words);
}

// An attachment's volume follows from its CSI source; whatever a stored volume adds is refused.
void validate_inline(const Doc& spec, const Path& at, FieldErrors& errors) {
  constexpr std::string_view kWhy = "may not be specified in the context of inline volumes";
  for (const std::string_view member : {"claimRef", "capacity"}) {
    if (spec.has(member)) errors.forbidden(at.child(member), kWhy);
  }
  if (!spec.has("csi")) {
    errors.required(at.child("csi"), "has to be specified in the context of inline volumes");
  }
}

void validate_policies(const Doc& spec, bool is_inline, const Path& at, FieldErrors& errors) {
  const std::string& policy = spec["persistentVolumeReclaimPolicy"].as_string();
  if (is_inline) {
    if (!policy.empty() && policy != "Retain") {
      errors.forbidden(at.child("persistentVolumeReclaimPolicy"),
                       "may only be Retain in the context of inline volumes");
    }
    if (spec.has("nodeAffinity")) {
      errors.forbidden(at.child("nodeAffinity"),
                       "may not be specified in the context of inline volumes");
    }
    return;
  }
  validate_word(spec, "persistentVolumeReclaimPolicy", {"Delete", "Recycle", "Retain"}, at, errors);
  const Doc* affinity = spec.find("nodeAffinity");
  if (affinity == nullptr) return;
  if (affinity->has("required")) {
    validate_node_selector((*affinity)["required"], at.child("nodeAffinity", "required"), errors);
  } else {
    errors.required(at.child("nodeAffinity", "required"), "must specify required node constraints");
  }
}

void validate_tail(const Doc& spec, bool is_inline, const Path& at, FieldErrors& errors) {
  const std::string& root = spec.get("hostPath", "path").as_string();
  if (!root.empty() && root.find_first_not_of('/') == std::string::npos &&
      spec["persistentVolumeReclaimPolicy"].as_string() == "Recycle") {
    errors.forbidden(at.child("persistentVolumeReclaimPolicy"),
                     "may not be 'recycle' for a hostPath mount of '/'");
  }
  const Doc& class_name = spec["storageClassName"];
  if (!class_name.as_string().empty()) {
    if (is_inline) {
      errors.forbidden(at.child("storageClassName"),
                       "may not be specified in the context of inline volumes");
    } else {
      validate_class(class_name, at.child("storageClassName"), errors);
    }
  }
  if (!is_inline) {
    validate_word(spec, "volumeMode", {"Block", "Filesystem"}, at, errors);
  } else if (spec.has("volumeMode") && spec["volumeMode"].as_string() != "Filesystem") {
    errors.forbidden(at.child("volumeMode"),
                     "may not specify volumeMode other than Filesystem in the context of inline "
                     "volumes");
  }
  const Doc* attributes = spec.find("volumeAttributesClassName");
  if (attributes == nullptr || is_inline) return;
  if (attributes->as_string().empty()) {
    errors.required(at.child("volumeAttributesClassName"), "an empty string is disallowed");
  } else {
    validate_class(*attributes, at.child("volumeAttributesClassName"), errors);
  }
  if (!spec.has("csi")) {
    errors.required(at.child("csi"), "has to be specified when using volumeAttributesClassName");
  }
}

struct Notice {
  std::string_view member, text;
};
constexpr std::array<Notice, 6> kRetired = {{
    {"cephfs", "spec.cephfs: deprecated in v1.28, non-functional in v1.31+"},
    {"photonPersistentDisk",
     "spec.photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+"},
    {"scaleIO", "spec.scaleIO: deprecated in v1.16, non-functional in v1.22+"},
    {"storageos", "spec.storageOS: deprecated in v1.22, non-functional in v1.25+"},
    {"glusterfs", "spec.glusterfs: deprecated in v1.25, non-functional in v1.26+"},
    {"rbd", "spec.rbd: deprecated in v1.28, non-functional in v1.31+"},
}};

void warn_about(const Doc& volume, WriteContext& context) {
  static constexpr std::array<Notice, 2> kAnnotations = {{
      {"volume.beta.kubernetes.io/storage-class",
       "deprecated since v1.8; use \"storageClassName\" attribute instead"},
      {"volume.beta.kubernetes.io/mount-options",
       "deprecated since v1.31; use \"mountOptions\" attribute instead"},
  }};
  for (const auto& [key, text] : kAnnotations) {
    if (!meta(volume)["annotations"].has(key)) continue;
    context.warnings.push_back("metadata.annotations[" + std::string(key) +
                               "]: " + std::string(text));
  }
  if (volume.get("spec", "persistentVolumeReclaimPolicy").as_string() == "Recycle") {
    context.warnings.emplace_back(
        "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, "
        "the recommended approach is to use dynamic provisioning.");
  }
  for (const auto& [member, text] : kRetired) {
    if (volume["spec"].has(member)) context.warnings.emplace_back(text);
  }
}

class VolumeStrategy : public PlainStrategy {
 public:
  void set_defaults(Doc& volume) const override {
    Doc& spec = volume.at("spec");
    if (!spec.is_object()) spec = Doc::object();
    default_volume_spec(spec);
    if (spec["persistentVolumeReclaimPolicy"].as_string().empty()) {
      spec.set("persistentVolumeReclaimPolicy", "Retain");
    }
    spec.set_default("volumeMode", "Filesystem");
    if (volume.get("status", "phase").as_string().empty()) {
      volume.at("status").set("phase", "Pending");
    }
  }

  void prepare_create(Doc& volume, WriteContext& context) const override {
    volume.set("status", Doc::object()
                             .set("phase", "Pending")
                             .set("lastPhaseTransitionTime", format_time(context.now)));
    warn_about(volume, context);
  }
  void validate_create(const Doc& volume, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_volume_spec(volume["spec"], false, Path("spec"), errors);
  }

  void prepare_update(Doc& volume, const Doc& old, WriteContext& context) const override {
    Strategy::prepare_update(volume, old, context);
    warn_about(volume, context);
  }
  void validate_update(const Doc& volume, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    // upstream runs the whole validation twice
    validate_create(volume, context, errors);
    validate_create(volume, context, errors);
    Doc source = volume_source_of(volume["spec"]);
    const Doc old_source = volume_source_of(old["spec"]);
    // a secret for expansion may be added once
    if (source.has("csi") && old_source.has("csi") &&
        !old_source["csi"].has("controllerExpandSecretRef")) {
      source.at("csi").erase("controllerExpandSecretRef");
    }
    if (!same(source, old_source)) {
      errors.forbidden(Path("spec.persistentvolumesource"),
                       "spec.persistentvolumesource is immutable after creation");
    }
    require_same(volume.get("spec", "volumeMode"), old.get("spec", "volumeMode"),
                 Path("volumeMode"), errors);
    const Doc& affinity = old.get("spec", "nodeAffinity");
    if (!affinity.is_null()) {
      require_same(volume.get("spec", "nodeAffinity"), affinity, Path("nodeAffinity"), errors);
    }
    if (old["spec"].has("volumeAttributesClassName") &&
        !volume["spec"].has("volumeAttributesClassName")) {
      errors.forbidden(Path("spec.volumeAttributesClassName"),
                       "update from non-nil value to nil is forbidden");
    }
  }

  void prepare_subresource_update(std::string_view /*subresource*/, Doc& volume, const Doc& old,
                                  WriteContext& context) const override {
    take_status_and_metadata(volume, old);
    const Doc& old_status = old["status"];
    Doc& status = volume.at("status");
    const bool phase_changed = status["phase"] != old_status["phase"];
    const bool has_time = status.has("lastPhaseTransitionTime");
    if (!phase_changed && !has_time && old_status.has("lastPhaseTransitionTime")) {
      status.set("lastPhaseTransitionTime", old_status["lastPhaseTransitionTime"]);
    } else if (phase_changed && (!has_time || status["lastPhaseTransitionTime"] ==
                                                  old_status["lastPhaseTransitionTime"])) {
      status.set("lastPhaseTransitionTime", format_time(context.now));
    }
  }
  bool returns_deleted_object() const override { return true; }
};

}  // namespace

void validate_access_modes(const Doc& modes, const Path& at, FieldErrors& errors) {
  static const std::vector<std::string_view> kModes = {"ReadOnlyMany", "ReadWriteMany",
                                                       "ReadWriteOnce", "ReadWriteOncePod"};
  bool has_single_pod = false;
  bool has_other = false;
  for (const Doc& mode : modes.items()) {
    const bool is_known = std::ranges::find(kModes, mode.as_string()) != kModes.end();
    if (!is_known) errors.not_supported(at, mode, kModes);
    if (mode.as_string() == "ReadWriteOncePod") {
      has_single_pod = true;
    } else if (is_known) {
      has_other = true;
    }
  }
  if (has_single_pod && has_other) {
    errors.forbidden(at, "may not use ReadWriteOncePod with other access modes");
  }
}

void validate_volume_spec(const Doc& spec, bool is_inline, const Path& at, FieldErrors& errors) {
  if (is_inline) validate_inline(spec, at, errors);
  if (spec["accessModes"].empty()) errors.required(at.child("accessModes"));
  validate_access_modes(spec["accessModes"], at.child("accessModes"), errors);
  if (!is_inline) validate_capacity(spec["capacity"], at.child("capacity"), errors);
  validate_policies(spec, is_inline, at, errors);
  validate_volume_source(spec, at, errors);
  validate_tail(spec, is_inline, at, errors);
}

StrategyPtr volume_strategy() { return std::make_shared<VolumeStrategy>(); }

}  // namespace jogak::api
