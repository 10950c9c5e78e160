// SPDX-License-Identifier: Apache-2.0
//
// What makes pods: deployments, sets, jobs, and the revisions they keep; and disruption budgets.
#include <cctype>
#include <string>

#include "apiserver/object/meta.h"
#include "apiserver/tables/printer.h"
#include "apiserver/tables/tables.h"

namespace jogak::api {
namespace {

constexpr ColumnFact kContainers{
    .name = "Containers", .priority = 1, .description = "Names of the containers"};
constexpr ColumnFact kImages{
    .name = "Images", .priority = 1, .description = "Images of the containers"};
constexpr ColumnFact kSelector{
    .name = "Selector", .priority = 1, .description = "Labels that the pods carry"};

const Doc& containers_of(const Doc& object) {
  return object.get("spec", "template", "spec", "containers");
}

void print_containers(const Doc& containers, Doc::Items& cells) {
  cells.emplace_back(containers_text(containers, "name"));
  cells.emplace_back(containers_text(containers, "image"));
}

std::string ratio(std::int64_t part, std::int64_t whole) {
  return std::to_string(part) + "/" + std::to_string(whole);
}

constexpr ColumnFact kDeploymentColumns[] = {
    kNameColumn,
    {.name = "Ready", .description = "Ready pods of those wanted"},
    {.name = "Up-to-date", .description = "Pods of the newest template"},
    {.name = "Available", .description = "Pods ready for long enough"},
    kAgeColumn,
    kContainers,
    kImages,
    kSelector,
};

void print_deployment(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& status = object["status"];
  cells.emplace_back(name_of(object));
  cells.emplace_back(
      ratio(status["readyReplicas"].as_int(), object.get("spec", "replicas").as_int()));
  cells.emplace_back(status["updatedReplicas"].as_int());
  cells.emplace_back(status["availableReplicas"].as_int());
  cells.emplace_back(age_of(object, now));
  print_containers(containers_of(object), cells);
  cells.emplace_back(selector_text(object.get("spec", "selector"), ""));
}

constexpr ColumnFact kReplicaColumns[] = {
    kNameColumn,
    {.name = "Desired", .type = "integer", .description = "Pods wanted"},
    {.name = "Current", .type = "integer", .description = "Pods there are"},
    {.name = "Ready", .type = "integer", .description = "Pods that are ready"},
    kAgeColumn,
    kContainers,
    kImages,
    kSelector,
};

void print_replicas(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(object.get("spec", "replicas").as_int());
  cells.emplace_back(object.get("status", "replicas").as_int());
  cells.emplace_back(object.get("status", "readyReplicas").as_int());
  cells.emplace_back(age_of(object, now));
  print_containers(containers_of(object), cells);
}

void print_replica_set(const Doc& object, TimeUs now, Doc::Items& cells) {
  print_replicas(object, now, cells);
  cells.emplace_back(selector_text(object.get("spec", "selector"), "<none>"));
}

void print_replication_controller(const Doc& object, TimeUs now, Doc::Items& cells) {
  print_replicas(object, now, cells);
  cells.emplace_back(labels_text(object.get("spec", "selector")));
}

constexpr ColumnFact kStatefulSetColumns[] = {
    kNameColumn, {.name = "Ready", .description = "Ready pods of those wanted"},
    kAgeColumn,  kContainers,
    kImages,
};

void print_stateful_set(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(ratio(object.get("status", "readyReplicas").as_int(),
                           object.get("spec", "replicas").as_int()));
  cells.emplace_back(age_of(object, now));
  print_containers(containers_of(object), cells);
}

constexpr ColumnFact kDaemonSetColumns[] = {
    kNameColumn,
    {.name = "Desired", .type = "integer", .description = "Nodes that should run the pod"},
    {.name = "Current", .type = "integer", .description = "Nodes that run it and should"},
    {.name = "Ready", .type = "integer", .description = "Nodes where it is ready"},
    {.name = "Up-to-date", .type = "integer", .description = "Nodes with the newest template"},
    {.name = "Available", .type = "integer", .description = "Nodes where it is long enough ready"},
    {.name = "Node Selector", .description = "Labels that the nodes carry"},
    kAgeColumn,
    kContainers,
    kImages,
    kSelector,
};

void print_daemon_set(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& status = object["status"];
  cells.emplace_back(name_of(object));
  for (const char* count : {"desiredNumberScheduled", "currentNumberScheduled", "numberReady",
                            "updatedNumberScheduled", "numberAvailable"}) {
    cells.emplace_back(status[count].as_int());
  }
  cells.emplace_back(labels_text(object.get("spec", "template", "spec", "nodeSelector")));
  cells.emplace_back(age_of(object, now));
  print_containers(containers_of(object), cells);
  cells.emplace_back(selector_text(object.get("spec", "selector"), "<none>"));
}

constexpr ColumnFact kJobColumns[] = {
    kNameColumn,
    {.name = "Status", .description = "How the job stands"},
    {.name = "Completions", .description = "Pods that succeeded of those wanted"},
    {.name = "Duration", .description = "Time from the start to the end, or to now"},
    kAgeColumn,
    kContainers,
    kImages,
    kSelector,
};

std::string job_status(const Doc& job) {
  if (condition_is(job, "Complete", "True")) {
    return "Complete";
  }
  if (condition_is(job, "Failed", "True")) {
    return "Failed";
  }
  if (is_deleting(job)) {
    return "Terminating";
  }
  for (const char* type : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (condition_is(job, type, "True")) {
      return type;
    }
  }
  return "Running";
}

std::string job_completions(const Doc& job) {
  const std::int64_t succeeded = job.get("status", "succeeded").as_int();
  const Doc& wanted = job.get("spec", "completions");
  if (wanted.is_int()) {
    return ratio(succeeded, wanted.as_int());
  }
  const std::int64_t parallelism = job.get("spec", "parallelism").as_int();
  return ratio(succeeded, 1) + (parallelism > 1 ? " of " + std::to_string(parallelism) : "");
}

std::string job_duration(const Doc& job, TimeUs now) {
  const auto start = parse_time(job.get("status", "startTime").as_string());
  const auto end = parse_time(job.get("status", "completionTime").as_string());
  return start ? human_duration(end.value_or(now) - *start) : "";
}

void print_job(const Doc& job, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(job));
  cells.emplace_back(job_status(job));
  cells.emplace_back(job_completions(job));
  cells.emplace_back(job_duration(job, now));
  cells.emplace_back(age_of(job, now));
  print_containers(containers_of(job), cells);
  cells.emplace_back(selector_text(job.get("spec", "selector"), "<none>"));
}

constexpr ColumnFact kCronJobColumns[] = {
    kNameColumn,
    {.name = "Schedule", .description = "When jobs are made, as cron writes it"},
    {.name = "Timezone", .description = "Time zone of the schedule"},
    {.name = "Suspend", .type = "boolean", .description = "Whether no jobs are made for now"},
    {.name = "Active", .type = "integer", .description = "Jobs that run now"},
    {.name = "Last Schedule", .description = "Time since the last job was made"},
    kAgeColumn,
    kContainers,
    kImages,
    kSelector,
};

void print_cron_job(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& spec = object["spec"];
  const Doc& job = spec.get("jobTemplate", "spec");
  const Doc& last = object.get("status", "lastScheduleTime");
  cells.emplace_back(name_of(object));
  cells.emplace_back(spec["schedule"].as_string());
  cells.emplace_back(spec["timeZone"].is_string() ? spec["timeZone"].as_string() : "<none>");
  cells.emplace_back(flag_text(spec["suspend"]));
  cells.emplace_back(object.get("status", "active").size());
  cells.emplace_back(last.is_null() ? "<none>" : age_since(last, now));
  cells.emplace_back(age_of(object, now));
  print_containers(job.get("template", "spec", "containers"), cells);
  cells.emplace_back(selector_text(job["selector"], "<none>"));
}

constexpr ColumnFact kRevisionColumns[] = {
    kNameColumn,
    {.name = "Controller", .description = "Object whose revision this is"},
    {.name = "Revision", .description = "Number of the revision"},
    kAgeColumn,
};

std::string lower(std::string text) {
  for (char& c : text) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

void print_revision(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& owner = controller_of(object);
  std::string controller = "<none>";
  if (!owner.is_null()) {
    const std::string& version = owner["apiVersion"].as_string();
    const std::size_t slash = version.find('/');
    const std::string group = slash == std::string::npos ? "" : "." + version.substr(0, slash);
    controller = lower(owner["kind"].as_string() + group) + "/" + owner["name"].as_string();
  }
  cells.emplace_back(name_of(object));
  cells.emplace_back(controller);
  cells.emplace_back(object["revision"].as_int());
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kBudgetColumns[] = {
    kNameColumn,
    {.name = "Min Available", .description = "Pods that must stay available"},
    {.name = "Max Unavailable", .description = "Pods that may be unavailable"},
    {.name = "Allowed Disruptions",
     .type = "integer",
     .description = "Pods that may be evicted now"},
    kAgeColumn,
};

void print_budget(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& spec = object["spec"];
  cells.emplace_back(name_of(object));
  for (const char* bound : {"minAvailable", "maxUnavailable"}) {
    cells.emplace_back(spec.has(bound) ? int_or_string(spec[bound]) : "N/A");
  }
  cells.emplace_back(object.get("status", "disruptionsAllowed").as_int());
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kScaleColumns[] = {
    {.name = "Name", .description = "Name of the object"},
    {.name = "Desired", .type = "integer", .description = "Pods wanted"},
    {.name = "Available", .type = "integer", .description = "Pods there are"},
    kAgeColumn,
};

void print_scale(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(object.get("spec", "replicas").as_int());
  cells.emplace_back(object.get("status", "replicas").as_int());
  cells.emplace_back(age_of(object, now));
}

constexpr Printer kPrinters[] = {
    {"apps", "Deployment", kDeploymentColumns, print_deployment},
    {"apps", "ReplicaSet", kReplicaColumns, print_replica_set},
    {"", "ReplicationController", kReplicaColumns, print_replication_controller},
    {"apps", "StatefulSet", kStatefulSetColumns, print_stateful_set},
    {"apps", "DaemonSet", kDaemonSetColumns, print_daemon_set},
    {"apps", "ControllerRevision", kRevisionColumns, print_revision},
    {"batch", "Job", kJobColumns, print_job},
    {"batch", "CronJob", kCronJobColumns, print_cron_job},
    {"policy", "PodDisruptionBudget", kBudgetColumns, print_budget},
    {"autoscaling", "Scale", kScaleColumns, print_scale},
};

}  // namespace

std::span<const Printer> workload_printers() { return kPrinters; }

}  // namespace jogak::api
