// SPDX-License-Identifier: Apache-2.0
//
// Jobs: defaults, the selector and labels that the server makes from the uid, validation on create.
#include <array>
#include <limits>
#include <string>

#include "apiserver/kinds/batch.h"
#include "apiserver/kinds/pod_spec.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/kinds/workload_template.h"
#include "apiserver/object/meta.h"
#include "apiserver/object/selector.h"

namespace jogak::api {

namespace {

constexpr std::int64_t kBackoffLimit = 6;
constexpr std::size_t kLabelMax = 63;

// A job without labels of its own takes those of its pods, the generated ones included: in the real
// server both are one map.
void default_labels(Doc& object) {
  const Doc labels = object["spec"]["template"]["metadata"]["labels"];
  if (!labels.empty() && meta(object)["labels"].empty()) {
    object.at("metadata").set("labels", labels);
  }
}

void generate_selector(Doc& object) {
  const std::string name = name_of(object);
  const std::string uid = uid_of(object);
  Doc& labels = object.at("spec", "template", "metadata", "labels");
  labels.set_default(kOldJobName, name);
  labels.set_default(kJobName, name);
  labels.set_default(kOldControllerUid, uid);
  labels.set_default(kControllerUid, uid);
  object.at("spec", "selector", "matchLabels").set_default(kControllerUid, uid);
}

void check_label(const Doc& labels, std::string_view key, const std::string& expected,
                 FieldErrors& errors) {
  const Path at = Path("spec.template.metadata.labels").key(key);
  if (!labels.has(key)) {
    errors.required(at, "must be '" + expected + "'");
  } else if (labels[key].as_string() != expected) {
    errors.invalid(at, labels, "must be '" + expected + "'");
  }
}

// Jobs that were stored before the prefixed labels came need not have them.
void validate_generated_selector(const Doc& object, bool needs_prefixed, FieldErrors& errors) {
  const Doc& spec = object["spec"];
  if (spec["manualSelector"].as_bool() || !spec.has("selector")) return;
  const std::string& uid = uid_of(object);
  const std::string& name = name_of(object);
  if (uid.empty()) errors.required(Path("metadata.uid"));
  const Doc& labels = spec["template"]["metadata"]["labels"];
  Doc expected;
  expected.set(kOldControllerUid, uid).set(kOldJobName, name);
  check_label(labels, kOldControllerUid, uid, errors);
  check_label(labels, kOldJobName, name, errors);
  if (needs_prefixed) {
    expected.set(kControllerUid, uid).set(kJobName, name);
    check_label(labels, kControllerUid, uid, errors);
    check_label(labels, kJobName, name, errors);
  }
  if (!LabelSelector::from_object(spec["selector"]).matches(expected)) {
    errors.invalid(Path("spec.selector"), spec["selector"], "`selector` not auto-generated");
  }
}

void validate_spec(const Doc& spec, FieldErrors& errors) {
  const Path at("spec");
  validate_job_spec_parts(spec, at, errors);
  const Doc& selector = spec["selector"];
  if (selector.is_null()) errors.required(at.child("selector"));
  FieldErrors found;
  validate_label_selector(selector, at.child("selector"), found);
  for (const FieldError& error : found.list()) errors.add(error);
  const Doc& labels = spec["template"]["metadata"]["labels"];
  if (found.empty() && !LabelSelector::from_object(selector).matches(labels)) {
    errors.invalid(at.child("template", "metadata", "labels"), labels, kSelectorMismatch);
  }
}

// Pods of an indexed job are called NAME-INDEX, and that must be a host name.
void validate_host_names(const Doc& object, FieldErrors& errors) {
  const std::int64_t completions = object["spec"]["completions"].as_int();
  if (!is_indexed(object["spec"]) || completions <= 0) return;
  const std::string longest = name_of(object) + "-" + std::to_string(completions - 1);
  if (!check_dns1123_label(longest).empty()) {
    errors.invalid(Path("metadata.name"), name_of(object),
                   "will not able to create pod with invalid DNS label: " + longest);
  }
}

void validate_job(const Doc& object, bool needs_prefixed, FieldErrors& errors) {
  validate_generated_selector(object, needs_prefixed, errors);
  validate_spec(object["spec"], errors);
  validate_host_names(object, errors);
}

class JobStrategy : public TemplateStrategy {
 public:
  using TemplateStrategy::TemplateStrategy;

