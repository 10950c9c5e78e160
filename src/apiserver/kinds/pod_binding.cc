// SPDX-License-Identifier: Apache-2.0
//
// pods/NAME/binding, and the old bindings resource: a pod gets its node.
#include <array>
#include <string>
#include <string_view>

#include "apiserver/kinds/pod_strategy.h"
#include "apiserver/object/meta.h"
#include "apiserver/ops/ops.h"

namespace jogak::api {

namespace {

// Of the node, on the pod once it is bound.
constexpr std::array<std::string_view, 2> kTopologyLabels = {"topology.kubernetes.io/zone",
                                                             "topology.kubernetes.io/region"};

ApiResult<void> check_target(const Doc& target) {
  FieldErrors errors;
  const std::string& kind = target["kind"].as_string();
  if (!kind.empty() && kind != "Node") {
    errors.not_supported(Path("target.kind"), kind, {"Node", "<empty>"});
  }
  if (target["name"].as_string().empty()) {
    errors.required(Path("target.name"));
  }
  // The real server forgets to call these invalid, and clients see a 500 without a reason.
  if (!errors.empty()) {
    return bare_error(500, errors.text());
  }
  return {};
}

ApiResult<void> check_preconditions(const Doc& binding, const Doc& pod) {
  const std::string& uid = uid_of(binding);
  if (!uid.empty() && uid != uid_of(pod)) {
    return conflict({"pods", ""}, name_of(pod),
                    "Precondition failed: UID in precondition: " + uid +
                        ", UID in object meta: " + uid_of(pod));
  }
  const std::string& version = meta(binding)["resourceVersion"].as_string();
  const std::string& stored = meta(pod)["resourceVersion"].as_string();
  if (!version.empty() && version != stored) {
    return conflict({"pods", ""}, name_of(pod),
                    "Precondition failed: ResourceVersion in precondition: " + version +
                        ", ResourceVersion in object meta: " + stored);
  }
  return {};
}

ApiResult<void> check_bindable(const Doc& pod) {
  constexpr ResourceName kBinding{"pods/binding", ""};
  const std::string& name = name_of(pod);
  if (is_deleting(pod)) {
    return conflict(kBinding, name,
                    "pod " + name + " is being deleted, cannot be assigned to a host");
  }
  if (const std::string& node = pod["spec"]["nodeName"].as_string(); !node.empty()) {
    return conflict(kBinding, name,
                    "pod " + name + " is already assigned to node \"" + node + "\"");
  }
  if (!pod["spec"]["schedulingGates"].empty()) {
    return conflict(kBinding, name, "pod " + name + " has non-empty .spec.schedulingGates");
  }
  return {};
}

void copy_members(const Doc& from, Doc& metadata, std::string_view key) {
  for (const Doc::Member& member : from.members()) {
    metadata.at(key).set(member.key, member.value);
  }
}

Doc bound(Doc pod, const Doc& binding, const Doc& node, TimeUs now) {
  pod.at("spec").set("nodeName", binding["target"]["name"]);
  pod.at("status").erase("nominatedNodeName");
  Doc& metadata = pod.at("metadata");
  copy_members(meta(binding)["annotations"], metadata, "annotations");
  copy_members(meta(binding)["labels"], metadata, "labels");
  for (const std::string_view label : kTopologyLabels) {
    if (const Doc* value = meta(node)["labels"].find(label)) {
      metadata.at("labels").set(label, *value);
    }
  }
  set_condition(pod, "PodScheduled", "True", "", "", now);
  return pod;
}

}  // namespace

ApiResult<Answer> bind_pod(Ops& ops, Call& call) {
  const Doc& binding = call.body;
  // Of the old resource the name stands in the body alone.
  const std::string name = call.name.empty() ? name_of(binding) : call.name;
  if (name != name_of(binding)) {
    return bad_request("name in URL does not match name in Binding object");
  }
  if (const std::string& ns = namespace_of(binding); !ns.empty() && ns != call.ns) {
    return bad_request(
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  JOGAK_TRY_VOID(check_target(binding["target"]));
  const auto node = ops.get("nodes", "", binding["target"]["name"].as_string());
  WriteRequest request{.resource = ops.registry().find_storage("pods"),
                       .ns = call.ns,
                       .name = name,
                       .subresource = "binding",
                       .manager = call.manager,
                       .user = call.user,
                       .is_dry_run = call.is_dry_run,
                       // A binding owns no fields of the pod.
                       .is_apply = true,
                       .warnings = {}};
  const auto change = [&](const Doc& pod) -> ApiResult<Doc> {
    JOGAK_TRY_VOID(check_preconditions(binding, pod));
    JOGAK_TRY_VOID(check_bindable(pod));
    return bound(pod, binding, node.value_or(Doc()), ops.loop().now());
  };
  JOGAK_TRY_VOID(ops.change(request, change));
  return Answer{.code = 201, .body = bare_success_status(201), .is_text = false, .text = {}};
}

}  // namespace jogak::api
