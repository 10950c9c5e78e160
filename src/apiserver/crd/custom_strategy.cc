// SPDX-License-Identifier: Apache-2.0
//
// The steps and their order are those of apiextensions-apiserver pkg/registry/customresource.
#include "apiserver/crd/custom_strategy.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "apiserver/crd/list_check.h"
#include "apiserver/crd/prune.h"
#include "apiserver/crd/value_check.h"
#include "apiserver/object/meta.h"

namespace jogak::api {
namespace {

// A text that lives as long as the program, as the paths of stored fields must.
std::string_view interned(std::string text) {
  static std::set<std::string> texts;
  return *texts.insert(std::move(text)).first;
}

std::string_view without_dot(std::string_view path) {
  if (path.starts_with('.')) path.remove_prefix(1);
  return path;
}

// The value at ".spec.replicas"; null where something on the way is missing.
const Doc& value_at(const Doc& object, std::string_view path) {
  path = without_dot(path);
  const Doc* at = &object;
  while (true) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    at = &(*at)[path.substr(0, dot)];
    if (dot == path.size()) return *at;
    path.remove_prefix(dot + 1);
  }
}

void set_at(Doc& object, std::string_view path, Doc value) {
  path = without_dot(path);
  Doc* at = &object;
  while (true) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    at = &at->at(path.substr(0, dot));
    if (dot == path.size()) break;
    if (!at->is_object()) *at = Doc::object();
    path.remove_prefix(dot + 1);
  }
  *at = std::move(value);
}

std::string_view go_type(const Doc& value) {
  if (value.is_string()) return "string";
  if (value.is_bool()) return "bool";
  if (value.is_array()) return "[]interface {}";
  if (value.is_object()) return "map[string]interface {}";
  return value.is_int() ? "int64" : "float64";
}

// A value of the wrong type, in the words of apimachinery's accessors; "" for a right one.
std::string access_error(const Doc& value, std::string_view path, bool wants_text) {
  if (value.is_null() || (wants_text ? value.is_string() : value.is_int())) return "";
  std::string shown;
  value.append_json(shown);
  return fmt::format(".{} accessor error: {} is of the type {}, expected {}", without_dot(path),
                     shown, go_type(value), wants_text ? "string" : "int64");
}

void check_replicas(const Doc& object, const std::string& path, FieldErrors& errors) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  const Doc& replicas = value_at(object, path);
  if (const std::string what = access_error(replicas, path, false); !what.empty()) {
    errors.invalid(Path(path), 0, what);
  } else if (replicas.as_int() < 0) {
    errors.invalid(Path(path), replicas, "should be a non-negative integer");
  } else if (replicas.as_int() > kMax) {
    errors.invalid(Path(path), replicas, fmt::format("should be less than or equal to {}", kMax));
  }
}

// A finalizer without a domain invites conflicts; the real server says so, but takes it.
void warn_of_finalizers(const Doc& object, const Doc& old, WriteContext& context) {
  std::set<std::string> added;
  for (const Doc& finalizer : meta(object)["finalizers"].items()) {
    if (!has_finalizer(old, finalizer.as_string())) added.insert(finalizer.as_string());
  }
  for (const std::string& name : added) {
    for (const std::string& problem : check_qualified_name(name)) {
      context.warnings.push_back(fmt::format("metadata.finalizers: {}: {}", quoted(name), problem));
    }
    if (name.find('/') != std::string::npos || name == "orphan" || name == "foregroundDeletion" ||
        name == "kubernetes") {
      continue;
    }
    context.warnings.push_back(fmt::format(
        "metadata.finalizers: {}: prefer a domain-qualified finalizer name{} to avoid accidental "
        "conflicts with other finalizer writers",
        quoted(name), name.find('.') != std::string::npos ? " including a path (/)" : ""));
  }
}

