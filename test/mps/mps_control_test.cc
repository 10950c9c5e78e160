// SPDX-License-Identifier: Apache-2.0
//
// The keeper of MPS control daemons on a real loop, with a stand-in for the program: what the
// program is told, and a daemon that dies, hangs, talks nonsense, cannot start, or is there
// already.
#include "agent/mps/control.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/testing/temp_folder.h"

namespace jogak::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr auto kGpu = "nvidia.com/gpu";

class ListSink final : public LogSink {
 public:
  void write(const LogEvent& event) override { lines.push_back(text_line(event)); }
  std::vector<std::string> lines;
};

class MpsControlTest : public ::testing::Test {
 protected:
  MpsControlTest() {
    fs::create_directory(folder_.path("bin"));
    fs::copy(JOGAK_MPS_STANDIN, program());
    options_.root = options_.host_root = folder_.path("mps");
    options_.search_path = folder_.path("bin");
    options_.mounts = false;
    options_.answer_limit = 5 * kSecondInUs;
    options_.retire_every = 20 * kMsInUs;
    options_.times = {.ask_every = 20 * kMsInUs,
                      .doubt = 10 * kMsInUs,
                      .silent_max = 100 * kMsInUs,
                      .rest_min = 10 * kMsInUs,
                      .rest_max = 100 * kMsInUs,
                      .steady = 10 * kSecondInUs};
  }
  ~MpsControlTest() override {
    control_.reset();
    if (const auto pid = daemon()) ::kill(*pid, SIGKILL);
  }

  std::string program() const { return folder_.path("bin/nvidia-cuda-mps-control"); }
  std::string log(const std::string& name) const {
    return folder_.path("mps/nvidia.com/gpu/log/" + name);
  }
  std::optional<pid_t> daemon() const { return MpsFolder(options_.root).pid(kGpu); }
  bool exists(const std::string& path) const { return fs::exists(folder_.path("mps/" + path)); }
  std::vector<std::string> told() const {
    std::vector<std::string> lines;
    const std::string text = read_file(log("told")).value_or("");
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    std::erase(lines, std::string(kMpsProbe));
    return lines;
  }
  bool was_told(const std::string& line) const {
    const auto lines = told();
    return std::ranges::find(lines, line) != lines.end();
  }
  void behave(const std::string& how) {
    fs::create_directories(folder_.path("mps/nvidia.com/gpu/log"));
    ASSERT_TRUE(write_file(log(how), ""));
  }
  void behave_well(const std::string& how) { fs::remove(log(how)); }

  MpsDaemon wanted(int percent = 25) const {
    return {
        .resource = kGpu,
        .gpus =
            {{.uuid = "GPU-0", .index = 0, .limit_mib = 10, .compute_mode = modes_.at("GPU-0")},
             {.uuid = "GPU-1", .index = 1, .limit_mib = 20, .compute_mode = modes_.at("GPU-1")}},
        .thread_percent = percent};
  }
  void make() {
    control_.reset();
    control_ = std::make_unique<MpsControl>(
        loop_, log_, options_,
        MpsPorts{.set_modes =
                     [this](std::map<std::string, int> modes, MpsPorts::ModesDone done) {
                       std::vector<std::string> problems;
                       for (const auto& [uuid, mode] : modes) {
                         if (mode_problem_.empty()) {
                           modes_[uuid] = mode;
                         } else {
                           problems.push_back(mode_problem_);
                         }
                       }
                       loop_.post([problems = std::move(problems), done = std::move(done)] {
                         done(problems);
                       });
                     },
                 .is_held = [this](const std::string&) { return is_held_; },
                 .on_change = [this] { ++changes_; }});
  }
  void begin() {
    make();
    control_->want({wanted()});
  }
  bool wait(const std::function<bool()>& is_so) {
    const TimeUs end = loop_.now() + 10 * kSecondInUs;
    while (!is_so()) {
      if (loop_.now() > end) return false;
      loop_.turn(20 * kMsInUs);
    }
    return true;
  }
  std::string problem() const {
    const auto problems = control_->problems();
    const auto at = problems.find(kGpu);
    return at == problems.end() ? "not asked yet" : at->second;
  }
  bool wait_ready() {
    return wait([&] { return problem().empty(); });
  }

