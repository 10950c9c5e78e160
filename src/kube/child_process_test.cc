// SPDX-License-Identifier: Apache-2.0
//
// Small shell programs on a real loop.
#include "kube/child_process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "base/testing/temp_folder.h"

namespace jogak::kube {
namespace {

using testing::HasSubstr;

class ChildProcessTest : public testing::Test {
 protected:
  static ChildOptions shell(std::string script) {
    return {
        .command = "sh", .args = {"-c", std::move(script)}, .environment = {"PATH=/usr/bin:/bin"}};
  }
  ChildOutcome run(ChildOptions options) {
    std::optional<ChildOutcome> outcome;
    auto child = ChildProcess::start(loop_, std::move(options),
                                     [&](ChildOutcome got) { outcome = std::move(got); });
    EXPECT_TRUE(child.has_value()) << child.error().what;
    EXPECT_FALSE(outcome.has_value());
    const TimeUs end = loop_.now() + 20 * kSecondInUs;
    while (!outcome && loop_.now() < end) loop_.turn(100 * kMsInUs);
    EXPECT_TRUE(outcome.has_value());
    return outcome.value_or(ChildOutcome{});
  }

  net::EpollLoop loop_;
};

TEST_F(ChildProcessTest, OutputErrorsAndExitCode) {
  const ChildOutcome outcome = run(shell("echo out; echo err >&2; exit 7"));
  EXPECT_EQ(outcome.output, "out\n");
  EXPECT_EQ(outcome.errors, "err\n");
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_FALSE(outcome.is_timed_out);
}

TEST_F(ChildProcessTest, ArgumentsAndEnvironmentAreAsGiven) {
  ChildOptions options = shell("echo \"$A|$1|${HOME-none}\"");
  options.args.insert(options.args.end(), {"name", "one two"});
  options.environment.emplace_back("A=b c");
  EXPECT_EQ(run(options).output, "b c|one two|none\n");
}

TEST_F(ChildProcessTest, ReadsWhatItIsGiven) {
  ChildOptions options = shell("cat");
  options.input = "one\ntwo";
  EXPECT_EQ(run(options).output, "one\ntwo");
  options.input.assign(5000, 'x');
  EXPECT_EQ(ChildProcess::start(loop_, options, nullptr).error().code, Errc::Unavailable);
}

TEST_F(ChildProcessTest, EntersWhereItIsToRun) {
  const TempFolder folder;
  ChildOptions options = shell("pwd; cat; ls /proc/self/fd | sort -n | tr '\\n' ' '; exit 3");
  options.command = "/bin/sh";
  options.input = "read\n";
  options.enter = [path = folder.path()] { return ::chdir(path.c_str()) == 0 ? 0 : errno; };
  const ChildOutcome outcome = run(options);
  EXPECT_EQ(outcome.output, folder.path() + "\nread\n0 1 2 3 ");
  EXPECT_EQ(outcome.exit_code, 3);
}

TEST_F(ChildProcessTest, WhatItCannotEnterIsTold) {
  ChildOptions options = shell("true");
  options.enter = [] { return EPERM; };
  const auto refused = ChildProcess::start(loop_, options, nullptr);
  EXPECT_THAT(refused.error().what, HasSubstr("Operation not permitted"));
  options.command = "/no/such/program";
  options.enter = [] { return 0; };
  EXPECT_EQ(ChildProcess::start(loop_, options, nullptr).error().code, Errc::NotFound);
}

TEST_F(ChildProcessTest, ReadsNothingAndInheritsNoDescriptor) {
  EXPECT_EQ(run(shell("cat; ls /proc/self/fd | sort -n | tr '\\n' ' '")).output, "0 1 2 3 ")
      << "3 is that of ls itself";
}

TEST_F(ChildProcessTest, MoreThanAPipeHolds) {
  const ChildOutcome outcome = run(shell("head -c 500000 /dev/zero; head -c 9000 /dev/zero >&2"));
  EXPECT_EQ(outcome.output.size(), 500'000U);
  EXPECT_EQ(outcome.errors.size(), 4096U);
  EXPECT_EQ(outcome.exit_code, 0);
}

TEST_F(ChildProcessTest, TooMuchOutputEndsIt) {
  ChildOptions options = shell("cat /dev/zero");
  options.output_bytes_max = 10'000;
  EXPECT_TRUE(run(options).is_output_too_long);
}

TEST_F(ChildProcessTest, TheTimeLimitEndsItAndWhatItStarted) {
  ChildOptions options = shell("cat /dev/zero > /dev/null & wait");
  options.time_limit = 50 * kMsInUs;
  const ChildOutcome outcome = run(options);
  EXPECT_TRUE(outcome.is_timed_out);
  EXPECT_EQ(outcome.exit_code, 128 + 9);
}

// A grandchild holds the pipes open.
TEST_F(ChildProcessTest, EndsThoughThePipesStayOpen) {
  const TempFolder folder;
  const std::string fifo = folder.path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const ChildOutcome outcome = run(shell("cat " + fifo + " & echo done"));
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.output, "done\n");
  ::close(::open(fifo.c_str(), O_RDWR | O_NONBLOCK));  // lets it end
}

TEST_F(ChildProcessTest, NoSuchProgram) {
  const TempFolder folder;
  for (const std::string& command : {std::string("no-such-program-here"), folder.path("nothing")}) {
    const auto child = ChildProcess::start(loop_, {.command = command}, [](const ChildOutcome&) {});
    ASSERT_FALSE(child.has_value());
    EXPECT_EQ(child.error().code, Errc::NotFound);
    EXPECT_THAT(child.error().what, HasSubstr(command));
  }
  const auto folder_is_none =
      ChildProcess::start(loop_, {.command = folder.path()}, [](const ChildOutcome&) {});
  EXPECT_EQ(folder_is_none.error().code, Errc::Invalid);
}

TEST_F(ChildProcessTest, DroppingItKillsIt) {
  bool is_called = false;
  auto child = ChildProcess::start(loop_, shell("cat /dev/zero > /dev/null"),
                                   [&](const ChildOutcome&) { is_called = true; });
  ASSERT_TRUE(child.has_value());
  child->reset();
  for (int i = 0; i < 5; ++i) loop_.turn(kMsInUs);
  EXPECT_FALSE(is_called);
}

TEST_F(ChildProcessTest, MayBeDroppedAtItsEnd) {
  bool is_done = false;
  std::unique_ptr<ChildProcess> own;
  own = ChildProcess::start(loop_, shell("exit 0"), [&](const ChildOutcome&) {
          own.reset();
          is_done = true;
        }).value();
  const TimeUs end = loop_.now() + 20 * kSecondInUs;
  while (!is_done && loop_.now() < end) loop_.turn(100 * kMsInUs);
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace jogak::kube
