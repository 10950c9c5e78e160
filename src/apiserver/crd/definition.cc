// SPDX-License-Identifier: Apache-2.0
//
// The rules of apiextensions-apiserver for definitions. The real server checks an internal form in
// which what all versions have in common stands once at the top ("spec.validation"), so that is
// where errors of a definition with one version point to.
#include "apiserver/crd/definition.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "apiserver/crd/formats.h"
#include "apiserver/crd/json_schema.h"
#include "apiserver/crd/schema_check.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/names.h"

namespace jogak::api {
namespace {

constexpr std::string_view kApproval = "api-approved.kubernetes.io";
constexpr std::size_t kSelectableMax = 8;
constexpr std::string_view kColumnTypes = "boolean,date,integer,number,string";
constexpr std::string_view kColumnFormats = "byte,date,date-time,double,float,int32,int64,password";

std::string joined(const Problems& problems) {
  std::string out;
  for (const std::string& problem : problems) out.append(out.empty() ? "" : ",").append(problem);
  return out;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

bool is_in_list(std::string_view list, std::string_view word) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    if (list.substr(at, comma - at) == word) return true;
    at = comma + 1;
  }
  return false;
}

void check_label(const Doc& name, const Path& at, FieldErrors& errors) {
  const Problems problems = check_dns1035_label(name.as_string());
  if (!problems.empty()) errors.invalid(at, name, joined(problems));
}

void check_kind(const Doc& name, const Path& at, FieldErrors& errors) {
  const Problems problems = check_dns1035_label(lower(name.as_string()));
  if (problems.empty()) return;
  errors.invalid(at, name, "may have mixed case, but should otherwise match: " + joined(problems));
}

void check_json_path(const std::string& path, const Path& at, FieldErrors& errors) {
  if (path[0] != '.') errors.invalid(at, path, "must be a simple json path starting with .");
}

// A path of the scale subresource: there, well-formed and below one of the prefixes.
void check_scale_path(const Doc& scale, std::string_view key, bool is_required,
                      const std::vector<std::string_view>& prefixes, std::string_view rule,
                      const Path& at, FieldErrors& errors) {
  const std::string& path = scale[key].as_string();
  const Path here = at.child("scale").child(key);
  if (path.empty()) {
    if (is_required) errors.required(here);
    return;
  }
  if (path[0] != '.') {
    check_json_path(path, here, errors);
  } else if (std::none_of(prefixes.begin(), prefixes.end(),
                          [&](std::string_view prefix) { return path.starts_with(prefix); })) {
    errors.invalid(here, path, rule);
  }
}

void check_subresources(const Doc& subresources, const Path& at, FieldErrors& errors) {
  const Doc* scale = subresources.find("scale");
  if (scale == nullptr) return;
  check_scale_path(*scale, "specReplicasPath", true, {".spec."},
                   "should be a json path under .spec", at, errors);
  check_scale_path(*scale, "statusReplicasPath", true, {".status."},
                   "should be a json path under .status", at, errors);
  check_scale_path(*scale, "labelSelectorPath", false, {".spec.", ".status."},
                   "should be a json path under either .spec or .status", at, errors);
}

void check_column(const Doc& column, const Path& at, FieldErrors& errors) {
  const std::string& type = column["type"].as_string();
  const std::string& format = column["format"].as_string();
  const std::string& path = column["jsonPath"].as_string();
  if (column["name"].as_string().empty()) errors.required(at.child("name"));
  const std::string types = fmt::format("must be one of {}", kColumnTypes);
  if (type.empty()) {
    errors.required(at.child("type"), types);
  } else if (!is_in_list(kColumnTypes, type)) {
    errors.invalid(at.child("type"), type, types);
  }
  if (!format.empty() && !is_in_list(kColumnFormats, format)) {
    errors.invalid(at.child("format"), format, fmt::format("must be one of {}", kColumnFormats));
  }
  if (path.empty()) {
    errors.required(at.child("JSONPath"));
  } else {
    check_json_path(path, at.child("JSONPath"), errors);
  }
}

void check_columns(const Doc& columns, const Path& at, FieldErrors& errors) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    check_column(columns.items()[i], at.index(i), errors);
  }
}

