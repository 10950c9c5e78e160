// SPDX-License-Identifier: Apache-2.0
//
// See manager.h. Every decision is made afresh from what NVML shows, so that starting in the middle
// is the same as starting.
#include "agent/mig/manager.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "agent/mig/profile_name.h"
#include "base/check.h"

namespace jogak::agent {

namespace {

constexpr std::array<std::string_view, 6> kStateTexts = {"same",    "done",   "needs reset",
                                                         "refused", "undone", "stuck"};

MigShapeInstance shape_of(const MigPresent& present) {
  return {.profile_id = present.profile_id,
          .profile = present.profile,
          .at = present.place.at,
          .ci_profile_ids = present.ci_profile_ids,
          .part_slices = present.part_slices};
}

MigShapeInstance shape_of(const MigGeometry& geometry, const MigPlace& place) {
  const int base = geometry.base_of(place.profile);
  const auto& profile = geometry.profiles()[static_cast<std::size_t>(base)];
  return {.profile_id = profile.id,
          .profile = profile.name,
          .at = place.at,
          .ci_profile_ids = {},
          .part_slices = geometry.parts_of(place.profile)};
}

// Parts put into instances with so much room each: the largest first, each where it fits first.
std::vector<std::vector<int>> packed(std::vector<int> sizes, int room) {
  std::ranges::sort(sizes, std::greater());
  std::vector<std::vector<int>> instances;
  for (const int size : sizes) {
    const auto has_room = [&](const std::vector<int>& instance) {
      return std::accumulate(instance.begin(), instance.end(), size) <= room;
    };
    const auto at = std::ranges::find_if(instances, has_room);
    if (at != instances.end()) {
      at->push_back(size);
    } else {
      instances.push_back({size});
    }
  }
  return instances;
}

MigStep destroy_step(const MigPresent& present) {
  return {.kind = MigStep::Kind::Destroy, .gi_id = present.gi_id, .instance = shape_of(present)};
}

std::vector<MigStep> steps_of(const MigGeometry& geometry, const MigPlan& plan) {
  std::vector<MigStep> steps;
  for (const MigPresent& gone : plan.destroy) steps.push_back(destroy_step(gone));
  for (const MigPlace& made : plan.create) {
    steps.push_back(
        {.kind = MigStep::Kind::Create, .gi_id = -1, .instance = shape_of(geometry, made)});
  }
  return steps;
}

std::string user_text(const MigPresent& present) {
  return present.user.empty() ? "something" : present.user;
}

// Steps from what is there to exactly these instances, as far as they differ.
Result<std::vector<MigStep>> steps_back(std::span<const MigPresent> present,
                                        const MigShape& before) {
  std::vector<MigStep> steps;
  std::vector<MigShapeInstance> missing = before.instances;
  for (const MigPresent& instance : present) {
    const auto same = std::ranges::find(missing, shape_of(instance));
    if (same != missing.end()) {
      missing.erase(same);
    } else if (instance.in_use) {
      return fail(Errc::Conflict, "instance {} ({}) is in use by {}", instance.gi_id,
                  instance.profile, user_text(instance));
    } else {
      steps.push_back(destroy_step(instance));
    }
  }
  const auto size = [](const MigShapeInstance& instance) { return -instance.at.size; };
  std::ranges::stable_sort(missing, {}, size);
  for (MigShapeInstance& instance : missing) {
    steps.push_back({.kind = MigStep::Kind::Create, .gi_id = -1, .instance = std::move(instance)});
  }
  return steps;
}

// Why the MIG mode cannot change now: something runs on the GPU or holds it.
std::optional<std::string> mode_blocker(const nvml::GpuFacts& gpu,
                                        std::span<const nvml::ProcessFacts> processes,
                                        const MigHolders& holders) {
  std::vector<std::string> users;
  for (const nvml::ProcessFacts& process : processes) users.push_back(process_text(process));
  std::vector<std::string> uuids = {gpu.uuid};
  for (const nvml::MigInstanceFacts& row : gpu.mig_instances) uuids.push_back(row.uuid);
  for (const std::string& uuid : uuids) {
    const auto holder = holders.find(uuid);
    if (holder != holders.end()) users.push_back(holder->second);
  }
  if (users.empty()) return std::nullopt;
  return fmt::format("the MIG mode changes only while nothing uses the GPU; stop {} first",
                     fmt::join(users, ", "));
}

bool has_mode(const nvml::GpuFacts& gpu, bool is_enabled) {
  return gpu.mig_enabled == is_enabled && gpu.mig_pending == is_enabled;
}

MigGpuReport refused(MigGpuReport report, std::string reason) {
  report.state = MigState::Refused;
  report.reason = std::move(reason);
  report.after = report.before;
  report.steps.clear();
  return report;
}

// Everything goes, what a crash left as well. An empty geometry will do: only what lies where
// counts.
std::vector<MigStep> destroy_all(const nvml::GpuFacts& gpu,
                                 std::span<const nvml::ProcessFacts> processes,
                                 const MigHolders& holders) {
  const auto geometry = MigGeometry::from_facts(gpu.mig_profiles);
  const auto present =
      mig_present(geometry ? *geometry : MigGeometry(), gpu.mig_instances, processes, holders);
  std::vector<MigStep> steps;
  for (const MigPresent& instance : present) steps.push_back(destroy_step(instance));
  return steps;
}

// The part of plan_goal for MIG off.
MigGpuReport plan_disabled(const nvml::GpuFacts& gpu, std::span<const nvml::ProcessFacts> processes,
                           const MigHolders& holders, MigGpuReport report) {
  if (auto blocker = mode_blocker(gpu, processes, holders)) return refused(report, *blocker);
  report.steps = destroy_all(gpu, processes, holders);
  report.steps.push_back({.kind = MigStep::Kind::Disable, .gi_id = -1, .instance = {}});
  report.state = mode_needs_reset(gpu) ? MigState::NeedsReset : MigState::Done;
  if (report.state == MigState::NeedsReset) {
    report.reason = "MIG is off after a reset of the GPU";
  }
  return report;
}

// Holds the store's lock as long as it lives.
class Locked {
 public:
  explicit Locked(MigJournalStore& store) : store_(store), locked_(store.lock()) {}
  ~Locked() {
    if (locked_) store_.unlock();
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  const Result<void>& result() const { return locked_; }

 private:
  MigJournalStore& store_;
  Result<void> locked_;
};

}  // namespace

std::string_view state_text(MigState state) { return kStateTexts[static_cast<std::size_t>(state)]; }

MigState overall(std::span<const MigGpuReport> reports) {
  MigState worst = MigState::Same;
  for (const MigGpuReport& report : reports) worst = std::max(worst, report.state);
  return worst;
}

bool mode_needs_reset(const nvml::GpuFacts& gpu) {
  return gpu.compute_major < 9;  // the drivers of Hopper and newer switch at once
}

MigShape shape_of(const nvml::GpuFacts& gpu) {
  MigShape shape{.is_enabled = gpu.mig_enabled, .instances = {}};
  int last = -1;
  for (const nvml::MigInstanceFacts& row : gpu.mig_instances) {
    // What a crash left without a compute instance was of no use to anybody.
    if (row.ci_id < 0) continue;
    if (row.gi_id != last) {
      shape.instances.push_back({.profile_id = row.profile_id,
                                 .profile = row.gi_profile,
                                 .at = row.placement,
                                 .ci_profile_ids = {},
                                 .part_slices = {}});
    }
    MigShapeInstance& instance = shape.instances.back();
    instance.ci_profile_ids.push_back(row.ci_profile_id);
    // More than one, or one that is not everything.
    if (row.gi_id == last || row.profile != row.gi_profile) {
      instance.part_slices.push_back(row.ci_slices);
      std::ranges::sort(instance.part_slices, std::greater());
    }
    last = row.gi_id;
  }
  return shape;
}

Result<MigCounts> goal_counts(MigGeometry& geometry, const MigGoal& goal) {
  std::map<int, int> counts;
  std::map<int, std::vector<int>> parts;  // by profile: compute slices of each
  for (const MigGoal::Count& wanted : goal.wanted) {
    JOGAK_TRY(const MigMatch match, match_part(wanted.profile, geometry.profiles()));
    if (match.part_slices == 0) {
      counts[match.profile] += wanted.count;
    } else {
      const auto count = static_cast<std::size_t>(std::max(wanted.count, 0));
      parts[match.profile].insert(parts[match.profile].end(), count, match.part_slices);
    }
  }
  for (auto& [profile, sizes] : parts) {
    const int room = geometry.profiles()[static_cast<std::size_t>(profile)].slices;
    for (std::vector<int>& instance : packed(std::move(sizes), room)) {
      JOGAK_TRY(const int kind, geometry.add_parts(profile, std::move(instance)));
      ++counts[kind];
    }
  }
  MigCounts result(geometry.profiles().size(), 0);
  for (const auto& [profile, count] : counts) result[static_cast<std::size_t>(profile)] = count;
  return result;
}

MigGpuReport plan_goal(const nvml::GpuFacts& gpu, std::span<const nvml::ProcessFacts> processes,
                       const MigHolders& holders, const MigGoal& goal) {
  MigGpuReport report{.gpu = gpu.index,
                      .uuid = gpu.uuid,
                      .state = MigState::Same,
                      .reason = {},
                      .steps = {},
                      .before = shape_of(gpu),
                      .after = {}};
  report.after.is_enabled = goal.is_enabled;
  if (gpu.is_lost) return refused(report, "the GPU is lost: " + gpu.lost_reason);
  if (!gpu.mig_capable) {
    return goal.is_enabled ? refused(report, "the GPU cannot be cut with MIG") : report;
  }
  const bool has_leftovers = !gpu.mig_instances.empty();
  if (!goal.is_enabled) {
    if (has_mode(gpu, false) && !has_leftovers) return report;
    return plan_disabled(gpu, processes, holders, std::move(report));
  }
  if (!has_mode(gpu, true)) {
    if (!gpu.mig_enabled) {
      if (auto blocker = mode_blocker(gpu, processes, holders)) return refused(report, *blocker);
    }
    report.steps.push_back({.kind = MigStep::Kind::Enable, .gi_id = -1, .instance = {}});
    const bool waits = !gpu.mig_enabled && mode_needs_reset(gpu);
    report.state = waits ? MigState::NeedsReset : MigState::Done;
    if (waits) report.reason = "MIG is on after a reset of the GPU; the instances come then";
    if (gpu.mig_profiles.empty() && !gpu.mig_enabled) return report;  // told once MIG is on
  }
  auto geometry = MigGeometry::from_facts(gpu.mig_profiles);
  if (!geometry) return refused(report, geometry.error().what);
  const auto counts = goal_counts(*geometry, goal);
  if (!counts) return refused(report, counts.error().what);
  const auto present = mig_present(*geometry, gpu.mig_instances, processes, holders);
  const MigPlanned planned = plan_counts(*geometry, present, *counts);
  if (!planned) return refused(report, planned.error().reason);
  if (!planned->empty() && report.state == MigState::Same) report.state = MigState::Done;
  for (MigStep& step : steps_of(*geometry, *planned)) report.steps.push_back(std::move(step));
  for (const MigPlace& place : planned->after) {
    report.after.instances.push_back(shape_of(*geometry, place));
  }
  return report;
}

// One GPU as NVML shows it now.
struct MigManager::Seen {
  nvml::GpuFacts gpu;
  std::vector<nvml::ProcessFacts> processes;
};

Result<MigManager::Seen> MigManager::look(const std::string& uuid) {
  JOGAK_TRY(nvml::NodeFacts facts, source_.facts());
  const auto at = std::ranges::find(facts.gpus, uuid, &nvml::GpuFacts::uuid);
  if (at == facts.gpus.end()) return fail(Errc::NotFound, "gpu {} is not there", uuid);
  Seen seen{.gpu = std::move(*at), .processes = {}};
  if (seen.gpu.is_lost) return fail(Errc::Gone, "the GPU is lost: {}", seen.gpu.lost_reason);
  JOGAK_TRY(seen.processes, source_.processes(uuid));
  return seen;
}

Result<std::vector<MigGpuReport>> MigManager::plan(std::span<const MigGoal> goals,
                                                   const MigHolders& holders) {
  JOGAK_TRY(const nvml::NodeFacts facts, source_.facts());
  std::vector<MigGpuReport> reports;
  std::set<std::string> seen;
  for (const MigGoal& goal : goals) {
    if (!seen.insert(goal.uuid).second) return invalid("gpu {} is named twice", goal.uuid);
    const auto gpu = std::ranges::find(facts.gpus, goal.uuid, &nvml::GpuFacts::uuid);
    if (gpu == facts.gpus.end()) return fail(Errc::NotFound, "gpu {} is not there", goal.uuid);
    std::vector<nvml::ProcessFacts> processes;
    if (!gpu->is_lost && gpu->mig_capable) {
      JOGAK_TRY(processes, source_.processes(goal.uuid));
    }
    reports.push_back(plan_goal(*gpu, processes, holders, goal));
  }
  return reports;
}

Result<std::vector<MigGpuReport>> MigManager::apply(std::span<const MigGoal> goals,
                                                    const MigHolders& holders) {
  const Locked locked(store_);
  JOGAK_TRY_VOID(locked.result());
  JOGAK_TRY(journal_, store_.load());
  JOGAK_TRY(std::vector<MigGpuReport> reports, plan(goals, holders));
  const auto no = std::ranges::find(reports, MigState::Refused, &MigGpuReport::state);
  if (no != reports.end()) {
    for (MigGpuReport& report : reports) {
      if (report.state == MigState::Refused || report.state == MigState::Same) continue;
      report = refused(std::move(report), fmt::format("not begun, because of gpu {}", no->gpu));
    }
    return reports;
  }
  for (std::size_t i = 0; i < goals.size(); ++i) {
    MigShape before = reports[i].before;
    const auto old = std::ranges::find(
        journal_, goals[i].uuid, [](const MigJournalEntry& entry) { return entry.goal.uuid; });
    if (old != journal_.end()) {
      before = std::move(old->before);  // what a change that never ended began with
      journal_.erase(old);
    }
    if (reports[i].state == MigState::Same) continue;
    MigJournalEntry entry;
    entry.goal = goals[i];
    entry.before = std::move(before);
    journal_.push_back(std::move(entry));
  }
  JOGAK_TRY_VOID(store_.save(journal_));
  for (std::size_t i = 0; i < goals.size(); ++i) {
    if (reports[i].state == MigState::Same) continue;
    const auto at = std::ranges::find(journal_, goals[i].uuid,
                                      [](const MigJournalEntry& entry) { return entry.goal.uuid; });
    JOGAK_CHECK(at != journal_.end());
    reports[i] = run(static_cast<std::size_t>(at - journal_.begin()), holders);
  }
  return reports;
}

Result<std::vector<MigGpuReport>> MigManager::recover(const MigHolders& holders) {
  const Locked locked(store_);
  JOGAK_TRY_VOID(locked.result());
  JOGAK_TRY(journal_, store_.load());
  std::vector<MigGpuReport> reports;
  std::size_t at = 0;
  while (at < journal_.size()) {
    const std::size_t entries = journal_.size();
    reports.push_back(run(at, holders));
    if (journal_.size() == entries) ++at;  // it stays, for the next time
  }
  return reports;
}

MigGpuReport MigManager::run(std::size_t at, const MigHolders& holders) {
  MigJournalEntry& entry = journal_[at];
  MigGpuReport report{.gpu = -1,
                      .uuid = entry.goal.uuid,
                      .state = MigState::Stuck,
                      .reason = {},
                      .steps = {},
                      .before = entry.before,
                      .after = {}};
  if (const auto seen = look(report.uuid); !seen) {
    report.reason = seen.error().what;
    return report;  // nothing can be said of it; the entry stays as it is
  }
  bool is_over = false;
  if (!entry.is_undoing) {
    report.state = MigState::Done;
    const auto done = forward(entry, holders, report);
    is_over = done.has_value();
    if (!done) report.reason = done.error().what;
  }
  if (!is_over) {
    entry.is_undoing = true;
    entry.waits_for_reset = false;
    const auto undone = back(entry, holders, report);
    report.state = undone ? MigState::Undone : MigState::Stuck;
    if (report.reason.empty()) report.reason = "an earlier change was given up";
    if (!undone) report.reason += "; and putting it back: " + undone.error().what;
  }
  if (const auto seen = look(report.uuid)) {
    report.gpu = seen->gpu.index;
    report.after = shape_of(seen->gpu);
  }
  entry.steps.clear();
  entry.begun = 0;
  entry.waits_for_reset = report.state == MigState::NeedsReset;
  if (report.state != MigState::Stuck && report.state != MigState::NeedsReset) {
    journal_.erase(journal_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  // The GPU is as reported whether this works or not: who reads the old journal sees it so.
  if (const auto saved = store_.save(journal_); !saved) {
    report.reason += (report.reason.empty() ? "" : "; ") + saved.error().what;
  }
  return report;
}

Result<void> MigManager::forward(MigJournalEntry& entry, const MigHolders& holders,
                                 MigGpuReport& report) {
  const MigGoal& goal = entry.goal;
  JOGAK_TRY(Seen seen, look(goal.uuid));
  if (!seen.gpu.mig_capable) return invalid("the GPU cannot be cut with MIG");
  JOGAK_TRY(const bool is_in_force, set_mode(entry, goal.is_enabled, seen, holders, report));
  if (!is_in_force) {
    report.state = MigState::NeedsReset;
    report.reason =
        fmt::format("MIG is {} after a reset of the GPU", goal.is_enabled ? "on" : "off");
    return {};
  }
  if (!goal.is_enabled) return {};
  JOGAK_TRY(seen, look(goal.uuid));
  JOGAK_TRY(MigGeometry geometry, MigGeometry::from_facts(seen.gpu.mig_profiles));
  JOGAK_TRY(const MigCounts counts, goal_counts(geometry, goal));
  const auto plan = [&] {
    return plan_counts(
        geometry, mig_present(geometry, seen.gpu.mig_instances, seen.processes, holders), counts);
  };
  const MigPlanned planned = plan();
  if (!planned) return fail(Errc::Conflict, "{}", planned.error().reason);
  if (planned->empty()) return {};
  JOGAK_TRY_VOID(take(entry, steps_of(geometry, *planned), report));
  JOGAK_TRY(seen, look(goal.uuid));
  const MigPlanned left = plan();
  if (left && left->empty()) return {};
  return fail(Errc::Conflict, "every step was taken, and the driver does not show the layout");
}

Result<void> MigManager::back(MigJournalEntry& entry, const MigHolders& holders,
                              MigGpuReport& report) {
  JOGAK_TRY(Seen seen, look(entry.goal.uuid));
  JOGAK_TRY(const bool is_in_force,
            set_mode(entry, entry.before.is_enabled, seen, holders, report));
  if (!is_in_force) return fail(Errc::Conflict, "the MIG mode changes back at a reset of the GPU");
  if (!entry.before.is_enabled) return {};
  JOGAK_TRY(seen, look(entry.goal.uuid));
  JOGAK_TRY(const MigGeometry geometry, MigGeometry::from_facts(seen.gpu.mig_profiles));
  const auto left = [&] {
    return steps_back(mig_present(geometry, seen.gpu.mig_instances, seen.processes, holders),
                      entry.before);
  };
  JOGAK_TRY(std::vector<MigStep> steps, left());
  JOGAK_TRY_VOID(take(entry, std::move(steps), report));
  JOGAK_TRY(seen, look(entry.goal.uuid));
  JOGAK_TRY(const std::vector<MigStep> missing, left());
  if (missing.empty()) return {};
  return fail(Errc::Conflict, "every step was taken, and the driver does not show it");
}

// True: the GPU has the mode. False: it gets it at a reset.
Result<bool> MigManager::set_mode(MigJournalEntry& entry, bool is_enabled, const Seen& seen,
                                  const MigHolders& holders, MigGpuReport& report) {
  const nvml::GpuFacts& gpu = seen.gpu;
  if (has_mode(gpu, is_enabled) && (is_enabled || gpu.mig_instances.empty())) return true;
  if (gpu.mig_enabled != is_enabled) {
    if (gpu.mig_pending == is_enabled && gpu.mig_instances.empty()) return false;
    if (auto blocker = mode_blocker(gpu, seen.processes, holders)) {
      return fail(Errc::Conflict, "{}", *blocker);
    }
  }
  std::vector<MigStep> steps;
  if (!is_enabled) steps = destroy_all(gpu, seen.processes, holders);
  steps.push_back({.kind = is_enabled ? MigStep::Kind::Enable : MigStep::Kind::Disable,
                   .gi_id = -1,
                   .instance = {}});
  JOGAK_TRY_VOID(take(entry, std::move(steps), report));
  JOGAK_TRY(const Seen after, look(gpu.uuid));
  if (has_mode(after.gpu, is_enabled)) return true;
  if (after.gpu.mig_pending == is_enabled) return false;
  return fail(Errc::Conflict, "the driver took the MIG mode and does not show it");
}

Result<void> MigManager::take(MigJournalEntry& entry, std::vector<MigStep> steps,
                              MigGpuReport& report) {
  entry.steps = std::move(steps);
  for (std::size_t i = 0; i < entry.steps.size(); ++i) {
    entry.begun = static_cast<int>(i + 1);
    JOGAK_TRY_VOID(store_.save(journal_));
    const MigStep& step = entry.steps[i];
    if (auto taken = take_one(entry.goal.uuid, step); !taken) {
      return in_context(step_text(step), std::move(taken).error());
    }
    report.steps.push_back(step);
  }
  return {};
}

Result<void> MigManager::take_one(const std::string& uuid, const MigStep& step) {
  switch (step.kind) {
    case MigStep::Kind::Enable:
    case MigStep::Kind::Disable:
      JOGAK_TRY_VOID(source_.set_mig_mode(uuid, step.kind == MigStep::Kind::Enable));
      return {};
    case MigStep::Kind::Destroy:
      return source_.destroy_instance(uuid, step.gi_id);
    case MigStep::Kind::Create:
      if (step.instance.ci_profile_ids.empty() && !step.instance.part_slices.empty()) {
        JOGAK_TRY_VOID(source_.create_instance_in_parts(
            uuid, step.instance.profile_id, step.instance.at, step.instance.part_slices));
        return {};
      }
      JOGAK_TRY_VOID(source_.create_instance(uuid, step.instance.profile_id, step.instance.at,
                                             step.instance.ci_profile_ids));
      return {};
  }
  return {};
}

}  // namespace jogak::agent
