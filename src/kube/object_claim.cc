// SPDX-License-Identifier: Apache-2.0
//
// Few volumes are claimed, so that a parser each time is cheap enough; nothing of the object is
// kept but what a claim needs.
#include "kube/object_claim.h"

#include "kube/json.h"

namespace jogak::kube {

Result<VolumeClaimed> volume_claimed(std::string_view json) {
  simdjson::dom::parser parser;
  simdjson::dom::element element;
  if (const auto error = parser.parse(json.data(), json.size(), true).get(element)) {
    return invalid("PersistentVolume is not valid JSON: {}", simdjson::error_message(error));
  }
  JsonContext context;
  const Json volume(context, element);
  const Json claim = volume["spec"]["claimRef"];
  VolumeClaimed result{.version = volume["metadata"]["resourceVersion"].text(),
                       .claim_ns = claim["namespace"].text(),
                       .claim_name = claim["name"].text(),
                       .claim_uid = claim["uid"].text()};
  if (!context.problem().empty()) return invalid("PersistentVolume: {}", context.problem());
  if (result.version.empty()) {
    return invalid("PersistentVolume: metadata.resourceVersion: is required");
  }
  return result;
}

}  // namespace jogak::kube
