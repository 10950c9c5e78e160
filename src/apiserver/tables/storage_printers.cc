// SPDX-License-Identifier: Apache-2.0
//
// Volumes, claims, classes, and the objects of CSI drivers.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/object/meta.h"
#include "apiserver/tables/printer.h"

namespace jogak::api {
namespace {

constexpr ColumnFact kVolumeColumns[] = {
    kNameColumn,
    {.name = "Capacity", .description = "Size of the volume"},
    {.name = "Access Modes", .description = "How it may be mounted"},
    {.name = "Reclaim Policy", .description = "What happens when its claim goes"},
    {.name = "Status", .description = "Phase of the volume"},
    {.name = "Claim", .description = "Claim it is bound to"},
    {.name = "StorageClass", .description = "Class of the volume"},
    {.name = "VolumeAttributesClass", .description = "Attributes class of the volume"},
    {.name = "Reason", .description = "Why it is in this phase"},
    kAgeColumn,
    {.name = "VolumeMode", .priority = 1, .description = "Filesystem or Block"},
};

// Each once, in a fixed order.
std::string modes_text(const Doc& modes) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kShort = {{
      {"ReadWriteOnce", "RWO"},
      {"ReadOnlyMany", "ROX"},
      {"ReadWriteMany", "RWX"},
      {"ReadWriteOncePod", "RWOP"},
  }};
  std::vector<std::string> parts;
  for (const auto& [name, abbreviation] : kShort) {
    if (std::ranges::find(modes.items(), Doc(name)) != modes.items().end()) {
      parts.emplace_back(abbreviation);
    }
  }
  return join(parts, ",");
}

std::string class_text(const Doc& object) {
  const Doc& beta = meta(object).get("annotations", "volume.beta.kubernetes.io/storage-class");
  return (beta.is_string() ? beta : object.get("spec", "storageClassName")).as_string();
}

std::string phase_text(const Doc& object) {
  return is_deleting(object) ? "Terminating" : object.get("status", "phase").as_string();
}

std::string or_unset(const Doc& value) { return value.is_string() ? value.as_string() : "<unset>"; }

void print_volume(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& spec = object["spec"];
  const Doc& claim = spec["claimRef"];
  cells.emplace_back(name_of(object));
  cells.emplace_back(amount_or(spec.get("capacity", "storage"), "0"));
  cells.emplace_back(modes_text(spec["accessModes"]));
  cells.emplace_back(spec["persistentVolumeReclaimPolicy"].as_string());
  cells.emplace_back(phase_text(object));
  cells.emplace_back(claim.is_null()
                         ? std::string()
                         : claim["namespace"].as_string() + "/" + claim["name"].as_string());
  cells.emplace_back(class_text(object));
  cells.emplace_back(or_unset(spec["volumeAttributesClassName"]));
  cells.emplace_back(object.get("status", "reason").as_string());
  cells.emplace_back(age_of(object, now));
  cells.emplace_back(or_unset(spec["volumeMode"]));
}

constexpr ColumnFact kClaimColumns[] = {
    kNameColumn,
    {.name = "Status", .description = "Phase of the claim"},
    {.name = "Volume", .description = "Volume it is bound to"},
    {.name = "Capacity", .description = "Size of that volume"},
    {.name = "Access Modes", .description = "How it may be mounted"},
    {.name = "StorageClass", .description = "Class asked for"},
    {.name = "VolumeAttributesClass", .description = "Attributes class asked for"},
    kAgeColumn,
    {.name = "VolumeMode", .priority = 1, .description = "Filesystem or Block"},
};

void print_claim(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& spec = object["spec"];
  const Doc& status = object["status"];
  const std::string& volume = spec["volumeName"].as_string();
  const bool is_bound = !volume.empty();
  cells.emplace_back(name_of(object));
  cells.emplace_back(phase_text(object));
  cells.emplace_back(volume);
  cells.emplace_back(is_bound ? amount_or(status.get("capacity", "storage"), "0") : "");
  cells.emplace_back(is_bound ? modes_text(status["accessModes"]) : "");
  cells.emplace_back(class_text(object));
  cells.emplace_back(or_unset(spec["volumeAttributesClassName"]));
  cells.emplace_back(age_of(object, now));
  cells.emplace_back(or_unset(spec["volumeMode"]));
}

constexpr ColumnFact kClassColumns[] = {
    kNameColumn,
    {.name = "Provisioner", .description = "Who makes the volumes"},
    {.name = "ReclaimPolicy", .description = "What happens when a claim goes"},
    {.name = "VolumeBindingMode", .description = "When volumes are bound"},
    {.name = "AllowVolumeExpansion", .description = "Whether volumes may grow"},
    kAgeColumn,
};

bool is_default_class(const Doc& object) {
  const Doc& annotations = meta(object)["annotations"];
  return annotations["storageclass.kubernetes.io/is-default-class"].as_string() == "true" ||
         annotations["storageclass.beta.kubernetes.io/is-default-class"].as_string() == "true";
}

void print_class(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object) + (is_default_class(object) ? " (default)" : ""));
  cells.emplace_back(object["provisioner"].as_string());
  cells.emplace_back(text_or(object["reclaimPolicy"], "Delete"));
  cells.emplace_back(text_or(object["volumeBindingMode"], "Immediate"));
  cells.emplace_back(object["allowVolumeExpansion"].as_bool());
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kCsiNodeColumns[] = {
    kNameColumn,
    {.name = "Drivers", .type = "integer", .description = "Number of drivers on the node"},
    kAgeColumn,
};

