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

FieldSet set_of(const std::vector<std::string_view>& paths) {
  FieldSet set = Doc::object();
  for (const std::string_view path : paths) insert_path(set, path_of(path));
  return set;
}

FieldSet status_reset(const ObjectType& type) {
  FieldSet set = set_of({"spec"});
  if (type.builtin == nullptr) {
    insert_path(set, path_of("metadata"));
    return set;
  }
  for (const StatusReset& entry : kStatusResets) {
    if (entry.type == type.builtin->name) insert_path(set, path_of(entry.path));
  }
  return set;
}

FieldSet keep(const FieldSet& set, const std::vector<std::string_view>& dotted) {
  std::vector<FieldPath> patterns;
  for (const std::string_view pattern : dotted) patterns.push_back(path_of(pattern));
  return keep_matching(set, patterns);
}

}  // namespace

FieldSet without_reset_fields(const FieldSet& set, const Writer& writer, const ObjectType& type) {
  if (set.empty()) return set;
  const std::string& door = writer.subresource;
  if (door == "status") return subtract_deep(set, status_reset(type));
  if (door == "ephemeralcontainers") return keep(set, {"spec.ephemeralContainers"});
  if (door == "resize") {
    return keep(set, {"spec.containers.*.resources", "spec.containers.*.resizePolicy",
                      "spec.initContainers.*.resources", "spec.initContainers.*.resizePolicy"});
  }
  if ((door.empty() && writer.has_status) || door == "finalize") {
    static const FieldSet kStatus = set_of({"status"});
    return set.has(kStatus.members().front().key) ? subtract_deep(set, kStatus) : set;
  }
  return set;
}

}  // namespace jogak::patch
