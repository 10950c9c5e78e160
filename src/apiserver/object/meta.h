// SPDX-License-Identifier: Apache-2.0
//
// Short ways to the members that every object has.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/doc.h"
#include "base/loop.h"

namespace jogak::api {

inline const Doc& meta(const Doc& object) { return object["metadata"]; }
inline const std::string& name_of(const Doc& object) { return meta(object)["name"].as_string(); }
inline const std::string& namespace_of(const Doc& object) {
  return meta(object)["namespace"].as_string();
}
inline const std::string& uid_of(const Doc& object) { return meta(object)["uid"].as_string(); }
inline bool is_deleting(const Doc& object) { return meta(object).has("deletionTimestamp"); }

// The controller among the owners, or a null Doc.
const Doc& controller_of(const Doc& object);
bool has_finalizer(const Doc& object, std::string_view name);
// The condition of that type in status.conditions, or a null Doc.
const Doc& condition_of(const Doc& object, std::string_view type);
bool condition_is(const Doc& object, std::string_view type, std::string_view status);
// Sets a condition (status.conditions made when absent). lastTransitionTime changes only with the
// status. Returns whether anything changed.
bool set_condition(Doc& object, std::string_view type, std::string_view status,
                   std::string_view reason, std::string_view message, TimeUs now);

// "2026-02-02T02:09:39Z" and "2026-02-02T02:09:39.123456Z".
std::string format_time(TimeUs time);
std::string format_micro_time(TimeUs time);
// RFC 3339 with any fraction and offset; nullopt otherwise.
std::optional<TimeUs> parse_time(std::string_view text);

}  // namespace jogak::api
