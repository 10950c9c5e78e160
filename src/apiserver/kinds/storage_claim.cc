// SPDX-License-Identifier: Apache-2.0
//
// Persistent volume claims: what may change once they exist, and the two members that name where
// their data comes from, kept alike.
#include <string>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/kinds/storage_rules.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/resource_list.h"

namespace jogak::api {

namespace {

constexpr std::string_view kClassAnnotation = "volume.beta.kubernetes.io/storage-class";

bool names_claim_or_snapshot(const Doc& source) {
  const std::string& kind = source["kind"].as_string();
  const std::string& group = source["apiGroup"].as_string();
  return (kind == "PersistentVolumeClaim" && group.empty()) ||
         (kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io");
}

Doc copy_source(const Doc& source) {
  Doc copy = Doc::object();
  for (const std::string_view member : {"apiGroup", "kind", "name"}) {
    if (source.has(member)) copy.set(member, source[member]);
  }
  return copy;
}

// dataSource of unknown kinds was always dropped in silence; otherwise both members say the same.
void align_sources(Doc& spec, const Doc& old_spec) {
  const auto has_namespace = [](const Doc& source) {
    return !source["namespace"].as_string().empty();
  };
  // sources in other namespaces are behind a gate that is off
  if (has_namespace(spec["dataSourceRef"]) && !old_spec.has("dataSourceRef")) {
    spec.erase("dataSourceRef");
  }
  if (!old_spec.has("dataSource") && !spec.has("dataSourceRef") && spec.has("dataSource") &&
      !names_claim_or_snapshot(spec["dataSource"])) {
    spec.erase("dataSource");
  }
  if (spec.has("dataSource") && !spec.has("dataSourceRef")) {
    spec.set("dataSourceRef", copy_source(spec["dataSource"]));
  } else if (spec.has("dataSourceRef") && !spec.has("dataSource") &&
             !has_namespace(spec["dataSourceRef"])) {
    spec.set("dataSource", copy_source(spec["dataSourceRef"]));
  }
}

void validate_source(const Doc& source, const Path& at, FieldErrors& errors) {
  for (const std::string_view member : {"name", "kind"}) {
    if (source[member].as_string().empty()) errors.required(at.child(member));
  }
  const std::string& group = source["apiGroup"].as_string();
  if (group.empty() && source["kind"].as_string() != "PersistentVolumeClaim") {
    errors.invalid(at, source["kind"].as_string(),
                   "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
  }
  if (!group.empty()) validate_name(group, check_dns1123_subdomain, at.child("apiGroup"), errors);
  const std::string& ns = source["namespace"].as_string();
  if (!ns.empty()) validate_name(ns, check_dns1123_label, at.child("namespace"), errors);
}

void validate_sources(const Doc& spec, const Path& at, FieldErrors& errors) {
  const Doc* old_way = spec.find("dataSource");
  const Doc* new_way = spec.find("dataSourceRef");
  if (old_way != nullptr) validate_source(*old_way, at.child("dataSource"), errors);
  if (new_way != nullptr) validate_source(*new_way, at.child("dataSourceRef"), errors);
  if (old_way == nullptr || new_way == nullptr) return;
  if (!(*new_way)["namespace"].as_string().empty()) {
    errors.invalid(at, at.child("dataSource").text(),
                   "may not be specified when dataSourceRef.namespace is specified");
  } else if (!same(copy_source(*old_way), copy_source(*new_way))) {
    errors.invalid(at, at.child("dataSource").text(), "must match dataSourceRef");
  }
}

// The spec with what may change taken from the old one, to compare the rest.
Doc frozen_part(const Doc& claim, const Doc& old) {
  Doc spec = claim["spec"];
  const Doc& old_spec = old["spec"];
  const Doc& annotation = meta(old)["annotations"][kClassAnnotation];
  const bool class_follows_annotation =
      annotation.is_null() || spec["storageClassName"] == annotation;
  if (!old_spec.has("storageClassName") && class_follows_annotation) {
    spec.erase("storageClassName");  // set once, from nothing
  }
  if (old_spec["volumeName"].as_string().empty()) spec.erase("volumeName");
  if (claim.get("status", "phase").as_string() == "Bound") {
    if (spec.get("resources", "requests").is_object()) {
      spec.at("resources", "requests")
          .set("storage", old_spec.get("resources", "requests", "storage"));
    }
    spec.erase("volumeAttributesClassName");
    if (const Doc* kept = old_spec.find("volumeAttributesClassName")) {
      spec.set("volumeAttributesClassName", *kept);
    }
  }
  return spec;
}

void validate_claim_update(const Doc& claim, const Doc& old, FieldErrors& errors) {
  const auto annotation_of = [](const Doc& object) -> const Doc& {
    return meta(object)["annotations"][kClassAnnotation];
  };
  if (!same(annotation_of(claim), annotation_of(old))) {
    errors.invalid(Path("metadata.annotations").key(kClassAnnotation), annotation_of(claim),
                   "field is immutable");
  }
  if (!same(frozen_part(claim, old), old["spec"])) {
    errors.forbidden(Path("spec"),
                     "spec is immutable after creation except resources.requests and "
                     "volumeAttributesClassName for bound claims");
  }
  const auto size_of = [](const Doc& object) {
    return quantity_of(object.get("spec", "resources", "requests", "storage"));
  };
  if (size_of(claim) < size_of(old) &&
      size_of(claim) <= quantity_of(old.get("status", "capacity", "storage"))) {
    errors.forbidden(Path("spec.resources.requests.storage"),
                     "field can not be less than status.capacity");
  }
  require_same(claim.get("spec", "volumeMode"), old.get("spec", "volumeMode"), Path("volumeMode"),
               errors);
  if (old["status"].has("currentVolumeAttributesClassName") &&
      !same(claim.get("spec", "volumeAttributesClassName"),
            old.get("spec", "volumeAttributesClassName")) &&
      claim.get("spec", "volumeAttributesClassName").as_string().empty()) {
    errors.forbidden(Path("spec.volumeAttributesClassName"),
                     "update to nil is forbidden when status.currentVolumeAttributesClassName is "
                     "not nil");
  }
}

void validate_status_key(std::string_view name, const Path& at, FieldErrors& errors) {
  const Problems problems = check_qualified_name(name);
  add_problems(errors, at, name, problems);
  if (problems.empty() && is_native_resource(name) && name != "storage") {
    errors.not_supported(at, name, {"storage"});
  }
}

void warn_about(const Doc& claim, WriteContext& context) {
  if (meta(claim)["annotations"].has(kClassAnnotation)) {
    context.warnings.push_back("metadata.annotations[" + std::string(kClassAnnotation) +
                               "]: deprecated since v1.8; use \"storageClassName\" attribute "
                               "instead");
  }
  for (const std::string_view list : {"requests", "limits"}) {
    const Doc& value = claim.get("spec", "resources", list, "storage");
    if (quantity_of(value).milli_value() % 1000 == 0) continue;
    context.warnings.push_back("spec.resources." + std::string(list) +
                               "[storage]: fractional byte value \"" + value.as_string() +
                               "\" is invalid, must be an integer");
  }
}

class ClaimStrategy : public PlainStrategy {
 public:
  void set_defaults(Doc& claim) const override {
    Doc& spec = claim.at("spec");
    if (!spec.is_object()) spec = Doc::object();
    default_claim_spec(spec);
    if (Doc* status = claim.find("status")) {
      round_resources(*status, "capacity");
      round_resources(*status, "allocatedResources");
    }
    if (claim.get("status", "phase").as_string().empty()) {
      claim.at("status").set("phase", "Pending");
    }
  }

  void prepare_create(Doc& claim, WriteContext& context) const override {
    claim.set("status", Doc::object().set("phase", "Pending"));
    align_sources(claim.at("spec"), {});
    warn_about(claim, context);
  }
  void validate_create(const Doc& claim, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    validate_claim_spec(claim["spec"], Path("spec"), errors);
  }

  void prepare_update(Doc& claim, const Doc& old, WriteContext& context) const override {
    Strategy::prepare_update(claim, old, context);
    align_sources(claim.at("spec"), old["spec"]);
    warn_about(claim, context);
  }
  void validate_update(const Doc& claim, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_create(claim, context, errors);
    validate_claim_update(claim, old, errors);
  }

  void prepare_subresource_update(std::string_view /*subresource*/, Doc& claim, const Doc& old,
                                  WriteContext& /*context*/) const override {
    take_status_and_metadata(claim, old);
  }
  void validate_subresource_update(std::string_view /*subresource*/, const Doc& claim,
                                   const Doc& /*old*/, WriteContext& /*context*/,
                                   FieldErrors& errors) const override {
    const Doc& status = claim["status"];
    for (const auto& [name, value] : status["capacity"].members()) {
      if (!quantity_of(value).is_negative()) continue;
      errors.invalid(Path("status.capacity").key(name), value, "must be a valid resource quantity");
    }
    for (const auto& [name, value] : status["allocatedResourceStatuses"].members()) {
      validate_status_key(name, Path("status.allocatedResourceStatuses"), errors);
    }
    for (const auto& [name, value] : status["allocatedResources"].members()) {
      validate_status_key(name, Path("status.allocatedResources"), errors);
      validate_nonnegative(value, Path("status.allocatedResources").key(name), errors);
    }
  }
  bool returns_deleted_object() const override { return true; }
};

}  // namespace

void default_claim_spec(Doc& spec) {
  if (Doc* resources = spec.find("resources")) {
    round_resources(*resources, "requests");
    round_resources(*resources, "limits");
  }
  spec.set_default("volumeMode", "Filesystem");
}

void validate_claim_spec(const Doc& spec, const Path& at, FieldErrors& errors) {
  if (spec["accessModes"].empty()) {
    errors.required(at.child("accessModes"), "at least 1 access mode is required");
  }
  if (spec.has("selector")) {
    validate_label_selector(spec["selector"], at.child("selector"), errors);
  }
  validate_access_modes(spec["accessModes"], at.child("accessModes"), errors);
  const Path size_at = at.child("resources").key("storage");
  const Doc* size = spec.get("resources", "requests").find("storage");
  if (size == nullptr) {
    errors.required(size_at);
  } else if (quantity_of(*size) <= Amount()) {
    errors.invalid(size_at, *size, "must be greater than zero");
  }
  const Doc& class_name = spec["storageClassName"];
  if (!class_name.as_string().empty()) {
    validate_name(class_name.as_string(), check_dns1123_subdomain, at.child("storageClassName"),
                  errors);
  }
  const std::string& mode = spec["volumeMode"].as_string();
  if (spec.has("volumeMode") && mode != "Block" && mode != "Filesystem") {
    errors.not_supported(at.child("volumeMode"), mode, {"Block", "Filesystem"});
  }
  validate_sources(spec, at, errors);
  const Doc& attributes = spec["volumeAttributesClassName"];
  if (!attributes.as_string().empty()) {
    validate_name(attributes.as_string(), check_dns1123_subdomain,
                  at.child("volumeAttributesClassName"), errors);
  }
}

StrategyPtr claim_strategy() { return std::make_shared<ClaimStrategy>(); }

}  // namespace jogak::api
