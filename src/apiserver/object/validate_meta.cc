// SPDX-License-Identifier: Apache-2.0
//
// The rules for metadata and for label selectors, in the order in which the API machinery checks
// them: clients see the causes in that order.
#include <algorithm>
#include <array>
#include <string>

#include <fmt/core.h>

#include "apiserver/object/names.h"

namespace jogak::api {
namespace {

constexpr std::size_t kAnnotationsMax = 256 * 1024;
constexpr std::size_t kManagerMax = 128;
constexpr std::size_t kSubresourceMax = 256;
constexpr std::string_view kOrphan = "orphan";
constexpr std::string_view kForeground = "foregroundDeletion";

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

// A prefix that ends in a dash becomes a right name with whatever is appended.
std::string without_last_dash(std::string_view prefix) {
  std::string out(prefix);
  if (out.size() > 1 && out.back() == '-') out.replace(out.size() - 2, 2, "a");
  return out;
}

void validate_name(const Doc& metadata, NameCheck check_name, const Path& at, FieldErrors& errors) {
  const std::string& prefix = metadata["generateName"].as_string();
  if (!prefix.empty()) {
    add_problems(errors, at.child("generateName"), prefix, check_name(without_last_dash(prefix)));
  }
  const std::string& name = metadata["name"].as_string();
  if (name.empty()) {
    errors.required(at.child("name"), "name or generateName is required");
  } else {
    add_problems(errors, at.child("name"), name, check_name(name));
  }
}

void validate_namespace(const Doc& metadata, bool is_namespaced, const Path& at,
                        FieldErrors& errors) {
  const std::string& ns = metadata["namespace"].as_string();
  if (!is_namespaced) {
    if (!ns.empty()) errors.forbidden(at, "not allowed on this type");
  } else if (ns.empty()) {
    errors.required(at);
  } else {
    add_problems(errors, at, ns, check_dns1123_label(ns));
  }
}

void validate_owner(const Doc& owner, const Path& at, FieldErrors& errors) {
  const std::string& api_version = owner["apiVersion"].as_string();
  // "v1", or "group/version"; more slashes make no version at all.
  const auto slashes = std::count(api_version.begin(), api_version.end(), '/');
  if (api_version.empty() || slashes > 1 || api_version.ends_with('/')) {
    errors.invalid(at.child("apiVersion"), api_version, "version must not be empty");
  }
  for (const std::string_view member : {"kind", "name", "uid"}) {
    if (!owner[member].as_string().empty()) continue;
    errors.invalid(at.child(member), "", "must not be empty");
  }
  if (api_version == "v1" && owner["kind"].as_string() == "Event") {
    errors.invalid(at, owner, "/v1, Kind=Event is disallowed from being an owner");
  }
}

void validate_owners(const Doc& owners, const Path& at, FieldErrors& errors) {
  std::string first;
  for (const Doc& owner : owners.items()) {
    validate_owner(owner, at, errors);
    if (!owner["controller"].as_bool()) continue;
    const std::string name =
        fmt::format("{}/{}", owner["kind"].as_string(), owner["name"].as_string());
    if (first.empty()) {
      first = name;
      continue;
    }
    errors.invalid(at, owners,
                   fmt::format("Only one reference can have Controller set to true. Found \"true\" "
                               "in references for {} and {}",
                               first, name));
  }
}

void validate_finalizers(const Doc& finalizers, const Path& at, FieldErrors& errors) {
  bool is_orphan = false;
  bool is_foreground = false;
  for (const Doc& finalizer : finalizers.items()) {
    add_problems(errors, at, finalizer, check_qualified_name(finalizer.as_string()));
    is_orphan |= finalizer.as_string() == kOrphan;
    is_foreground |= finalizer.as_string() == kForeground;
  }
  if (is_orphan && is_foreground) {
    errors.invalid(at, finalizers,
                   fmt::format("finalizer {} and {} cannot be both set", kOrphan, kForeground));
  }
}

void validate_managed_fields(const Doc& entries, const Path& at, FieldErrors& errors) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Doc& entry = entries.items()[i];
    const Path here = at.index(i);
    const std::string& operation = entry["operation"].as_string();
    if (operation != "Apply" && operation != "Update") {
      errors.invalid(here.child("operation"), operation, "must be `Apply` or `Update`");
    }
    const std::string& type = entry["fieldsType"].as_string();
    if (!type.empty() && type != "FieldsV1") {
      errors.invalid(here.child("fieldsType"), type, "must be `FieldsV1`");
    }
    if (entry["manager"].as_string().size() > kManagerMax) {
      errors.too_long(here.child("manager"), kManagerMax);
    }
    if (entry["subresource"].as_string().size() > kSubresourceMax) {
      errors.too_long(here.child("subresource"), kSubresourceMax);
    }
  }
}