  TempFolder folder_;
  net::EpollLoop loop_;
  ListSink sink_;
  Log log_{loop_, sink_, LogLevel::Debug};
  MpsControlOptions options_;
  std::map<std::string, int> modes_ = {{"GPU-0", 0}, {"GPU-1", 2}};
  std::string mode_problem_;
  bool is_held_ = false;
  int changes_ = 0;
  std::unique_ptr<MpsControl> control_;
};

TEST_F(MpsControlTest, IsStartedWithItsLimits) {
  begin();
  ASSERT_TRUE(wait_ready()) << problem();
  EXPECT_THAT(told(), ElementsAre("started", "set_default_active_thread_percentage 25",
                                  "set_default_device_pinned_mem_limit 0 10M",
                                  "set_default_device_pinned_mem_limit 1 20M"));
  EXPECT_THAT(modes_, ElementsAre(Pair("GPU-0", 3), Pair("GPU-1", 3)));
  EXPECT_TRUE(exists("nvidia.com/gpu/.started"));
  EXPECT_TRUE(exists(".ready"));
  EXPECT_TRUE(exists("shm"));
  EXPECT_EQ(MpsFolder(options_.root).load(),
            (MpsRecord{.daemons = {kGpu}, .modes = {{"GPU-0", 0}, {"GPU-1", 2}}}));
  EXPECT_EQ(control_->starts().at(kGpu), 1U);
  EXPECT_GT(changes_, 0);
}

TEST_F(MpsControlTest, OutlivesTheKeeperAndIsTakenOver) {
  begin();
  ASSERT_TRUE(wait_ready());
  const auto pid = daemon();
  ASSERT_TRUE(pid.has_value());
  control_.reset();
  EXPECT_EQ(::kill(*pid, 0), 0);
  begin();
  ASSERT_TRUE(wait_ready());
  EXPECT_EQ(daemon(), pid);
  EXPECT_EQ(control_->starts().at(kGpu), 0U);
  EXPECT_EQ(std::ranges::count(told(), "started"), 1);
  // What it was before is not forgotten, though the GPUs are in that mode now.
  EXPECT_THAT(MpsFolder(options_.root).load()->modes,
              ElementsAre(Pair("GPU-0", 0), Pair("GPU-1", 2)));
}

TEST_F(MpsControlTest, OneThatIsKilledIsNoticedAndStartedAgain) {
  begin();
  ASSERT_TRUE(wait_ready());
  const auto pid = daemon();
  ASSERT_TRUE(pid.has_value());
  ::kill(*pid, SIGKILL);
  ASSERT_TRUE(wait([&] { return !problem().empty(); }));
  EXPECT_FALSE(exists("nvidia.com/gpu/.started"));
  EXPECT_FALSE(exists(".ready"));
  ASSERT_TRUE(wait_ready()) << problem();
  EXPECT_NE(daemon(), pid);
  EXPECT_EQ(control_->starts().at(kGpu), 2U);
  EXPECT_TRUE(exists(".ready"));
  // The limits of the new one, too.
  EXPECT_EQ(std::ranges::count(told(), "set_default_active_thread_percentage 25"), 2);
}

TEST_F(MpsControlTest, OneThatHangsIsEndedAndStartedAgain) {
  options_.answer_limit = 300 * kMsInUs;
  begin();
  ASSERT_TRUE(wait_ready());
  const auto pid = daemon();
  behave("silent");
  ASSERT_TRUE(wait([&] { return !problem().empty(); }));
  EXPECT_THAT(problem(), HasSubstr("did not answer"));
  ASSERT_TRUE(wait([&] { return daemon() != pid; }));
  behave_well("silent");
  ASSERT_TRUE(wait_ready()) << problem();
  EXPECT_NE(daemon(), pid);
}

TEST_F(MpsControlTest, TheLoopGoesOnWhileItHangs) {
  begin();
  ASSERT_TRUE(wait_ready());
  behave("silent");
  options_.answer_limit = 10 * kSecondInUs;
  begin();
  TimeUs longest = 0;
  for (int i = 0; i < 20; ++i) {
    const TimeUs before = loop_.now();
    loop_.turn(10 * kMsInUs);
    longest = std::max(longest, loop_.now() - before);
  }
  EXPECT_LT(longest, kSecondInUs);
  EXPECT_EQ(problem(), "not asked yet");
}

