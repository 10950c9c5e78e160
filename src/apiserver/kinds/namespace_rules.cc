// SPDX-License-Identifier: Apache-2.0
//
// Namespaces: a label with their own name, finalizers of their own in spec, and a deletion that
// only marks until those are gone.
#include <algorithm>

#include "apiserver/kinds/core_rules.h"
#include "apiserver/kinds/core_strategies.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::string_view kNameLabel = "kubernetes.io/metadata.name";
constexpr std::string_view kFinalizer = "kubernetes";

void label_with_name(Doc& object) {
  const std::string name = name_of(object);
  if (name.empty()) return;
  Doc& labels = object.at("metadata", "labels");
  if (!labels.is_object()) labels = Doc::object();
  labels.set(kNameLabel, name);
}

void validate_finalizer(const std::string& name, const Path& at, FieldErrors& errors) {
  add_problems(errors, at, name, check_qualified_name(name));
  const bool is_standard = name == kFinalizer || name == "orphan" || name == "foregroundDeletion";
  if (!name.contains('/') && !is_standard) {
    errors.invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified");
  }
}

class NamespaceStrategy : public PlainStrategy {
 public:
  void set_defaults(Doc& object) const override {
    label_with_name(object);
    if (object.get("status", "phase").as_string().empty()) {
      object.at("status").set("phase", "Active");
    }
  }

  void prepare_create(Doc& object, WriteContext& /*context*/) const override {
    label_with_name(object);  // a generated name was not known before
    object.set("status", Doc::object().set("phase", "Active"));
    Doc& finalizers = object.at("spec", "finalizers");
    if (!finalizers.is_array()) finalizers = Doc::array();
    const bool has_it = std::ranges::any_of(
        finalizers.items(), [](const Doc& item) { return item.as_string() == kFinalizer; });
    if (!has_it) finalizers.push(kFinalizer);
  }
  void validate_create(const Doc& object, WriteContext& /*context*/,
                       FieldErrors& errors) const override {
    for (const Doc& item : object.get("spec", "finalizers").items()) {
      validate_finalizer(item.as_string(), Path("spec.finalizers"), errors);
    }
  }

  void prepare_update(Doc& object, const Doc& old, WriteContext& context) const override {
    Strategy::prepare_update(object, old, context);
    object.set("spec", old["spec"]);
  }
  void validate_update(const Doc& object, const Doc& /*old*/, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_create(object, context, errors);
  }

  void prepare_subresource_update(std::string_view subresource, Doc& object, const Doc& old,
                                  WriteContext& context) const override {
    if (subresource == "finalize") {
      Strategy::prepare_update(object, old, context);
    } else {
      object.set("spec", old["spec"]);
    }
  }
  void validate_subresource_update(std::string_view subresource, const Doc& object,
                                   const Doc& /*old*/, WriteContext& /*context*/,
                                   FieldErrors& errors) const override {
    if (subresource == "finalize") {
      const Doc& finalizers = object.get("spec", "finalizers");
      for (std::size_t i = 0; i < finalizers.size(); ++i) {
        validate_finalizer(finalizers.items()[i].as_string(), Path("spec.finalizers").index(i),
                           errors);
      }
      return;
    }
    const Doc& phase = object.get("status", "phase");
    if (!is_deleting(object) && phase.as_string() != "Active") {
      errors.invalid(Path("status.Phase"), phase,
                     "may only be 'Active' if `deletionTimestamp` is empty");
    }
    if (is_deleting(object) && phase.as_string() != "Terminating") {
      errors.invalid(Path("status.Phase"), phase,
                     "may only be 'Terminating' if `deletionTimestamp` is not empty");
    }
  }

  std::optional<ApiResult<Doc>> delete_instead(const Doc& object,
                                               WriteContext& context) const override {
    if (is_deleting(object)) {
      if (object.get("spec", "finalizers").empty()) return std::nullopt;
      return object;
    }
    Doc marked = object;
    marked.at("metadata").set("deletionTimestamp", format_time(context.now));
    marked.at("status").set("phase", "Terminating");
    return marked;
  }
  bool may_vanish(const Doc& object) const override {
    return object.get("spec", "finalizers").empty();
  }
  bool returns_deleted_object() const override { return true; }

  NameCheck name_check() const override { return check_dns1123_label; }
  std::vector<std::string_view> selectable_fields() const override { return {"status.phase"}; }
};

}  // namespace

StrategyPtr namespace_strategy() { return std::make_shared<NamespaceStrategy>(); }

}  // namespace jogak::api
