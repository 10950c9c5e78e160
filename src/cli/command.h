// SPDX-License-Identifier: Apache-2.0
//
// A subcommand as a row in a table, and the walk from words on the command line to that row. Groups
// (`sim openb`, `gen cluster`) are rows whose children are another table.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace jogak::cli {

// What a command returns to the shell.
inline constexpr int kExitDone = 0;    // it did what was asked
inline constexpr int kExitFailed = 1;  // it ran, and the answer is no or something failed
inline constexpr int kExitUsage = 2;   // bad use or bad input

// Either `run` or `children` is set. `run` gets the words after the command's own name.
struct Command {
  std::string_view name = {};
  std::string_view summary = {};  // one line, lower case, no full stop
  int (*run)(std::span<const std::string_view> args) = nullptr;
  std::span<const Command> children = {};
};

// Finds the command that `args` names and runs it with the rest. Without a command, or with --help
// in its place, prints the table; an unknown name gets a suggestion and kExitUsage.
int dispatch(std::span<const Command> commands, std::span<const std::string_view> args);

// The text that `jogak --help` (path empty) or `jogak gen --help` (path "gen") prints.
std::string help_text(std::span<const Command> commands, std::string_view path);

}  // namespace jogak::cli
