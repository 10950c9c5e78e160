// SPDX-License-Identifier: Apache-2.0
//
// Scale from a workload and back. What is written goes through the workload's own update rules.
#include "apiserver/kinds/scale.h"

#include <memory>
#include <string>
#include <utility>

#include "apiserver/kinds/workload_checks.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/selector.h"

namespace jogak::api {

namespace {

constexpr std::string_view kScaleGroup = "autoscaling";
constexpr std::string_view kScaleKind = "Scale";

// Replication controllers select by a plain map of labels, all others by a LabelSelector.
std::string selector_text(const Doc& object, bool by_map) {
  const Doc& selector = object["spec"]["selector"];
  return (by_map ? LabelSelector::from_map(selector) : LabelSelector::from_object(selector)).text();
}

Doc read_scale(const Doc& object, bool by_map) {
  Doc metadata = Doc::object();
  for (const std::string_view key :
       {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const Doc* value = meta(object).find(key)) metadata.set(key, *value);
  }
  Doc scale;
  scale.set("kind", kScaleKind)
      .set("apiVersion", "autoscaling/v1")
      .set("metadata", std::move(metadata));
  const std::int64_t replicas = object["spec"]["replicas"].as_int();
  Doc spec = Doc::object();
  if (replicas != 0) spec.set("replicas", replicas);
  scale.set("spec", std::move(spec));
  Doc status;
  status.set("replicas", object["status"]["replicas"].as_int());
  if (std::string selector = selector_text(object, by_map); !selector.empty()) {
    status.set("selector", std::move(selector));
  }
  scale.set("status", std::move(status));
  return scale;
}

ApiResult<Doc> write_scale(Doc object, const Doc& scale, const std::string& plural,
                           const std::string& group) {
  const std::string& name = name_of(object);
  FieldErrors errors;
  check_not_negative(scale["spec"], "replicas", Path("spec"), errors);
  if (!errors.empty()) return invalid_object(kScaleKind, kScaleGroup, name, errors);
  if (!uid_of(scale).empty() && uid_of(scale) != uid_of(object)) {
    const std::string what = plural + "/scale";
    return conflict({what, group}, name,
                    "Precondition failed: UID in precondition: " + uid_of(scale) +
                        ", UID in object meta: " + uid_of(object));
  }
  object.at("spec", "replicas") = scale["spec"]["replicas"].as_int();
  // The version that was seen comes along, so that a stale one is a conflict.
  const Doc& seen = meta(scale)["resourceVersion"];
  if (!seen.as_string().empty()) object.at("metadata", "resourceVersion") = seen;
  return object;
}

}  // namespace

void add_scale(Resource& resource) {
  const bool by_map = resource.kind == "ReplicationController";
  auto projection = std::make_shared<Projection>();
  projection->read = [by_map](const Doc& object) -> ApiResult<Doc> {
    return read_scale(object, by_map);
  };
  projection->write = [plural = resource.plural, group = resource.group](
                          Doc object, const Doc& scale) -> ApiResult<Doc> {
    return write_scale(std::move(object), scale, plural, group);
  };
  resource.subresources.insert(resource.subresources.begin(),
                               {.name = "scale",
                                .group = std::string(kScaleGroup),
                                .version = "v1",
                                .kind = std::string(kScaleKind),
                                .verbs = kReadAndChange,
                                .type = &schema::get("autoscaling.v1.Scale"),
                                .handler = {},
                                .projection = std::move(projection)});
}

}  // namespace jogak::api