void print_csi_node(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(object.get("spec", "drivers").size());
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kCsiDriverColumns[] = {
    kNameColumn,
    {.name = "AttachRequired", .type = "boolean", .description = "Whether volumes are attached"},
    {.name = "PodInfoOnMount", .type = "boolean", .description = "Whether it is told of the pod"},
    {.name = "StorageCapacity", .type = "boolean", .description = "Whether capacity is tracked"},
    {.name = "TokenRequests", .description = "Audiences of the tokens it gets"},
    {.name = "RequiresRepublish",
     .type = "boolean",
     .description = "Whether volumes are published again and again"},
    {.name = "Modes", .description = "Life cycles of volumes it knows"},
    kAgeColumn,
};

void print_csi_driver(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& spec = object["spec"];
  std::vector<std::string> audiences, modes;
  for (const Doc& request : spec["tokenRequests"].items()) {
    audiences.push_back(request["audience"].as_string());
  }
  for (const Doc& mode : spec["volumeLifecycleModes"].items()) {
    modes.push_back(mode.as_string());
  }
  cells.emplace_back(name_of(object));
  cells.emplace_back(spec["attachRequired"].as_bool(true));
  cells.emplace_back(spec["podInfoOnMount"].as_bool());
  cells.emplace_back(spec["storageCapacity"].as_bool());
  cells.emplace_back(spec["tokenRequests"].is_array() ? join(audiences, ",") : "<unset>");
  cells.emplace_back(spec["requiresRepublish"].as_bool());
  cells.emplace_back(modes.empty() ? "<none>" : join(modes, ","));
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kAttachmentColumns[] = {
    kNameColumn,
    {.name = "Attacher", .format = "name", .description = "Driver that attaches"},
    {.name = "PV", .description = "Volume to attach"},
    {.name = "Node", .description = "Node to attach it to"},
    {.name = "Attached", .type = "boolean", .description = "Whether it is attached"},
    kAgeColumn,
};

void print_attachment(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& spec = object["spec"];
  cells.emplace_back(name_of(object));
  cells.emplace_back(spec["attacher"].as_string());
  cells.emplace_back(spec.get("source", "persistentVolumeName").as_string());
  cells.emplace_back(spec["nodeName"].as_string());
  cells.emplace_back(object.get("status", "attached").as_bool());
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kCapacityColumns[] = {
    kNameColumn,
    {.name = "StorageClassName", .description = "Storage class that it is about"},
    {.name = "Capacity", .description = "Space that is left"},
};

void print_capacity(const Doc& object, TimeUs, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(object["storageClassName"].as_string());
  cells.emplace_back(amount_or(object["capacity"], "<unset>"));
}

constexpr ColumnFact kAttributesColumns[] = {
    kNameColumn, {.name = "DriverName", .description = "Driver that knows them"}, kAgeColumn};

void print_attributes(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(object["driverName"].as_string());
  cells.emplace_back(age_of(object, now));
}

constexpr Printer kPrinters[] = {
    {"", "PersistentVolume", kVolumeColumns, print_volume},
    {"", "PersistentVolumeClaim", kClaimColumns, print_claim},
    {"storage.k8s.io", "StorageClass", kClassColumns, print_class},
    {"storage.k8s.io", "CSINode", kCsiNodeColumns, print_csi_node},
    {"storage.k8s.io", "CSIDriver", kCsiDriverColumns, print_csi_driver},
    {"storage.k8s.io", "VolumeAttachment", kAttachmentColumns, print_attachment},
    {"storage.k8s.io", "CSIStorageCapacity", kCapacityColumns, print_capacity},
    {"storage.k8s.io", "VolumeAttributesClass", kAttributesColumns, print_attributes},
};

}  // namespace

std::span<const Printer> storage_printers() { return kPrinters; }

}  // namespace jogak::api
