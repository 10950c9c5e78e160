// SPDX-License-Identifier: Apache-2.0
//
// Validation of pod specs, part by part, in the order in which the server reports; each part in a
// file of its own. Facts: pkg/apis/core/validation of Kubernetes. pod_spec.h is the outer door.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/pod_spot.h"
#include "apiserver/object/field_errors.h"
#include "base/doc.h"

namespace jogak::api {

// A spec and whose it is.
struct PodSpecView {
  const Doc& spec;
  const Doc& metadata;  // of the pod or of the template
  bool is_pod = false;  // not a template: its name is known, and some rules are stricter

  bool uses_host_users() const { return spec["hostUsers"].as_bool(true); }
  bool is_windows() const { return spec["os"]["name"].as_string() == "windows"; }
};

void validate_pod_spec(const PodSpecView& view, const Spot& at, FieldErrors& errors);
// Annotations with a meaning of their own.
void validate_pod_annotations(const PodSpecView& view, const Spot& at, FieldErrors& errors);
// Old annotations and their fields must say the same.
void validate_profiles_match(const PodSpecView& view, const Spot& at, FieldErrors& errors);

// --- Volumes -----------------------------------------------------------------------------------

// The volumes that are right, by which mounts are judged.
class PodVolumes {
 public:
  void add(const Doc& volume) { list_.push_back(&volume); }
  // nullptr when there is none of that name.
  const Doc* find(std::string_view name) const;

 private:
  std::vector<const Doc*> list_;
};

PodVolumes validate_volumes(const PodSpecView& view, const Spot& at, FieldErrors& errors);
void validate_volume_mounts(const Doc& container, const PodVolumes& volumes, const Spot& at,
                            FieldErrors& errors);
void validate_volume_devices(const Doc& container, const PodVolumes& volumes, const Spot& at,
                             FieldErrors& errors);

// --- Containers --------------------------------------------------------------------------------

void validate_containers(const PodSpecView& view, const PodVolumes& volumes, const Spot& at,
                         FieldErrors& errors);
// Pods, not templates: no blanks around image names.
void validate_images_of_pod(const Doc& spec, const Spot& at, FieldErrors& errors);
void validate_env(const Doc& container, const Spot& at, FieldErrors& errors);
void validate_env_from(const Doc& container, const Spot& at, FieldErrors& errors);
void validate_field_ref(const Doc& ref, bool is_volume, const Spot& at, FieldErrors& errors);
void validate_resource_field_ref(const Doc& ref, bool is_volume, const Spot& at,
                                 FieldErrors& errors);
void validate_probes_and_lifecycle(const PodSpecView& view, const Doc& container, const Spot& at,
                                   FieldErrors& errors);
void validate_container_resources(const PodSpecView& view, const Doc& resources, const Spot& at,
                                  FieldErrors& errors);
// spec.resources.
void validate_pod_level_resources(const PodSpecView& view, const Spot& at, FieldErrors& errors);
void validate_resource_amount(std::string_view name, const Doc& quantity, const Spot& at,
                              FieldErrors& errors);

// --- Security ----------------------------------------------------------------------------------

void validate_container_security(const PodSpecView& view, const Doc& context, const Spot& at,
                                 FieldErrors& errors);
void validate_pod_security(const PodSpecView& view, const Spot& at, FieldErrors& errors);
void validate_host_processes(const PodSpecView& view, const Spot& at, FieldErrors& errors);
void validate_host_users(const PodSpecView& view, const Spot& at, FieldErrors& errors);
// What the named system allows; `at` is the spec's.
void validate_os(const PodSpecView& view, const Spot& at, FieldErrors& errors);

// --- Placement ---------------------------------------------------------------------------------

void validate_affinity(const Doc& affinity, const Spot& at, FieldErrors& errors);
void validate_tolerations(const Doc& tolerations, const Spot& at, FieldErrors& errors);
void validate_spread_constraints(const Doc& constraints, const Spot& at, FieldErrors& errors);
void validate_scheduling_gates(const Doc& gates, const Spot& at, FieldErrors& errors);

// --- Small things that many parts need ---------------------------------------------------------

// "" for an absent member, as the server shows it.
inline Doc shown(const Doc& value) { return value.is_null() ? Doc("") : value; }

inline bool is_any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text == word) {
      return true;
    }
  }
  return false;
}

// An absent or empty value is right.
inline void check_one_of(const Doc& value, std::initializer_list<std::string_view> words,
                         const Spot& at, FieldErrors& errors) {
  if (!value.is_null() && !is_any_of(value.as_string(), words)) {
    errors.not_supported(at, value, words);
  }
}

// An empty value is an error of its own.
inline void require_one_of(const Doc& value, std::initializer_list<std::string_view> words,
                           const Spot& at, FieldErrors& errors) {
  if (value.as_string().empty()) {
    errors.required(at);
  } else {
    check_one_of(value, words, at, errors);
  }
}

inline void require_text(const Doc& holder, std::string_view key, const Spot& at,
                         FieldErrors& errors) {
  if (holder[key].as_string().empty()) {
    errors.required(at.child(key));
  }
}

// Text that follows a rule for names, where there is text.
inline void check_name(const Doc& value, NameCheck rule, const Spot& at, FieldErrors& errors) {
  add_problems(errors, at, value, rule(value.as_string()));
}

void check_no_backsteps(const Doc& path, const Spot& at, FieldErrors& errors);
void check_descending_path(const Doc& path, const Spot& at, FieldErrors& errors);
void check_local_path(const Doc& path, const Spot& at, FieldErrors& errors);
void check_file_mode(const Doc& mode, const Spot& at, FieldErrors& errors);
void check_pull_policy(const Doc& policy, const Spot& at, FieldErrors& errors);
void check_not_negative(const Doc& number, const Spot& at, FieldErrors& errors);
// Printable ASCII without "=".
Problems check_relaxed_env_name(std::string_view text);

// Paths of one volume that hide each other.
void warn_about_overlaps(const Doc& volumes, std::vector<std::string>& warnings);
void warn_about_address(const std::string& text, const Spot& at,
                        std::vector<std::string>& warnings);

// Calls visit(container, spot) for init, ordinary and ephemeral containers.
template <class Visit>
void visit_containers(const Doc& spec, const Spot& at, const Visit& visit) {
  for (const std::string_view key : {"initContainers", "containers", "ephemeralContainers"}) {
    const Spot list = at.child(key);
    const auto& items = spec[key].items();
    for (std::size_t i = 0; i < items.size(); ++i) {
      visit(items[i], list.index(i));
    }
  }
}

}  // namespace jogak::api
