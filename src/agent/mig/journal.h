// SPDX-License-Identifier: Apache-2.0
//
// What a change of MIG layouts wants, what was there before, and how far it is: written down before
// every step, so that whoever starts after a crash or a loss of power can finish it or put it back.
// The file is there only while a change is under way (or waits for a reset, or is stuck).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "nvml/gpu_source.h"

namespace jogak::agent {

// What a user wants of one GPU. Profiles in the user's words, matched with what the GPU offers at
// the time; with is_enabled false there are none.
struct MigGoal {
  struct Count {
    std::string profile;
    int count = 0;
    friend bool operator==(const Count&, const Count&) = default;
  };
  std::string uuid;  // of the GPU
  bool is_enabled = true;
  std::vector<Count> wanted;
  friend bool operator==(const MigGoal&, const MigGoal&) = default;
};

// A GPU instance by what makes it again.
struct MigShapeInstance {
  int profile_id = 0;
  std::string profile;
  nvml::MigPlacement at;
  // Of its compute instances, by the driver's ids where it was seen; else by compute slices. Both
  // empty: one that covers it all.
  std::vector<int> ci_profile_ids;
  std::vector<int> part_slices = {};  // largest first
  friend bool operator==(const MigShapeInstance&, const MigShapeInstance&) = default;
};

struct MigShape {
  bool is_enabled = false;
  std::vector<MigShapeInstance> instances;
  friend bool operator==(const MigShape&, const MigShape&) = default;
};

struct MigStep {
  enum class Kind : std::uint8_t { Enable, Disable, Destroy, Create };
  Kind kind = Kind::Create;
  int gi_id = -1;             // Destroy
  MigShapeInstance instance;  // Destroy, Create
  friend bool operator==(const MigStep&, const MigStep&) = default;
};

// "3g.20gb"; "2c+1c.3g.20gb" when it is in parts.
std::string instance_name(const MigShapeInstance& instance);

// "create 3g.20gb at slices 4-7", "destroy instance 7 (1g.5gb at slice 0)", "enable MIG"
std::string step_text(const MigStep& step);

struct MigJournalEntry {
  MigGoal goal;
  MigShape before;
  bool is_undoing = false;  // the goal was given up: back to `before`
  bool waits_for_reset = false;
  std::vector<MigStep> steps;  // of the part under way
  int begun = 0;               // steps begun; the last of them may or may not have happened
  friend bool operator==(const MigJournalEntry&, const MigJournalEntry&) = default;
};

using MigJournal = std::vector<MigJournalEntry>;  // one entry per GPU

std::string journal_text(const MigJournal& journal);

// Errors: Invalid, "FILE:LINE: field: what".
Result<MigJournal> read_journal(const std::string& file, std::string_view text);

// Where the journal lives. Tests put one there that dies on the way.
class MigJournalStore {
 public:
  MigJournalStore() = default;
  MigJournalStore(const MigJournalStore&) = delete;
  MigJournalStore& operator=(const MigJournalStore&) = delete;
  virtual ~MigJournalStore() = default;

  // Empty when there is none.
  virtual Result<MigJournal> load() = 0;
  // On the disk, whole, when it returns. An empty journal leaves no file.
  virtual Result<void> save(const MigJournal& journal) = 0;
  // One change at a time, also between processes: held from before load() until the change is over.
  // Errors: Conflict, when another has it.
  virtual Result<void> lock() { return {}; }
  virtual void unlock() {}
};

class MigJournalFile final : public MigJournalStore {
 public:
  // The folder must exist and be writable.
  explicit MigJournalFile(std::string path);
  ~MigJournalFile() override;
  Result<MigJournal> load() override;
  Result<void> save(const MigJournal& journal) override;
  // A lock of the file PATH.lock, which the system takes back from a process that dies.
  Result<void> lock() override;
  void unlock() override;

 private:
  std::string path_;
  int lock_fd_ = -1;
};

}  // namespace jogak::agent
