// SPDX-License-Identifier: Apache-2.0
//
// {"object": {...}, "patch": ...} through JSON patch and merge patch: no crash, and what must hold
// whatever comes in.
#include <cstdint>
#include <string_view>

#include "apiserver/codec/codec.h"
#include "apiserver/patch/patch.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = jogak::codec::parse_json(text);
  if (!parsed || !parsed->doc["object"].is_object()) return 0;
  const jogak::Doc& object = parsed->doc["object"];
  const jogak::Doc& patch = parsed->doc["patch"];

  const auto patched = jogak::patch::json_patch(object, patch);
  if (!patched) {
    const int code = patched.error().code;
    JOGAK_CHECK(code == 400 || code == 413 || code == 422, "{}", code);
  } else if (patch.empty()) {
    JOGAK_CHECK(*patched == object);
  }

  // A merge patch says what shall be, so it finds nothing to do in the end. The second time it may
  // still take nulls out of a list that came in place of an object.
  const auto merged = jogak::patch::merge_patch(object, patch);
  if (!merged) {
    JOGAK_CHECK(!patch.is_object() && merged.error().code == 400);
    return 0;
  }
  const auto again = jogak::patch::merge_patch(*merged, patch);
  JOGAK_CHECK(again.has_value());
  const auto once_more = jogak::patch::merge_patch(*again, patch);
  JOGAK_CHECK(once_more.has_value() && *once_more == *again);
  return 0;
}
