// SPDX-License-Identifier: Apache-2.0
//
// A change of MIG layouts is killed (SIGKILL, in a process of its own) before and after every call
// that changes a GPU and every write of the journal, on GPUs that outlive the process. Whoever
// comes next finds a journal that can be read, never takes half a layout for a whole one, and
// finishes the change.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/mig/journal.h"
#include "agent/mig/manager.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/testing/temp_folder.h"
#include "nvml/nvml_source.h"
#include "nvml/sim/c_api.h"
#include "nvml/sim/machine.h"
#include "test/agent/agent_process.h"
#include "test/agent/folder_events.h"
#include "test/kubelet/child.h"
#include "test/kubelet/kubelet.h"

namespace jogak::agent {
namespace {

namespace fs = std::filesystem;
using jogak::testing::Child;
using jogak::testing::FolderEvents;
using ::testing::AnyOf;
using ::testing::Eq;

constexpr auto kFolderVariable = "JOGAK_TEST_MIG_FOLDER";
constexpr auto kStepVariable = "JOGAK_TEST_MIG_KILL_AT";
constexpr auto kVerbVariable = "JOGAK_TEST_MIG_VERB";

// An A100 that is cut otherwise, and an H100 whose mode comes on in the middle.
constexpr auto kGpus = R"(gpus:
- model: A100-SXM4-40GB
  migEnabled: true
  migInstances: [{profile: 3g.20gb, start: 4}, {profile: 1g.5gb, start: 0}]
- {model: H100-SXM5-80GB}
)";
constexpr auto kBefore0 = "on 1g.5gb@0 3g.20gb@4";
constexpr auto kAfter0 = "on 1g.5gb@0 2g.10gb@2 2g.10gb@4";
constexpr auto kBefore1 = "off";
constexpr auto kAfter1 = "on 3g.40gb@0 3g.40gb@4";

void write_machine(const TempFolder& folder) {
  ASSERT_TRUE(write_file(folder.path("machine.yaml"),
                         "apiVersion: jogak.io/v1\nkind: NvmlSimulation\nidentity: kill\n"
                         "stateFile: " +
                             folder.path("state.json") + "\n" + kGpus));
}

std::vector<MigGoal> goals_of(const nvml::NodeFacts& node) {
  return {{.uuid = node.gpus[0].uuid,
           .wanted = {{.profile = "2g.10gb", .count = 2}, {.profile = "1g.5gb", .count = 1}}},
          {.uuid = node.gpus[1].uuid, .wanted = {{.profile = "3g.40gb", .count = 2}}}};
}

// "on 1g.5gb@0 3g.20gb@4"; "!" marks an instance that nobody can use.
std::string picture(const nvml::GpuFacts& gpu) {
  if (!gpu.mig_enabled) return "off";
  std::map<int, std::string> by_place;
  for (const nvml::MigInstanceFacts& row : gpu.mig_instances) {
    by_place[row.placement.start] = " " + row.gi_profile + "@" +
                                    std::to_string(row.placement.start) +
                                    (row.ci_id < 0 ? "!" : "");
  }
  std::string text = "on";
  for (const auto& [start, instance] : by_place) text += instance;
  return text;
}

// ---- the process that is killed ---------------------------------------------------------------

// Counts the points at which it may die, and dies at one of them.
class Steps {
 public:
  static void reach(const std::string& name) {
    ++count_;
    names_ += std::to_string(count_) + " " + name + "\n";
    if (count_ == kill_at_) ::raise(SIGKILL);
  }
  static void set(int kill_at) { kill_at_ = kill_at; }
  static const std::string& names() { return names_; }