  void set_defaults(Doc& object) const override {
    Doc& spec = object.at("spec");
    if (!spec.has("completions") && !spec.has("parallelism")) spec.set("completions", 1);
    spec.set_default("parallelism", 1);
    const bool is_per_index = spec.has("backoffLimitPerIndex");
    spec.set_default("backoffLimit", is_per_index
                                         ? std::int64_t{std::numeric_limits<std::int32_t>::max()}
                                         : kBackoffLimit);
    spec.set_default("completionMode", "NonIndexed");
    spec.set_default("suspend", false);
    spec.set_default("podReplacementPolicy",
                     spec.has("podFailurePolicy") ? "Failed" : "TerminatingOrFailed");
    spec.set_default("manualSelector", false);
    default_job_template_parts(spec);
  }

  void prepare_create(Doc& object, WriteContext& context) const override {
    TemplateStrategy::prepare_create(object, context);
    const bool has_labels = !object["spec"]["template"]["metadata"]["labels"].empty();
    if (!object["spec"]["manualSelector"].as_bool()) generate_selector(object);
    // Labels made from a name that is too long are refused in the template; without labels of the
    // client's the job gets its own only later in the real server, so not here again.
    if (has_labels || name_of(object).size() <= kLabelMax) default_labels(object);
  }
  void prepare_update(Doc& object, const Doc& old, WriteContext& context) const override {
    TemplateStrategy::prepare_update(object, old, context);
    default_labels(object);
  }
  void prepare_subresource_update(std::string_view subresource, Doc& object, const Doc& old,
                                  WriteContext& context) const override {
    TemplateStrategy::prepare_subresource_update(subresource, object, old, context);
    default_labels(object);
  }

  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_job(object, true, errors);
    if (errors.empty()) {
      warn_about_name(object, context.warnings);
      warn_about_job_spec(object["spec"], Path("spec"), context.warnings);
    }
    warn_on_create(object, false, errors, context);
  }

  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    const Doc& old_labels = old["spec"]["template"]["metadata"]["labels"];
    const bool needs_prefixed = old_labels.has(kJobName) && old_labels.has(kControllerUid);
    validate_job(object, needs_prefixed, errors);
    // The server looks at the spec a second time here, so its errors come twice.
    validate_spec(object["spec"], errors);
    validate_job_spec_change(object, old, errors);
    if (errors.empty() && spec_changed(object, old)) {
      warn_about_job_spec(object["spec"], Path("spec"), context.warnings);
    }
    warn_on_update(object, old, errors, context);
  }

  void validate_subresource_update(std::string_view /*subresource*/, const Doc& object,
                                   const Doc& old, WriteContext& /*context*/,
                                   FieldErrors& errors) const override {
    validate_job_status(object, old, errors);
  }

  std::vector<std::string_view> selectable_fields() const override { return {"status.successful"}; }
  std::string field(const Doc& object, std::string_view path) const override {
    if (path != "status.successful") return TemplateStrategy::field(object, path);
    return std::to_string(object["status"]["succeeded"].as_int());
  }

  bool orphans_by_default() const override { return true; }
  std::string_view deletion_warning() const override {
    return "child pods are preserved by default when jobs are deleted; set "
           "propagationPolicy=Background to remove them or set propagationPolicy=Orphan to "
           "suppress this warning";
  }
};

}  // namespace

std::shared_ptr<const Strategy> job_strategy(const KindOptions& options) {
  return std::make_shared<JobStrategy>(options);
}

void add_batch_kinds(Registry& registry, const KindOptions& options) {
  registry.add(make_resource({.group = "batch",
                              .version = "v1",
                              .plural = "cronjobs",
                              .singular = "cronjob",
                              .kind = "CronJob",
                              .short_names = {"cj"}},
                             cron_job_strategy(options)));
  registry.add(make_resource(
      {.group = "batch", .version = "v1", .plural = "jobs", .singular = "job", .kind = "Job"},
      job_strategy(options)));
}

}  // namespace jogak::api
