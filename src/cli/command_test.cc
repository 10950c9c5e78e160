// SPDX-License-Identifier: Apache-2.0
//
// The walk through a table of commands, and the real table's promises.
#include "cli/command.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "cli/commands.h"

namespace jogak::cli {
namespace {

using Words = std::vector<std::string_view>;

int count_words(std::span<const std::string_view> args) { return static_cast<int>(args.size()); }
int answer_forty(std::span<const std::string_view>) { return 40; }

constexpr std::array<Command, 1> kGroup = {
    Command{.name = "openb", .summary = "a child", .run = answer_forty}};
constexpr std::array<Command, 2> kTable = {
    Command{.name = "count", .summary = "counts", .run = count_words},
    Command{.name = "sim", .summary = "a group", .children = kGroup}};

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome run(const Words& words) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = dispatch(kTable, words);
  std::fflush(nullptr);
  return {.code = code,
          .out = testing::internal::GetCapturedStdout(),
          .err = testing::internal::GetCapturedStderr()};
}

TEST(Dispatch, RunsWithTheWordsAfterTheName) {
  EXPECT_EQ(run({"count"}).code, 0);
  EXPECT_EQ(run({"count", "a", "--help"}).code, 2);  // help of a command is its own
  EXPECT_EQ(run({"sim", "openb"}).code, 40);
}

TEST(Dispatch, UnknownCommandIsBadUse) {
  const Outcome outcome = run({"cuont"});
  EXPECT_EQ(outcome.code, kExitUsage);
  EXPECT_EQ(outcome.err,
            "jogak: unknown command cuont; did you mean count?\n"
            "run `jogak --help` for the list\n");
  EXPECT_EQ(run({"sim", "opneb"}).err,
            "jogak: unknown command sim opneb; did you mean openb?\n"
            "run `jogak sim --help` for the list\n");
}

TEST(Dispatch, HelpGoesToStdoutAndItsAbsenceToStderr) {
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.code, kExitDone);
  EXPECT_EQ(help.out, help_text(kTable, ""));
  const Outcome nothing = run({});
  EXPECT_EQ(nothing.code, kExitUsage);
  EXPECT_EQ(nothing.err, help_text(kTable, ""));
  EXPECT_EQ(run({"sim"}).code, kExitUsage);
  EXPECT_EQ(run({"sim", "--help"}).out, help_text(kGroup, "sim"));
}

TEST(HelpText, ShowsGroupsAsTheirCommands) {
  EXPECT_EQ(help_text(kTable, ""), R"(jogak: a GPU scheduler for Kubernetes

usage: jogak COMMAND [--help] ...

commands:
  count      counts
  sim openb  a child

run `jogak COMMAND --help` for what a command takes
)");
}

void check_rows(std::span<const Command> commands) {
  for (const Command& command : commands) {
    EXPECT_FALSE(command.name.empty());
    EXPECT_FALSE(command.summary.empty()) << command.name;
    EXPECT_FALSE(command.summary.ends_with('.')) << command.name;
    EXPECT_NE(command.run == nullptr, command.children.empty()) << command.name;
    check_rows(command.children);
  }
}

TEST(CommandTable, RowsAreWhole) { check_rows(command_table()); }

TEST(CommandTable, VersionTakesNothing) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(cmd_version({}), kExitDone);
  std::fflush(nullptr);
  EXPECT_TRUE(testing::internal::GetCapturedStdout().starts_with("jogak "));
  const Words words = {"extra"};
  EXPECT_EQ(cmd_version(words), kExitUsage);
}

}  // namespace
}  // namespace jogak::cli
