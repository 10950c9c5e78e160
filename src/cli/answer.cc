// SPDX-License-Identifier: Apache-2.0
//
// The common first and last lines of commands.
#include "cli/answer.h"

#include <fmt/core.h>

#include "base/check.h"

namespace jogak::cli {

std::optional<ParsedArgs> parse_or_answer(const ArgTable& table,
                                          std::span<const std::string_view> words, int& exit_code) {
  auto args = parse_args(table, words);
  if (!args) {
    fmt::print(stderr, "{}: {}\nrun `{} --help` for what it takes\n", table.command,
               args.error().what, table.command);
    exit_code = kExitUsage;
    return std::nullopt;
  }
  if (args->wants_help()) {
    fmt::print("{}", help_text(table));
    exit_code = kExitDone;
    return std::nullopt;
  }
  return *std::move(args);
}

int report_error(std::string_view command, const Error& error) {
  fmt::print(stderr, "{}: {}\n", command, error.what);
  const bool is_bad_input = error.code == Errc::Invalid || error.code == Errc::NotFound;
  return is_bad_input ? kExitUsage : kExitFailed;
}

int answer(const ArgTable& table, std::span<const std::string_view> words,
           Result<int> (*run)(const ParsedArgs&)) {
  int exit_code = kExitDone;
  const auto args = parse_or_answer(table, words, exit_code);
  if (!args) return exit_code;
  const auto code = run(*args);
  return code ? *code : report_error(table.command, code.error());
}

void print_doc(const Doc& doc, std::string_view form) {
  JOGAK_CHECK(form == "json" || form == "yaml", "no form {}", form);
  fmt::print("{}", form == "json" ? doc.json() : doc.yaml());
}

}  // namespace jogak::cli