// Rules in CEL expect values of the right shape.
bool blocks_rules(const FieldErrors& errors) {
  return std::any_of(errors.list().begin(), errors.list().end(), [](const FieldError& error) {
    switch (error.type) {
      case FieldErrorType::NotSupported:
      case FieldErrorType::Required:
      case FieldErrorType::TooLong:
      case FieldErrorType::TooMany:
      case FieldErrorType::TypeInvalid:
        return true;
      default:
        return false;
    }
  });
}

std::optional<ScalePaths> scale_of(const Doc& version) {
  const Doc* scale = version["subresources"].find("scale");
  if (scale == nullptr || !scale->is_object()) return std::nullopt;
  return ScalePaths{.spec_replicas = (*scale)["specReplicasPath"].as_string(),
                    .status_replicas = (*scale)["statusReplicasPath"].as_string(),
                    .selector = (*scale)["labelSelectorPath"].as_string()};
}

ApiResult<Doc> read_scale(const Doc& object, const ScalePaths& paths) {
  const Doc& replicas = value_at(object, paths.spec_replicas);
  const Doc& current = value_at(object, paths.status_replicas);
  for (const auto& [value, path] :
       {std::pair(&replicas, &paths.spec_replicas), std::pair(&current, &paths.status_replicas)}) {
    const std::string what = access_error(*value, *path, false);
    if (!what.empty()) return bare_error(500, what);
  }
  if (replicas.is_null()) {
    return internal_error(
        fmt::format("the spec replicas field {} does not exist", quoted(paths.spec_replicas)));
  }
  Doc metadata = Doc::object();
  for (const std::string_view key :
       {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const Doc* value = meta(object).find(key)) metadata.set(key, *value);
  }
  Doc spec = Doc::object();
  if (replicas.as_int() != 0) spec.set("replicas", replicas.as_int());
  Doc status = Doc::object();
  status.set("replicas", current.as_int());
  if (!paths.selector.empty()) {
    const Doc& selector = value_at(object, paths.selector);
    const std::string what = access_error(selector, paths.selector, true);
    if (!what.empty()) return bare_error(500, what);
    if (!selector.as_string().empty()) status.set("selector", selector);
  }
  Doc scale = Doc::object();
  scale.set("kind", "Scale").set("apiVersion", "autoscaling/v1");
  scale.set("metadata", std::move(metadata)).set("spec", std::move(spec));
  scale.set("status", std::move(status));
  return scale;
}

}  // namespace

CustomStrategy::CustomStrategy(const Doc& version, Doc storage_schema)
    : schema_(version.get("schema", "openAPIV3Schema")),
      storage_schema_(std::move(storage_schema)),
      scale_(scale_of(version)) {
  const Doc* status = version["subresources"].find("status");
  has_status_ = status != nullptr && !status->is_null();
  for (const Doc& field : version["selectableFields"].items()) {
    selectable_.push_back(interned(std::string(without_dot(field["jsonPath"].as_string()))));
  }
  if (Rules::has_any(schema_)) rules_.emplace(schema_);
}

void CustomStrategy::set_defaults(Doc& object) const { apply_defaults(object, schema_); }

void CustomStrategy::prepare_create(Doc& object, WriteContext& context) const {
  if (has_status_) Strategy::prepare_create(object, context);
}

void CustomStrategy::prepare_update(Doc& object, const Doc& old, WriteContext& context) const {
  if (has_status_) Strategy::prepare_update(object, old, context);
}

void CustomStrategy::prepare_subresource_update(std::string_view subresource, Doc& object,
                                                const Doc& old, WriteContext& context) const {
  if (subresource == "status") {
    Strategy::prepare_subresource_update(subresource, object, old, context);
  } else {
    prepare_update(object, old, context);
  }
}

bool CustomStrategy::spec_changed(const Doc& object, const Doc& old) const {
  if (Strategy::spec_changed(object, old)) return true;
  return !has_status_ && object["status"] != old["status"];
}

