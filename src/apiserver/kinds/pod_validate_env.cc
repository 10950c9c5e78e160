// SPDX-License-Identifier: Apache-2.0
//
// Environment of containers: variables, their sources, and the fields of a pod that they may name.
#include <array>
#include <string>
#include <string_view>

#include "apiserver/kinds/pod_validate.h"
#include "apiserver/object/amount.h"

namespace jogak::api {

namespace {

// Fields of a pod, and where each may be used.
struct PodField {
  std::string_view path;
  bool in_env, in_volume;
};
constexpr std::array<PodField, 14> kPodFields = {{
    {"metadata.annotations", false, true},
    {"metadata.labels", false, true},
    {"metadata.name", true, true},
    {"metadata.namespace", true, true},
    {"metadata.uid", true, true},
    {"spec.nodeName", true, false},
    {"spec.serviceAccountName", true, false},
    {"status.hostIP", true, false},
    {"status.hostIPs", true, false},
    {"status.podIP", true, false},
    {"status.podIPs", true, false},
    {"spec.restartPolicy", false, false},
    {"spec.schedulerName", false, false},
    {"status.phase", false, false},
}};

const std::initializer_list<std::string_view> kResourceFields = {
    "limits.cpu",   "limits.ephemeral-storage",   "limits.memory",
    "requests.cpu", "requests.ephemeral-storage", "requests.memory"};

bool is_hugepage_field(std::string_view field) {
  return field.starts_with("limits.hugepages-") || field.starts_with("requests.hugepages-");
}

// metadata.labels['x'] gives its path and subscript.
bool split_subscript(std::string_view field, std::string_view& path, std::string_view& subscript) {
  const std::size_t open = field.find("['");
  if (!field.ends_with("']") || open == std::string_view::npos || open == 0 ||
      open + 4 > field.size()) {
    return false;
  }
  path = field.substr(0, open);
  subscript = field.substr(open + 2, field.size() - open - 4);
  return true;
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return out;
}

void check_subscript(std::string_view path, std::string_view subscript, const Doc& field,
                     const Spot& at, FieldErrors& errors) {
  if (path == "metadata.annotations") {
    add_problems(errors, at, Doc(subscript), check_qualified_name(lower(subscript)));
  } else if (path == "metadata.labels") {
    add_problems(errors, at, Doc(subscript), check_qualified_name(subscript));
  } else {
    errors.invalid(
        at.child("fieldPath"), field,
        "error converting fieldPath: field label does not support subscript: " + field.as_string());
  }
}

void check_divisor(const Doc& ref, const Spot& at, FieldErrors& errors) {
  const std::string& divisor = ref["divisor"].as_string();
  const auto amount = Amount::parse(divisor);
  if (divisor.empty() || !amount || amount->is_zero()) {
    return;
  }
  const std::string text = amount->text();
  const std::string& field = ref["resource"].as_string();
  if (field.ends_with(".cpu")) {
    if (!is_any_of(text, {"1m", "1"})) {
      errors.invalid(at.child("divisor"), field,
                     "only divisor's values 1m and 1 are supported with the cpu resource");
    }
    return;
  }
  if (!is_any_of(field, kResourceFields) && !is_hugepage_field(field)) {
    return;
  }
  if (!is_any_of(text, {"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi",
                        "1Ei"})) {
    errors.invalid(at.child("divisor"), field,
                   "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei "
                   "are supported with the resource");
  }
}

void check_key_ref(const Doc& ref, const Spot& at, FieldErrors& errors) {
  add_problems(errors, at.child("name"), ref["name"],
               check_dns1123_subdomain(ref["name"].as_string()));
  if (ref["key"].as_string().empty()) {
    errors.required(at.child("key"));
  } else {
    check_name(ref["key"], check_config_key, at.child("key"), errors);
  }
}

void check_file_ref(const Doc& ref, const Spot& at, FieldErrors& errors) {
  if (ref["key"].as_string().empty()) {
    errors.required(at.child("key"));
  } else {
    check_name(ref["key"], check_relaxed_env_name, at.child("key"), errors);
  }
  if (ref["volumeName"].as_string().empty()) {
    errors.required(at.child("volumeName"));
  } else {
    check_name(ref["volumeName"], check_dns1123_label, at.child("volumeName"), errors);
  }
  if (ref["path"].as_string().empty()) {
    errors.required(at.child("path"));
  } else {
    check_no_backsteps(ref["path"], at.child("path"), errors);
  }
}

void check_value_from(const Doc& variable, const Spot& at, FieldErrors& errors) {
  const Doc& source = variable["valueFrom"];
  if (source.is_null()) {
    return;
  }
  std::size_t count = 0;
  for (const std::string_view kind :
       {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"}) {
    const Doc* ref = source.find(kind);
    if (ref == nullptr) {
      continue;
    }
    ++count;
    const Spot spot = at.child(kind);
    if (kind == "fieldRef") {
      validate_field_ref(*ref, false, spot, errors);
    } else if (kind == "resourceFieldRef") {
      validate_resource_field_ref(*ref, false, spot, errors);
    } else if (kind == "fileKeyRef") {
      check_file_ref(*ref, spot, errors);
    } else {
      check_key_ref(*ref, spot, errors);
    }
  }
  if (count == 0) {
    errors.invalid(at, "",
                   "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "
                   "`secretKeyRef` or `fileKeyRef`");
  } else if (!variable["value"].as_string().empty()) {
    errors.invalid(at, "", "may not be specified when `value` is not empty");
  } else if (count > 1) {
    errors.invalid(at, "", "may not have more than one field specified at a time");
  }
}

}  // namespace

Problems check_relaxed_env_name(std::string_view text) {
  Problems problems;
  if (text.empty()) {
    problems.emplace_back("environment variable name must be non-empty");
  }
  for (const char c : text) {
    if (c < ' ' || c > '~' || c == '=') {
      problems.emplace_back(
          "a valid environment variable name must consist only of printable ASCII characters other "
          "than '='");
      break;
    }
  }
  return problems;
}

void validate_field_ref(const Doc& ref, bool is_volume, const Spot& at, FieldErrors& errors) {
  if (ref["apiVersion"].as_string().empty()) {
    errors.required(at.child("apiVersion"));
    return;
  }
  const Doc& field = ref["fieldPath"];
  if (field.as_string().empty()) {
    errors.required(at.child("fieldPath"));
    return;
  }
  if (ref["apiVersion"].as_string() != "v1") {
    errors.invalid(
        at.child("fieldPath"), field,
        "error converting fieldPath: unsupported pod version: " + ref["apiVersion"].as_string());
    return;
  }
  std::string_view path = field.as_string();
  std::string_view subscript;
  if (split_subscript(field.as_string(), path, subscript)) {
    check_subscript(path, subscript, field, at, errors);
    return;
  }
  if (path == "spec.host") {
    path = "spec.nodeName";
  }
  std::vector<std::string_view> supported;
  bool is_known = false;
  for (const PodField& known : kPodFields) {
    is_known = is_known || known.path == path;
    if (is_volume ? known.in_volume : known.in_env) {
      if (known.path == path) {
        return;
      }
      supported.push_back(known.path);
    }
  }
  if (is_known) {
    errors.not_supported(at.child("fieldPath"), Doc(path), supported);
  } else {
    errors.invalid(at.child("fieldPath"), field,
                   "error converting fieldPath: field label not supported: " + field.as_string());
  }
}

void validate_resource_field_ref(const Doc& ref, bool is_volume, const Spot& at,
                                 FieldErrors& errors) {
  const std::string& field = ref["resource"].as_string();
  if (is_volume && ref["containerName"].as_string().empty()) {
    errors.required(at.child("containerName"));
  } else if (field.empty()) {
    errors.required(at.child("resource"));
  } else if (!is_any_of(field, kResourceFields) && !is_hugepage_field(field)) {
    errors.not_supported(at.child("resource"), field, kResourceFields);
  }
  check_divisor(ref, at, errors);
}

void validate_env(const Doc& container, const Spot& at, FieldErrors& errors) {
  const auto& variables = container["env"].items();
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Doc& variable = variables[i];
    const Spot spot = at.index(i);
    if (variable["name"].as_string().empty()) {
      errors.required(spot.child("name"));
    } else {
      check_name(variable["name"], check_relaxed_env_name, spot.child("name"), errors);
    }
    check_value_from(variable, spot.child("valueFrom"), errors);
  }
}

void validate_env_from(const Doc& container, const Spot& at, FieldErrors& errors) {
  const auto& sources = container["envFrom"].items();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Doc& source = sources[i];
    const Spot spot = at.index(i);
    if (!source["prefix"].as_string().empty()) {
      check_name(source["prefix"], check_relaxed_env_name, spot.child("prefix"), errors);
    }
    std::size_t count = 0;
    for (const std::string_view kind : {"configMapRef", "secretRef"}) {
      if (!source.has(kind)) {
        continue;
      }
      ++count;
      const Spot inner = spot.child(kind);
      const Doc& name = source[kind]["name"];
      if (name.as_string().empty()) {
        errors.required(inner.child("name"));
      } else {
        check_name(name, check_dns1123_subdomain, inner.child("name"), errors);
      }
    }
    if (count == 0) {
      errors.invalid(at, "", "must specify one of: `configMapRef` or `secretRef`");
    } else if (count > 1) {
      errors.invalid(at, "", "may not have more than one field specified at a time");
    }
  }
}

}  // namespace jogak::api
