// SPDX-License-Identifier: Apache-2.0
//
// Claims and volumes: the default class, the finalizers that protect what is in use, and which
// claims may grow.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "apiserver/admission/plugins.h"
#include "apiserver/object/amount.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::string_view kClassNote = "volume.beta.kubernetes.io/storage-class";
constexpr std::string_view kClaims = "persistentvolumeclaims";
constexpr std::string_view kClasses = "storageclasses.storage.k8s.io";

bool is_default(const Doc& storage_class) {
  const Doc& notes = meta(storage_class)["annotations"];
  return notes["storageclass.kubernetes.io/is-default-class"].as_string() == "true" ||
         notes["storageclass.beta.kubernetes.io/is-default-class"].as_string() == "true";
}

// Of several, the youngest; of equally young ones the first by name.
std::optional<Doc> default_class(const Lookup& lookup) {
  std::optional<Doc> found;
  for (Doc& candidate : lookup.list(kClasses, "")) {
    if (!is_default(candidate)) {
      continue;
    }
    const std::string& age = meta(candidate)["creationTimestamp"].as_string();
    if (!found || age > meta(*found)["creationTimestamp"].as_string()) {
      found = std::move(candidate);
    }
  }
  return found;
}

class DefaultStorageClass : public AdmissionPlugin {
 public:
  ApiResult<void> mutate(Admission& admission, WriteContext& context) const override {
    if (!is_main(admission, "", kClaims) || admission.operation != Operation::Create ||
        meta(*admission.object)["annotations"].has(kClassNote) ||
        (*admission.object)["spec"].has("storageClassName")) {
      return {};
    }
    if (const auto found = default_class(context.lookup)) {
      admission.object->at("spec").set("storageClassName", name_of(*found));
    }
    return {};
  }
};

class StorageObjectInUseProtection : public AdmissionPlugin {
 public:
  ApiResult<void> mutate(Admission& admission, WriteContext& /*context*/) const override {
    if (admission.operation != Operation::Create) {
      return {};
    }
    if (is_main(admission, "", "persistentvolumes")) {
      protect(*admission.object, "kubernetes.io/pv-protection");
    } else if (is_main(admission, "", kClaims)) {
      protect(*admission.object, "kubernetes.io/pvc-protection");
    } else if (is_main(admission, "storage.k8s.io", "volumeattributesclasses")) {
      protect(*admission.object, "kubernetes.io/vac-protection");
    }
    return {};
  }

 private:
  static void protect(Doc& object, std::string_view finalizer) {
    if (!has_finalizer(object, finalizer)) {
      object.at("metadata", "finalizers").push(finalizer);
    }
  }
};

std::string class_of(const Doc& claim) {
  const Doc& note = meta(claim)["annotations"][kClassNote];
  return note.is_null() ? claim["spec"]["storageClassName"].as_string() : note.as_string();
}

bool may_grow(const Doc& claim, const Doc& old, const Lookup& lookup) {
  const std::string name = class_of(claim);
  if (name.empty() || name != class_of(old)) {
    return false;
  }
  const auto storage_class = lookup.get(kClasses, "", name);
  return storage_class && (*storage_class)["allowVolumeExpansion"].as_bool();
}

Amount size_of(const Doc& claim) {
  return Amount::parse(claim.get("spec", "resources", "requests", "storage").as_string())
      .value_or(Amount());
}

class PersistentVolumeClaimResize : public AdmissionPlugin {
 public:
  ApiResult<void> validate(const Admission& admission, WriteContext& context) const override {
    if (!is_main(admission, "", kClaims) || admission.object == nullptr ||
        admission.old == nullptr || size_of(*admission.object) <= size_of(*admission.old)) {
      return {};
    }
    if ((*admission.old)["status"]["phase"].as_string() != "Bound") {
      return refuse(admission, "Only bound persistent volume claims can be expanded");
    }
    if (!may_grow(*admission.object, *admission.old, context.lookup)) {
      return refuse(admission,
                    "only dynamically provisioned pvc can be resized and the storageclass that "
                    "provisions the pvc must support resize");
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<AdmissionPlugin> default_storage_class() {
  return std::make_unique<DefaultStorageClass>();
}

std::unique_ptr<AdmissionPlugin> storage_in_use_protection() {
  return std::make_unique<StorageObjectInUseProtection>();
}

std::unique_ptr<AdmissionPlugin> claim_resize() {
  return std::make_unique<PersistentVolumeClaimResize>();
}

}  // namespace jogak::api
