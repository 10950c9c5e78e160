// SPDX-License-Identifier: Apache-2.0
//
// Journals that a broken disk or a hand left: each is refused with the field and the cure, stays as
// it is, and nobody touches a GPU meanwhile.
#include "agent/mig/journal.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "agent/mig/manager.h"
#include "agent/mig/testing/fake_gpus.h"
#include "base/file.h"
#include "base/testing/temp_folder.h"

namespace jogak::agent {
namespace {

using testing::FakeGpus;
using testing::Fuse;

// A whole journal with one part replaced.
struct Bad {
  std::string_view from, to, expected;
};

constexpr Bad kBad[] = {
    {"\"version\": 1", "\"version\": 2", ": version: expected 1: written by another release"},
    {"\"version\": 1", "\"version\": \"one\"", ": version: "},
    {"\"gpus\"", "\"gpu\"", ": gpu: unknown field"},
    {"\"uuid\": \"GPU-1\",", "", ": gpus[0].uuid: is required"},
    {"\"uuid\": \"GPU-1\"", "\"uuid\": [1]", ": gpus[0].uuid: "},
    {"\"goal\"", "\"goals\"", ": gpus[0].goal: is required"},
    {"\"before\"", "\"befor\"", ": gpus[0].before: is required"},
    {"\"migEnabled\": true", "\"migEnabled\": \"perhaps\"", ": gpus[0].goal.migEnabled: "},
    {"\"wanted\"", "\"want\"", ": gpus[0].goal.want: unknown field"},
    {"\"count\": 2", "\"count\": -2", ": gpus[0].goal.wanted[0].count: "},
    {"\"count\": 2", "\"count\": 99999999", ": gpus[0].goal.wanted[0].count: "},
    {"\"count\": 2", "\"count\": 2.5", ": gpus[0].goal.wanted[0].count: "},
    {"\"do\": \"destroy\"", "\"do\": \"burn\"",
     ": gpus[0].steps[0].do: expected enable, disable, destroy or create"},
    {"\"do\": \"destroy\",", "", ": gpus[0].steps[0].do: is required"},
    {"\"gi\": 3", "\"gi\": -2", ": gpus[0].steps[0].gi: "},
    {"\"gi\": 3", "\"gi\": 3, \"gl\": 3", ": gpus[0].steps[0].gl: unknown field"},
    {"\"computeProfileIds\": [", "\"computeProfileIds\": [\"x\", ",
     ": gpus[0].before.instances[0].computeProfileIds"},
    {"\"start\": 4", "\"start\": \"four\"", ": gpus[0].before.instances[0].start: "},
    {"\"undoing\": false", "\"undoing\": 3", ": gpus[0].undoing: "},
    {"\"waitsForReset\": false", "\"waitsForReset\": {}", ": gpus[0].waitsForReset: "},
    {"\"begun\": 1", "\"begun\": [1]", ": gpus[0].begun: "},
    {"\"steps\": [", "\"steps\": 7, \"s\": [", ": gpus[0].steps: "},
    {"\"gpus\": [", "\"gpus\": [[], ", ": gpus[0]: "},
};

std::string whole() {
  MigJournalEntry entry;
  entry.goal = {.uuid = "GPU-1", .wanted = {{.profile = "1g.5gb", .count = 2}}};
  entry.before = {.is_enabled = true, .instances = {{9, "3g.20gb", {4, 4}, {2}}}};
  entry.steps = {{MigStep::Kind::Destroy, 3, {9, "3g.20gb", {4, 4}, {2}}}};
  entry.begun = 1;
  return journal_text({entry});
}

std::string with(const Bad& bad) {
  std::string text = whole();
  const std::size_t at = text.find(bad.from);
  EXPECT_NE(at, std::string::npos) << bad.from << " in\n" << text;
  return text.replace(at, bad.from.size(), bad.to);
}

TEST(MigJournalText, EachFaultIsNamedWithItsField) {
  ASSERT_TRUE(read_journal("j", whole()));
  for (const Bad& bad : kBad) {
    const auto journal = read_journal("j", with(bad));
    ASSERT_FALSE(journal) << bad.to;
    EXPECT_NE(journal.error().what.find(bad.expected), std::string::npos)
        << bad.to << " gives " << journal.error().what;
    EXPECT_TRUE(journal.error().what.starts_with("j:")) << journal.error().what;
    EXPECT_EQ(journal.error().what.find('\n'), std::string::npos) << journal.error().what;
  }
}

TEST(MigJournalText, ATornOneIsNeverTakenForAnother) {
  const std::string text = whole();
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    const auto journal = read_journal("j", std::string_view(text).substr(0, size));
    EXPECT_FALSE(journal) << text.substr(0, size);
  }
}

TEST(MigJournalFile, ItsFolderIsMade) {
  const TempFolder folder;
  Fuse fuse;
  FakeGpus gpus(fuse);
  const std::string uuid = gpus.add("A100-40", true);
  MigJournalFile file(folder.path("var/lib/jogak/journal.json"));
  const MigGoal goal = {.uuid = uuid, .wanted = {{.profile = "1g.5gb", .count = 2}}};
  const auto reports = MigManager(gpus, file).apply({{goal}}, {});
  ASSERT_TRUE(reports) << reports.error().what;
  EXPECT_EQ(overall(*reports), MigState::Done);
}

TEST(MigJournalFile, ABrokenOneStaysAndNoGpuIsTouched) {
  const TempFolder folder;
  const std::string path = folder.path("journal.json");
  Fuse fuse;
  FakeGpus gpus(fuse);
  const std::string uuid = gpus.add("A100-40", true);
  gpus.put(uuid, "3g.20gb", 4);
  const std::string before = gpus.picture(uuid);
  MigJournalFile file(path);
  MigManager manager(gpus, file);
  const MigGoal goal = {.uuid = uuid, .wanted = {{.profile = "1g.5gb", .count = 2}}};
  for (const Bad& bad : kBad) {
    const std::string text = with(bad);
    ASSERT_TRUE(write_file(path, text));
    for (const auto& reports : {manager.recover({}), manager.apply({{goal}}, {})}) {
      ASSERT_FALSE(reports) << bad.to;
      EXPECT_TRUE(reports.error().what.ends_with("remove the file")) << reports.error().what;
    }
    EXPECT_EQ(read_file(path).value_or(""), text);
    EXPECT_EQ(gpus.picture(uuid), before);
  }
  EXPECT_EQ(gpus.changes(), 0);
}

}  // namespace
}  // namespace jogak::agent