void check_selectable(const Doc& fields, const Doc& schema, const Path& at, FieldErrors& errors) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string& path = fields.items()[i]["jsonPath"].as_string();
    const Path here = at.index(i).child("jsonPath");
    if (path.empty()) {
      errors.required(here);
      continue;
    }
    const Doc* found = schema_at_path(schema, path);
    if (found == nullptr) {
      errors.invalid(here, path,
                     path.find('[') != std::string::npos
                         ? "is an invalid path: array notation is not allowed"
                         : "is an invalid path: does not refer to a valid field");
      continue;
    }
    if (path == ".metadata" || path.starts_with(".metadata.")) {
      errors.invalid(here, path, "must not point to fields in metadata");
    }
    const std::string& type = (*found)["type"].as_string();
    if (type != "string" && type != "boolean" && type != "integer") {
      errors.invalid(here, path,
                     "must point to a field of type string, boolean or integer. Enum string fields "
                     "and strings with formats are allowed.");
    }
    if (!seen.insert(path).second) errors.duplicate(here, path);
  }
  if (seen.size() > kSelectableMax) errors.too_many(at, seen.size(), kSelectableMax);
}

// Whether all versions have the same there.
bool is_common(const Doc& versions, std::string_view key) {
  const auto& list = versions.items();
  return std::all_of(list.begin(), list.end(),
                     [&](const Doc& version) { return version[key] == list[0][key]; });
}

bool has_status(const Doc& version) {
  const Doc* status = version["subresources"].find("status");
  return status != nullptr && !status->is_null();
}

void check_deprecation(const Doc& version, const Path& at, FieldErrors& errors) {
  const Doc* warning = version.find("deprecationWarning");
  if (warning == nullptr || warning->is_null()) return;
  const auto complain = [&](std::string_view what) { errors.invalid(at, *warning, what); };
  if (!version["deprecated"].as_bool()) {
    complain("can only be set for deprecated versions");
    return;
  }
  const std::string& text = warning->as_string();
  if (text.size() > 256) complain("must be <= 256 characters long");
  if (text.empty()) complain("must not be an empty string");
  const auto control = std::find_if(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (control == text.end()) return;
  complain(
      fmt::format("must only contain printable UTF-8 characters; non-printable character "
                  "found at index {}",
                  control - text.begin()));
}

// What a version may say for itself and all may say in common: the parts of `holder` whose key says
// so are checked at `at`, under the names they have there.
struct Parts {
  bool schema, subresources, columns, selectable;
};

void check_parts(const Doc& holder, bool status_enabled, Parts parts, std::string_view schema_name,
                 const Path& at, FieldErrors& errors) {
  if (parts.schema) {
    check_validation(holder["schema"], status_enabled, at.child(schema_name), errors);
  }
  if (parts.subresources) {
    check_subresources(holder["subresources"], at.child("subresources"), errors);
  }
  if (parts.columns) {
    check_columns(holder["additionalPrinterColumns"], at.child("additionalPrinterColumns"), errors);
  }
  if (parts.selectable) {
    check_selectable(holder["selectableFields"], holder.get("schema", "openAPIV3Schema"),
                     at.child("selectableFields"), errors);
  }
}

void check_versions(const Doc& versions, Parts own, const Path& at, FieldErrors& errors) {
  std::set<std::string> names;
  std::size_t storage_count = 0;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const Doc& version = versions.items()[i];
    const Path here = at.index(i);
    names.insert(version["name"].as_string());
    if (version["storage"].as_bool()) ++storage_count;
    check_label(version["name"], here.child("name"), errors);
    check_deprecation(version, here.child("deprecationWarning"), errors);
    check_parts(version, has_status(version), own, "schema", here, errors);
  }
  if (names.size() != versions.size()) {
    errors.invalid(at, versions, "must contain unique version names");
  }
  if (storage_count != 1) {
    errors.invalid(at, versions, "must have exactly one version marked as storage version");
  }
}

void check_group(const std::string& group, const Path& at, FieldErrors& errors) {
  if (group.empty()) {
    errors.required(at);
  } else if (const Problems problems = check_dns1123_subdomain(group); !problems.empty()) {
    errors.invalid(at, group, joined(problems));
  } else if (group.find('.') == std::string::npos) {
    errors.invalid(at, group, "should be a domain with at least one dot");
  }
}

void check_choice(const std::string& value, const std::vector<std::string_view>& choices,
                  const Path& at, FieldErrors& errors) {
  if (value.empty()) {
    errors.required(at);
  } else if (std::find(choices.begin(), choices.end(), value) == choices.end()) {
    errors.not_supported(at, value, choices);
  }
}

void check_review_versions(const Doc& versions, const Path& at, FieldErrors& errors) {
  if (versions.empty()) {
    errors.required(at);
    return;
  }
  std::set<std::string> seen;
  bool is_known = false;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const Doc& version = versions.items()[i];
    if (!seen.insert(version.as_string()).second) {
      errors.invalid(at.index(i), version, "duplicate version");
      continue;
    }
    check_label(version, at.index(i), errors);
    is_known |= version.as_string() == "v1" || version.as_string() == "v1beta1";
  }
  if (!is_known) errors.invalid(at, versions, "must include at least one of v1, v1beta1");
}

