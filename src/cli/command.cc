// SPDX-License-Identifier: Apache-2.0
//
// Walks the table of subcommands and prints its help.
#include "cli/command.h"

#include <algorithm>
#include <ranges>
#include <vector>

#include <fmt/core.h>

#include "base/check.h"
#include "base/edit_distance.h"

namespace jogak::cli {

namespace {

bool asks_for_help(std::string_view word) {
  return word == "--help" || word == "-h" || word == "help";
}

const Command* find(std::span<const Command> commands, std::string_view name) {
  const auto it = std::ranges::find(commands, name, &Command::name);
  return it == commands.end() ? nullptr : &*it;
}

std::string joined(std::string_view path, std::string_view name) {
  return fmt::format("{}{}{}", path, path.empty() || name.empty() ? "" : " ", name);
}

int unknown_command(std::span<const Command> commands, std::string_view path,
                    std::string_view word) {
  const auto names = commands | std::views::transform(&Command::name);
  fmt::print(stderr, "jogak: unknown command {}{}\n", joined(path, word),
             did_you_mean(word, names));
  fmt::print(stderr, "run `{} --help` for the list\n", joined("jogak", path));
  return kExitUsage;
}

}  // namespace

std::string help_text(std::span<const Command> commands, std::string_view path) {
  const std::string program = joined("jogak", path);
  std::string text;
  if (path.empty()) text += "jogak: a GPU scheduler for Kubernetes\n\n";
  text += fmt::format("usage: {} COMMAND [--help] ...\n\ncommands:\n", program);

  struct Row {
    std::string name;
    std::string_view summary;
  };
  std::vector<Row> rows;
  for (const Command& command : commands) {
    if (command.children.empty()) rows.push_back({std::string(command.name), command.summary});
    for (const Command& child : command.children) {
      rows.push_back({joined(command.name, child.name), child.summary});
    }
  }
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  for (const Row& row : rows) text += fmt::format("  {:<{}}  {}\n", row.name, width, row.summary);

  text += fmt::format("\nrun `{} COMMAND --help` for what a command takes\n", program);
  return text;
}

int dispatch(std::span<const Command> commands, std::span<const std::string_view> args) {
  std::string path;
  for (;;) {
    if (args.empty()) {
      fmt::print(stderr, "{}", help_text(commands, path));
      return kExitUsage;
    }
    const std::string_view word = args.front();
    args = args.subspan(1);
    if (asks_for_help(word)) {
      fmt::print("{}", help_text(commands, path));
      return kExitDone;
    }
    const Command* command = find(commands, word == "--version" ? "version" : word);
    if (command == nullptr) return unknown_command(commands, path, word);
    if (command->children.empty()) {
      JOGAK_CHECK(command->run != nullptr, "command {} does nothing", command->name);
      return command->run(args);
    }
    path = joined(path, command->name);
    commands = command->children;
  }
}

}  // namespace jogak::cli
