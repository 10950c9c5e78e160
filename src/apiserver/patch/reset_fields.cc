// SPDX-License-Identifier: Apache-2.0
//
// What each door of an object leaves alone: a write to the main resource cannot change the status,
// one to the status nothing else. Fields out of reach are not tracked, whatever a client sends.
#include <array>
#include <string_view>
#include <vector>

#include "apiserver/patch/managers.h"

namespace jogak::patch {
namespace {

// Besides spec, the status of these built-in kinds leaves alone...
struct StatusReset {
  std::string_view type;
  std::string_view path;  // "metadata" or "metadata.labels"
};
constexpr std::array<StatusReset, 6> kStatusResets = {{
    {"core.v1.Pod", "metadata.deletionTimestamp"},
    {"core.v1.Pod", "metadata.ownerReferences"},
    {"apps.v1.Deployment", "metadata.labels"},
    {"scheduling.v1alpha2.PodGroup", "metadata"},
    {"resource.v1.ResourceClaim", "metadata"},
    {"storage.v1.VolumeAttachment", "metadata"},
}};

FieldPath path_of(std::string_view dotted) {
  FieldPath path;
  while (!dotted.empty()) {
    const std::size_t dot = dotted.find('.');
    const std::string_view name = dotted.substr(0, dot);
    path.push_back(name == "*" ? std::string(name) : field_element(name));
    dotted.remove_prefix(dot == std::string_view::npos ? dotted.size() : dot + 1);
  }
  return path;
}

std::vector<FieldPath> paths_of(const std::vector<std::string_view>& dotted) {
  std::vector<FieldPath> paths;
  for (const std::string_view path : dotted) paths.push_back(path_of(path));
  return paths;
}

void reset_for_status(FieldSet& set, const ObjectType& type) {
  static const FieldPath kSpec = path_of("spec");
  static const FieldPath kMetadata = path_of("metadata");
  erase_path(set, kSpec);
  if (type.builtin == nullptr) {
    erase_path(set, kMetadata);
    return;
  }
  if (set.find(kMetadata.front()) == nullptr) return;
  for (const StatusReset& entry : kStatusResets) {
    if (entry.type == type.builtin->name) erase_path(set, path_of(entry.path));
  }
}

}  // namespace

FieldSet without_reset_fields(FieldSet set, const Writer& writer, const ObjectType& type) {
  const std::string& door = writer.subresource;
  if (set.empty()) return set;
  if (door == "status") {
    reset_for_status(set, type);
  } else if (door == "ephemeralcontainers") {
    static const auto kPatterns = paths_of({"spec.ephemeralContainers"});
    return keep_matching(set, kPatterns);
  } else if (door == "resize") {
    static const auto kPatterns =
        paths_of({"spec.containers.*.resources", "spec.containers.*.resizePolicy",
                  "spec.initContainers.*.resources", "spec.initContainers.*.resizePolicy"});
    return keep_matching(set, kPatterns);
  } else if ((door.empty() && writer.has_status) || door == "finalize") {
    static const FieldPath kStatus = path_of("status");
    erase_path(set, kStatus);
  }
  return set;
}

}  // namespace jogak::patch
