// SPDX-License-Identifier: Apache-2.0
//
// What the kinds with a pod template have in common.
#include "apiserver/kinds/workload_template.h"

#include "apiserver/kinds/pod_spec.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/selector.h"

namespace jogak::api {

void StatusStrategy::prepare_subresource_update(std::string_view subresource, Doc& object,
                                                const Doc& old, WriteContext& /*context*/) const {
  if (subresource != "status") return;
  if (const Doc* spec = old.find("spec")) {
    object.set("spec", *spec);
  } else {
    object.erase("spec");
  }
}

void TemplateStrategy::prepare_create(Doc& object, WriteContext& context) const {
  Strategy::prepare_create(object, context);
  drop_gated_pod_fields(template_of(object).at("spec"), has_pod_groups_);
}

void TemplateStrategy::prepare_update(Doc& object, const Doc& old, WriteContext& context) const {
  Strategy::prepare_update(object, old, context);
  drop_gated_pod_fields(template_of(object).at("spec"), has_pod_groups_);
}

Doc& TemplateStrategy::template_of(Doc& object) const {
  Doc* at = &object;
  for (const std::string_view key : template_keys()) at = &at->at(key);
  return *at;
}

const Doc& TemplateStrategy::template_of(const Doc& object) const {
  const Doc* at = &object;
  for (const std::string_view key : template_keys()) at = &(*at)[key];
  return *at;
}

Path TemplateStrategy::template_path() const {
  Path path;
  for (const std::string_view key : template_keys()) path = path.child(key);
  return path;
}

void TemplateStrategy::warn_on_create(const Doc& object, bool name_matters,
                                      const FieldErrors& errors, WriteContext& context) const {
  if (!errors.empty()) return;
  if (name_matters) warn_about_name(object, context.warnings);
  warn_about_pod_template(template_of(object), {}, template_path(), context.warnings);
}

void TemplateStrategy::warn_on_update(const Doc& object, const Doc& old, const FieldErrors& errors,
                                      WriteContext& context) const {
  if (!errors.empty() || !spec_changed(object, old)) return;
  warn_about_pod_template(template_of(object), template_of(old), template_path(), context.warnings);
}

void validate_replica_template(const Doc& spec, std::string_view kind_word, const Path& spec_at,
                               FieldErrors& errors) {
  const Doc& pod_template = spec["template"];
  const Path at = spec_at.child("template");
  const LabelSelector selector = LabelSelector::from_object(spec["selector"]);
  const Doc& labels = meta(pod_template)["labels"];
  if (!selector.is_everything() && !selector.matches(labels)) {
    errors.invalid(at.child("metadata", "labels"), labels, kSelectorMismatch);
  }
  validate_pod_template(pod_template, at, errors);
  check_runs_forever(pod_template, kind_word, at, errors);
}

Resource make_resource(const ResourceNames& names, std::shared_ptr<const Strategy> strategy) {
  Resource resource;
  resource.group = names.group;
  resource.version = names.version;
  resource.plural = names.plural;
  resource.singular = names.singular;
  resource.kind = names.kind;
  resource.list_kind = resource.kind + "List";
  resource.short_names = names.short_names;
  if (names.in_all) resource.categories = {"all"};
  // "apps" and "discovery.k8s.io" name their types by the first word of the group
  const std::string group =
      names.group.empty() ? "core" : resource.group.substr(0, resource.group.find('.'));
  resource.type = &schema::get(group + "." + resource.version + "." + resource.kind);
  resource.strategy = std::move(strategy);
  resource.table =
      resource.group.empty() ? resource.plural : resource.plural + "." + resource.group;
  if (names.has_status) {
    resource.subresources.push_back(whole_subresource("status", resource));
  }
  return resource;
}

}  // namespace jogak::api
