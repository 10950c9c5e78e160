// SPDX-License-Identifier: Apache-2.0
//
// The jogak program: hands the words of the command line to the table of subcommands.
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  return jogak::cli::dispatch(jogak::cli::command_table(), words);
}
