// SPDX-License-Identifier: Apache-2.0
//
// Cron jobs: defaults, schedule and time zone, the job they stamp out.
#include <string>

#include "apiserver/kinds/batch.h"
#include "apiserver/kinds/workload_checks.h"
#include "apiserver/kinds/workload_template.h"
#include "apiserver/object/meta.h"

namespace jogak::api {

namespace {

constexpr std::size_t kNameMax = 52;  // jobs are called NAME-<10 digits>, and that within 63

void validate_schedule(const Doc& spec, const Doc& old_spec, FieldErrors& errors) {
  const Doc& schedule = spec["schedule"];
  const std::string& text = schedule.as_string();
  const Path at("spec.schedule");
  if (text.empty()) {
    errors.required(at);
    return;
  }
  if (const auto parsed = check_cron_schedule(text); !parsed.has_value()) {
    errors.invalid(at, schedule, parsed.error().what);
  }
  if (!text.contains("TZ")) return;
  if (!old_spec["schedule"].as_string().contains("TZ")) {
    errors.invalid(at, schedule,
                   "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
  } else if (spec.has("timeZone")) {
    errors.invalid(at, schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
  }
}

bool is_local(std::string_view zone) {
  constexpr std::string_view kLocal = "local";
  return zone.size() == kLocal.size() &&
         std::equal(zone.begin(), zone.end(), kLocal.begin(), [](char c, char lower) {
           return c == lower || (c >= 'A' && c <= 'Z' && c - 'A' + 'a' == lower);
         });
}

void validate_time_zone(const Doc& zone, FieldErrors& errors) {
  if (zone.is_null()) return;
  const Path at("spec.timeZone");
  const std::string& text = zone.as_string();
  if (text.empty()) {
    errors.invalid(at, zone, "timeZone must be nil or non-empty string");
    return;
  }
  if (is_local(text)) {
    errors.invalid(at, zone,
                   "timeZone must be an explicit time zone as defined in "
                   "https://www.iana.org/time-zones");
  }
  // Only the one spelling names the machine's own zone.
  if (text != "Local" && !is_time_zone(text)) {
    errors.invalid(at, zone, "unknown time zone " + text);
  }
}

void validate_job_template(const Doc& job_spec, FieldErrors& errors) {
  const Path at("spec.jobTemplate.spec");
  validate_job_spec_parts(job_spec, at, errors);
  if (job_spec.has("selector")) {
    errors.invalid(at.child("selector"), job_spec["selector"], "`selector` will be auto-generated");
  }
  if (job_spec["manualSelector"].as_bool()) {
    errors.not_supported(at.child("manualSelector"), job_spec["manualSelector"], {"nil", "false"});
  }
}

void validate_spec(const Doc& spec, const Doc& old_spec, FieldErrors& errors) {
  const Path at("spec");
  validate_schedule(spec, old_spec, errors);
  check_not_negative(spec, "startingDeadlineSeconds", at, errors);
  if (!(spec["timeZone"] == old_spec["timeZone"])) validate_time_zone(spec["timeZone"], errors);
  check_supported(spec["concurrencyPolicy"], {"Allow", "Forbid", "Replace"},
                  at.child("concurrencyPolicy"), errors);
  validate_job_template(spec["jobTemplate"]["spec"], errors);
  check_not_negative(spec, {"successfulJobsHistoryLimit", "failedJobsHistoryLimit"}, at, errors);
}

class CronJobStrategy : public TemplateStrategy {
 public:
  using TemplateStrategy::TemplateStrategy;

  void set_defaults(Doc& object) const override {
    Doc& spec = object.at("spec");
    if (spec["concurrencyPolicy"].as_string().empty()) spec.set("concurrencyPolicy", "Allow");
    spec.set_default("suspend", false);
    spec.set_default("successfulJobsHistoryLimit", 3);
    spec.set_default("failedJobsHistoryLimit", 1);
    default_job_template_parts(spec.at("jobTemplate", "spec"));
  }

  void validate_create(const Doc& object, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_spec(object["spec"], {}, errors);
    if (name_of(object).size() > kNameMax) {
      errors.invalid(Path("metadata.name"), name_of(object), "must be no more than 52 characters");
    }
    if (errors.empty()) {
      warn_about_name(object, context.warnings);
      warn_about_job(object, context);
    }
    warn_on_create(object, false, errors, context);
  }

  void validate_update(const Doc& object, const Doc& old, WriteContext& context,
                       FieldErrors& errors) const override {
    validate_spec(object["spec"], old["spec"], errors);
    if (!errors.empty()) return;
    if (spec_changed(object, old)) warn_about_job(object, context);
    warn_on_update(object, old, errors, context);
    if (object["spec"]["schedule"].as_string().contains("TZ")) {
      context.warnings.emplace_back(
          "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
          "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details");
    }
  }

 protected:
  std::vector<std::string_view> template_keys() const override {
    return {"spec", "jobTemplate", "spec", "template"};
  }

 private:
  static void warn_about_job(const Doc& object, WriteContext& context) {
    warn_about_job_spec(object["spec"]["jobTemplate"]["spec"], Path("spec.jobTemplate.spec"),
                        context.warnings);
  }
};

}  // namespace

std::shared_ptr<const Strategy> cron_job_strategy(const KindOptions& options) {
  return std::make_shared<CronJobStrategy>(options);
}

}  // namespace jogak::api
