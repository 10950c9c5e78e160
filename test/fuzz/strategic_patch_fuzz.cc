// SPDX-License-Identifier: Apache-2.0
//
// {"object": {...}, "patch": {...}} through strategic merge as a pod: no crash, and the refusals
// are those that the server knows.
#include <cstdint>
#include <string_view>
#include <utility>

#include "apiserver/codec/codec.h"
#include "apiserver/patch/patch.h"
#include "apiserver/schema/normalise.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto parsed = jogak::codec::parse_json(text);
  if (!parsed || !parsed->doc["object"].is_object()) return 0;
  const jogak::schema::Struct& type = jogak::schema::get("core.v1.Pod");
  jogak::schema::Complaints complaints;
  auto decoded = jogak::schema::decode(parsed->doc["object"], type, complaints);
  if (!decoded) return 0;
  const jogak::Doc object = jogak::schema::encode(*std::move(decoded), type);

  const auto patched = jogak::patch::strategic_merge_patch(object, parsed->doc["patch"], type);
  if (!patched) {
    const int code = patched.error().code;
    JOGAK_CHECK(code == 400 || code == 422 || code == 500, "{}", code);
    return 0;
  }
  JOGAK_CHECK(patched->is_object());
  if (parsed->doc["patch"].empty()) JOGAK_CHECK(*patched == object);
  return 0;
}
