// SPDX-License-Identifier: Apache-2.0
//
// Annotations of pods that mean something to the server: profiles of the kernel from before they
// were fields, and the cost of a deletion.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "apiserver/kinds/pod_validate.h"

namespace jogak::api {

namespace {

constexpr std::string_view kSeccompPod = "seccomp.security.alpha.kubernetes.io/pod";
constexpr std::string_view kSeccompContainer = "container.seccomp.security.alpha.kubernetes.io/";
constexpr std::string_view kAppArmor = "container.apparmor.security.beta.kubernetes.io/";
constexpr std::string_view kLocalhost = "localhost/";

bool is_seccomp_annotation(std::string_view value) {
  return is_any_of(value, {"runtime/default", "docker/default", "unconfined"}) ||
         value.starts_with(kLocalhost);
}

void check_seccomp_annotation(const Doc& value, const Spot& at, FieldErrors& errors) {
  const std::string& text = value.as_string();
  if (text.starts_with(kLocalhost)) {
    check_descending_path(Doc(text.substr(kLocalhost.size())), at, errors);
  } else if (!is_seccomp_annotation(text)) {
    errors.invalid(at, value, "must be a valid seccomp profile");
  }
}

bool has_container(const Doc& spec, std::string_view name) {
  return std::ranges::any_of(
      std::array<std::string_view, 3>{"initContainers", "containers", "ephemeralContainers"},
      [&](std::string_view list) {
        return std::ranges::any_of(spec[list].items(), [&](const Doc& container) {
          return container["name"].as_string() == name;
        });
      });
}

void check_app_armor_annotation(const Doc& spec, const Doc::Member& annotation, const Spot& at,
                                FieldErrors& errors) {
  const std::string container = annotation.key.substr(kAppArmor.size());
  if (!has_container(spec, container)) {
    errors.invalid(at.key(annotation.key), container, "container not found");
  }
  const std::string& value = annotation.value.as_string();
  if (!value.empty() && value != "runtime/default" && value != "unconfined" &&
      !value.starts_with(kLocalhost)) {
    errors.invalid(at.key(annotation.key), value,
                   "invalid AppArmor profile name: \"" + value + "\"");
  }
}

// Both the field and the annotation speak: they must agree.
void check_match(const Doc& profile, std::string_view annotation, std::string_view what,
                 const Spot& at, FieldErrors& errors) {
  const std::string& type = profile["type"].as_string();
  const std::string type_words = std::string(what) + " type in annotation and field must match";
  if (type == "Unconfined" && annotation != "unconfined") {
    errors.forbidden(at.child("type"), type_words);
  } else if (type == "RuntimeDefault" && annotation != "runtime/default" &&
             (what != "seccomp" || annotation != "docker/default")) {
    errors.forbidden(at.child("type"), type_words);
  } else if (type == "Localhost") {
    if (!annotation.starts_with(kLocalhost)) {
      errors.forbidden(at.child("type"), type_words);
    } else if (annotation.substr(kLocalhost.size()) != profile["localhostProfile"].as_string()) {
      errors.forbidden(at.child("localhostProfile"),
                       std::string(what) + " profile in annotation and field must match");
    }
  }
}

void check_deletion_cost(const Doc& cost, const Spot& at, FieldErrors& errors) {
  if (cost.is_null()) {
    return;
  }
  constexpr std::int64_t kMax = 2147483647;
  constexpr std::size_t kMaxDigits = 11;
  const std::string& text = cost.as_string();
  const std::size_t start = text.starts_with('-') ? 1 : 0;
  bool is_right = text.size() > start && text.size() <= kMaxDigits &&
                  text.find_first_not_of("0123456789", start) == std::string::npos &&
                  (text == "0" || start == 1 || text.front() != '0');
  if (is_right) {
    const std::int64_t value = std::stoll(text);
    is_right = value >= -kMax - 1 && value <= kMax;
  }
  if (!is_right) {
    errors.invalid(at.key("controller.kubernetes.io/pod-deletion-cost"), cost,
                   "must be a 32bit integer");
  }
}

}  // namespace

void validate_pod_annotations(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Doc& annotations = view.metadata["annotations"];
  if (annotations.empty()) {
    return;
  }
  constexpr std::string_view kMirror = "kubernetes.io/config.mirror";
  if (annotations.has(kMirror) && view.spec["nodeName"].as_string().empty()) {
    errors.invalid(at.key(kMirror), annotations[kMirror],
                   "must set spec.nodeName if mirror pod annotation is set");
  }
  check_deletion_cost(annotations["controller.kubernetes.io/pod-deletion-cost"], at, errors);
  for (const Doc::Member& annotation : annotations.members()) {
    if (annotation.key == kSeccompPod || annotation.key.starts_with(kSeccompContainer)) {
      check_seccomp_annotation(annotation.value, at.child(annotation.key), errors);
    }
  }
  for (const Doc::Member& annotation : annotations.members()) {
    if (annotation.key.starts_with(kAppArmor)) {
      check_app_armor_annotation(view.spec, annotation, at, errors);
    }
  }
}

void validate_profiles_match(const PodSpecView& view, const Spot& at, FieldErrors& errors) {
  const Doc& annotations = view.metadata["annotations"];
  if (annotations.empty()) {
    return;
  }
  const Doc& context = view.spec["securityContext"];
  if (annotations.has(kSeccompPod)) {
    check_match(context["seccompProfile"], annotations[kSeccompPod].as_string(), "seccomp",
                at.child("securityContext.seccompProfile"), errors);
  }
  visit_containers(view.spec, at, [&](const Doc& container, const Spot& spot) {
    const std::string key = std::string(kSeccompContainer) + container["name"].as_string();
    if (annotations.has(key)) {
      check_match(container["securityContext"]["seccompProfile"], annotations[key].as_string(),
                  "seccomp", spot.child("securityContext.seccompProfile"), errors);
    }
  });
  if (view.is_windows()) {
    return;
  }
  visit_containers(view.spec, at, [&](const Doc& container, const Spot& spot) {
    const std::string key = std::string(kAppArmor) + container["name"].as_string();
    if (annotations.has(key)) {
      const Doc& own = container["securityContext"]["appArmorProfile"];
      check_match(own.is_null() ? context["appArmorProfile"] : own, annotations[key].as_string(),
                  "apparmor", spot.child("securityContext.appArmorProfile"), errors);
    }
  });
}

}  // namespace jogak::api
