// SPDX-License-Identifier: Apache-2.0
//
// GPUs in memory behind GpuSource, with a driver's rules for MIG: places that overlap are taken,
// what a process uses is in use, Ampere changes its mode at a reset. A Fuse lets tests kill whoever
// works with them at any point, also between a GPU instance and its compute instance.
#pragma once

#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "agent/mig/journal.h"
#include "agent/mig/testing/mig_models.h"
#include "nvml/gpu_source.h"

namespace jogak::agent::testing {

// Thrown where the process dies; nothing of the agent catches it.
struct Killed : std::runtime_error {
  Killed() : std::runtime_error("killed") {}
};

// Burns one step at every point where a process could die.
class Fuse {
 public:
  void burn() {
    if (left_ && (*left_)-- == 0) throw Killed();
    ++burnt_;
  }
  void light(int steps) { left_ = steps; }
  void put_out() { left_.reset(); }
  int burnt() const { return burnt_; }

 private:
  std::optional<int> left_;
  int burnt_ = 0;
};

class FakeGpus final : public nvml::GpuSource {
 public:
  explicit FakeGpus(Fuse& fuse) : fuse_(fuse) {}

  // The uuid of the new GPU.
  std::string add(std::string_view model, bool mig_enabled);
  // Puts an instance there without a word; its gi id.
  int put(const std::string& uuid, std::string_view profile, int start);
  void use(const std::string& uuid, int gi_id, std::int64_t pid);
  void stop_all(const std::string& uuid);
  // After a loss of power: no instances; the mode stays on Ampere, and is gone on newer ones.
  void reboot();
  void reset(const std::string& uuid);
  void lose(const std::string& uuid, bool is_lost);
  // "3g.20gb@0 1g.5gb@4", "off", "3g.20gb@0!" without a compute instance.
  std::string picture(const std::string& uuid) const;
  // The n-th change from now on (from 0) fails so; several may be set.
  void fail_change(int n, Error error) { failures_[changes_ + n] = std::move(error); }
  int changes() const { return changes_; }
  // How often somebody tried to destroy what is in use.
  int touched_in_use() const { return touched_in_use_; }
  nvml::GpuFacts& gpu(const std::string& uuid);

  Result<nvml::NodeFacts> facts() override;
  Result<nvml::GpuSample> sample(const std::string& uuid, const nvml::SampleWants& wants) override;
  Result<std::vector<nvml::GpuEvent>> poll_events(TimeUs timeout) override;
  Result<std::vector<nvml::ProcessFacts>> processes(const std::string& uuid) override;
  Result<void> set_compute_mode(const std::string& uuid, int mode) override;
  Result<bool> set_mig_mode(const std::string& uuid, bool is_enabled) override;
  Result<std::vector<nvml::MigInstanceFacts>> create_instance(
      const std::string& uuid, int profile_id, nvml::MigPlacement placement,
      const std::vector<int>& ci_profile_ids) override;
  Result<std::vector<nvml::MigInstanceFacts>> create_instance_in_parts(
      const std::string& uuid, int profile_id, nvml::MigPlacement placement,
      const std::vector<int>& part_slices) override;
  Result<void> destroy_instance(const std::string& uuid, int gi_id) override;
  Result<void> destroy_compute_instance(const std::string& uuid, int gi_id, int ci_id) override;
  Result<nvml::MigInstanceFacts> create_compute_instance(const std::string& uuid, int gi_id,
                                                         int ci_profile_id) override;

 private:
  Result<nvml::GpuFacts*> change(const std::string& uuid);
  nvml::MigInstanceFacts row(const nvml::MigProfileFacts& profile, int gi_id,
                             nvml::MigPlacement at);
  bool is_used(const std::string& uuid, int gi_id) const;

  Fuse& fuse_;
  nvml::NodeFacts node_;
  std::map<std::string, std::vector<nvml::ProcessFacts>> processes_;
  std::map<int, Error> failures_;  // by number of the change
  int changes_ = 0;
  int touched_in_use_ = 0;
  int next_uuid_ = 1;
};

// A journal in memory that may die before or after the disk has it, and may be full.
class FakeStore final : public MigJournalStore {
 public:
  explicit FakeStore(Fuse& fuse) : fuse_(fuse) {}
  Result<MigJournal> load() override;
  Result<void> save(const MigJournal& journal) override;

  std::string text;  // "" no file
  bool is_full = false;

 private:
  Fuse& fuse_;
};

}  // namespace jogak::agent::testing