 private:
  static inline int count_ = 0;
  static inline int kill_at_ = 0;
  static inline std::string names_;
};

// A function of the driver with a point before and one after it.
template <class Function>
struct Watched;
template <class... Parameters>
struct Watched<nvml::abi::Return (*)(Parameters...)> {
  static inline nvml::abi::Return (*real)(Parameters...) = nullptr;
  static inline std::string name;
  static nvml::abi::Return call(Parameters... parameters) {
    Steps::reach("before " + name);
    const nvml::abi::Return result = real(parameters...);
    Steps::reach("after " + name);
    return result;
  }
};

void* watched_symbol(const char* name) {
  using nvml::Functions;
  void* const address = nvml::sim::symbol(name);
  const std::string_view text = name;
  const auto watch = [&]<class Function>(Function Functions::* /*member*/) {
    Watched<Function>::real = reinterpret_cast<Function>(address);
    Watched<Function>::name = name;
    return reinterpret_cast<void*>(&Watched<Function>::call);
  };
  if (text == "nvmlDeviceSetMigMode") return watch(&Functions::set_mig_mode);
  if (text == "nvmlDeviceCreateGpuInstanceWithPlacement") return watch(&Functions::gi_create);
  if (text == "nvmlGpuInstanceDestroy") return watch(&Functions::gi_destroy);
  if (text == "nvmlGpuInstanceCreateComputeInstance") return watch(&Functions::ci_create);
  if (text == "nvmlComputeInstanceDestroy") return watch(&Functions::ci_destroy);
  return address;
}

class WatchedJournal final : public MigJournalStore {
 public:
  explicit WatchedJournal(std::string path) : file_(std::move(path)) {}
  Result<MigJournal> load() override { return file_.load(); }
  Result<void> save(const MigJournal& journal) override {
    Steps::reach("before the journal is written");
    auto saved = file_.save(journal);
    Steps::reach("after the journal was written");
    return saved;
  }
  Result<void> lock() override { return file_.lock(); }
  void unlock() override { file_.unlock(); }

