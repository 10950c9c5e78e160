// SPDX-License-Identifier: Apache-2.0
// A fact is known by what it is of, not by its text, which may count.
#include "agent/health/fault_notes.h"

#include <set>
#include <utility>

#include <fmt/format.h>

namespace jogak::agent {

namespace {

bool is_xid(const HealthFact& fact) {
  return fact.kind == HealthKind::Xid || fact.kind == HealthKind::XidNoted;
}

// Both kinds of XID are told under one name: the class is in the text.
std::string reason_of(const HealthFact& fact) {
  return is_xid(fact) ? "GpuXid" : fmt::format("Gpu{}", health_kind_text(fact.kind));
}

std::string about_of(const std::string& uuid, const HealthFact& fact) {
  return fact.gi_id < 0 ? fmt::format("{} {}", uuid, fact.code)
                        : fmt::format("{} {} gi {}", uuid, fact.code, fact.gi_id);
}

std::string name_of(const GpuHealthView& gpu) {
  return gpu.index < 0 ? fmt::format("GPU {}", gpu.uuid)
                       : fmt::format("GPU {} ({})", gpu.index, gpu.uuid);
}

}  // namespace

std::vector<NodeNote> FaultNotes::update(const NodeHealthView& view) {
  std::vector<NodeNote> notes;
  if (const bool has = !view.driver_problem.empty();
      has != std::exchange(has_driver_problem_, has)) {
    notes.push_back(
        {.is_warning = has,
         .reason = has ? "GpuDriverLost" : "GpuDriverRecovered",
         .text = has ? "no GPU can be asked: " + view.driver_problem : "the driver answers again"});
  }
  std::map<std::string, Known> facts;
  std::set<std::string> kept_away;  // GPUs that get no new pods still
  for (const GpuHealthView& gpu : view.gpus) {
    const std::string name = name_of(gpu);
    for (const HealthFact& fact : gpu.facts) {
      if (fact.severity == Severity::Info && !is_xid(fact)) continue;
      const std::string reason = reason_of(fact);
      const std::string about = about_of(gpu.uuid, fact);
      facts[reason + " " + about] = {.gpu = name, .stops_use = fact.stops_use};
      if (fact.stops_use) kept_away.insert(name);
      if (facts_.contains(reason + " " + about)) continue;
      notes.push_back(
          {.is_warning = true,
           .reason = reason,
           .about = about,
           .text = fmt::format("{}{}: {}{}", name,
                               fact.gi_id < 0 ? "" : fmt::format(", MIG instance {}", fact.gi_id),
                               fact.text, fact.stops_use ? "; it gets no new pods" : "")});
    }
  }
  std::set<std::string> told;
  for (const auto& [key, known] : facts_) {
    if (!known.stops_use || facts.contains(key) || kept_away.contains(known.gpu)) continue;
    if (!told.insert(known.gpu).second) continue;
    notes.push_back({.is_warning = false,
                     .reason = "GpuRecovered",
                     .about = known.gpu,
                     .text = known.gpu + " is well again"});
  }
  facts_ = std::move(facts);
  return notes;
}

}  // namespace jogak::agent
