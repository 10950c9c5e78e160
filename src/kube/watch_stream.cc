// SPDX-License-Identifier: Apache-2.0
//
// An event is scanned to find its end, and its object once more to find where that ends, since
// fields may stand in any order.
#include "kube/watch_stream.h"

#include <array>
#include <utility>

namespace jogak::kube {

namespace {

using Type = WatchEvent::Type;

Type type_of(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, Type>, 5> kTypes = {{
      {"\"ADDED\"", Type::Added},
      {"\"MODIFIED\"", Type::Modified},
      {"\"DELETED\"", Type::Deleted},
      {"\"BOOKMARK\"", Type::Bookmark},
      {"\"ERROR\"", Type::Error},
  }};
  for (const auto& [name, type] : kTypes) {
    if (text == name) return type;
  }
  return Type::Unknown;
}

Result<WatchEvent> event_of(std::string_view json) {
  WatchEvent event;
  std::string_view type;
  FieldCursor fields(json);
  while (fields.next()) {
    if (fields.key() == "type") type = fields.value();
    if (fields.key() == "object") event.object = fields.value();
  }
  if (!fields.is_whole() || type.empty() || event.object.empty() || event.object.front() != '{') {
    return invalid("no event of a watch: {}", json.substr(0, 60));
  }
  event.type = type_of(type);
  return event;
}

}  // namespace

Result<std::optional<WatchEvent>> WatchStream::next() {
  if (!cutter_.is_inside()) {
    while (!bytes_.empty() && is_json_space(bytes_.front())) bytes_.remove_prefix(1);
    if (bytes_.empty()) return std::nullopt;
    if (bytes_.front() != '{') {
      return invalid("want an event of a watch, found: {}", bytes_.substr(0, 60));
    }
  }
  JOGAK_TRY(const std::string_view json, cutter_.take(bytes_));
  if (json.empty()) return std::nullopt;
  JOGAK_TRY(const WatchEvent event, event_of(json));
  return event;
}

}  // namespace jogak::kube
