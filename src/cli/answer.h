// SPDX-License-Identifier: Apache-2.0
//
// What every command does first and last: read its words (or print help, or say what is wrong with
// them), print its answer in the form asked for, turn an error into a message and an exit code.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/args.h"
#include "base/doc.h"
#include "base/result.h"
#include "cli/command.h"

namespace jogak::cli {

// The flag by which all commands choose a form; "table" is the command's own, for people.
inline constexpr Flag kOutputFlag = {.name = "output",
                                     .letter = 'o',
                                     .kind = FlagKind::Choice,
                                     .metavar = "table|json|yaml",
                                     .help = "form of the answer",
                                     .fallback = "table"};

// The same for commands that write a file for another command to read.
inline constexpr Flag kFileFormFlag = {.name = "output",
                                       .letter = 'o',
                                       .kind = FlagKind::Choice,
                                       .metavar = "yaml|json",
                                       .help = "form of the file",
                                       .fallback = "yaml"};

// The parsed words. Nothing when there is no more to do: --help was printed (exit_code kExitDone)
// or the words are wrong and stderr says how (kExitUsage).
std::optional<ParsedArgs> parse_or_answer(const ArgTable& table,
                                          std::span<const std::string_view> words, int& exit_code);

// Says "COMMAND: error" on stderr. kExitUsage for bad input (Invalid, NotFound), else kExitFailed.
int report_error(std::string_view command, const Error& error);

// A whole command: parses, runs, reports. `run` returns the exit code.
int answer(const ArgTable& table, std::span<const std::string_view> words,
           Result<int> (*run)(const ParsedArgs&));

// Prints the document as `form` ("json" or "yaml") says.
void print_doc(const Doc& doc, std::string_view form);

}  // namespace jogak::cli
