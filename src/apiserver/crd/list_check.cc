// SPDX-License-Identifier: Apache-2.0
//
// Uniqueness by the JSON of values and keys, and the members that embedded resources need.
#include "apiserver/crd/list_check.h"

#include <map>
#include <string>
#include <vector>

#include "apiserver/crd/json_schema.h"
#include "apiserver/object/names.h"
#include "apiserver/schema/normalise.h"

namespace jogak::api {
namespace {

std::string json_of(const Doc& value) {
  std::string out;
  value.append_json(out);
  return out;
}

// The second appearance of each value that stands there more than once.
std::vector<std::size_t> find_doubles(const std::vector<Doc>& values) {
  std::map<std::string, int> seen;
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (++seen[json_of(values[i])] == 2) out.push_back(i);
  }
  return out;
}

void check_map(const Doc& list, const Doc& schema, const Path& at, FieldErrors& errors) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Doc& item = list.items()[i];
    if (item.is_object() || item.is_null()) continue;
    errors.invalid(at.index(i), item, "must be an object for an array of list-type map");
    return;
  }
  std::vector<Doc> keys;
  for (const Doc& item : list.items()) {
    Doc key = Doc::object();
    for (const Doc& name : schema["x-kubernetes-list-map-keys"].items()) {
      if (const Doc* value = item.find(name.as_string())) key.set(name.as_string(), *value);
    }
    keys.push_back(std::move(key));
  }
  for (const std::size_t i : find_doubles(keys)) errors.duplicate(at.index(i), keys[i]);
}

void check_list(const Doc& value, const Doc& schema, const Path& at, FieldErrors& errors) {
  if (value.is_array()) {
    if (list_type_of(schema) == "set") {
      for (const std::size_t i : find_doubles(value.items())) {
        errors.duplicate(at.index(i), value.items()[i]);
      }
    } else if (list_type_of(schema) == "map") {
      check_map(value, schema, at, errors);
    }
    const Doc* items = items_schema(schema);
    for (std::size_t i = 0; items != nullptr && i < value.size(); ++i) {
      check_list(value.items()[i], *items, at.index(i), errors);
    }
    return;
  }
  for (const auto& [key, member] : value.members()) {
    if (const Doc* property = schema["properties"].find(key)) {
      check_list(member, *property, at.child(key), errors);
    } else if (const Doc* additional = additional_schema(schema)) {
      check_list(member, *additional, at.key(key), errors);
    }
  }
}

// Names that may stand as one segment of a path.
Problems check_segment(std::string_view name) {
  if (name == "." || name == "..") return {"may not be '" + std::string(name) + "'"};
  Problems out;
  for (const char* illegal : {"/", "%"}) {
    if (name.find(illegal) != std::string_view::npos) {
      out.push_back(std::string("may not contain '") + illegal + "'");
    }
  }
  return out;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string joined(const Problems& problems) {
  std::string out;
  for (const std::string& problem : problems) out.append(out.empty() ? "" : ",").append(problem);
  return out;
}

void check_resource(const Doc& value, const Path& at, FieldErrors& errors) {
  for (const std::string_view key : {"apiVersion", "kind"}) {
    const Doc* member = value.find(key);
    if (member == nullptr) {
      errors.required(at.child(key));
    } else if (!member->is_string()) {
      errors.invalid(at.child(key), *member, "must be a string");
    } else if (member->as_string().empty()) {
      errors.invalid(at.child(key), *member, "must not be empty");
    } else if (key == "kind") {
      const Problems problems = check_dns1035_label(lower(member->as_string()));
      if (problems.empty()) continue;
      errors.invalid(at.child(key), *member,
                     "may have mixed case, but should otherwise match: " + joined(problems));
    }
  }
  const Doc* metadata = value.find("metadata");
  if (metadata == nullptr) return;
  Doc checked = *metadata;
  if (checked["name"].as_string().empty()) checked.set("name", "fakename");
  validate_meta(checked, !checked["namespace"].as_string().empty(), check_segment,
                at.child("metadata"), errors);
}

}  // namespace

void check_lists(const Doc& object, const Doc& schema, FieldErrors& errors) {
  check_list(object, schema, Path(), errors);
}

void check_embedded(const Doc& value, const Doc& schema, const Path& at, FieldErrors& errors) {
  if (value.is_array()) {
    const Doc* items = items_schema(schema);
    for (std::size_t i = 0; items != nullptr && i < value.size(); ++i) {
      check_embedded(value.items()[i], *items, at.index(i), errors);
    }
    return;
  }
  if (!value.is_object()) return;
  if (is_embedded(schema)) check_resource(value, at, errors);
  for (const auto& [key, member] : value.members()) {
    if (const Doc* property = schema["properties"].find(key)) {
      check_embedded(member, *property, at.child(key), errors);
    } else if (const Doc* additional = additional_schema(schema)) {
      check_embedded(member, *additional, at.key(key), errors);
    }
  }
}

}  // namespace jogak::api
