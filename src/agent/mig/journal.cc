// SPDX-License-Identifier: Apache-2.0
//
// The journal as JSON; see journal.h.
#include "agent/mig/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "agent/mig/geometry.h"
#include "base/check.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/json_writer.h"
#include "yaml/yaml_fields.h"

namespace jogak::agent {

namespace {

constexpr int kVersion = 1;
constexpr std::int64_t kIdMax = 1'000'000;
constexpr std::int64_t kPartSlicesMax = 64;
constexpr std::int64_t kJournalBytesMax = std::int64_t{16} << 20;
constexpr std::array<std::string_view, 4> kKinds = {"enable", "disable", "destroy", "create"};

std::string place_text(const MigShapeInstance& instance) {
  const auto& at = instance.at;
  const std::string name = instance_name(instance);
  if (at.size == 1) return fmt::format("{} at slice {}", name, at.start);
  return fmt::format("{} at slices {}-{}", name, at.start, at.start + at.size - 1);
}

Doc instance_doc(const MigShapeInstance& instance) {
  Doc ids = Doc::array();
  for (const int id : instance.ci_profile_ids) ids.push(id);
  Doc doc;
  doc.set("profile", instance.profile)
      .set("profileId", instance.profile_id)
      .set("start", instance.at.start)
      .set("size", instance.at.size)
      .set("computeProfileIds", std::move(ids));
  if (!instance.part_slices.empty()) {
    Doc parts = Doc::array();
    for (const int slices : instance.part_slices) parts.push(slices);
    doc.set("partSlices", std::move(parts));
  }
  return doc;
}

Doc entry_doc(const MigJournalEntry& entry) {
  Doc wanted = Doc::array();
  for (const MigGoal::Count& count : entry.goal.wanted) {
    wanted.push(Doc().set("profile", count.profile).set("count", count.count));
  }
  Doc instances = Doc::array();
  for (const auto& instance : entry.before.instances) instances.push(instance_doc(instance));
  Doc steps = Doc::array();
  for (const MigStep& step : entry.steps) {
    steps.push(Doc()
                   .set("do", kKinds[static_cast<std::size_t>(step.kind)])
                   .set("gi", step.gi_id)
                   .set("instance", instance_doc(step.instance)));
  }
  Doc doc;
  doc.set("uuid", entry.goal.uuid)
      .set("goal", Doc().set("migEnabled", entry.goal.is_enabled).set("wanted", std::move(wanted)))
      .set("before",
           Doc().set("migEnabled", entry.before.is_enabled).set("instances", std::move(instances)))
      .set("undoing", entry.is_undoing)
      .set("waitsForReset", entry.waits_for_reset)
      .set("begun", entry.begun)
      .set("steps", std::move(steps));
  return doc;
}

int number(YamlFields& fields, std::string_view name, int min) {
  return static_cast<int>(fields.integer(name, min, min, kIdMax));
}

MigShapeInstance read_instance(YamlFields& fields) {
  MigShapeInstance instance;
  instance.profile = fields.text("profile", "");
  instance.profile_id = number(fields, "profileId", 0);
  instance.at.start = number(fields, "start", 0);
  instance.at.size = number(fields, "size", 0);
  for (const std::int64_t id : fields.integers("computeProfileIds", 0, kIdMax)) {
    instance.ci_profile_ids.push_back(static_cast<int>(id));
  }
  for (const std::int64_t slices : fields.integers("partSlices", 1, kPartSlicesMax)) {
    instance.part_slices.push_back(static_cast<int>(slices));
  }
  fields.finish();
  return instance;
}

MigStep read_step(YamlFields& fields) {
  MigStep step;
  const std::string kind = fields.required_text("do");
  const auto at = std::ranges::find(kKinds, kind);
  if (at == kKinds.end()) {
    fields.bad("do", "expected enable, disable, destroy or create");
  } else {
    step.kind = static_cast<MigStep::Kind>(at - kKinds.begin());
  }
  step.gi_id = number(fields, "gi", -1);
  if (auto instance = fields.map("instance")) step.instance = read_instance(*instance);
  fields.finish();
  return step;
}

MigJournalEntry read_entry(YamlFields& fields) {
  MigJournalEntry entry;
  entry.goal.uuid = fields.required_text("uuid");
  if (auto goal = fields.map("goal")) {
    entry.goal.is_enabled = goal->flag("migEnabled", true);
    for (YamlFields& wanted : goal->maps("wanted")) {
      const std::string profile = wanted.required_text("profile");
      entry.goal.wanted.push_back({.profile = profile, .count = number(wanted, "count", 0)});
      wanted.finish();
    }
    goal->finish();
  } else {
    fields.bad("goal", "is required");
  }
  if (auto before = fields.map("before")) {
    entry.before.is_enabled = before->flag("migEnabled", false);
    for (YamlFields& instance : before->maps("instances")) {
      entry.before.instances.push_back(read_instance(instance));
    }
    before->finish();
  } else {
    fields.bad("before", "is required");
  }
  entry.is_undoing = fields.flag("undoing", false);
  entry.waits_for_reset = fields.flag("waitsForReset", false);
  entry.begun = number(fields, "begun", 0);
  for (YamlFields& step : fields.maps("steps")) entry.steps.push_back(read_step(step));
  fields.finish();
  return entry;
}

// A rename or a removal lasts only when its folder is on the disk.
Result<void> sync_folder_of(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool is_synced = fd >= 0 && ::fsync(fd) == 0;
  const int code = errno;
  if (fd >= 0) ::close(fd);
  if (is_synced) return {};
  return fail(Errc::Unavailable, "sync {}: {}", folder, std::generic_category().message(code));
}

}  // namespace

std::string instance_name(const MigShapeInstance& instance) {
  if (instance.part_slices.empty()) return instance.profile;
  return fmt::format("{}.{}", parts_text(instance.part_slices), instance.profile);
}

std::string step_text(const MigStep& step) {
  switch (step.kind) {
    case MigStep::Kind::Enable:
      return "enable MIG";
    case MigStep::Kind::Disable:
      return "disable MIG";
    case MigStep::Kind::Destroy:
      return fmt::format("destroy instance {} ({})", step.gi_id, place_text(step.instance));
    case MigStep::Kind::Create:
      return fmt::format("create {}", place_text(step.instance));
  }
  return "";
}

std::string journal_text(const MigJournal& journal) {
  Doc gpus = Doc::array();
  for (const MigJournalEntry& entry : journal) gpus.push(entry_doc(entry));
  return Doc().set("version", kVersion).set("gpus", std::move(gpus)).json();
}

Result<MigJournal> read_journal(const std::string& file, std::string_view text) {
  if (!is_utf8(text)) return invalid("{}: is not UTF-8", file);
  MigJournal journal;
  JOGAK_TRY_VOID(read_yaml_map(file, text, "a journal of MIG changes", [&](YamlFields& fields) {
    if (fields.integer("version", 0, 0, kIdMax) != kVersion) {
      fields.bad("version", "expected 1: written by another release");
    }
    for (YamlFields& gpu : fields.maps("gpus")) journal.push_back(read_entry(gpu));
    fields.finish();
  }));
  return journal;
}

MigJournalFile::MigJournalFile(std::string path) : path_(std::move(path)) {}

MigJournalFile::~MigJournalFile() { unlock(); }

Result<void> MigJournalFile::lock() {
  JOGAK_CHECK(lock_fd_ < 0, "locked twice");
  const std::string path = path_ + ".lock";
  // A node that was never cut has no folder yet; where it cannot be made, the opening says why.
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  lock_fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_fd_ < 0) {
    return fail(Errc::Unavailable, "open {}: {}", path, std::generic_category().message(errno));
  }
  if (::flock(lock_fd_, LOCK_EX | LOCK_NB) == 0) return {};
  const int code = errno;
  unlock();
  if (code != EWOULDBLOCK) {
    return fail(Errc::Unavailable, "lock {}: {}", path, std::generic_category().message(code));
  }
  return fail(Errc::Conflict, "another process changes MIG layouts now ({} is locked); try later",
              path);
}

void MigJournalFile::unlock() {
  if (lock_fd_ >= 0) ::close(lock_fd_);
  lock_fd_ = -1;
}

Result<MigJournal> MigJournalFile::load() {
  const auto text = read_file(path_, kJournalBytesMax);
  if (!text && text.error().code == Errc::NotFound) return MigJournal{};
  if (!text) return std::unexpected(text.error());
  auto journal = read_journal(path_, *text);
  if (!journal) {
    journal.error().what +=
        "; it tells of a change that was cut short: if the GPUs are as they "
        "should be, remove the file";
  }
  return journal;
}

Result<void> MigJournalFile::save(const MigJournal& journal) {
  if (journal.empty()) {
    std::error_code code;
    std::filesystem::remove(path_, code);
    if (code) return fail(Errc::Unavailable, "remove {}: {}", path_, code.message());
  } else {
    JOGAK_TRY_VOID(write_file(path_, journal_text(journal)));
  }
  return sync_folder_of(path_);
}

}  // namespace jogak::agent
