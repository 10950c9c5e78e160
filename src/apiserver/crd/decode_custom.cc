// SPDX-License-Identifier: Apache-2.0
//
// What stands in for decoding into a struct: the schema says what is known.
#include <string>
#include <utility>

#include <fmt/core.h>

#include "apiserver/crd/crd.h"
#include "apiserver/crd/prune.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

constexpr std::size_t kShownBytes = 30;  // of a body that is not recognised

struct GroupVersion {
  std::string_view group, version;
};

GroupVersion split(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  if (slash == std::string_view::npos) return {"", api_version};
  return {api_version.substr(0, slash), api_version.substr(slash + 1)};
}

Refusal kind_is_missing(const Doc& object, const Resource& resource) {
  std::string json;
  object.append_json(json);
  const bool is_long = json.size() > kShownBytes;
  return bad_request(fmt::format(
      "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing in '{}' "
      "({}{})",
      resource.kind, json, json.substr(0, kShownBytes), is_long ? " ..." : ""));
}

Refusal cannot_be_handled(const Doc& object, const Resource& resource, std::string_view why) {
  const std::string& api_version = object["apiVersion"].as_string();
  return bad_request(fmt::format("{} in version {} cannot be handled as a {}: {}",
                                 object["kind"].as_string(), quoted(split(api_version).version),
                                 resource.kind, why));
}

void complain(const std::vector<std::string>& paths, schema::Complaints& complaints) {
  for (const std::string& path : paths) {
    complaints.unknown.push_back(fmt::format("unknown field \"{}\"", path));
  }
}

}  // namespace

ApiResult<Doc> decode_custom(Doc object, const Resource& resource, schema::Complaints& complaints) {
  const std::string kind = object["kind"].as_string();
  const std::string api_version = object["apiVersion"].as_string();
  if (kind.empty()) return kind_is_missing(object, resource);
  if (auto settled = schema::settle(object); !settled) {
    return cannot_be_handled(object, resource, settled.error().what);
  }
  const GroupVersion asked = split(api_version);
  const bool is_ours = asked.group == resource.group && kind == resource.kind;
  // Of another version no schema is at hand, as for a version that does not exist.
  const bool is_this = is_ours && asked.version == resource.version;
  const Doc* schema = is_this ? resource.custom_schema : nullptr;
  std::vector<std::string> pruned;
  if (is_ours) {
    pruned = prune(object, schema, true);
    drop_nulls(object, schema);
  }
  std::vector<std::string> unknown;
  if (auto coerced = coerce_embedded(object, schema, true, unknown); !coerced) {
    return cannot_be_handled(object, resource, coerced.error().what);
  }
  complaints.unknown.insert(complaints.unknown.end(), complaints.duplicates.begin(),
                            complaints.duplicates.end());
  complaints.duplicates.clear();
  complain(unknown, complaints);
  complain(pruned, complaints);
  if (api_version != resource.api_version()) {
    return bad_request(
        fmt::format("the API version in the data ({}) does not match the expected API version ({})",
                    api_version, resource.api_version()));
  }
  if (kind != resource.kind) {
    FieldErrors errors;
    errors.invalid(Path("kind"), kind, "must be " + resource.kind);
    return invalid_object(kind, asked.group, name_of(object), errors);
  }
  return object;
}

}  // namespace jogak::api
