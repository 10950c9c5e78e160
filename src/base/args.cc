// SPDX-License-Identifier: Apache-2.0
//
// The walk over the words, and the help text.
#include "base/args.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/check.h"
#include "base/edit_distance.h"
#include "base/parse_number.h"
#include "base/text_table.h"

namespace jogak {

namespace {

constexpr Flag kHelpFlag = {
    .name = "help", .letter = 'h', .kind = FlagKind::Switch, .help = "print this and stop"};

std::vector<std::string_view> choices_of(const Flag& flag) {
  std::vector<std::string_view> choices;
  for (const auto part : std::views::split(flag.metavar, '|')) {
    choices.emplace_back(part.begin(), part.end());
  }
  return choices;
}

constexpr std::size_t kHelpColumns = 80;

// The words of `text` on lines of at most `columns` characters; a longer word has its own line.
std::string wrapped(std::string_view text, std::size_t columns) {
  std::string out;
  std::size_t line_start = 0;
  for (const auto part : std::views::split(text, ' ')) {
    const std::string_view word(part.begin(), part.end());
    if (out.size() > line_start) {
      const bool fits = out.size() + 1 + word.size() - line_start <= columns;
      out += fits ? ' ' : '\n';
      if (!fits) line_start = out.size();
    }
    out += word;
  }
  return out;
}

// "--output" or, with a letter, "-o, --output", then its value.
std::string flag_usage(const Flag& flag) {
  std::string usage = flag.letter != 0 ? fmt::format("-{}, ", flag.letter) : "    ";
  usage += fmt::format("--{}", flag.name);
  if (flag.kind != FlagKind::Switch) usage += fmt::format(" {}", flag.metavar);
  return usage;
}

std::string flag_help(const Flag& flag) {
  std::string help(flag.help);
  if (flag.kind == FlagKind::Repeated) help += " (may be repeated)";
  if (flag.is_required) help += " (required)";
  if (!flag.fallback.empty()) help += fmt::format(" (default {})", flag.fallback);
  return help;
}

}  // namespace

class ArgParser {
 public:
  ArgParser(const ArgTable& table, std::span<const std::string_view> words)
      : table_(table), words_(words) {
    args_.values_["help"] = {};
    for (const Flag& flag : table.flags) {
      ParsedArgs::Value& value = args_.values_[std::string(flag.name)];
      value.kind = flag.kind;
      if (flag.fallback.empty()) continue;
      const Result<void> is_ok = take(flag, value, flag.fallback);
      JOGAK_CHECK(is_ok.has_value(), "{}: bad default: {}", table.command, is_ok.error().what);
    }
  }

  Result<ParsedArgs> parse() {
    if (asks_for_help()) {
      args_.wants_help_ = true;
      return std::move(args_);
    }
    bool flags_ended = false;
    while (!words_.empty()) {
      const std::string_view word = words_.front();
      words_ = words_.subspan(1);
      if (!flags_ended && word == "--") {
        flags_ended = true;
      } else if (!flags_ended && word.starts_with("--")) {
        JOGAK_TRY_VOID(long_flag(word));
      } else if (!flags_ended && word.size() > 1 && word.front() == '-') {
        JOGAK_TRY_VOID(short_flag(word));
      } else {
        args_.operands_.emplace_back(word);
      }
    }
    JOGAK_TRY_VOID(check_complete());
    return std::move(args_);
  }

 private:
  bool asks_for_help() const {
    const auto end = std::ranges::find(words_, "--");
    return std::any_of(words_.begin(), end,
                       [](std::string_view word) { return word == "--help" || word == "-h"; });
  }

  Result<void> long_flag(std::string_view word) {
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(2, equals == word.npos ? equals : equals - 2);
    const auto flag = std::ranges::find(table_.flags, name, &Flag::name);
    if (flag == table_.flags.end()) {
      const auto names = table_.flags | std::views::transform([](const Flag& known) {
                           return "--" + std::string(known.name);
                         });
      const std::string dashed = "--" + std::string(name);
      return invalid("unknown flag {}{}", dashed, did_you_mean(dashed, names));
    }
    if (equals != word.npos) return set(*flag, word.substr(equals + 1));
    return set_from_next_word(*flag);
  }

  Result<void> short_flag(std::string_view word) {
    const auto flag = std::ranges::find(table_.flags, word[1], &Flag::letter);
    if (flag == table_.flags.end()) return invalid("unknown flag {}", word.substr(0, 2));
    if (word.size() == 2) return set_from_next_word(*flag);
    if (flag->kind == FlagKind::Switch) {
      return invalid("unknown flag {}; write short flags apart", word);
    }
    return set(*flag, word.substr(word[2] == '=' ? 3 : 2));
  }

