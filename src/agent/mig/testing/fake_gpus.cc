// SPDX-License-Identifier: Apache-2.0
//
// See fake_gpus.h.
#include "agent/mig/testing/fake_gpus.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"

namespace jogak::agent::testing {

namespace {

constexpr int kWholeId = 100;  // compute profile that covers its GPU instance; N: N slices of it
constexpr auto kGiId = &nvml::MigInstanceFacts::gi_id;
constexpr auto kRowOrder = [](const nvml::MigInstanceFacts& row) {
  return std::pair(row.gi_id, row.ci_id);
};

// The rows of a GPU instance with these compute instances; none given: as it is.
std::vector<nvml::MigInstanceFacts> parts_of(const nvml::MigInstanceFacts& whole,
                                             const std::vector<int>& ci_profile_ids) {
  std::vector<nvml::MigInstanceFacts> rows;
  for (const int id : ci_profile_ids) {
    nvml::MigInstanceFacts part = whole;
    part.ci_id = static_cast<int>(rows.size());
    part.ci_profile_id = id;
    if (id != kWholeId) {
      part.ci_slices = id;
      part.profile = fmt::format("{}c.{}", id, whole.gi_profile);
      part.uuid = fmt::format("{}-{}", whole.uuid, part.ci_id);
    }
    rows.push_back(std::move(part));
  }
  if (rows.empty()) rows.push_back(whole);
  return rows;
}

bool overlaps(const nvml::MigPlacement& a, const nvml::MigPlacement& b) {
  return a.start < b.start + b.size && b.start < a.start + a.size;
}

}  // namespace

std::string FakeGpus::add(std::string_view key, bool mig_enabled) {
  const MigModel& model = mig_model(key);
  nvml::GpuFacts gpu;
  gpu.index = static_cast<int>(node_.gpus.size());
  gpu.uuid = fmt::format("GPU-{}", gpu.index);
  gpu.name = model.name;
  gpu.pci_device_id = model.pci_device_id;
  gpu.memory_mib = model.memory_mib;
  gpu.compute_major = model.needs_reset ? 8 : 9;
  gpu.mig_capable = true;
  gpu.mig_enabled = gpu.mig_pending = mig_enabled;
  gpu.mig_profiles = model.profiles;
  node_.gpus.push_back(gpu);
  return gpu.uuid;
}

nvml::GpuFacts& FakeGpus::gpu(const std::string& uuid) {
  const auto at = std::ranges::find(node_.gpus, uuid, &nvml::GpuFacts::uuid);
  JOGAK_CHECK(at != node_.gpus.end(), "no gpu {}", uuid);
  return *at;
}

nvml::MigInstanceFacts FakeGpus::row(const nvml::MigProfileFacts& profile, int gi_id,
                                     nvml::MigPlacement at) {
  nvml::MigInstanceFacts row;
  row.gi_id = gi_id;
  row.profile_id = profile.id;
  row.profile = row.gi_profile = profile.name;
  row.placement = at;
  row.ci_slices = profile.slices;
  row.memory_mib = profile.memory_mib;
  return row;
}

int FakeGpus::put(const std::string& uuid, std::string_view profile, int start) {
  nvml::GpuFacts& at = gpu(uuid);
  const auto facts = std::ranges::find(at.mig_profiles, profile, &nvml::MigProfileFacts::name);
  JOGAK_CHECK(facts != at.mig_profiles.end());
  int gi_id = 1;
  while (std::ranges::find(at.mig_instances, gi_id, &nvml::MigInstanceFacts::gi_id) !=
         at.mig_instances.end()) {
    ++gi_id;
  }
  nvml::MigInstanceFacts made = row(*facts, gi_id, {start, facts->placements.front().size});
  made.ci_id = 0;
  made.ci_profile_id = kWholeId;
  made.uuid = fmt::format("MIG-{}", next_uuid_++);
  at.mig_instances.push_back(std::move(made));
  std::ranges::sort(at.mig_instances, {}, &nvml::MigInstanceFacts::gi_id);
  return gi_id;
}

void FakeGpus::use(const std::string& uuid, int gi_id, std::int64_t pid) {
  nvml::ProcessFacts process;
  process.pid = pid;
  process.name = "python";
  process.gi_id = gi_id;
  processes_[uuid].push_back(std::move(process));
}

void FakeGpus::stop_all(const std::string& uuid) { processes_.erase(uuid); }

void FakeGpus::reset(const std::string& uuid) {
  nvml::GpuFacts& at = gpu(uuid);
  at.mig_instances.clear();
  at.mig_enabled = at.mig_pending;
  processes_.erase(uuid);
}

void FakeGpus::reboot() {
  for (nvml::GpuFacts& at : node_.gpus) {
    if (at.compute_major >= 9) at.mig_pending = false;
    reset(at.uuid);
  }
}

void FakeGpus::lose(const std::string& uuid, bool is_lost) {
  gpu(uuid).is_lost = is_lost;
  gpu(uuid).lost_reason = is_lost ? "fallen off the bus" : "";
}

std::string FakeGpus::picture(const std::string& uuid) const {
  const auto at = std::ranges::find(node_.gpus, uuid, &nvml::GpuFacts::uuid);
  JOGAK_CHECK(at != node_.gpus.end());
  if (!at->mig_enabled) return "off";
  std::vector<nvml::MigInstanceFacts> rows = at->mig_instances;
  std::ranges::sort(rows, {}, [](const auto& row) { return row.placement; });
  std::vector<std::string> parts;
  for (const auto& row : rows) {
    parts.push_back(
        fmt::format("{}@{}{}", row.profile, row.placement.start, row.ci_id < 0 ? "!" : ""));
  }
  return fmt::format("{}", fmt::join(parts, " "));
}

Result<nvml::NodeFacts> FakeGpus::facts() { return node_; }

Result<nvml::GpuSample> FakeGpus::sample(const std::string& uuid, const nvml::SampleWants&) {
  nvml::GpuSample sample;
  sample.uuid = uuid;
  return sample;
}

Result<std::vector<nvml::GpuEvent>> FakeGpus::poll_events(TimeUs) {
  return std::vector<nvml::GpuEvent>{};
}

Result<std::vector<nvml::ProcessFacts>> FakeGpus::processes(const std::string& uuid) {
  const auto at = processes_.find(uuid);
  return at == processes_.end() ? std::vector<nvml::ProcessFacts>{} : at->second;
}

bool FakeGpus::is_used(const std::string& uuid, int gi_id) const {
  const auto at = processes_.find(uuid);
  return at != processes_.end() &&
         std::ranges::find(at->second, gi_id, &nvml::ProcessFacts::gi_id) != at->second.end();
}

// Before every change: it may fail, and whoever makes it may die here.
Result<nvml::GpuFacts*> FakeGpus::change(const std::string& uuid) {
  fuse_.burn();
  const int number = changes_++;
  if (const auto failure = failures_.find(number); failure != failures_.end()) {
    return std::unexpected(failure->second);
  }
  const auto at = std::ranges::find(node_.gpus, uuid, &nvml::GpuFacts::uuid);
  if (at == node_.gpus.end()) return fail(Errc::NotFound, "no such gpu");
  if (at->is_lost) return fail(Errc::Gone, "the GPU is lost");
  return &*at;
}

Result<void> FakeGpus::set_compute_mode(const std::string& uuid, int mode) {
  JOGAK_TRY(nvml::GpuFacts * at, change(uuid));
  at->compute_mode = mode;
  return {};
}

Result<bool> FakeGpus::set_mig_mode(const std::string& uuid, bool is_enabled) {
  JOGAK_TRY(nvml::GpuFacts * at, change(uuid));
  const bool is_busy = !at->mig_instances.empty() || !processes_[uuid].empty();
  if (at->mig_enabled != is_enabled && is_busy) return fail(Errc::Conflict, "in use");
  at->mig_pending = is_enabled;
  if (at->compute_major >= 9) at->mig_enabled = is_enabled;
  fuse_.burn();
  return at->mig_enabled == is_enabled;
}

Result<std::vector<nvml::MigInstanceFacts>> FakeGpus::create_instance(
    const std::string& uuid, int profile_id, nvml::MigPlacement placement,
    const std::vector<int>& ci_profile_ids) {
  JOGAK_TRY(nvml::GpuFacts * at, change(uuid));
  if (!at->mig_enabled) return invalid("MIG is off");
  const auto profile = std::ranges::find(at->mig_profiles, profile_id, &nvml::MigProfileFacts::id);
  if (profile == at->mig_profiles.end()) return fail(Errc::NotFound, "no such profile");
  if (std::ranges::find(profile->placements, placement) == profile->placements.end()) {
    return invalid("no such placement");
  }
  for (const auto& other : at->mig_instances) {
    if (overlaps(other.placement, placement)) return fail(Errc::Conflict, "the place is taken");
  }
  const int gi_id = put(uuid, profile->name, placement.start);
  nvml::MigInstanceFacts& made =
      *std::ranges::find(at->mig_instances, gi_id, &nvml::MigInstanceFacts::gi_id);
  const nvml::MigInstanceFacts whole = made;
  made = row(*profile, gi_id, placement);  // no compute instance yet
  fuse_.burn();
  std::vector<nvml::MigInstanceFacts> rows = parts_of(whole, ci_profile_ids);
  at->mig_instances.erase(std::ranges::find(at->mig_instances, gi_id, kGiId));
  for (const nvml::MigInstanceFacts& part : rows) {
    at->mig_instances.push_back(part);
    std::ranges::sort(at->mig_instances, {}, kRowOrder);
    fuse_.burn();
  }
  return rows;
}

Result<std::vector<nvml::MigInstanceFacts>> FakeGpus::create_instance_in_parts(
    const std::string& uuid, int profile_id, nvml::MigPlacement placement,
    const std::vector<int>& part_slices) {
  std::vector<int> ids;
  for (const int slices : part_slices) ids.push_back(slices);
  return create_instance(uuid, profile_id, placement, ids);
}

Result<void> FakeGpus::destroy_instance(const std::string& uuid, int gi_id) {
  JOGAK_TRY(nvml::GpuFacts * at, change(uuid));
  const auto gone = std::ranges::find(at->mig_instances, gi_id, &nvml::MigInstanceFacts::gi_id);
  if (gone == at->mig_instances.end()) return fail(Errc::NotFound, "no such instance");
  if (is_used(uuid, gi_id)) {
    ++touched_in_use_;
    return fail(Errc::Conflict, "in use");
  }
  const auto profile =
      std::ranges::find(at->mig_profiles, gone->profile_id, &nvml::MigProfileFacts::id);
  const nvml::MigInstanceFacts bare = row(*profile, gi_id, gone->placement);
  // Its compute instances first, one by one.
  auto& rows = at->mig_instances;
  while (std::ranges::count(rows, gi_id, kGiId) > 1) {
    rows.erase(std::ranges::find(rows, gi_id, kGiId));
    fuse_.burn();
  }
  *std::ranges::find(rows, gi_id, kGiId) = bare;
  fuse_.burn();
  rows.erase(std::ranges::find(rows, gi_id, kGiId));
  fuse_.burn();
  return {};
}

Result<void> FakeGpus::destroy_compute_instance(const std::string&, int, int) {
  return invalid("not used by the manager");
}

Result<nvml::MigInstanceFacts> FakeGpus::create_compute_instance(const std::string&, int, int) {
  return invalid("not used by the manager");
}

Result<MigJournal> FakeStore::load() {
  if (text.empty()) return MigJournal{};
  return read_journal("journal", text);
}

Result<void> FakeStore::save(const MigJournal& journal) {
  fuse_.burn();
  if (is_full) return fail(Errc::Unavailable, "write journal: no space left on device");
  text = journal.empty() ? "" : journal_text(journal);
  fuse_.burn();
  return {};
}

}  // namespace jogak::agent::testing