TEST_F(MpsControlTest, JunkIsAnAnswer) {
  begin();
  ASSERT_TRUE(wait_ready());
  behave("junk");
  const auto pid = daemon();
  for (int i = 0; i < 10; ++i) loop_.turn(20 * kMsInUs);
  EXPECT_EQ(problem(), "");
  EXPECT_EQ(daemon(), pid);
}

TEST_F(MpsControlTest, WhatItSaysWhenItCannotStartIsTold) {
  behave("refuse");
  begin();
  ASSERT_TRUE(wait([&] { return problem().find("no GPU of mine") != std::string::npos; }));
  EXPECT_FALSE(exists(".ready"));
  behave_well("refuse");
  ASSERT_TRUE(wait_ready()) << problem();
}

TEST_F(MpsControlTest, WithoutTheProgramTheCureIsTold) {
  options_.search_path = "/nowhere";
  options_.driver_root = "/driver-root-of-nobody";
  begin();
  ASSERT_TRUE(wait([&] { return problem() != "not asked yet"; }));
  EXPECT_THAT(problem(), HasSubstr("NVIDIA_DRIVER_CAPABILITIES"));
}

TEST_F(MpsControlTest, AFolderThatCannotBeMadeIsTold) {
  ASSERT_TRUE(write_file(folder_.path("mps"), "a file"));
  begin();
  ASSERT_TRUE(wait([&] { return problem().find("cannot be made") != std::string::npos; }))
      << problem();
}

TEST_F(MpsControlTest, AModeThatCannotBeSetStopsNothing) {
  mode_problem_ = "not supported";
  begin();
  ASSERT_TRUE(wait_ready());
  EXPECT_THAT(sink_.lines, ::testing::Contains(HasSubstr("not supported")));
}

TEST_F(MpsControlTest, OtherLimitsReachTheSameDaemon) {
  begin();
  ASSERT_TRUE(wait_ready());
  const auto pid = daemon();
  control_->want({wanted(50)});
  ASSERT_TRUE(wait([&] { return was_told("set_default_active_thread_percentage 50"); }));
  EXPECT_EQ(daemon(), pid);
  EXPECT_EQ(problem(), "");
}

TEST_F(MpsControlTest, QuitsOnceNobodyHoldsAShare) {
  begin();
  ASSERT_TRUE(wait_ready());
  is_held_ = true;
  control_->want({});
  for (int i = 0; i < 10; ++i) loop_.turn(20 * kMsInUs);
  EXPECT_FALSE(was_told("quit"));
  EXPECT_TRUE(daemon().has_value());
  EXPECT_EQ(modes_["GPU-1"], 3);
  is_held_ = false;
  ASSERT_TRUE(wait([&] { return control_->is_done(); }));
  EXPECT_TRUE(was_told("quit"));
  EXPECT_THAT(modes_, ElementsAre(Pair("GPU-0", 0), Pair("GPU-1", 2)));
  EXPECT_FALSE(exists("nvidia.com/gpu/.started"));
  EXPECT_FALSE(exists(".ready"));
  EXPECT_FALSE(exists(".jogak"));
}

TEST_F(MpsControlTest, WhatAnEarlierAgentLeftIsUndone) {
  begin();
  ASSERT_TRUE(wait_ready());
  make();
  control_->want({});
  ASSERT_TRUE(wait([&] { return control_->is_done(); }));
  EXPECT_TRUE(was_told("quit"));
  EXPECT_EQ(modes_["GPU-1"], 2);
}

TEST_F(MpsControlTest, WantedAgainBeforeItQuits) {
  begin();
  ASSERT_TRUE(wait_ready());
  const auto pid = daemon();
  is_held_ = true;
  control_->want({});
  loop_.turn(20 * kMsInUs);
  control_->want({wanted()});
  ASSERT_TRUE(wait_ready());
  is_held_ = false;
  for (int i = 0; i < 5; ++i) loop_.turn(20 * kMsInUs);
  EXPECT_EQ(daemon(), pid);
  EXPECT_FALSE(was_told("quit"));
}