  Result<void> set_from_next_word(const Flag& flag) {
    if (flag.kind == FlagKind::Switch) return set(flag, "true");
    if (words_.empty() || words_.front().starts_with("--")) {
      return invalid("--{}: needs a value, as in --{}={}", flag.name, flag.name, flag.metavar);
    }
    const std::string_view text = words_.front();
    words_ = words_.subspan(1);
    return set(flag, text);
  }

  Result<void> set(const Flag& flag, std::string_view text) {
    ParsedArgs::Value& value = args_.values_.find(flag.name)->second;
    value.is_given = true;
    return take(flag, value, text);
  }

  static Result<void> take(const Flag& flag, ParsedArgs::Value& value, std::string_view text) {
    switch (flag.kind) {
      case FlagKind::Switch:
        if (text != "true" && text != "false") {
          return invalid("--{}: is a switch and takes no value \"{}\"", flag.name, text);
        }
        value.number = text == "true" ? 1 : 0;
        break;
      case FlagKind::Int: {
        auto number = parse_int(text, flag.min, flag.max);
        if (!number) return in_context(fmt::format("--{}", flag.name), std::move(number).error());
        value.number = *number;
        break;
      }
      case FlagKind::Choice: {
        const auto choices = choices_of(flag);
        if (std::ranges::find(choices, text) == choices.end()) {
          return invalid("--{}: \"{}\" is not one of {}{}", flag.name, text, flag.metavar,
                         did_you_mean(text, choices));
        }
        break;
      }
      case FlagKind::Repeated:
        value.list.emplace_back(text);
        break;
      case FlagKind::String:
        break;
    }
    value.text = text;
    return {};
  }

  Result<void> check_complete() const {
    for (const Flag& flag : table_.flags) {
      if (flag.is_required && !args_.is_given(flag.name)) {
        return invalid("--{} {} is required: {}", flag.name, flag.metavar, flag.help);
      }
    }
    const std::size_t count = args_.operands_.size();
    if (count < table_.operands_min) return invalid("missing operand: {}", table_.operands);
    if (count > table_.operands_max) {
      return invalid("unexpected operand \"{}\"", args_.operands_[table_.operands_max]);
    }
    return {};
  }

  const ArgTable& table_;
  std::span<const std::string_view> words_;
  ParsedArgs args_;
};

const ParsedArgs::Value& ParsedArgs::value(std::string_view flag) const {
  const auto it = values_.find(flag);
  JOGAK_CHECK(it != values_.end(), "no flag --{} in the table", flag);
  return it->second;
}

bool ParsedArgs::is_given(std::string_view flag) const { return value(flag).is_given; }

bool ParsedArgs::is_on(std::string_view flag) const {
  JOGAK_CHECK(value(flag).kind == FlagKind::Switch, "--{}", flag);
  return value(flag).number != 0;
}

std::string ParsedArgs::text(std::string_view flag) const {
  const FlagKind kind = value(flag).kind;
  JOGAK_CHECK(kind == FlagKind::String || kind == FlagKind::Choice, "--{}", flag);
  return value(flag).text;
}

std::int64_t ParsedArgs::number(std::string_view flag) const {
  JOGAK_CHECK(value(flag).kind == FlagKind::Int, "--{}", flag);
  JOGAK_CHECK(!value(flag).text.empty(), "--{} was not given and has no default", flag);
  return value(flag).number;
}

const std::vector<std::string>& ParsedArgs::list(std::string_view flag) const {
  JOGAK_CHECK(value(flag).kind == FlagKind::Repeated, "--{}", flag);
  return value(flag).list;
}

Result<ParsedArgs> parse_args(const ArgTable& table, std::span<const std::string_view> words) {
  return ArgParser(table, words).parse();
}

std::string help_text(const ArgTable& table) {
  std::string text = fmt::format("usage: {} [flags]{}{}\n\n{}\n\nflags:\n", table.command,
                                 table.operands.empty() ? "" : " ", table.operands,
                                 wrapped(table.summary, kHelpColumns));
  TextTable flags({{""}, {""}});
  for (const Flag& flag : table.flags) flags.add(flag_usage(flag), flag_help(flag));
  flags.add(flag_usage(kHelpFlag), flag_help(kHelpFlag));
  const std::string rows = flags.text(2);
  text += rows.substr(rows.find('\n') + 1);  // without the header line, which is empty
  if (!table.examples.empty()) {
    text += "\nexamples:\n";
    for (const std::string_view example : table.examples) text += fmt::format("  {}\n", example);
  }
  return text;
}

}  // namespace jogak
