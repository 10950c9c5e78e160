// SPDX-License-Identifier: Apache-2.0
//
// The API server writes the fields wanted first (built-in kinds) or in order of the alphabet
// (custom ones); in both orders the namespace stands before the last of the others. The walk stops
// as soon as all four are found, before the managed fields; objects without a namespace are walked
// to the end of their metadata.
#include "kube/object_meta.h"

#include <algorithm>

#include "kube/json_cut.h"

namespace jogak::kube {

namespace {

// The text of a field's value; "" when the object does not have it.
std::string_view field_of(std::string_view object_json, std::string_view key) {
  FieldCursor fields(object_json);
  while (fields.next()) {
    if (fields.key() == key) return fields.value();
  }
  return {};
}

bool is_decimal(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

Result<ObjectMeta> MetaReader::read(std::string_view object_json) {
  const std::string_view metadata = field_of(object_json, "metadata");
  if (metadata.empty() || metadata.front() != '{') {
    return invalid("an object without metadata: {}", object_json.substr(0, 60));
  }
  constexpr std::array<std::string_view, 4> kKeys = {"namespace", "name", "uid", "resourceVersion"};
  std::array<std::string_view, 4> values;
  unsigned found = 0;
  FieldCursor fields(metadata);
  while (found != 0b1111 && fields.next()) {
    const auto at = static_cast<std::size_t>(std::find(kKeys.begin(), kKeys.end(), fields.key()) -
                                             kKeys.begin());
    if (at == kKeys.size()) continue;
    const auto value = json_string(fields.value(), scratch_[at]);
    if (!value) {
      return in_context("metadata." + std::string(kKeys[at]), value.error());
    }
    values[at] = *value;
    found |= 1U << at;
  }
  if (found != 0b1111 && !fields.is_whole()) {
    return invalid("metadata that is no JSON object: {}", metadata.substr(0, 60));
  }
  return ObjectMeta{.ns = values[0], .name = values[1], .uid = values[2], .version = values[3]};
}

bool is_initial_events_end(std::string_view object_json) {
  const std::string_view metadata = field_of(object_json, "metadata");
  return field_of(field_of(metadata, "annotations"), "k8s.io/initial-events-end") == "\"true\"";
}

std::optional<int> compare_versions(std::string_view a, std::string_view b) {
  if (!is_decimal(a) || !is_decimal(b)) return std::nullopt;
  a.remove_prefix(std::min(a.find_first_not_of('0'), a.size()));
  b.remove_prefix(std::min(b.find_first_not_of('0'), b.size()));
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  const int order = a.compare(b);
  return order < 0 ? -1 : order > 0 ? 1 : 0;
}

}  // namespace jogak::kube
