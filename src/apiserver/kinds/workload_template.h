// SPDX-License-Identifier: Apache-2.0
//
// What the kinds with a pod template have in common: the template loses what this server does not
// serve, the status subresource takes the status and leaves the spec, an accepted template may earn
// warnings.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/kinds/kinds.h"
#include "apiserver/registry/resource.h"

namespace jogak::api {

// A kind with a status subresource that follows the real server's rule: everything of the request
// counts but the spec, labels and annotations included.
class StatusStrategy : public Strategy {
 public:
  void prepare_subresource_update(std::string_view subresource, Doc& object, const Doc& old,
                                  WriteContext& context) const override;
};

class TemplateStrategy : public StatusStrategy {
 public:
  explicit TemplateStrategy(const KindOptions& options) : has_pod_groups_(options.has_pod_groups) {}

  void prepare_create(Doc& object, WriteContext& context) const override;
  void prepare_update(Doc& object, const Doc& old, WriteContext& context) const override;

 protected:
  // From the object to its template: {"spec", "template"}.
  virtual std::vector<std::string_view> template_keys() const { return {"spec", "template"}; }

  Doc& template_of(Doc& object) const;
  const Doc& template_of(const Doc& object) const;
  Path template_path() const;
  // Warnings belong to accepted writes only. On an update they come where the generation grows.
  void warn_on_create(const Doc& object, bool name_matters, const FieldErrors& errors,
                      WriteContext& context) const;
  void warn_on_update(const Doc& object, const Doc& old, const FieldErrors& errors,
                      WriteContext& context) const;

 private:
  bool has_pod_groups_ = false;
};

// The template against the selector of its workload: labels match, the template is valid, pods run
// until they are stopped. `kind_word` "ReplicaSet".
void validate_replica_template(const Doc& spec, std::string_view kind_word, const Path& spec_at,
                               FieldErrors& errors);

// A resource of a workload group: served in full, with the status subresource.
struct ResourceNames {
  std::string_view group, version, plural, singular, kind;
  std::vector<std::string> short_names = {};
  bool in_all = true;  // `kubectl get all`
  bool has_status = true;
};
Resource make_resource(const ResourceNames& names, std::shared_ptr<const Strategy> strategy);

}  // namespace jogak::api
