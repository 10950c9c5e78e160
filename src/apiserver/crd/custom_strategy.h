// SPDX-License-Identifier: Apache-2.0
//
// The rules for objects of a custom kind in one of its versions, made from the definition.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/crd/rule_check.h"
#include "apiserver/registry/resource.h"

namespace jogak::api {

// Where the scale subresource finds its numbers: ".spec.replicas".
struct ScalePaths {
  std::string spec_replicas, status_replicas, selector;
};

class CustomStrategy : public Strategy {
 public:
  // `version` is an element of spec.versions; `storage_schema` that of the version objects are
  // stored in.
  CustomStrategy(const Doc& version, Doc storage_schema);

  const Doc& schema() const { return schema_; }
  const std::optional<ScalePaths>& scale() const { return scale_; }

  void set_defaults(Doc& object) const override;
  void prepare_create(Doc& object, WriteContext& context) const override;
  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override;
  void prepare_update(Doc& object, const Doc& old, WriteContext& context) const override;
  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override;
  void prepare_subresource_update(std::string_view subresource, Doc& object, const Doc& old,
                                  WriteContext& context) const override;
  void validate_subresource_update(std::string_view subresource, const Doc& object, const Doc& old,
                                   WriteContext& context, FieldErrors& errors) const override;
  bool spec_changed(const Doc& object, const Doc& old) const override;
  std::vector<std::string_view> selectable_fields() const override { return selectable_; }
  bool allows_unconditional_update() const override { return false; }
  Doc from_storage(Doc object) const override;
  Doc to_storage(Doc object) const override;

 private:
  void check_scale_spec(const Doc& object, FieldErrors& errors) const;
  void check_scale_status(const Doc& object, FieldErrors& errors) const;
  void check_changed_lists(const Doc& object, const Doc& old, FieldErrors& errors) const;
  void check_rules(const Doc& object, const Doc* old, FieldErrors& errors) const;

  const Doc schema_;
  const Doc storage_schema_;
  bool has_status_ = false;
  std::optional<ScalePaths> scale_;
  std::vector<std::string_view> selectable_;
  std::optional<Rules> rules_;
};

// The scale subresource of a resource whose strategy has scale paths.
std::shared_ptr<const Projection> scale_projection(const std::string& kind,
                                                   const std::string& group,
                                                   const ScalePaths& paths);

}  // namespace jogak::api
