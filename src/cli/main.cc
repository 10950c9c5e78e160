// SPDX-License-Identifier: Apache-2.0
//
// The jogak program: hands the words of the command line to the table of subcommands.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "cli/command.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  const int code = jogak::cli::dispatch(jogak::cli::command_table(), words);
  if (std::fflush(stdout) != 0) {  // an answer that did not arrive was not given
    fmt::print(stderr, "jogak: write to stdout: {}\n", std::strerror(errno));
    return jogak::cli::kExitFailed;
  }
  return code;
}