void check_conversion(const Doc& conversion, const Path& at, FieldErrors& errors) {
  if (!conversion.is_object()) return;
  const std::string& strategy = conversion["strategy"].as_string();
  check_choice(strategy, {"None", "Webhook"}, at.child("strategy"), errors);
  const Doc& webhook = conversion["webhook"];
  const Doc* client = webhook.find("clientConfig");
  const Path client_at = at.child("webhookClientConfig");
  const Path versions_at = at.child("conversionReviewVersions");
  if (strategy != "Webhook") {
    constexpr std::string_view kNot = "should not be set when strategy is not set to Webhook";
    if (client != nullptr) errors.forbidden(client_at, kNot);
    if (!webhook["conversionReviewVersions"].empty()) errors.forbidden(versions_at, kNot);
    return;
  }
  if (client == nullptr) {
    errors.required(client_at, "required when strategy is set to Webhook");
  } else if (client->has("url") == client->has("service")) {
    errors.required(client_at, "exactly one of url or service is required");
  }
  check_review_versions(webhook["conversionReviewVersions"], versions_at, errors);
}

void check_required_names(const Doc& names, const Path& at, FieldErrors& errors) {
  for (const std::string_view key : {"plural", "singular", "kind", "listKind"}) {
    if (names[key].as_string().empty()) errors.required(at.child(key));
  }
}

bool has_any_default(const Doc& versions) {
  bool found = false;
  for (const Doc& version : versions.items()) {
    each_schema(version.get("schema", "openAPIV3Schema"),
                [&](const Doc& schema) { found |= schema.has("default"); });
  }
  return found;
}

void check_spec(const Doc& spec, const Path& at, FieldErrors& errors) {
  const Doc& versions = spec["versions"];
  check_group(spec["group"].as_string(), at.child("group"), errors);
  check_choice(spec["scope"].as_string(), {"Cluster", "Namespaced"}, at.child("scope"), errors);
  for (std::size_t i = 0; i < versions.size(); ++i) {
    if (versions.items()[i].get("schema", "openAPIV3Schema").is_object()) continue;
    errors.required(at.child("versions").index(i).child("schema", "openAPIV3Schema"));
  }
  const bool keeps = spec["preserveUnknownFields"].as_bool();
  if (keeps && has_any_default(versions)) {
    errors.invalid(at.child("preserveUnknownFields"), true,
                   "must be false in order to use defaults in the schema");
  }
  const Parts common = {.schema = is_common(versions, "schema"),
                        .subresources = is_common(versions, "subresources"),
                        .columns = is_common(versions, "additionalPrinterColumns"),
                        .selectable = is_common(versions, "selectableFields")};
  check_versions(versions,
                 {.schema = !common.schema,
                  .subresources = !common.subresources,
                  .columns = !common.columns,
                  .selectable = !common.selectable},
                 at.child("versions"), errors);
  check_required_names(spec["names"], at.child("names"), errors);
  check_definition_names(spec["names"], at.child("names"), errors);
  if (!versions.empty()) {
    const auto& list = versions.items();
    const bool status_enabled = std::any_of(list.begin(), list.end(), has_status);
    check_parts(list[0], status_enabled, common, "validation", at, errors);
  }
  check_conversion(spec["conversion"], at.child("conversion"), errors);
}

void check_spec_update(const Doc& crd, const Doc& old, const Path& at, FieldErrors& errors) {
  const Doc& spec = crd["spec"];
  const Doc& old_spec = old["spec"];
  const auto keep = [&](const Doc& value, const Doc& before, const Path& where) {
    if (value != before) errors.invalid(where, value, "field is immutable");
  };
  const Doc& names = spec["names"];
  const Doc& old_names = old_spec["names"];
  if (condition_is(old, "Established", "True")) {
    keep(spec["scope"], old_spec["scope"], at.child("scope"));
    keep(names["kind"], old_names["kind"], at.child("names", "kind"));
  }
  keep(spec["group"], old_spec["group"], at.child("group"));
  keep(names["plural"], old_names["plural"], at.child("names", "plural"));
}