void CustomStrategy::validate_create(const Doc& object, WriteContext& context,
                                     FieldErrors& errors) const {
  check_value(object, nullptr, schema_, "", errors);
  check_scale_spec(object, errors);
  check_scale_status(object, errors);
  check_embedded(object, schema_, Path(), errors);
  check_lists(object, schema_, errors);
  check_rules(object, nullptr, errors);
  if (errors.empty()) warn_of_finalizers(object, Doc(), context);
}

void CustomStrategy::validate_update(const Doc& object, const Doc& old, WriteContext& context,
                                     FieldErrors& errors) const {
  check_value(object, &old, schema_, "", errors);
  check_scale_spec(object, errors);
  check_scale_status(object, errors);
  check_embedded(object, schema_, Path(), errors);
  check_changed_lists(object, old, errors);
  check_rules(object, &old, errors);
  if (errors.empty()) warn_of_finalizers(object, old, context);
}

void CustomStrategy::validate_subresource_update(std::string_view subresource, const Doc& object,
                                                 const Doc& old, WriteContext& context,
                                                 FieldErrors& errors) const {
  if (subresource != "status") {
    validate_update(object, old, context, errors);
    return;
  }
  const Doc* status = object.find("status");
  const Doc* schema = schema_["properties"].find("status");
  if (status != nullptr && schema != nullptr) {
    check_value(*status, old.find("status"), *schema, "status", errors);
  }
  check_scale_status(object, errors);
  check_changed_lists(object, old, errors);
  check_rules(object, &old, errors);
}

void CustomStrategy::check_scale_spec(const Doc& object, FieldErrors& errors) const {
  if (scale_) check_replicas(object, scale_->spec_replicas, errors);
}

void CustomStrategy::check_scale_status(const Doc& object, FieldErrors& errors) const {
  if (!scale_) return;
  check_replicas(object, scale_->status_replicas, errors);
  if (scale_->selector.empty()) return;
  const std::string what = access_error(value_at(object, scale_->selector), scale_->selector, true);
  if (!what.empty()) errors.invalid(Path(scale_->selector), "", what);
}

// Objects that were wrong before the rule came may stay so.
void CustomStrategy::check_changed_lists(const Doc& object, const Doc& old,
                                         FieldErrors& errors) const {
  FieldErrors before;
  check_lists(old, schema_, before);
  if (before.empty()) check_lists(object, schema_, errors);
}

void CustomStrategy::check_rules(const Doc& object, const Doc* old, FieldErrors& errors) const {
  if (!rules_) return;
  if (blocks_rules(errors)) {
    errors.invalid(Path("<nil>"), Doc(),
                   "some validation rules were not checked because the object was invalid; correct "
                   "the existing errors to complete validation");
    return;
  }
  rules_->check(object, old, errors);
}

Doc CustomStrategy::from_storage(Doc object) const {
  prune(object, &schema_, true);
  drop_nulls(object, &schema_);
  apply_defaults(object, schema_);
  return object;
}

Doc CustomStrategy::to_storage(Doc object) const {
  prune(object, &storage_schema_, true);
  drop_nulls(object, &storage_schema_);
  return object;
}

std::shared_ptr<const Projection> scale_projection(const std::string& kind,
                                                   const std::string& group,
                                                   const ScalePaths& paths) {
  auto projection = std::make_shared<Projection>();
  projection->read = [paths](const Doc& object) { return read_scale(object, paths); };
  projection->write = [kind, group, paths](Doc object, const Doc& scale) -> ApiResult<Doc> {
    const std::string& uid = uid_of(scale);
    if (!uid.empty() && uid != uid_of(object)) {
      return conflict({kind, group}, name_of(object),
                      fmt::format("Precondition failed: UID in precondition: {}, UID in object "
                                  "meta: {}",
                                  uid, uid_of(object)));
    }
    set_at(object, paths.spec_replicas, scale.get("spec", "replicas").as_int());
    const std::string& version = meta(scale)["resourceVersion"].as_string();
    if (!version.empty()) object.at("metadata").set("resourceVersion", version);
    return object;
  };
  return projection;
}

}  // namespace jogak::api
