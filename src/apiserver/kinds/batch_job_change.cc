// SPDX-License-Identifier: Apache-2.0
//
// What an update may change in a job's spec: little, and of the template only while the job is
// suspended and no pod of it runs.
#include "apiserver/kinds/batch.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

bool is_suspended(const Doc& job) { return job["spec"]["suspend"].as_bool(); }

// Suspended and at rest: never started, or stopped for good.
bool has_open_template(const Doc& job) {
  return is_suspended(job) &&
         (!job["status"].has("startTime") || has_condition(job, "Suspended", "True")) &&
         job["status"]["active"].as_int() == 0;
}

void copy_member(Doc& to, const Doc& from, std::string_view key) {
  if (const Doc* value = from.find(key)) {
    to.set(key, *value);
  } else {
    to.erase(key);
  }
}

// Node affinity may come, change and go; the other affinities stay.
void open_affinity(Doc& old_spec, const Doc& spec) {
  const Doc& affinity = spec["affinity"];
  if (affinity.is_null()) {
    if (Doc* old_affinity = old_spec.find("affinity")) {
      old_affinity->erase("nodeAffinity");
      if (old_affinity->empty()) old_spec.erase("affinity");
    }
    return;
  }
  Doc& old_affinity = old_spec.at("affinity");
  if (old_affinity.is_null()) old_affinity = Doc::object();
  copy_member(old_affinity, affinity, "nodeAffinity");
}

// The old template as if all that directs scheduling had been as it is now.
Doc open_directives(Doc old_template, const Doc& pod_template) {
  Doc& old_spec = old_template.at("spec");
  open_affinity(old_spec, pod_template["spec"]);
  for (const std::string_view key : {"nodeSelector", "tolerations", "schedulingGates"}) {
    copy_member(old_spec, pod_template["spec"], key);
  }
  Doc metadata = old_template["metadata"];
  if (metadata.is_null()) metadata = Doc::object();
  copy_member(metadata, pod_template["metadata"], "annotations");
  copy_member(metadata, pod_template["metadata"], "labels");
  old_template.set("metadata", std::move(metadata));
  return old_template;
}

// The old spec as if the containers of equal names had asked for what they ask for now.
Doc open_resources(Doc old_spec, const Doc& spec) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    Doc* old_list = old_spec.find(list);
    const Doc::Items& now = spec[list].items();
    if (old_list == nullptr || old_list->size() != now.size()) continue;
    for (std::size_t i = 0; i < now.size(); ++i) {
      Doc& container = old_list->items()[i];
      if (container["name"] == now[i]["name"]) copy_member(container, now[i], "resources");
    }
  }
  return old_spec;
}

// An absent metadata and an empty one are the same template.
bool same_template(const Doc& a, const Doc& b) {
  const auto same_metadata = [](const Doc& x, const Doc& y) {
    return x == y || (x.empty() && y.empty());
  };
  return a["spec"] == b["spec"] && same_metadata(a["metadata"], b["metadata"]);
}

void validate_template_change(const Doc& object, const Doc& old, FieldErrors& errors) {
  const Doc& pod_template = object["spec"]["template"];
  Doc before = old["spec"]["template"];
  const bool is_open = has_open_template(old);
  if (is_open) before = open_directives(std::move(before), pod_template);
  if (is_open) {
    if (!(open_resources(before["spec"], pod_template["spec"]) == pod_template["spec"])) {
      errors.invalid(Path("spec.template.spec"), pod_template["spec"], kImmutable);
    }
  } else if (!same_template(pod_template, before)) {
    errors.invalid(Path("spec.template"), pod_template, kImmutable);
  }
}

// Indexed jobs may be resized, with both numbers together.
void validate_completions(const Doc& spec, const Doc& old, FieldErrors& errors) {
  if (!is_indexed(spec)) {
    check_immutable(spec, old, "completions", Path("spec"), errors);
    return;
  }
  const Doc& completions = spec["completions"];
  if (completions == old["completions"] || completions.is_null()) return;
  if (completions.as_int() != spec["parallelism"].as_int()) {
    errors.invalid(Path("spec.completions"), completions,
                   "can only be modified in tandem with spec.parallelism");
  }
}

}  // namespace

void validate_job_spec_change(const Doc& object, const Doc& old, FieldErrors& errors) {
  const Doc& spec = object["spec"];
  const Doc& old_spec = old["spec"];
  const Path at("spec");
  validate_completions(spec, old_spec, errors);
  check_immutable(spec, old_spec, "selector", at, errors);
  validate_template_change(object, old, errors);
  for (const std::string_view name : {"completionMode", "podFailurePolicy", "backoffLimitPerIndex",
                                      "managedBy", "successPolicy"}) {
    check_immutable(spec, old_spec, name, at, errors);
  }
}

}  // namespace jogak::api
