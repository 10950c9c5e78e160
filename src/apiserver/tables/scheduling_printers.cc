// SPDX-License-Identifier: Apache-2.0
//
// Priorities, pod groups, devices and their claims, leases, runtime classes.
#include <string>

#include "apiserver/object/meta.h"
#include "apiserver/tables/printer.h"

namespace jogak::api {
namespace {

constexpr ColumnFact kPriorityColumns[] = {
    kNameColumn,
    {.name = "Value", .type = "integer", .description = "Priority that pods get"},
    {.name = "Global-Default",
     .type = "boolean",
     .description = "Whether pods without a class get this one"},
    kAgeColumn,
    {.name = "PreemptionPolicy", .description = "Whether its pods preempt others"},
};

void print_priority(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(object["value"].as_int());
  cells.emplace_back(object["globalDefault"].as_bool());
  cells.emplace_back(age_of(object, now));
  cells.emplace_back(object["preemptionPolicy"].as_string());
}

constexpr ColumnFact kPodGroupColumns[] = {
    kNameColumn,
    {.name = "Policy", .description = "Gang, or Basic for pods on their own"},
    {.name = "Workload", .description = "Workload whose template it follows"},
    {.name = "Status", .description = "Where the group stands"},
    kAgeColumn,
};

std::string group_status(const Doc& object) {
  std::string status = "Pending";
  if (const Doc& placed = condition_of(object, "PodGroupScheduled"); !placed.is_null()) {
    status = placed["status"].as_string() == "True" ? "Scheduled" : "Unschedulable";
  }
  if (const Doc& disrupted = condition_of(object, "DisruptionTarget"); !disrupted.is_null()) {
    status = disrupted["reason"].as_string();
  }
  return status;
}

void print_pod_group(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& spec = object["spec"];
  const Doc& reference = spec["podGroupTemplateRef"];
  cells.emplace_back(name_of(object));
  cells.emplace_back(spec.get("schedulingPolicy", "gang").is_null() ? "Basic" : "Gang");
  cells.emplace_back(reference.is_null() ? "<none>"
                                         : reference.get("workload", "workloadName").as_string());
  cells.emplace_back(group_status(object));
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kClaimColumns[] = {
    kNameColumn,
    {.name = "State", .description = "pending, allocated, reserved, deleted"},
    kAgeColumn,
};

std::string claim_state(const Doc& object) {
  const Doc& status = object["status"];
  std::string state = is_deleting(object) ? "deleted" : "";
  if (status["allocation"].is_null()) {
    return state.empty() ? "pending" : state;
  }
  state += state.empty() ? "allocated" : ",allocated";
  return status["reservedFor"].empty() ? state : state + ",reserved";
}

void print_claim(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(claim_state(object));
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kSliceColumns[] = {
    kNameColumn,
    {.name = "Node", .description = "Node that the devices are on"},
    {.name = "Driver", .description = "Driver of the devices"},
    {.name = "Pool", .description = "Pool that the slice is part of"},
    kAgeColumn,
};

void print_slice(const Doc& object, TimeUs now, Doc::Items& cells) {
  const Doc& spec = object["spec"];
  cells.emplace_back(name_of(object));
  cells.emplace_back(spec["nodeName"].as_string());
  cells.emplace_back(spec["driver"].as_string());
  cells.emplace_back(spec.get("pool", "name").as_string());
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kLeaseColumns[] = {
    kNameColumn, {.name = "Holder", .description = "Who holds the lease"}, kAgeColumn};

void print_lease(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(object.get("spec", "holderIdentity").as_string());
  cells.emplace_back(age_of(object, now));
}

constexpr ColumnFact kRuntimeColumns[] = {
    kNameColumn, {.name = "Handler", .description = "Name that the runtime knows"}, kAgeColumn};

void print_runtime(const Doc& object, TimeUs now, Doc::Items& cells) {
  cells.emplace_back(name_of(object));
  cells.emplace_back(object["handler"].as_string());
  cells.emplace_back(age_of(object, now));
}

constexpr Printer kPrinters[] = {
    {"scheduling.k8s.io", "PriorityClass", kPriorityColumns, print_priority},
    {"scheduling.k8s.io", "PodGroup", kPodGroupColumns, print_pod_group},
    {"resource.k8s.io", "ResourceClaim", kClaimColumns, print_claim},
    {"resource.k8s.io", "ResourceSlice", kSliceColumns, print_slice},
    {"coordination.k8s.io", "Lease", kLeaseColumns, print_lease},
    {"node.k8s.io", "RuntimeClass", kRuntimeColumns, print_runtime},
};

}  // namespace

std::span<const Printer> scheduling_printers() { return kPrinters; }

}  // namespace jogak::api
