// SPDX-License-Identifier: Apache-2.0
//
// Resizing a pod in place: cpu and memory of its containers, and of the pod as a whole.
#include <algorithm>
#include <string>
#include <string_view>

#include "apiserver/kinds/pod_spec.h"
#include "apiserver/kinds/pod_update.h"
#include "apiserver/kinds/pod_validate.h"

namespace jogak::api {

namespace {

void put(Doc& holder, std::string_view key, const Doc& value) {
  if (value.is_null()) {
    holder.erase(key);
  } else {
    holder.set(key, value);
  }
}

// The old containers with the new resources. False when they are not the same containers, which
// validation will refuse.
bool merge_containers(const Doc& now, Doc& before) {
  if (now.size() != before.size()) {
    return false;
  }
  for (std::size_t i = 0; i < now.size(); ++i) {
    const Doc& wanted = now.items()[i];
    Doc& container = before.items()[i];
    if (wanted["name"] != container["name"]) {
      return false;
    }
    put(container, "resources", wanted["resources"]);
    put(container, "resizePolicy", wanted["resizePolicy"]);
  }
  return true;
}

bool has_lost(const Doc& now, const Doc& before) {
  return std::ranges::any_of(before.members(),
                             [&](const Doc::Member& member) { return !now.has(member.key); });
}

void check_losses(const Doc& now, const Doc& before, std::string_view what, const Spot& at,
                  FieldErrors& errors) {
  if (has_lost(now["requests"], before["requests"])) {
    errors.forbidden(at.child("requests"), std::string(what) + " requests cannot be removed");
  }
  if (has_lost(now["limits"], before["limits"])) {
    errors.forbidden(at.child("limits"), std::string(what) + " limits cannot be removed");
  }
}

// The new resources with cpu and memory as they were.
Doc without_compute(const Doc& now, const Doc& before) {
  Doc out = Doc::object();
  for (const std::string_view side : {"limits", "requests"}) {
    Doc list = now[side].is_null() ? Doc::object() : now[side];
    for (const std::string_view name : {"cpu", "memory"}) {
      put(list, name, before[side][name]);
    }
    if (!list.empty()) {
      out.set(side, std::move(list));
    }
  }
  return out;
}

Doc masked(Doc container, const Doc& before) {
  Doc resources = without_compute(container["resources"], before["resources"]);
  put(container, "resources", before.has("resources") ? resources : Doc());
  if (!before.has("resources") && !resources.empty()) {
    container.set("resources", std::move(resources));
  }
  return container;
}

bool is_same_container(const Doc& a, const Doc& b) {
  Doc left = Doc::object();
  Doc right = Doc::object();
  left.at("containers").push(a);
  right.at("containers").push(b);
  return is_same_pod_spec(left, right);
}

bool check_order(const Doc& now, const Doc& before, std::string_view what, const Spot& at,
                 FieldErrors& errors) {
  if (now.size() != before.size()) {
    errors.forbidden(at, std::string(what) + " may not be added or removed on resize");
    return false;
  }
  bool is_right = true;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now.items()[i]["name"] != before.items()[i]["name"]) {
      errors.forbidden(at.index(i).child("name"),
                       std::string(what) + " may not be renamed or reordered on resize");
      is_right = false;
    }
  }
  return is_right;
}

// A kubelet that can resize reports the resources of what runs.
bool runs_on_resizing_node(const Doc& pod) {
  for (const Doc& status : pod["status"]["containerStatuses"].items()) {
    if (status["state"].has("running")) {
      return status.has("resources");
    }
  }
  return true;
}

void check_pod_level(const Doc& now, const Doc& before, const Spot& at, FieldErrors& errors) {
  if (before.has("resources") && !now.has("resources")) {
    errors.forbidden(at.child("resources"), "pod-level resources cannot be removed");
    return;
  }
  check_losses(now["resources"], before["resources"], "pod-level resource", at.child("resources"),
               errors);
  if (without_compute(now["resources"], before["resources"]) !=
      without_compute(before["resources"], before["resources"])) {
    errors.forbidden(at, "only cpu and memory resources are mutable at pod-level");
  }
}

bool has_resources(const Doc& spec) {
  return !spec["resources"]["requests"].empty() || !spec["resources"]["limits"].empty();
}

void check_containers(const Doc& now, const Doc& before, std::string_view list, const Spot& at,
                      FieldErrors& errors) {
  const Spot spot = at.child(list);
  for (std::size_t i = 0; i < before[list].size(); ++i) {
    check_losses(now[list].items()[i]["resources"], before[list].items()[i]["resources"],
                 "resource", spot.index(i).child("resources"), errors);
  }
}

void check_mutable(const Doc& now, const Doc& before, const Spot& at, FieldErrors& errors) {
  for (std::size_t i = 0; i < before["containers"].size(); ++i) {
    const Doc& old = before["containers"].items()[i];
    if (!is_same_container(masked(now["containers"].items()[i], old), old)) {
      errors.forbidden(at, "only cpu and memory resources are mutable");
    }
  }
  const Spot list = at.child("initContainers");
  for (std::size_t i = 0; i < before["initContainers"].size(); ++i) {
    const Doc& old = before["initContainers"].items()[i];
    const Doc& wanted = now["initContainers"].items()[i];
    if (!is_same_container(masked(wanted, old), old)) {
      errors.forbidden(list.index(i),
                       "only cpu and memory resources for init or sidecar containers are mutable");
    }
  }
}

}  // namespace

void prepare_pod_resize(Doc& object, const Doc& old) {
  Doc spec = old["spec"];
  const Doc& wanted = object["spec"];
  for (const std::string_view list : {"containers", "initContainers"}) {
    Doc& merged = spec.at(list);
    if (!merge_containers(wanted[list], merged)) {
      spec.set(list, wanted[list]);
    }
    if (spec[list].is_null()) {
      spec.erase(list);
    }
  }
  put(spec, "resources", wanted["resources"]);
  object.set("spec", std::move(spec));
  put(object, "status", old["status"]);
}

void validate_pod_resize(const Doc& object, const Doc& old, FieldErrors& errors) {
  const Doc& now = object["spec"];
  const Doc& before = old["spec"];
  const Path root("spec");
  const Spot at(root);
  if (old["metadata"]["annotations"].has("kubernetes.io/config.mirror")) {
    errors.forbidden(Path(""), "static pods cannot be resized");
    return;
  }
  if (before["os"]["name"].as_string() == "windows") {
    errors.forbidden(Path(""), "windows pods cannot be resized");
    return;
  }
  const std::string& qos = old["status"]["qosClass"].as_string();
  if ((qos.empty() ? pod_qos_class(before) : qos) != pod_qos_class(now)) {
    errors.invalid(at, qos, "Pod QOS Class may not change as a result of resizing");
  }
  if (!runs_on_resizing_node(old)) {
    errors.forbidden(at, "Pod running on node without support for resize");
  }
  if (has_resources(now) || has_resources(before)) {
    check_pod_level(now, before, at, errors);
  }
  const bool is_ordered = check_order(now["containers"], before["containers"], "containers",
                                      at.child("containers"), errors);
  if (!check_order(now["initContainers"], before["initContainers"], "initContainers",
                   at.child("initContainers"), errors) ||
      !is_ordered) {
    return;
  }
  check_containers(now, before, "initContainers", at, errors);
  check_containers(now, before, "containers", at, errors);
  check_mutable(now, before, at, errors);
}

}  // namespace jogak::api