// `found new finalizers []string{"a/b"}`, as Go prints a list.
void validate_no_new_finalizers(const Doc& now, const Doc& before, const Path& at,
                                FieldErrors& errors) {
  std::vector<std::string> extra;
  for (const Doc& finalizer : now.items()) {
    const auto& old = before.items();
    if (std::find(old.begin(), old.end(), finalizer) == old.end()) {
      extra.push_back(quoted(finalizer.as_string()));
    }
  }
  if (extra.empty()) return;
  std::sort(extra.begin(), extra.end());
  std::string list;
  for (const std::string& one : extra) list.append(list.empty() ? "" : ", ").append(one);
  errors.forbidden(at, fmt::format("no new finalizers can be added if the object is being deleted, "
                                   "found new finalizers []string{{{}}}",
                                   list));
}

void validate_selector_term(const Doc& term, const Path& at, FieldErrors& errors) {
  const std::string& op = term["operator"].as_string();
  const Doc& values = term["values"];
  if (op == "In" || op == "NotIn") {
    if (values.empty()) {
      errors.required(at.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) {
      errors.forbidden(at.child("values"),
                       "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
  } else {
    errors.invalid(at.child("operator"), op, "not a valid selector operator");
  }
  const std::string& key = term["key"].as_string();
  add_problems(errors, at.child("key"), key, check_qualified_name(key));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Doc& value = values.items()[i];
    add_problems(errors, at.child("values").index(i), value, check_label_value(value.as_string()));
  }
}

}  // namespace

void validate_labels(const Doc& labels, const Path& at, FieldErrors& errors) {
  for (const auto& [key, value] : labels.members()) {
    add_problems(errors, at, key, check_qualified_name(key));
    add_problems(errors, at, value, check_label_value(value.as_string()));
  }
}

void validate_annotations(const Doc& annotations, const Path& at, FieldErrors& errors) {
  std::size_t size = 0;
  for (const auto& [key, value] : annotations.members()) {
    add_problems(errors, at, key, check_qualified_name(lower(key)));
    size += key.size() + value.as_string().size();
  }
  if (size > kAnnotationsMax) errors.too_long(at, kAnnotationsMax);
}

void validate_label_selector(const Doc& selector, const Path& at, FieldErrors& errors) {
  validate_labels(selector["matchLabels"], at.child("matchLabels"), errors);
  const Doc& terms = selector["matchExpressions"];
  for (std::size_t i = 0; i < terms.size(); ++i) {
    validate_selector_term(terms.items()[i], at.child("matchExpressions").index(i), errors);
  }
}

void validate_meta(const Doc& metadata, bool is_namespaced, NameCheck check_name, const Path& at,
                   FieldErrors& errors) {
  validate_name(metadata, check_name, at, errors);
  validate_namespace(metadata, is_namespaced, at.child("namespace"), errors);
  if (metadata["generation"].as_int() < 0) {
    errors.invalid(at.child("generation"), metadata["generation"],
                   "must be greater than or equal to 0");
  }
  validate_labels(metadata["labels"], at.child("labels"), errors);
  validate_annotations(metadata["annotations"], at.child("annotations"), errors);
  validate_owners(metadata["ownerReferences"], at.child("ownerReferences"), errors);
  validate_finalizers(metadata["finalizers"], at.child("finalizers"), errors);
  validate_managed_fields(metadata["managedFields"], at.child("managedFields"), errors);
}

void validate_meta_update(const Doc& metadata, const Doc& old_metadata, const Path& at,
                          FieldErrors& errors) {
  if (old_metadata.has("deletionTimestamp")) {
    validate_no_new_finalizers(metadata["finalizers"], old_metadata["finalizers"],
                               at.child("finalizers"), errors);
  }
  if (metadata["resourceVersion"].as_string().empty()) {
    errors.invalid(at.child("resourceVersion"), "", "must be specified for an update");
  }
  if (metadata["generation"].as_int() < old_metadata["generation"].as_int()) {
    errors.invalid(at.child("generation"), metadata["generation"].as_int(),
                   "must not be decremented");
  }
  for (const std::string_view member : {"name", "namespace", "uid", "creationTimestamp",
                                        "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    if (metadata[member] != old_metadata[member]) {
      errors.invalid(at.child(member), metadata[member], "field is immutable");
    }
  }
  validate_labels(metadata["labels"], at.child("labels"), errors);
  validate_annotations(metadata["annotations"], at.child("annotations"), errors);
  validate_owners(metadata["ownerReferences"], at.child("ownerReferences"), errors);
  validate_managed_fields(metadata["managedFields"], at.child("managedFields"), errors);
}

void validate_known_finalizers(const Doc& finalizers, const Path& at, FieldErrors& errors) {
  static constexpr std::array<std::string_view, 3> kStandard = {"kubernetes", "orphan",
                                                                "foregroundDeletion"};
  const Doc::Items& items = finalizers.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string& name = items[i].as_string();
    if (name.find('/') != std::string::npos ||
        std::ranges::find(kStandard, name) != kStandard.end()) {
      continue;
    }
    errors.invalid(at.index(i), items[i],
                   "name is neither a standard finalizer name nor is it fully qualified");
  }
}

}  // namespace jogak::api