void check_stored_versions(const Doc& crd, FieldErrors& errors) {
  const Path at("status.storedVersions");
  const Doc& stored = crd.get("status", "storedVersions");
  if (stored.empty()) {
    errors.invalid(at, stored, "must have at least one stored version");
    return;
  }
  const Doc& versions = crd.get("spec", "versions");
  const auto has = [](const Doc& list, const Doc& name) {
    return std::find(list.items().begin(), list.items().end(), name) != list.items().end();
  };
  Doc names = Doc::array();
  for (const Doc& version : versions.items()) {
    names.push(version["name"]);
    if (version["storage"].as_bool() && !has(stored, version["name"])) {
      errors.invalid(at, stored, "must have the storage version " + version["name"].as_string());
    }
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const Doc& name = stored.items()[i];
    if (has(names, name)) continue;
    errors.invalid(at.index(i), name,
                   fmt::format("missing from spec.versions; {0} was previously a storage version, "
                               "and must remain in spec.versions until a storage migration ensures "
                               "no data remains persisted in {0} and removes {0} from "
                               "status.storedVersions",
                               name.as_string()));
  }
}

bool is_protected(std::string_view group) {
  return group == "k8s.io" || group.ends_with(".k8s.io") || group == "kubernetes.io" ||
         group.ends_with(".kubernetes.io");
}

void check_approval(const Doc& crd, const Doc* old, FieldErrors& errors) {
  if (!is_protected(crd.get("spec", "group").as_string())) return;
  const Doc& annotations = meta(crd)["annotations"];
  const std::string& approval = annotations[kApproval].as_string();
  if (old != nullptr && meta(*old)["annotations"][kApproval].as_string() == approval) return;
  const Path at = Path("metadata.annotations").key(kApproval);
  if (approval.empty()) {
    errors.required(at, fmt::format("protected groups must have approval annotation {}, see "
                                    "https://github.com/kubernetes/enhancements/pull/1111",
                                    quoted(kApproval)));
  } else if (!approval.starts_with("unapproved") && approval.find("://") == std::string::npos) {
    errors.invalid(at, approval,
                   fmt::format("protected groups must have approval annotation {} with either a "
                               "URL or a reason starting with \"unapproved\", see "
                               "https://github.com/kubernetes/enhancements/pull/1111",
                               quoted(kApproval)));
  }
}

}  // namespace

const std::string& storage_version_of(const Doc& crd) {
  static const std::string kNone;
  for (const Doc& version : crd.get("spec", "versions").items()) {
    if (version["storage"].as_bool()) return version["name"].as_string();
  }
  return kNone;
}

void check_definition_names(const Doc& names, const Path& at, FieldErrors& errors) {
  for (const std::string_view key : {"plural", "singular"}) {
    if (!names[key].as_string().empty()) check_label(names[key], at.child(key), errors);
  }
  for (const std::string_view key : {"kind", "listKind"}) {
    if (!names[key].as_string().empty()) check_kind(names[key], at.child(key), errors);
  }
  const Doc& short_names = names["shortNames"];
  for (std::size_t i = 0; i < short_names.size(); ++i) {
    check_label(short_names.items()[i], at.child("shortNames").index(i), errors);
  }
  if (!names["kind"].as_string().empty() && names["kind"] == names["listKind"]) {
    errors.invalid(at.child("listKind"), names["listKind"],
                   "kind and listKind may not be the same");
  }
  const Doc& categories = names["categories"];
  for (std::size_t i = 0; i < categories.size(); ++i) {
    check_label(categories.items()[i], at.child("categories").index(i), errors);
  }
}

void check_definition(const Doc& crd, const Doc* old, FieldErrors& errors) {
  const Doc& spec = crd["spec"];
  if (old == nullptr) {
    const std::string wanted =
        fmt::format("{}.{}", spec.get("names", "plural").as_string(), spec["group"].as_string());
    if (!name_of(crd).empty() && name_of(crd) != wanted) {
      errors.invalid(Path("metadata.name"), name_of(crd),
                     "must be spec.names.plural+\".\"+spec.group");
    }
  }
  check_spec(spec, Path("spec"), errors);
  if (old != nullptr) check_spec_update(crd, *old, Path("spec"), errors);
  check_definition_names(crd.get("status", "acceptedNames"), Path("status.acceptedNames"), errors);
  check_stored_versions(crd, errors);
  check_approval(crd, old, errors);
  if (spec["preserveUnknownFields"].as_bool() &&
      (old == nullptr || !old->get("spec", "preserveUnknownFields").as_bool())) {
    errors.invalid(Path("spec.preserveUnknownFields"), true,
                   "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                   "spec.versions[*].schema instead");
  }
}

std::vector<std::string> unknown_formats(const Doc& crd) {
  std::vector<std::string> out;
  for (const Doc& version : crd.get("spec", "versions").items()) {
    each_schema(version.get("schema", "openAPIV3Schema"), [&](const Doc& schema) {
      const std::string& format = schema["format"].as_string();
      if (!format.empty() && !is_known_format(schema["type"].as_string(), format)) {
        out.push_back(format);
      }
    });
  }
  return out;
}

}  // namespace jogak::api
