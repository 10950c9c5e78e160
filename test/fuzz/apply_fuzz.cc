// SPDX-License-Identifier: Apache-2.0
//
// {"live": {...}, "intent": {...}, "custom": {...}, "force": true} through server-side apply and
// the tracking of an update, as a pod and as a custom object of that schema: no crash; a forced
// apply meets no conflict; the same intent again meets none either; sets stay canonical.
#include <cstdint>
#include <string_view>
#include <utility>

#include "apiserver/codec/codec.h"
#include "apiserver/patch/field_set.h"
#include "apiserver/patch/managed_fields.h"
#include "apiserver/schema/normalise.h"
#include "base/check.h"

namespace {

using jogak::Doc;
using jogak::patch::ObjectType;
using jogak::patch::Writer;

void check_managers(const Doc& object) {
  for (const Doc& manager : object["metadata"]["managedFields"].items()) {
    const auto canonical = jogak::patch::canonical_set(manager["fieldsV1"]);
    JOGAK_CHECK(canonical.has_value());
    std::string once;
    std::string twice;
    manager["fieldsV1"].append_json(once);
    canonical->append_json(twice);
    JOGAK_CHECK(once == twice, "{} and {}", once, twice);
  }
}

void check_apply(const Doc& live, const Doc& intent, bool is_forced, const ObjectType& type) {
  const Writer writer = {.manager = "fuzz",
                         .api_version = intent["apiVersion"].as_string(),
                         .subresource = "",
                         .has_status = true,
                         .now = jogak::kSecondInUs};
  const auto result = jogak::patch::apply(live, intent, writer, is_forced, type);
  if (!result) {
    JOGAK_CHECK(result.error().code != 409 || !is_forced);
    return;
  }
  check_managers(*result);
  const auto again = jogak::patch::apply(*result, intent, writer, false, type);
  if (!again) JOGAK_CHECK(again.error().code != 409, "{}", again.error().message);

  Doc updated = *result;
  jogak::patch::track_update(live, updated, writer, type);
  check_managers(updated);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = jogak::codec::parse_json(text);
  if (!parsed || !parsed->doc["intent"].is_object()) return 0;
  const Doc& input = parsed->doc;
  const bool is_forced = input["force"].as_bool();
  const Doc& custom = input["custom"];
  if (custom.is_object() && (input["live"].is_object() || input["live"].is_null())) {
    check_apply(input["live"], input["intent"], is_forced, {.builtin = nullptr, .custom = &custom});
  }
  const jogak::schema::Struct& pod = jogak::schema::get("core.v1.Pod");
  jogak::schema::Complaints complaints;
  Doc live;
  if (input["live"].is_object()) {
    auto decoded = jogak::schema::decode(input["live"], pod, complaints);
    if (!decoded) return 0;
    live = *std::move(decoded);
  }
  check_apply(live, input["intent"], is_forced, {.builtin = &pod, .custom = nullptr});
  return 0;
}
