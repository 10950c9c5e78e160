// SPDX-License-Identifier: Apache-2.0
//
// Carries out MIG layouts on real GPUs, one step at a time, each written to the journal before it
// is taken. All goals are planned before anything is touched: if one of them cannot be, nothing is
// done. Where a step fails the GPU is put back as it was. Done is said only when NVML shows it.
//
//   apply:    plan -> journal -> steps -> read the facts again -> Done
//                                  | a step fails
//                                  v
//                       undo to what was before -> Undone, or Stuck (the journal stays)
//   recover:  the journal of whoever died: the same from where the GPU is now
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/mig/journal.h"
#include "agent/mig/plan.h"
#include "agent/mig/present.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

enum class MigState : std::uint8_t {
  Same,        // it was so already
  Done,        // changed, and NVML shows it
  NeedsReset,  // the MIG mode is set and takes force when the GPU is reset; journal kept
  Refused,     // not begun; the reason says why
  Undone,      // a step failed, and the GPU is as it was before
  Stuck,       // neither there nor back; the journal is kept, and recover() tries again
};
std::string_view state_text(MigState state);  // "done", "needs reset", ...

struct MigGpuReport {
  int gpu = -1;  // index
  std::string uuid;
  MigState state = MigState::Refused;
  std::string reason;          // one line; "" when all went well
  std::vector<MigStep> steps;  // taken (apply, recover) or to be taken (plan)
  MigShape before, after;      // as NVML showed them; `after` of a plan is what would be
  friend bool operator==(const MigGpuReport&, const MigGpuReport&) = default;
};

// The worst of the reports, Same when there are none.
MigState overall(std::span<const MigGpuReport> reports);

// Whether this GPU's MIG mode changes at a reset only (Ampere), as far as that is known before.
bool mode_needs_reset(const nvml::GpuFacts& gpu);

// What NVML shows of a GPU.
MigShape shape_of(const nvml::GpuFacts& gpu);

// The counts that a goal means on a GPU. Parts of one profile ("1c.3g.20gb") are put together into
// as few GPU instances as hold them, and the geometry gets the kinds that come of it. Errors:
// Invalid, with the profile and what is offered.
Result<MigCounts> goal_counts(MigGeometry& geometry, const MigGoal& goal);

// One GPU and what is to become of it, without touching anything: state Same, Refused, or Done with
// the steps (NeedsReset when the mode must change and the GPU wants a reset for it; then the steps
// after the reset are not known yet where the driver lists no profiles before).
MigGpuReport plan_goal(const nvml::GpuFacts& gpu, std::span<const nvml::ProcessFacts> processes,
                       const MigHolders& holders, const MigGoal& goal);

// Lives on the NVML thread: calls block. The caller sees to it that nobody is given an instance of
// these GPUs while a call runs; `holders` names what is given out already (uuids of MIG devices,
// and of GPUs given out whole).
class MigManager {
 public:
  // Both outlive it.
  MigManager(nvml::GpuSource& source, MigJournalStore& store) : source_(source), store_(store) {}

  Result<std::vector<MigGpuReport>> plan(std::span<const MigGoal> goals, const MigHolders& holders);

  // Reports in the order of the goals. An unfinished change of the same GPU is replaced. Errors:
  // the facts or the journal cannot be read or written, or another process is at it (Conflict);
  // nothing was begun then.
  Result<std::vector<MigGpuReport>> apply(std::span<const MigGoal> goals,
                                          const MigHolders& holders);

  // Finishes or undoes what the journal says. No reports when there is nothing. To be called at
  // start, and after a reset.
  Result<std::vector<MigGpuReport>> recover(const MigHolders& holders);

 private:
  struct Seen;

  Result<Seen> look(const std::string& uuid);
  MigGpuReport run(std::size_t at, const MigHolders& holders);
  Result<void> forward(MigJournalEntry& entry, const MigHolders& holders, MigGpuReport& report);
  Result<void> back(MigJournalEntry& entry, const MigHolders& holders, MigGpuReport& report);
  Result<bool> set_mode(MigJournalEntry& entry, bool is_enabled, const Seen& seen,
                        const MigHolders& holders, MigGpuReport& report);
  Result<void> take(MigJournalEntry& entry, std::vector<MigStep> steps, MigGpuReport& report);
  Result<void> take_one(const std::string& uuid, const MigStep& step);

  nvml::GpuSource& source_;
  MigJournalStore& store_;
  MigJournal journal_;  // as on the disk, but for the entry under way
};

}  // namespace jogak::agent
