// SPDX-License-Identifier: Apache-2.0
//
// The few fields of an object's metadata that keeping up with a collection needs, read without
// parsing the rest of the object. And the order of resource versions.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace jogak::kube {

// Views into the object, or into the reader where a string has escapes; until its next read.
struct ObjectMeta {
  std::string_view ns, name, uid, version;  // "" where the object does not say
};

class MetaReader {
 public:
  // Errors: Invalid, no object, no metadata or no strings where strings should be. Of a field that
  // is written twice the first or the last counts. The rest of the object is not looked at.
  Result<ObjectMeta> read(std::string_view object_json);

 private:
  std::array<std::string, 4> scratch_;
};

// Whether the object of a bookmark says that the initial events of a streaming list are complete.
bool is_initial_events_end(std::string_view object_json);

// -1, 0, 1 when both are plain decimal numbers, of any length; nothing can be said of others.
std::optional<int> compare_versions(std::string_view a, std::string_view b);

inline bool is_older(std::string_view a, std::string_view b) {
  return compare_versions(a, b) == std::optional(-1);
}

}  // namespace jogak::kube
