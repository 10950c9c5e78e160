// SPDX-License-Identifier: Apache-2.0
//
// JSON merge patch (RFC 7386). Like the Go library behind the API server, nulls inside lists of
// objects go too where a list replaces anything but an object.
#include <algorithm>
#include <utility>

#include "apiserver/patch/patch.h"

namespace jogak::patch {
namespace {

// A null in an object means "absent"; one in a list stays, as the list would change its length.
void prune_nulls(Doc& value) {
  if (value.is_object()) {
    std::erase_if(value.members(),
                  [](const Doc::Member& member) { return member.value.is_null(); });
    for (auto& [key, inner] : value.members()) prune_nulls(inner);
  } else if (value.is_array()) {
    for (Doc& item : value.items()) prune_nulls(item);
  }
}

void merge_object(Doc& object, const Doc& patch) {
  for (const auto& [key, change] : patch.members()) {
    if (change.is_null()) {
      object.erase(key);
      continue;
    }
    Doc& member = object.at(key);
    if (member.is_object()) {
      if (change.is_object()) {
        merge_object(member, change);
      } else {
        member = change;
      }
    } else {
      member = change;
      prune_nulls(member);
    }
  }
}

}  // namespace

api::ApiResult<Doc> merge_patch(Doc object, const Doc& patch) {
  if (patch.is_null()) return api::bad_request("Invalid JSON Patch");
  if (!patch.is_object()) {
    const char* type = patch.is_array()    ? "array"
                       : patch.is_string() ? "string"
                       : patch.is_bool()   ? "bool"
                                           : "number";
    return api::bad_request(std::string("error decoding patch: json: cannot unmarshal ") + type +
                            " into Go value of type map[string]interface {}");
  }
  merge_object(object, patch);
  return object;
}

}  // namespace jogak::patch