 private:
  MigJournalFile file_;
};

std::shared_ptr<nvml::sim::Machine> open_machine(const std::string& folder) {
  auto spec = nvml::sim::read_machine("machine.yaml", *read_file(folder + "/machine.yaml"));
  EXPECT_TRUE(spec) << spec.error().what;
  auto machine = nvml::sim::Machine::create(*std::move(spec), {});
  EXPECT_TRUE(machine) << machine.error().what;
  return *std::move(machine);
}

TEST(MigKillChild, of_the_tests_below) {
  const char* const folder = std::getenv(kFolderVariable);
  if (folder == nullptr) return;  // run by itself there is nothing to do
  const auto machine = open_machine(folder);
  const nvml::sim::UseMachine use(machine.get());
  nvml::NvmlSource source(nvml::Library::from_lookup(&watched_symbol, "watched"),
                          {.now = {}, .machine = machine});
  const auto node = source.facts();
  ASSERT_TRUE(node) << node.error().what;
  WatchedJournal journal(std::string(folder) + "/journal.json");
  MigManager manager(source, journal);
  Steps::set(std::atoi(std::getenv(kStepVariable)));
  const std::string verb = std::getenv(kVerbVariable);
  const auto reports = verb == "recover" ? manager.recover({}) : manager.apply(goals_of(*node), {});
  ASSERT_TRUE(reports) << reports.error().what;
  EXPECT_EQ(overall(*reports), MigState::Done);
  ASSERT_TRUE(write_file(std::string(folder) + "/steps", Steps::names()));
}

int run_child(const TempFolder& folder, const std::string& verb, int kill_at) {
  Child child(Child::this_test("MigKillChild.of_the_tests_below"),
              {std::string(kFolderVariable) + "=" + folder.path(),
               std::string(kStepVariable) + "=" + std::to_string(kill_at),
               std::string(kVerbVariable) + "=" + verb},
              folder.path("log"));
  return child.wait();
}

// The names of all points, by number from 1.
std::vector<std::string> all_steps() {
  TempFolder folder;
  write_machine(folder);
  EXPECT_EQ(run_child(folder, "apply", 0), 0) << read_file(folder.path("log")).value_or("");
  const std::string text = read_file(folder.path("steps")).value_or("");
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    names.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

// ---- what is found afterwards -----------------------------------------------------------------

struct Found {
  std::shared_ptr<nvml::sim::Machine> machine;
  std::unique_ptr<nvml::NvmlSource> source;
  nvml::NodeFacts node;
  std::vector<std::string> pictures;
};

Found look(const std::string& folder) {
  Found found;
  found.machine = open_machine(folder);
  found.source = nvml::NvmlSource::of_machine(found.machine);
  auto node = found.source->facts();
  EXPECT_TRUE(node) << node.error().what;
  found.node = *std::move(node);
  for (const nvml::GpuFacts& gpu : found.node.gpus) found.pictures.push_back(picture(gpu));
  return found;
}

// What must hold of whatever a killed process left.
void check_left(const std::string& folder) {
  Found found = look(folder);
  MigJournalFile file(folder + "/journal.json");
  const auto journal = file.load();
  ASSERT_TRUE(journal) << "torn: " << journal.error().what;
  const std::vector<std::pair<std::string, std::string>> whole = {{kBefore0, kAfter0},
                                                                  {kBefore1, kAfter1}};
  MigManager manager(*found.source, file);
  const auto plans = manager.plan(goals_of(found.node), {});
  ASSERT_TRUE(plans) << plans.error().what;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto& [before, after] = whole[i];
    EXPECT_EQ((*plans)[i].state == MigState::Same, found.pictures[i] == after)
        << "half a layout passes for a whole one: " << found.pictures[i];
    const bool is_told = std::ranges::any_of(*journal, [&](const MigJournalEntry& entry) {
      return entry.goal.uuid == found.node.gpus[i].uuid;
    });
    if (!is_told) {
      EXPECT_THAT(found.pictures[i], AnyOf(Eq(before), Eq(after))) << "and no journal tells of it";
    }
  }
}

// The change is finished if it was begun, and the journal is gone. A second time there is nothing.
void check_recovered(const std::string& folder, bool was_begun) {
  Found found = look(folder);
  MigJournalFile file(folder + "/journal.json");
  MigManager manager(*found.source, file);
  const auto reports = manager.recover({});
  ASSERT_TRUE(reports) << reports.error().what;
  const Found after = look(folder);
  if (was_begun) {
    EXPECT_THAT(after.pictures, ::testing::ElementsAre(kAfter0, kAfter1));
  } else {
    EXPECT_THAT(after.pictures, AnyOf(Eq(std::vector<std::string>{kBefore0, kBefore1}),
                                      Eq(std::vector<std::string>{kAfter0, kAfter1})));
  }
  for (const MigGpuReport& report : *reports) EXPECT_EQ(report.state, MigState::Done);
  EXPECT_FALSE(fs::exists(folder + "/journal.json"));
  EXPECT_TRUE(manager.recover({})->empty());
}

TEST(MigKillTest, at_every_step_of_a_change_and_again_while_it_is_finished) {
  constexpr std::uint64_t kSeed = 7;
  Rng random(kSeed, "second kill");
  const std::vector<std::string> steps = all_steps();
  ASSERT_GT(steps.size(), 30U);
  for (std::size_t i = 1; i <= steps.size(); ++i) {
    SCOPED_TRACE("killed at " + steps[i - 1]);
    TempFolder folder;
    write_machine(folder);
    ASSERT_EQ(run_child(folder, "apply", static_cast<int>(i)), 128 + SIGKILL)
        << read_file(folder.path("log")).value_or("");
    check_left(folder.path());
    const bool was_begun = fs::exists(folder.path("journal.json"));
    // The one that finishes it is killed, too, as often as not.
    const int again =
        static_cast<int>(random.between(1, 2 * static_cast<std::int64_t>(steps.size())));
    if (was_begun && again <= static_cast<int>(steps.size())) {
      SCOPED_TRACE("and again at " + std::to_string(again));
      const int code = run_child(folder, "recover", again);
      EXPECT_THAT(code, AnyOf(0, 128 + SIGKILL)) << read_file(folder.path("log")).value_or("");
      check_left(folder.path());
    }
    check_recovered(folder.path(), was_begun);
  }
}

// ---- the agent that comes next ----------------------------------------------------------------

TEST(MigKillTest, the_agent_finishes_it_before_it_offers_anything) {
  const std::string binary = jogak_binary();
  ASSERT_NE(binary, "");
  const std::vector<std::string> steps = all_steps();
  for (std::size_t i = 2; i <= steps.size(); i += 6) {
    SCOPED_TRACE("killed at " + steps[i - 1]);
    TempFolder folder;
    write_machine(folder);
    ASSERT_EQ(run_child(folder, "apply", static_cast<int>(i)), 128 + SIGKILL);
    const bool was_begun = fs::exists(folder.path("journal.json"));
    kubelet::Kubelet kubelet(folder.path(), i);
    std::string too_early;
    kubelet.on_step = [&](std::string_view step, const std::string& resource) {
      if (step == "register" && fs::exists(folder.path("journal.json"))) too_early += resource;
    };
    kubelet.start();
    Child agent(
        {binary, "agent", "run", "--nvml", "sim:" + folder.path("machine.yaml"), "--node-name",
         "kill", "--kubelet-dir", folder.path(), "--mig-journal", folder.path("journal.json"),
         "--exporter-address", "off", "--kubeconfig", "off", "--mig-strategy", "mixed"},
        {}, folder.path("log"));
    using Counts = std::map<std::string, int>;
    const Counts wanted = was_begun
                              ? Counts{{"mig-1g.5gb", 1}, {"mig-2g.10gb", 2}, {"mig-3g.40gb", 2}}
                              : Counts{{"gpu", 1}, {"mig-1g.5gb", 1}, {"mig-3g.20gb", 1}};
    EXPECT_TRUE(kubelet.wait([&] {
      return std::ranges::all_of(wanted, [&](const auto& one) {
        return kubelet.counts("nvidia.com/" + one.first) ==
               kubelet::NodeCounts{one.second, one.second};
      });
    })) << read_file(folder.path("log")).value_or("");
    EXPECT_EQ(too_early, "") << "offered while the layout was half";
    if (was_begun) {
      EXPECT_EQ(kubelet.registrations("nvidia.com/mig-3g.20gb"), 0U) << "it is not there any more";
    }
  }
}

// ---- the command as users run it --------------------------------------------------------------

TEST(MigKillTest, the_command_wherever_it_is_and_recover_finishes_it) {
  const std::string binary = jogak_binary();
  ASSERT_NE(binary, "");
  bool was_killed = true;
  int kills = 0;
  for (int kill_after = 1; was_killed; ++kill_after) {
    SCOPED_TRACE("killed after " + std::to_string(kill_after) + " changes of files");
    ASSERT_LT(kill_after, 200);
    TempFolder folder;
    write_machine(folder);
    const std::vector<std::string> where = {"--nvml", "sim:" + folder.path("machine.yaml"),
                                            "--journal", folder.path("journal.json")};
    std::vector<std::string> apply = {
        binary, "agent", "mig", "apply", "--layout", "2g.10gb:2,1g.5gb:1", "--gpu", "0"};
    apply.insert(apply.end(), where.begin(), where.end());
    {
      FolderEvents events(folder.path());
      Child child(apply, {}, folder.path("log"));
      for (int seen = 0; seen <= kill_after && child.is_running();) seen += events.wait();
      child.kill();
      const int code = child.wait();
      was_killed = code != 0;
      ASSERT_THAT(code, AnyOf(0, 128 + SIGKILL)) << read_file(folder.path("log")).value_or("");
      kills += was_killed ? 1 : 0;
    }
    const bool was_begun = fs::exists(folder.path("journal.json"));
    std::vector<std::string> recover = {binary, "agent", "mig", "recover"};
    recover.insert(recover.end(), where.begin(), where.end());
    Child child(recover, {}, folder.path("log2"));
    EXPECT_EQ(child.wait(), 0) << read_file(folder.path("log2")).value_or("");
    const std::string now = look(folder.path()).pictures[0];
    if (was_begun || !was_killed) {
      EXPECT_EQ(now, kAfter0);
    } else {
      EXPECT_THAT(now, AnyOf(Eq(kBefore0), Eq(kAfter0)));
    }
    EXPECT_FALSE(fs::exists(folder.path("journal.json")));
  }
  EXPECT_GT(kills, 5);
}

}  // namespace
}  // namespace jogak::agent
