// SPDX-License-Identifier: Apache-2.0
//
// The order of steps and every exception are those of apiextensions-apiserver (pkg/apiserver/schema
// pruning, defaulting, objectmeta).
#include "apiserver/crd/prune.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "apiserver/crd/json_schema.h"
#include "apiserver/object/field_errors.h"
#include "apiserver/schema/normalise.h"
#include "apiserver/schema/schema.h"

namespace jogak::api {
namespace {

const Doc kNoSchema = Doc::object();

std::string joined(const std::string& parent, std::string_view key) {
  return parent.empty() ? std::string(key) : fmt::format("{}.{}", parent, key);
}

std::string indexed(const std::string& parent, std::size_t index) {
  return fmt::format("{}[{}]", parent, index);
}

class Pruner {
 public:
  // `is_resource`: type members stay whatever the schema says.
  void prune(Doc& value, const Doc* schema, bool is_resource, const std::string& path) {
    if (schema != nullptr && keeps_unknown(*schema)) {
      prune_known(value, *schema, is_resource, path);
    } else if (value.is_object()) {
      prune_object(value, schema, is_resource, path);
    } else if (value.is_array()) {
      const Doc* items = schema == nullptr ? nullptr : items_schema(*schema);
      for (std::size_t i = 0; i < value.size(); ++i) {
        prune_inner(value.items()[i], items, indexed(path, i));
      }
    }
  }

  std::vector<std::string> unknown;

 private:
  void prune_inner(Doc& value, const Doc* schema, const std::string& path) {
    prune(value, schema, schema != nullptr && is_embedded(*schema), path);
  }

  // Finds the schema of a member; false when nothing is said of it.
  static bool find_member(const Doc* schema, std::string_view key, const Doc*& member) {
    if (schema == nullptr) return false;
    member = (*schema)["properties"].find(key);
    if (member != nullptr) return true;
    member = additional_schema(*schema);
    return has_additional(*schema);
  }

  void prune_object(Doc& value, const Doc* schema, bool is_resource, const std::string& path) {
    Doc::Members kept;
    for (auto& [key, member] : value.members()) {
      const Doc* known = nullptr;
      if (is_resource && is_type_member(key)) {
        kept.push_back({std::move(key), std::move(member)});
      } else if (find_member(schema, key, known)) {
        prune_inner(member, known, joined(path, key));
        kept.push_back({std::move(key), std::move(member)});
      } else if (schema == nullptr || !is_type_member(key) || !path.empty()) {
        unknown.push_back(joined(path, key));
      }
    }
    value.members() = std::move(kept);
  }

