// SPDX-License-Identifier: Apache-2.0
//
// Flags of a command as a table: it is parsed from, checked against, and printed as help.
//
//   constexpr Flag kFlags[] = {
//       {.name = "seed", .kind = FlagKind::Int, .metavar = "N", .help = "random seed",
//        .fallback = "1"},
//       {.name = "output", .letter = 'o', .kind = FlagKind::Choice, .metavar = "text|json|yaml",
//        .help = "form of the report", .fallback = "text"},
//       {.name = "verbose", .kind = FlagKind::Switch, .help = "say more"},
//   };
//   constexpr ArgTable kTable = {.command = "jogak demo", .operands = "[FILE]...",
//                                .summary = "a short tour", .flags = kFlags};
//
// Flags may stand anywhere: `--flag=value`, `--flag value`, `-o json`, `-ojson`; "--" ends them.
// The last of two equal flags counts, except for Repeated ones, which collect. `--help` is built
// in.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace jogak {

enum class FlagKind : std::uint8_t {
  Switch,    // no value; off unless given
  String,    // any text
  Int,       // whole number in [min, max]
  Choice,    // one of the words in metavar, which has '|' between them
  Repeated,  // any text, any number of times
};

struct Flag {
  std::string_view name = {};  // without the dashes
  char letter = 0;             // a short form, or none
  FlagKind kind = FlagKind::String;
  std::string_view metavar = "TEXT";  // what stands for the value in the help
  std::string_view help = {};
  std::string_view fallback = {};  // value when the flag is not given; shown in the help
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  bool is_required = false;
};

struct ArgTable {
  std::string_view command = {};   // as typed: "jogak sim openb"
  std::string_view operands = {};  // what follows the flags, for the usage line: "TRACE_DIR"
  std::string_view summary = {};
  std::span<const Flag> flags = {};
  std::size_t operands_min = 0;
  std::size_t operands_max = 0;
  std::span<const std::string_view> examples = {};  // whole command lines
};

// What parse_args found. Asking for a flag that the table does not have, or in another kind, is a
// bug of the command and fails a check.
class ParsedArgs {
 public:
  bool wants_help() const { return wants_help_; }
  bool is_given(std::string_view flag) const;

  bool is_on(std::string_view flag) const;           // Switch
  std::string text(std::string_view flag) const;     // String, Choice; the fallback if not given
  std::int64_t number(std::string_view flag) const;  // Int; needs a fallback or is_given()
  const std::vector<std::string>& list(std::string_view flag) const;  // Repeated
  const std::vector<std::string>& operands() const { return operands_; }

 private:
  friend class ArgParser;

  struct Value {
    FlagKind kind = FlagKind::Switch;
    bool is_given = false;
    std::string text;
    std::int64_t number = 0;
    std::vector<std::string> list;
  };

  const Value& value(std::string_view flag) const;

  bool wants_help_ = false;
  std::map<std::string, Value, std::less<>> values_;
  std::vector<std::string> operands_;
};

// Errors are of use: they name the flag or operand, and say what would be right. With --help among
// the words, nothing else is checked.
Result<ParsedArgs> parse_args(const ArgTable& table, std::span<const std::string_view> words);

// Usage, summary, flags with their defaults, examples.
std::string help_text(const ArgTable& table);

}  // namespace jogak