TEST_F(MpsControlTest, ARecordOfJunkIsLeftAlone) {
  fs::create_directory(folder_.path("mps"));
  ASSERT_TRUE(write_file(folder_.path("mps/.jogak"), "daemon ../../x\n"));
  make();
  control_->want({});
  EXPECT_THAT(sink_.lines, ::testing::Contains(HasSubstr("line 1")));
  EXPECT_TRUE(exists(".jogak"));
}

TEST_F(MpsControlTest, ThatOfSomebodyElseIsOnlyAsked) {
  options_.owns = false;
  begin();
  ASSERT_TRUE(wait([&] { return problem().find(".started") != std::string::npos; }));
  control_.reset();
  // It is another agent here, with other limits.
  options_.owns = true;
  make();
  control_->want({wanted(10)});
  ASSERT_TRUE(wait_ready());
  control_.reset();
  const auto before = told();
  options_.owns = false;
  modes_ = {{"GPU-0", 0}, {"GPU-1", 0}};
  begin();
  ASSERT_TRUE(wait_ready());
  EXPECT_EQ(told(), before);
  EXPECT_EQ(modes_["GPU-0"], 0);
  control_->want({});
  for (int i = 0; i < 5; ++i) loop_.turn(20 * kMsInUs);
  EXPECT_TRUE(daemon().has_value());
}

TEST_F(MpsControlTest, IsPutIntoAGroupOfItsOwn) {
  options_.cgroup = folder_.path("cgroup");
  fs::create_directory(options_.cgroup);
  ASSERT_TRUE(write_file(options_.cgroup + "/cgroup.procs", ""));
  begin();
  ASSERT_TRUE(wait_ready());
  EXPECT_EQ(read_file(options_.cgroup + "/cgroup.procs"), std::to_string(*daemon()));
}

TEST_F(MpsControlTest, WhereThatIsNotPossibleItIsSaid) {
  options_.cgroup = folder_.path("cgroup");
  begin();
  ASSERT_TRUE(wait_ready());
  EXPECT_THAT(sink_.lines, ::testing::Contains(HasSubstr("not a control group of version 2")));
  EXPECT_FALSE(fs::exists(options_.cgroup));
}

// In a mount namespace of the test's own, where the system grants one; else nothing is mounted, and
// the folder has to do.
TEST_F(MpsControlTest, SharedMemoryIsATmpfsOfItsOwn) {
  const MpsFolder folder(folder_.path());
  const pid_t child = ::fork();
  if (child == 0) {
    const bool may =
        ::unshare(CLONE_NEWNS) == 0 && ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    const auto first = folder.make_shm(may);
    const auto second = folder.make_shm(may);
    const bool is_right =
        first && second && *first == *second && *first == (may ? folder.shm() : std::string());
    ::_exit(is_right && fs::exists(folder.shm()) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(MpsControlTest, TheProgramIsFoundInThePathAndThenInTheDriversRoot) {
  EXPECT_EQ(find_mps_program("relative:/nowhere:" + folder_.path("bin"), ""),
            (MpsProgram{.path = program()}));
  fs::create_directories(folder_.path("driver/usr/bin"));
  fs::copy(program(), folder_.path("driver/usr/bin"));
  EXPECT_EQ(
      find_mps_program("/nowhere", folder_.path("driver")),
      (MpsProgram{.root = folder_.path("driver"), .path = "/usr/bin/nvidia-cuda-mps-control"}));
  EXPECT_EQ(find_mps_program("/nowhere", "/"), std::nullopt);
}

TEST_F(MpsControlTest, APidOfAnotherProgramIsNotTheDaemons) {
  const MpsFolder folder(folder_.path());
  ASSERT_TRUE(folder.make(kGpu));
  const std::string file = folder.pipe(kGpu) + "/nvidia-cuda-mps-control.pid";
  for (const std::string& text : {std::to_string(::getpid()), std::string("1"), std::string("-1"),
                                  std::string("x"), std::string(1000, '9'), std::string()}) {
    ASSERT_TRUE(write_file(file, text));
    EXPECT_EQ(folder.pid(kGpu), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace jogak::agent