  // Below a schema that keeps unknown members, known ones are pruned all the same.
  void prune_known(Doc& value, const Doc& schema, bool is_resource, const std::string& path) {
    if (value.is_object()) {
      for (auto& [key, member] : value.members()) {
        const Doc* known = nullptr;
        if (is_resource && is_type_member(key)) continue;
        if (find_member(&schema, key, known)) prune_inner(member, known, joined(path, key));
      }
    } else if (value.is_array()) {
      const Doc* items = items_schema(schema);
      for (std::size_t i = 0; items != nullptr && i < value.size(); ++i) {
        prune_known(value.items()[i], *items, is_embedded(*items), indexed(path, i));
      }
    }
  }
};

bool may_not_be_null(const Doc& value, const Doc* schema) {
  return value.is_null() && schema != nullptr && !is_nullable(*schema);
}

bool has_default(const Doc& schema) {
  const Doc* fallback = schema.find("default");
  return fallback != nullptr && !fallback->is_null();
}

Result<void> coerce_meta(Doc& object, const std::string& path, std::vector<std::string>& unknown) {
  Doc* metadata = object.find("metadata");
  if (metadata == nullptr) return {};
  // The struct around it gives complaints their "metadata." in front.
  const schema::Struct& type = schema::get("meta.v1.PartialObjectMetadata");
  Doc wrapped = Doc::object();
  wrapped.set("metadata", std::move(*metadata));
  schema::Complaints complaints;
  auto decoded = schema::decode(std::move(wrapped), type, complaints);
  if (!decoded) return std::unexpected(std::move(decoded).error());
  for (const std::string& complaint : complaints.unknown) {
    const std::size_t open = complaint.find('"');
    const std::size_t close = complaint.rfind('"');
    if (open >= close) continue;
    unknown.push_back(joined(path, complaint.substr(open + 1, close - open - 1)));
  }
  Doc proper = schema::encode(*std::move(decoded), type);
  *metadata = std::move(proper.at("metadata"));
  if (metadata->is_null()) *metadata = Doc::object();
  return {};
}

Result<void> check_text(const Doc& object, std::string_view key, const std::string& path) {
  const Doc* value = object.find(key);
  if (value == nullptr || value->is_string()) return {};
  FieldErrors errors;
  errors.invalid(Path(joined(path, key)), *value, "must be a string");
  return invalid("{}", errors.text());
}

Result<void> coerce(Doc& value, const Doc* schema, bool is_resource, const std::string& path,
                    std::vector<std::string>& unknown) {
  if (schema == nullptr) return {};
  if (value.is_object()) {
    if (is_resource) {
      JOGAK_TRY_VOID(check_text(value, "apiVersion", path));
      JOGAK_TRY_VOID(check_text(value, "kind", path));
      JOGAK_TRY_VOID(coerce_meta(value, path, unknown));
    }
    for (auto& [key, member] : value.members()) {
      const Doc* inner = member_schema(*schema, key);
      if (inner == nullptr) continue;
      JOGAK_TRY_VOID(coerce(member, inner, is_embedded(*inner), joined(path, key), unknown));
    }
  } else if (value.is_array()) {
    const Doc* items = items_schema(*schema);
    for (std::size_t i = 0; items != nullptr && i < value.size(); ++i) {
      JOGAK_TRY_VOID(
          coerce(value.items()[i], items, is_embedded(*items), indexed(path, i), unknown));
    }
  }
  return {};
}

}  // namespace

std::vector<std::string> prune(Doc& object, const Doc* schema, bool is_root) {
  Pruner pruner;
  pruner.prune(object, schema == nullptr && is_root ? &kNoSchema : schema,
               is_root || (schema != nullptr && is_embedded(*schema)), "");
  std::sort(pruner.unknown.begin(), pruner.unknown.end());
  return std::move(pruner.unknown);
}

void drop_nulls(Doc& value, const Doc* schema) {
  if (value.is_object()) {
    Doc::Members kept;
    for (auto& [key, member] : value.members()) {
      const Doc* inner = schema == nullptr ? nullptr : member_schema(*schema, key);
      if (may_not_be_null(member, inner) && !has_default(*inner)) continue;
      drop_nulls(member, inner);
      kept.push_back({std::move(key), std::move(member)});
    }
    value.members() = std::move(kept);
  } else if (value.is_array()) {
    const Doc* items = schema == nullptr ? nullptr : items_schema(*schema);
    for (Doc& item : value.items()) drop_nulls(item, items);
  }
}

void apply_defaults(Doc& value, const Doc& schema) {
  if (value.is_object()) {
    for (const auto& [key, property] : schema["properties"].members()) {
      if (!has_default(property)) continue;
      const Doc* member = value.find(key);
      if (member == nullptr || may_not_be_null(*member, &property)) {
        value.set(key, property["default"]);
      }
    }
    for (auto& [key, member] : value.members()) {
      const Doc* inner = member_schema(schema, key);
      if (inner == nullptr) continue;
      if (may_not_be_null(member, inner) && has_default(*inner)) member = (*inner)["default"];
      apply_defaults(member, *inner);
    }
  } else if (value.is_array()) {
    const Doc* items = items_schema(schema);
    if (items == nullptr) return;
    for (Doc& item : value.items()) {
      if (may_not_be_null(item, items) && has_default(*items)) item = (*items)["default"];
      apply_defaults(item, *items);
    }
  }
}

Result<void> coerce_embedded(Doc& value, const Doc* schema, bool is_root,
                             std::vector<std::string>& unknown) {
  return coerce(value, schema == nullptr && is_root ? &kNoSchema : schema,
                is_root || (schema != nullptr && is_embedded(*schema)), "", unknown);
}

}  // namespace jogak::api
