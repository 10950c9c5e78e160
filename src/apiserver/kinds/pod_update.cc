// SPDX-License-Identifier: Apache-2.0
//
// Changes of a pod itself, and of its ephemeral containers.
#include "apiserver/kinds/pod_update.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "apiserver/kinds/pod_validate.h"
#include "apiserver/schema/normalise.h"

namespace jogak::api {

namespace {

constexpr std::int64_t kMaxInt32 = 2147483647;
constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
constexpr std::string_view kAppArmor = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";

const schema::Struct& spec_type() {
  static const schema::Struct& type = schema::get("core.v1.PodSpec");
  return type;
}

// Whether the lists have equal length; the rest makes no sense otherwise.
bool check_images(const Doc& now, const Doc& before, const Spot& at, FieldErrors& errors) {
  if (now.size() != before.size()) {
    errors.forbidden(at, "pod updates may not add or remove containers");
    return false;
  }
  constexpr std::string_view kSpaces = " \t\n\v\f\r";
  for (std::size_t i = 0; i < now.size(); ++i) {
    const Doc& image = now.items()[i]["image"];
    const std::string& text = image.as_string();
    if (text.empty()) {
      errors.required(at.index(i).child("image"));
    } else if (kSpaces.find(text.front()) != std::string_view::npos ||
               kSpaces.find(text.back()) != std::string_view::npos) {
      errors.invalid(at.index(i).child("image"), image,
                     "must not have leading or trailing whitespace");
    }
  }
  return true;
}

// The deadline may come, and come nearer. False when nothing else should be reported.
bool check_deadline(const Doc& now, const Doc& before, const Spot& at, FieldErrors& errors) {
  if (now.is_null()) {
    if (!before.is_null()) {
      errors.invalid(at, now, "must not update from a positive integer to nil value");
    }
    return true;
  }
  if (now.as_int() < 0 || now.as_int() > kMaxInt32) {
    errors.invalid(at, now, "must be between 0 and 2147483647, inclusive");
    return false;
  }
  if (!before.is_null() && before.as_int() < now.as_int()) {
    errors.invalid(at, now, "must be less than or equal to previous value");
    return false;
  }
  return true;
}

Doc without_seconds(Doc toleration) {
  toleration.erase("tolerationSeconds");
  return toleration;
}

void check_tolerations(const Doc& now, const Doc& before, const Spot& at, FieldErrors& errors) {
  for (const Doc& old : before.items()) {
    const Doc wanted = without_seconds(old);
    if (std::ranges::none_of(now.items(), [&](const Doc& toleration) {
          return without_seconds(toleration) == wanted;
        })) {
      errors.forbidden(at, "existing toleration can not be modified except its tolerationSeconds");
      return;
    }
  }
  validate_tolerations(now, at, errors);
}

void check_gates(const Doc& now, const Doc& before, const Spot& at, FieldErrors& errors) {
  for (std::size_t i = 0; i < now.size(); ++i) {
    const std::string& name = now.items()[i]["name"].as_string();
    if (std::ranges::none_of(before.items(),
                             [&](const Doc& gate) { return gate["name"].as_string() == name; })) {
      errors.forbidden(at.index(i).child("name"),
                       "only deletion is allowed, but found new scheduling gate '" + name + "'");
    }
  }
}

bool is_prefix(const Doc& before, const Doc& now) {
  const auto& old_items = before.items();
  const auto& items = now.items();
  return items.size() >= old_items.size() &&
         std::equal(old_items.begin(), old_items.end(), items.begin());
}

bool only_adds(const Doc& now, const Doc& before) {
  if (before["matchExpressions"].empty() && before["matchFields"].empty()) {
    return now["matchExpressions"].empty() && now["matchFields"].empty();
  }
  return is_prefix(before["matchExpressions"], now["matchExpressions"]) &&
         is_prefix(before["matchFields"], now["matchFields"]);
}

// A gated pod's node affinity may be narrowed.
void check_narrowing(const Doc& now, const Doc& before, const Spot& at, FieldErrors& errors) {
  const Doc& old_terms = before[kRequired]["nodeSelectorTerms"];
  const Doc& terms = now[kRequired]["nodeSelectorTerms"];
  const Spot required = at.child(kRequired);
  const Spot list = required.child("nodeSelectorTerms");
  if (!old_terms.empty() && old_terms.size() != terms.size()) {
    errors.invalid(list, terms,
                   "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    return;
  }
  for (std::size_t i = 0; i < old_terms.size(); ++i) {
    if (!only_adds(terms.items()[i], old_terms.items()[i])) {
      errors.invalid(list.index(i), terms.items()[i],
                     "only additions are allowed (no mutations or deletions)");
    }
  }
}

void put(Doc& spec, std::string_view key, const Doc& value) {
  if (value.is_null()) {
    spec.erase(key);
  } else {
    spec.set(key, value);
  }
}

// What a gated pod may still change: checked, and then put back for the comparison of the rest.
void settle_gated(Doc& munged, const Doc& before, const Spot& at, FieldErrors& errors) {
  const Doc& old_selector = before["nodeSelector"];
  for (const Doc::Member& label : old_selector.members()) {
    if (munged["nodeSelector"][label.key] != label.value) {
      errors.invalid(at.child("nodeSelector"), munged["nodeSelector"],
                     "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
      break;
    }
  }
  put(munged, "nodeSelector", old_selector);
  const Doc& old_affinity = before["affinity"]["nodeAffinity"];
  if (munged["affinity"]["nodeAffinity"] == old_affinity) {
    return;
  }
  check_narrowing(munged["affinity"]["nodeAffinity"], old_affinity,
                  at.child("affinity.nodeAffinity"), errors);
  Doc affinity = munged["affinity"].is_null() ? Doc::object() : munged["affinity"];
  put(affinity, "nodeAffinity", old_affinity);
  if (affinity.empty() && !before.has("affinity")) {
    affinity = Doc();
  }
  put(munged, "affinity", affinity);
}

// The new spec with everything that may change put back.
Doc munged_spec(const Doc& now, const Doc& before) {
  Doc munged = now;
  for (const std::string_view list : {"containers", "initContainers"}) {
    if (Doc* containers = munged.find(list)) {
      for (std::size_t i = 0; i < containers->size(); ++i) {
        containers->items()[i].set("image", before[list].items()[i]["image"]);
      }
    }
  }
  for (const std::string_view key : {"activeDeadlineSeconds", "schedulingGates", "tolerations"}) {
    put(munged, key, before[key]);
  }
  const Doc& old_grace = before["terminationGracePeriodSeconds"];
  if (old_grace.as_int() < 0 && munged["terminationGracePeriodSeconds"].as_int() == 1) {
    munged.set("terminationGracePeriodSeconds", old_grace);
  }
  return munged;
}

}  // namespace

bool is_same_pod_spec(const Doc& a, const Doc& b) {
  return a == b || schema::encode(a, spec_type()) == schema::encode(b, spec_type());
}

void validate_pod_annotation_update(const Doc& object, const Doc& old, FieldErrors& errors) {
  const Doc& now = object["metadata"]["annotations"];
  const Doc& before = old["metadata"]["annotations"];
  const Path root("metadata");
  const Spot meta(root);
  const Spot at = meta.child("annotations");
  for (const Doc::Member& annotation : before.members()) {
    if (now[annotation.key] == annotation.value) {
      continue;
    }
    if (annotation.key.starts_with(kAppArmor)) {
      errors.forbidden(at.key(annotation.key), "may not remove or update AppArmor annotations");
    } else if (annotation.key == kMirror) {
      errors.forbidden(at.key(annotation.key), "may not remove or update mirror pod annotation");
    }
  }
  for (const Doc::Member& annotation : now.members()) {
    if (before.has(annotation.key)) {
      continue;
    }
    if (annotation.key.starts_with(kAppArmor)) {
      errors.forbidden(at.key(annotation.key), "may not add AppArmor annotations");
    } else if (annotation.key == kMirror) {
      errors.forbidden(at.key(annotation.key), "may not add mirror pod annotation");
    }
  }
  validate_pod_annotations({.spec = object["spec"], .metadata = object["metadata"], .is_pod = true},
                           at, errors);
}

void validate_pod_update(const Doc& object, const Doc& old, FieldErrors& errors) {
  const Doc& now = object["spec"];
  const Doc& before = old["spec"];
  const Path root("spec");
  const Spot at(root);
  if (!check_images(now["containers"], before["containers"], at.child("containers"), errors) ||
      !check_images(now["initContainers"], before["initContainers"], at.child("initContainers"),
                    errors)) {
    return;
  }
  if (!check_deadline(now["activeDeadlineSeconds"], before["activeDeadlineSeconds"],
                      at.child("activeDeadlineSeconds"), errors)) {
    return;
  }
  check_tolerations(now["tolerations"], before["tolerations"], at.child("tolerations"), errors);
  check_gates(now["schedulingGates"], before["schedulingGates"], at.child("schedulingGates"),
              errors);
  if (now == before) {
    return;
  }
  Doc munged = munged_spec(now, before);
  if (!before["schedulingGates"].empty()) {
    settle_gated(munged, before, at, errors);
  }
  if (!is_same_pod_spec(munged, before)) {
    errors.forbidden(at,
                     "pod updates may not change fields other than `spec.containers[*].image`,"
                     "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
                     "`spec.tolerations` (only additions to existing tolerations),"
                     "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
                     "previously negative)");
  }
}

void prepare_ephemeral_containers(Doc& object, const Doc& old) {
  const Doc wanted = object["spec"]["ephemeralContainers"];
  Doc spec = old["spec"];
  put(spec, "ephemeralContainers", wanted);
  object.set("spec", std::move(spec));
  put(object, "status", old["status"]);
}

void validate_ephemeral_containers(const Doc& object, const Doc& old, FieldErrors& errors) {
  if (old["metadata"]["annotations"].has(kMirror)) {
    errors.forbidden(Path(""), "static pods do not support ephemeral containers");
    return;
  }
  const Doc& now = object["spec"]["ephemeralContainers"];
  const Path at("spec.ephemeralContainers");
  for (const Doc& before : old["spec"]["ephemeralContainers"].items()) {
    const std::string& name = before["name"].as_string();
    const auto found = std::ranges::find_if(
        now.items(), [&](const Doc& container) { return container["name"].as_string() == name; });
    if (found == now.items().end()) {
      errors.forbidden(at, "existing ephemeral containers \"" + name + "\" may not be removed");
    } else if (*found != before &&
               schema::encode(*found, schema::get("core.v1.EphemeralContainer")) !=
                   schema::encode(before, schema::get("core.v1.EphemeralContainer"))) {
      errors.forbidden(at, "existing ephemeral containers \"" + name + "\" may not be changed");
    }
  }
}

}  // namespace jogak::api
